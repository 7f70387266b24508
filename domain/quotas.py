"""How many jobs may computers without a record get in a day, by account and by address? Pure.

A host may have twice as many jobs a day as it has had results validated; what it gets beyond that is charged to the
quota that all computers of its account share, and to that of its address. So a detach loop and new host records get no
new quota. The quota starts at scheduler.shared_quota_start; each valid result of any of its computers adds A_RESULT,
each failed or lost one takes as many, from the start's LEAST_PART to MOST_FACTOR times the start. Until the first
FREE_PART of a day's quota is used, a host gets what it asks for; from then on one job for each idle processor, so that
a laboratory that is switched on in one morning has work on every computer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from domain.havs import HavEvent, HavEventKind
from domain.quick import quick_dataclass
from domain.units import HostId, VolunteerId

A_RESULT = 10
LEAST_PART = 800  # 5 of 4,000
MOST_FACTOR = 10
FREE_PART = 4
KEPT_DAYS = 30  # a quota that nobody drew on for so long starts again


@quick_dataclass(frozen=True, slots=True)
class QuotaRequest:
    """Jobs that a host asks for beyond what its own record covers, on a `day` since the epoch.

    `idle` counts its processors without a job. `network` is where it asks from; empty: not known, or shared by others.
    """

    host_id: HostId
    volunteer_id: VolunteerId
    day: int
    wanted: int
    idle: int
    network: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The quotas it is charged to, in the order in which their rows are locked.

        >>> QuotaRequest(HostId(1), VolunteerId(7), 20000, 8, 8, "192.0.2.7").names
        ('address 192.0.2.7', 'volunteer 7')
        """
        return names_of(self.volunteer_id, self.network)


@quick_dataclass(frozen=True, slots=True)
class QuotaGrant:
    """What was granted and charged, and the quota that allows least: its `name`, size, and jobs `sent` before."""

    granted: int
    name: str = ""
    sent: int = 0
    quota: int = 0


def names_of(volunteer_id: VolunteerId, network: str) -> tuple[str, ...]:
    """The quotas of an account and of an address, sorted."""
    account = f"volunteer {volunteer_id}"
    return (f"address {network}", account) if network else (account,)


def bounds(start: int) -> tuple[int, int]:
    """The least and the most that results may have added to a quota.

    >>> bounds(4000)
    (-3995, 36000)
    """
    return max(1, start // LEAST_PART) - start, (MOST_FACTOR - 1) * start


def granted(request: QuotaRequest, *, quota: int, sent: int) -> int:
    """How many of the jobs one quota allows, of which `sent` were used today.

    >>> ask = QuotaRequest(HostId(1), VolunteerId(7), 20000, wanted=64, idle=8)
    >>> [granted(ask, quota=4000, sent=sent) for sent in (0, 980, 2000, 3995, 4000)]
    [64, 20, 8, 5, 0]
    """
    free = quota // FREE_PART - sent
    return max(0, min(request.wanted, quota - sent, max(free, request.idle)))


def grant(request: QuotaRequest, used: Iterable[tuple[str, int, int]], start: int) -> QuotaGrant:
    """The least that any of its quotas allows. `used`: name, what results added, jobs sent today."""
    least, most = bounds(start)
    grants = []
    for name, earned, sent in used:
        quota = start + min(most, max(least, earned))
        grants.append(QuotaGrant(granted(request, quota=quota, sent=sent), name, sent, quota))
    return min(grants, key=lambda one: (one.granted, one.name))


def earned(events: Iterable[HavEvent]) -> dict[HostId, int]:
    """What events add to the quotas that their hosts share, by host; hosts in order."""
    added: Counter[HostId] = Counter()
    for event in events:
        added[event.host_id] += A_RESULT if event.kind is HavEventKind.VALID else -A_RESULT
    return {host_id: added[host_id] for host_id in sorted(added) if added[host_id]}
