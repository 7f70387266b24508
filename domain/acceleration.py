"""Selects hosts, apps and batches for batch acceleration (the rule `accelerated`), once per hour. Pure.

The reference server's rules: a batch of the last 30 days with at least 100 results has a median turnaround m; a result
counts turnaround / m, a time-out 10; a host with a mean below 1 over all batches is a low-turnaround host; an app is
accelerable if more than 100 hosts returned jobs of it and more than a quarter of them are low-turnaround hosts. A batch
is accelerated when more than 85 % of it is done or fewer than 20 jobs are open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.batches import BatchCounts
from domain.units import AppId, BatchId, HostId, Instant, Seconds

LOOK_BACK_S = Seconds(30 * 86400.0)
LEAST_RESULTS = 100  # minimum number of results for computing a batch's median
TIMED_OUT = 10.0  # value of a timeout, in medians
LOW_BELOW = 1.0
LEAST_HOSTS = 100  # an app is accelerable if more than this number of hosts returned its jobs
LEAST_LOW_FRACTION = 0.25  # and if more than this share of them are low-turnaround hosts
LEAST_DONE_FRACTION = 0.85
MOST_NOT_DONE = 20


@dataclass(frozen=True, slots=True)
class Acceleration:
    """The low-turnaround hosts, accelerable apps and accelerated batches found by the latest run."""

    computed_at: Instant
    hosts: frozenset[HostId] = frozenset()  # with low turnaround
    apps: frozenset[AppId] = frozenset()  # accelerable
    batches: frozenset[BatchId] = frozenset()  # accelerated

    def covers(self, batch_id: BatchId, app_id: AppId) -> bool:
        """Return whether the batch's jobs are reserved for low-turnaround hosts."""
        return batch_id in self.batches and app_id in self.apps


@dataclass(frozen=True, slots=True)
class LowTurnaround:
    """Low-turnaround hosts, accelerable apps, and the median turnarounds of recent batches with enough results."""

    hosts: frozenset[HostId] = frozenset()
    apps: frozenset[AppId] = frozenset()
    median_s: Mapping[BatchId, Seconds] = field(default_factory=dict)


def is_accelerable(hosts: int, low: int) -> bool:
    """Return whether enough hosts have returned an app's jobs and enough of these are low-turnaround hosts.

    >>> is_accelerable(101, 26), is_accelerable(100, 100), is_accelerable(104, 26)
    (True, False, False)
    """
    return hosts > LEAST_HOSTS and low > LEAST_LOW_FRACTION * hosts


def is_accelerated(counts: BatchCounts) -> bool:
    """Return whether an active batch is close enough to its end to be accelerated.

    >>> is_accelerated(BatchCounts(jobs_total=1000, jobs_validated=850)), is_accelerated(BatchCounts(jobs_total=19))
    (False, True)
    """
    done = counts.jobs_total - counts.jobs_open
    return done > LEAST_DONE_FRACTION * counts.jobs_total or counts.jobs_open < MOST_NOT_DONE
