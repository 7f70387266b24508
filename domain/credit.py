"""Credit for valid results: cobblestones from estimated work, with a recent average. Pure. docs/formulas.md#credit."""

from __future__ import annotations

import math
from enum import StrEnum

from domain.quick import quick_dataclass
from domain.units import DAY_S, Flop, Instant, Seconds

FLOP_PER_COBBLESTONE = 86400.0e9 / 200.0  # 200 a day on a computer that does 1e9 flop/s
AVERAGE_HALF_LIFE_S = Seconds(7 * 86400.0)
LN2 = math.log(2.0)
SHORT = 1e-6  # decay below which the limit of the formula is used


class CreditKind(StrEnum):
    """The kinds of owners of credit."""

    HOST = "host"
    VOLUNTEER = "volunteer"
    TEAM = "team"


def credit_of(fpops_est_flop: Flop) -> float:
    """Return the credit for a valid result, in cobblestones. Only the job's estimate counts, not what a client claims.

    >>> credit_of(Flop(4.32e11)), credit_of(Flop(86400e9))
    (1.0, 200.0)
    """
    return fpops_est_flop / FLOP_PER_COBBLESTONE


@quick_dataclass(frozen=True, slots=True)
class Credit:
    """The total credit in cobblestones, and the recent average per day as of `at`."""

    total: float = 0.0
    average: float = 0.0
    at: Instant = Instant(0.0)

    def average_at(self, now: Instant) -> float:
        """Return the recent average as of `now`. It halves in a week without new credit.

        >>> Credit(100.0, 8.0, Instant(0.0)).average_at(Instant(14 * 86400.0))
        2.0
        """
        return self.average * math.exp2(-max(0.0, now - self.at) / AVERAGE_HALF_LIFE_S)

    def plus(self, credit: float, now: Instant) -> Credit:
        """Return the credit after a grant of `credit` now, spread over the time since the last one, as in BOINC.

        store/sql/participation.sql (grant_credit) computes the same.

        >>> Credit(100.0, 8.0, Instant(0.0)).plus(700.0, Instant(7 * 86400.0))
        Credit(total=800.0, average=54.00000000000001, at=604800.0)
        """
        since_s = max(0.0, now - self.at) if self.total else 0.0
        kept = math.exp2(-since_s / AVERAGE_HALF_LIFE_S)
        rate = LN2 / AVERAGE_HALF_LIFE_S if 1.0 - kept <= SHORT else (1.0 - kept) / since_s
        return Credit(self.total + credit, self.average * kept + rate * credit * DAY_S, max(self.at, now))


NO_CREDIT = Credit()


@quick_dataclass(frozen=True, slots=True)
class Standing:
    """The credit of a requesting host and of its volunteer, and the volunteer's team; `team_id` 0 = no team."""

    host: Credit = NO_CREDIT
    volunteer: Credit = NO_CREDIT
    team_id: int = 0
    team_name: str = ""


NO_STANDING = Standing()
