"""Which hosts, apps and batches does batch acceleration single out? The rule `accelerated`, hour by hour. Pure.

Facts of the reference server's batch acceleration: a batch of the last 30 days with at least 100
results has a median turnaround m; a result counts turnaround / m, a time-out 10; a host whose mean over all
batches is below 1 is a low-turnaround host; an app is accelerable when more than 100 hosts returned jobs of it, more
than a quarter of them low-turnaround hosts. A batch is accelerated when more than 85 % of it is done or fewer than 20
jobs are not done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
