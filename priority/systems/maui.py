"""What do Maui's and Moab's displays say of the same figures? Pure.

Facts: the Maui administrator's guide, and the vendor's text on `mdiag -p` and `mdiag -f`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from priority.standings import Target, starred, used_percent


@dataclass(frozen=True, slots=True)
class Credential:
    """A row of a fair-share table: a user, group or service level with its share of each window, newest first."""

    section: str
    name: str
    target: Target | None
    windows: tuple[float, ...]

    @property
    def key(self) -> str:
        return f"{self.section}/{self.name}"


@dataclass(frozen=True, slots=True)
class MauiStanding:
    """What `mdiag -f` prints of a credential: percent of what was delivered, and a star when off target."""

    percent: float
    starred: bool


def fair_share_table(
    rows: Sequence[Credential], total_per_window: Sequence[float], *, decay: float
) -> Mapping[str, MauiStanding]:
    """The rows of `mdiag -f` by "SECTION/name", in their order.

    >>> rows = [Credential("USER", "rosa", Target(20.0), (12.0, 6.0, 2.0))]
    >>> fair_share_table(rows, [20.0, 40.0, 160.0], decay=0.25)["USER/rosa"]
    MauiStanding(percent=8.0, starred=True)
    """
    found: dict[str, MauiStanding] = {}
    for row in rows:
        percent = used_percent(row.windows, total_per_window, decay=decay)
        found[row.key] = MauiStanding(percent, starred(row.target, percent))
    return found
