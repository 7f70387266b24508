"""Daily quotas of jobs that new computers of one account or one address share. Pure.

A host may get twice as many jobs a day as it has valid results. Further jobs are charged to the quota of its account
and, until the host has valid results, to the quota of its address. So neither a detach loop nor new host records give
new quota. A quota starts at scheduler.shared_quota_start. Each valid result of an account's computers adds A_RESULT to
the account's quota; each failed or lost instance subtracts as much; the quota stays between start * LEAST_PART and
start * MOST_FACTOR. The address's quota changes by 1 / ADDRESS_PART of the account's change, so that bad results of one
account use up at most that part of it. Until the first FREE_PART of a day's quota is used, a host gets as many jobs as
it requests; after that it gets one job per idle processor, so that all computers of a laboratory get work when they are
switched on in the morning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from domain.havs import HavEvent, HavEventKind
from domain.quick import quick_dataclass
from domain.units import HostId, VolunteerId

A_RESULT = 10
ADDRESS_PART = 2  # an account at its minimum has used half of its address's initial quota
LEAST_PART = 800  # 5 of 4,000
MOST_FACTOR = 10
FREE_PART = 4
KEPT_DAYS = 30  # a quota not used for this long is reset


@quick_dataclass(frozen=True, slots=True)
class QuotaRequest:
    """A request for jobs beyond the jobs that a host has earned, on a `day` since the epoch.

    `idle` counts processors without a job. `network` is the origin; empty: unknown or shared. With `has_record` only
    the quota of the account is charged.
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
        """Return the names of the quotas that the request is charged to, in the order in which their rows are locked.

        >>> QuotaRequest(HostId(1), VolunteerId(7), 20000, 8, 8, "192.0.2.7").names
        ('address 192.0.2.7', 'volunteer 7')
        """
        return names_of(self.volunteer_id, "" if self.has_record else self.network)


@quick_dataclass(frozen=True, slots=True)
class SharedQuota:
    """One shared quota: the jobs `earned` by results, and the jobs `sent` on `day`."""

    name: str
    earned: int
    day: int
    sent: int


@quick_dataclass(frozen=True, slots=True)
class QuotaGrant:
    """The number of jobs granted, and the tightest quota: its `name`, its size, and the jobs `sent` before."""

    granted: int
    name: str = ""
    sent: int = 0
    quota: int = 0


def account_name(volunteer_id: VolunteerId) -> str:
    return f"volunteer {volunteer_id}"


def address_name(network: str) -> str:
    return f"address {network}"


def names_of(volunteer_id: VolunteerId, network: str) -> tuple[str, ...]:
    """Return the sorted names of the quotas for an account and an address."""
    account = account_name(volunteer_id)
    return (address_name(network), account) if network else (account,)


def bounds(start: int) -> tuple[int, int]:
    """Return the lowest and the highest number of jobs that results can add to a quota.

    >>> bounds(4000)
    (-3995, 36000)
    """
    return max(1, start // LEAST_PART) - start, (MOST_FACTOR - 1) * start


def granted(request: QuotaRequest, *, quota: int, sent: int) -> int:
    """Return how many of the requested jobs one quota allows if it has sent `sent` jobs today.

    >>> ask = QuotaRequest(HostId(1), VolunteerId(7), 20000, wanted=64, idle=8)
    >>> [granted(ask, quota=4000, sent=sent) for sent in (0, 980, 2000, 3995, 4000)]
    [64, 20, 8, 5, 0]
    """
    free = quota // FREE_PART - sent
    return max(0, min(request.wanted, quota - sent, max(free, request.idle)))


def grant(request: QuotaRequest, quotas: Iterable[SharedQuota], start: int) -> QuotaGrant:
    """Return the smallest grant over the request's quotas. A quota missing from `quotas` is unused.

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
    """Return the grant for each request, in order, and the number of jobs charged to each quota."""
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
    """Return, by host, how many jobs the events add to the quotas of the host's account."""
    added: Counter[HostId] = Counter()
    for event in events:
        added[event.host_id] += A_RESULT if event.kind is HavEventKind.VALID else -A_RESULT
    return {host_id: added[host_id] for host_id in sorted(added) if added[host_id]}


def moved(earned: Mapping[str, int], added: Iterable[tuple[VolunteerId, str, int]], start: int) -> dict[str, int]:
    """Return the new `earned` values after results, by quota name. A quota missing from `earned` does not change.

    `added`: account, address of the host (empty: none), and change of the account's quota.

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
