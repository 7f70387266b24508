"""Over which hosts and volunteers are the instances of one job spread? Pure."""

from __future__ import annotations

from enum import StrEnum

from domain.quick import quick_dataclass


class OnePerVolunteer(StrEnum):
    """For which jobs of an app a volunteer gets one instance at most, over all of the volunteer's hosts."""

    QUORUM = "quorum"  # those of which several results must agree
    ALWAYS = "always"
    NEVER = "never"


@quick_dataclass(frozen=True, slots=True)
class Spread:
    """The limits of one job. A limit per volunteer includes one per host: a host has one owner for good.

    `per_volunteer`: a volunteer gets one instance at most. `per_host`: a host gets one instance at most; without that
    limit it gets another one only when it has none in progress.
    """

    per_volunteer: bool
    per_host: bool

    @property
    def one_per(self) -> str | None:
        """What gets one instance at most: "volunteer", "host", or None: a host gets another one after its first."""
        return "volunteer" if self.per_volunteer else "host" if self.per_host else None


def spread_of(one_per_volunteer: OnePerVolunteer, *, one_per_host: bool, agreeing: int) -> Spread:
    """The limits of a job of which `agreeing` results must agree, by its app's settings.

    >>> spread_of(OnePerVolunteer.QUORUM, one_per_host=True, agreeing=1)
    Spread(per_volunteer=False, per_host=True)
    >>> spread_of(OnePerVolunteer.QUORUM, one_per_host=False, agreeing=2)
    Spread(per_volunteer=True, per_host=True)
    """
    per_volunteer = one_per_volunteer is OnePerVolunteer.ALWAYS or (
        one_per_volunteer is OnePerVolunteer.QUORUM and agreeing > 1
    )
    return Spread(per_volunteer, per_volunteer or one_per_host)
