"""The daily quotas that computers without a record share, by account and by address. Pure.

A host may have twice as many jobs a day as it has had results validated; what it gets beyond that is charged to the
quota of its account, and to that of its address until it has a record. So a detach loop and new host records get no new
quota. A quota starts at scheduler.shared_quota_start; each valid result of an account's computers adds A_RESULT to the
account's quota, each failed or lost one takes as many, from the start's LEAST_PART to MOST_FACTOR times the start. The
quota of their address moves by one ADDRESS_PART of what the account's moved, so that one account, however many results
it spoils, takes no more than that part of it. Until the first FREE_PART of a day's quota is used, a host gets what it
asks for; from then on one job for each idle processor, so that a laboratory that is switched on in one morning has work
on every computer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from domain.havs import HavEvent, HavEventKind
from domain.quick import quick_dataclass
from domain.units import HostId, VolunteerId

A_RESULT = 10
ADDRESS_PART = 2  # an account at its least has taken half of its address' start
LEAST_PART = 800  # 5 of 4,000
MOST_FACTOR = 10
FREE_PART = 4
KEPT_DAYS = 30  # a quota that no host drew on for so long starts again


@quick_dataclass(frozen=True, slots=True)
class QuotaRequest:
    """Jobs that a host is to get beyond what its own record covers, on a `day` since the epoch.

    `idle` counts its processors without a job. `network` is where it asks from; empty: not known, or shared by others.
    With `has_record` it draws on the quota of its account alone.
    """

    host_id: HostId
    volunteer_id: VolunteerId
    day: int
    wanted: int
    idle: int
    network: str = ""
    has_record: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The quotas it is charged to, in the order in which their rows are locked.

        >>> QuotaRequest(HostId(1), VolunteerId(7), 20000, 8, 8, "192.0.2.7").names
        ('address 192.0.2.7', 'volunteer 7')
        """
        return names_of(self.volunteer_id, "" if self.has_record else self.network)


@quick_dataclass(frozen=True, slots=True)
class SharedQuota:
    """What results `earned` it, and the jobs that were `sent` on a day."""

    name: str
    earned: int
    day: int
    sent: int


@quick_dataclass(frozen=True, slots=True)
class QuotaGrant:
    """What is granted, and the quota that allows least: its `name`, size, and jobs `sent` before."""

    granted: int
    name: str = ""
    sent: int = 0
    quota: int = 0


def account_name(volunteer_id: VolunteerId) -> str:
    return f"volunteer {volunteer_id}"


def address_name(network: str) -> str:
    return f"address {network}"


def names_of(volunteer_id: VolunteerId, network: str) -> tuple[str, ...]:
    """The quotas of an account and of an address, sorted."""
    account = account_name(volunteer_id)
    return (address_name(network), account) if network else (account,)


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


def grant(request: QuotaRequest, quotas: Iterable[SharedQuota], start: int) -> QuotaGrant:
    """The least that any of its quotas allows; of those that are not in `quotas` nothing was used yet.

    >>> ask = QuotaRequest(HostId(1), VolunteerId(7), 20000, wanted=64, idle=8)
    >>> used = SharedQuota("volunteer 7", -2000, 20000, 2000), SharedQuota("volunteer 7", -2000, 19999, 2000)
    >>> [grant(ask, [quota], 4000).granted for quota in used]
    [0, 64]
    """
    least, most = bounds(start)
    known = {one.name: one for one in quotas}
    grants = []
    for name in request.names:
        one = known.get(name)
        if one is None or one.day < request.day - KEPT_DAYS:
            one = SharedQuota(name, 0, request.day, 0)
        quota = start + min(most, max(least, one.earned))
        sent = one.sent if one.day >= request.day else 0
        grants.append(QuotaGrant(granted(request, quota=quota, sent=sent), name, sent, quota))
    return min(grants, key=lambda one: (one.granted, one.name))


def grants(
    requests: Sequence[QuotaRequest], quotas: Iterable[SharedQuota], start: int
) -> tuple[list[QuotaGrant], dict[str, int]]:
    """What each of these is granted, one after the other, and how many jobs that charges each quota."""
    known = {one.name: one for one in quotas}
    found: list[QuotaGrant] = []
    charges: Counter[str] = Counter()
    for request in requests:
        used = [
            SharedQuota(one.name, one.earned, one.day, one.sent + charges[one.name])
            for name in request.names
            if (one := known.get(name)) is not None
        ]
        found.append(grant(request, used, start))
        for name in request.names:
            charges[name] += found[-1].granted
    return found, {name: jobs for name, jobs in sorted(charges.items()) if jobs}


def earned(events: Iterable[HavEvent]) -> dict[HostId, int]:
    """What events add to the quotas of their hosts' accounts, by host; hosts in order."""
    added: Counter[HostId] = Counter()
    for event in events:
        added[event.host_id] += A_RESULT if event.kind is HavEventKind.VALID else -A_RESULT
    return {host_id: added[host_id] for host_id in sorted(added) if added[host_id]}


def moved(earned: Mapping[str, int], added: Iterable[tuple[VolunteerId, str, int]], start: int) -> dict[str, int]:
    """What quotas have earned after results, by name; quotas that are not in `earned` do not move.

    `added`: account, address of the host (empty: none), and what its results add to the account's quota.

    >>> known = {"address 192.0.2.7": 0, "volunteer 7": 0}
    >>> moved(known, [(VolunteerId(7), "192.0.2.7", -50), (VolunteerId(8), "192.0.2.7", -50)], 4000)
    {'address 192.0.2.7': -25, 'volunteer 7': -50}
    >>> moved(known, [(VolunteerId(7), "192.0.2.7", -1_000_000)], 4000)
    {'address 192.0.2.7': -1997, 'volunteer 7': -3995}
    """
    least, most = bounds(start)
    after = dict(earned)
    for volunteer_id, network, jobs in added:
        account, address = account_name(volunteer_id), address_name(network)
        if account not in after:
            continue
        before = after[account]
        after[account] = min(most, max(least, before + jobs))
        if network and address in after:
            part = int((after[account] - before) / ADDRESS_PART)
            after[address] = min(most, max(least, after[address] + part))
    return {name: after[name] for name in sorted(after) if after[name] != earned[name]}
