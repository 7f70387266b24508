"""Counts batch acceleration over a list of results: the definition both stores are tested against. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from domain.acceleration import LEAST_RESULTS, LOW_BELOW, TIMED_OUT, LowTurnaround, is_accelerable
from domain.units import AppId, BatchId, HostId, Seconds


@dataclass(frozen=True, slots=True)
class Returned:
    """A returned instance of a recent batch, or a timed-out one (`turnaround_s` None)."""

    batch_id: BatchId
    app_id: AppId
    host_id: HostId
    turnaround_s: Seconds | None


def medians(returned: Iterable[Returned]) -> dict[BatchId, Seconds]:
    """Return the median turnaround of each batch with enough results.

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
    """Return the low-turnaround hosts, the accelerable apps and the medians. A host's mean is over batches with a
    median.

    The query low_turnaround computes the same in the database; a contract test compares both.

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
