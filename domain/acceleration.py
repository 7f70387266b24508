"""Which hosts, apps and batches does batch acceleration single out? The rule `accelerated`, hour by hour. Pure.

Facts of the reference server's batch acceleration: a batch of the last 30 days with at least 100
results has a median turnaround m; a result counts turnaround / m, a time-out 10; a host whose mean over all
batches is below 1 is a low-turnaround host; an app is accelerable when more than 100 hosts returned jobs of it, more
than a quarter of them low-turnaround hosts. A batch is accelerated when more than 85 % of it is done or fewer than 20
jobs are not done.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from domain.batches import BatchCounts
from domain.units import AppId, BatchId, HostId, Instant, Seconds

LOOK_BACK_S = Seconds(30 * 86400.0)
LEAST_RESULTS = 100  # of a batch, or it has no median
TIMED_OUT = 10.0  # what a time-out counts in medians
LOW_BELOW = 1.0
LEAST_HOSTS = 100  # more than these must have returned jobs of an app,
LEAST_LOW_FRACTION = 0.25  # and more than this share of them be low-turnaround hosts
LEAST_DONE_FRACTION = 0.85
MOST_NOT_DONE = 20


@dataclass(frozen=True, slots=True)
class Acceleration:
    """What the last look at hosts and batches found."""

    computed_at: Instant
    hosts: frozenset[HostId] = frozenset()  # with low turnaround
    apps: frozenset[AppId] = frozenset()  # accelerable
    batches: frozenset[BatchId] = frozenset()  # accelerated

    def covers(self, batch_id: BatchId, app_id: AppId) -> bool:
        """Whether the jobs of this batch are for low-turnaround hosts alone."""
        return batch_id in self.batches and app_id in self.apps


@dataclass(frozen=True, slots=True)
class LowTurnaround:
    """Low-turnaround hosts, accelerable apps, and the median turnaround of recent batches with enough results."""

    hosts: frozenset[HostId] = frozenset()
    apps: frozenset[AppId] = frozenset()
    median_s: Mapping[BatchId, Seconds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Returned:
    """An instance of a recent batch that came back, or timed out (`turnaround_s` None)."""

    batch_id: BatchId
    app_id: AppId
    host_id: HostId
    turnaround_s: Seconds | None


def medians(returned: Iterable[Returned]) -> dict[BatchId, Seconds]:
    """The median turnaround of each batch with enough results.

    >>> results = [Returned(BatchId(1), AppId(1), HostId(i), Seconds(float(i))) for i in range(1, 102)]
    >>> medians(results), medians(results[:99])
    ({1: 51.0}, {})
    """
    times: dict[BatchId, list[float]] = defaultdict(list)
    for one in returned:
        if one.turnaround_s is not None:
            times[one.batch_id].append(one.turnaround_s)
    return {batch: Seconds(median(some)) for batch, some in times.items() if len(some) >= LEAST_RESULTS}


def low_turnaround(returned: Sequence[Returned]) -> LowTurnaround:
    """The low-turnaround hosts, the accelerable apps and the medians. A host's mean is over batches with a median.

    The query low_turnaround does the same in the database; a contract test keeps both equal.

    >>> slow = [Returned(BatchId(1), AppId(1), HostId(1), Seconds(30.0)) for _ in range(60)]
    >>> quick = [Returned(BatchId(1), AppId(1), HostId(2), Seconds(10.0)) for _ in range(61)]
    >>> low_turnaround([*slow, *quick]).hosts
    frozenset()
    >>> quicker = [Returned(BatchId(1), AppId(1), HostId(3), Seconds(9.0)) for _ in range(3)]
    >>> low_turnaround([*slow, *quick, *quicker])
    LowTurnaround(hosts=frozenset({3}), apps=frozenset(), median_s={1: 10.0})
    """
    median_of = medians(returned)
    shares: dict[HostId, list[float]] = defaultdict(list)
    hosts_of: dict[AppId, set[HostId]] = defaultdict(set)
    for one in returned:
        if one.batch_id not in median_of:
            continue
        if one.turnaround_s is None:
            shares[one.host_id].append(TIMED_OUT)
            continue
        hosts_of[one.app_id].add(one.host_id)
        m = median_of[one.batch_id]
        shares[one.host_id].append(one.turnaround_s / m if m > 0 else 1.0)
    low = frozenset(host for host, some in shares.items() if fmean(some) < LOW_BELOW)
    apps = frozenset(app for app, hosts in hosts_of.items() if is_accelerable(len(hosts), len(hosts & low)))
    return LowTurnaround(low, apps, median_of)


def is_accelerable(hosts: int, low: int) -> bool:
    """Whether enough hosts returned jobs of an app, enough of them low-turnaround hosts.

    >>> is_accelerable(101, 26), is_accelerable(100, 100), is_accelerable(104, 26)
    (True, False, False)
    """
    return hosts > LEAST_HOSTS and low > LEAST_LOW_FRACTION * hosts


def is_accelerated(counts: BatchCounts) -> bool:
    """Whether a batch under way has so little left that it is accelerated.

    >>> is_accelerated(BatchCounts(jobs_total=1000, jobs_validated=850)), is_accelerated(BatchCounts(jobs_total=19))
    (False, True)
    """
    done = counts.jobs_total - counts.jobs_open
    return done > LEAST_DONE_FRACTION * counts.jobs_total or counts.jobs_open < MOST_NOT_DONE
