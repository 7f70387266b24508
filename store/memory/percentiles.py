"""Stores the input and output of host statistics in memory, and computes turnaround medians."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import inf
from statistics import median_low

import numpy as np

from domain.apps import AppVersion
from domain.batches import BatchState
from domain.jobs import InstanceState
from domain.ranking import (
    FORGIVEN,
    FORGIVEN_VALID,
    HAV_FIELDS,
    AppFacts,
    CutPoints,
    HostStatisticsRun,
    Since,
)
from domain.units import AppId, AppVersionId, BatchId, Instant, JobId, Seconds
from lifecycle.states import STILL_OUT
from store.binary_copy import Table, native_dtype
from store.memory.columns import HAV_COLUMNS
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance
from store.memory.work import OnTables, Work

LEAST_RESULTS = 20
JOBS_OF_APP, JOBS_OF_BATCH = 100, 400  # jobs read per batch


def app_pace(work: Work, batches: Sequence[StoredBatch]) -> float | None:
    """Return the median turnaround in seconds per estimated flop, None if there are fewer than 20 valid results."""
    found = [
        _turnaround_s(one) / one.job.job_class.fpops_est_flop
        for batch in batches
        for one in _instances(work, batch, JOBS_OF_APP)
        if one.state is InstanceState.VALID
    ]
    return median_low(found) if len(found) >= LEAST_RESULTS else None


def median_of_batch(work: Work, batch: StoredBatch) -> Seconds | None:
    """Return the median turnaround, outstanding results last, None if it is unknown or with fewer than 20 results."""
    sent = list(_instances(work, batch, JOBS_OF_BATCH))
    back = [_turnaround_s(one) for one in sent if one.state is InstanceState.VALID]
    if len(back) < LEAST_RESULTS:
        return None
    median_s = median_low([*back, *[inf for one in sent if one.state in STILL_OUT]])
    return Seconds(median_s) if median_s < inf else None


def _instances(work: Work, batch: StoredBatch, jobs: int) -> Iterator[StoredInstance]:
    for job_id in batch.job_ids[:jobs]:
        job = work.job(JobId(job_id))
        if job is not None:
            yield from job.instances


def _turnaround_s(instance: StoredInstance) -> float:
    assert instance.sent_at is not None and instance.reported_at is not None
    return max(1.0, instance.reported_at - instance.sent_at)


RECENT_BATCHES = 50
JOBS_PER_BATCH = 100
BATCHES_REFRESHED = 1000
LEAST_AVAILABILITY_FRACTION = 0.01
SAME = {name for name, _ in HAV_COLUMNS}


class MemoryHavTables(OnTables):
    async def refresh_turnarounds(self, app_id: AppId) -> None:
        batches = sorted((b for b in self._work.batches.values() if b.new.app_id == app_id), key=lambda b: -b.batch_id)
        pace = app_pace(self._work, batches[:RECENT_BATCHES])
        if pace is not None:
            self._work.turnaround_s_per_flop[app_id] = pace
        for batch in [one for one in batches if one.state is BatchState.ACTIVE][:BATCHES_REFRESHED]:
            median_s, known_s = median_of_batch(self._work, batch), batch.median_turnaround_s
            if median_s is not None and (known_s is None or abs(known_s - median_s) >= median_s / 20):
                batch.median_turnaround_s = median_s

    async def copy_turnaround(self, batch_id: BatchId, median_s: Seconds) -> None:
        """Set the usual turnaround of a batch whose earlier results are not in this store."""
        self._work.batches[batch_id].median_turnaround_s = median_s

    async def of_apps(
        self, current: Mapping[AppId, Sequence[AppVersion]], since: Since
    ) -> AsyncIterator[tuple[AppId, Table]]:
        for app_id in sorted(current):
            wanted = {version.app_version_id: version for version in current[app_id]}
            on_gpus = [id_ for id_, version in wanted.items() if version.plan_class.gpu_type is not None]
            yield app_id, _records(self._work.host_columns.of_versions(wanted), since, on_gpus)

    async def facts(self, app_id: AppId) -> AppFacts:
        of_app = [batch for batch in self._work.batches.values() if batch.new.app_id == app_id]
        recent = sorted(of_app, key=lambda batch: -batch.batch_id)[:RECENT_BATCHES]
        sizes = [job_class.fpops_est_flop for batch in recent for job_class in batch.classes]
        lags = [lag_s for batch in recent for lag_s in self._lags(batch)]
        return AppFacts(median_low(sizes) if sizes else None, median_low(lags) if lags else None)

    def _lags(self, batch: StoredBatch) -> list[Seconds]:
        found = []
        for job_id in batch.job_ids[:JOBS_PER_BATCH]:
            job = self._work.job(JobId(job_id))
            if job is None or job.canonical_instance_id is None or job.ended_at is None:
                continue
            canonical = self._work.instance(job.canonical_instance_id)
            if canonical is not None and canonical.reported_at is not None:
                found.append(Seconds(max(0.0, job.ended_at - canonical.reported_at)))
        return found


def _records(rows: Table, since: Since, on_gpus: Sequence[AppVersionId]) -> Table:
    """Convert HAV_COLUMNS to HAV_FIELDS."""
    of_gpu = np.isin(rows["app_version_id"], np.array(on_gpus, "i4"))
    share = np.where(of_gpu, rows["gpu_fraction"], rows["cpu_fraction"])
    clean = rows["clean_since_at"] <= since.clean_at  # false for NaN
    forgiven = clean & (rows["consecutive_valid"] >= FORGIVEN_VALID)
    table = np.empty(rows.size, native_dtype(HAV_FIELDS))
    for name, _ in HAV_FIELDS:
        if name in SAME:
            table[name] = rows[name]
    table["consecutive_valid"] = np.where(forgiven, FORGIVEN, rows["consecutive_valid"])
    table["active"] = (rows["last_rpc_at"] >= since.called_at) & (rows["stats_at"] >= since.used_at)
    table["s_per_flop"] = rows["s_per_flop"] / np.maximum(LEAST_AVAILABILITY_FRACTION, share)
    return table


@dataclass(slots=True, eq=False)
class _Generation:
    """The data written by a run. They are complete once published."""

    number: int
    full: bool
    registry: Registry
    percentiles: list[Table] = field(default_factory=list)
    run: HostStatisticsRun | None = None

    async def write(self, percentiles: Table) -> None:
        self.percentiles.append(percentiles)

    async def publish(self, cuts: Sequence[CutPoints], run: HostStatisticsRun) -> None:
        self.registry.cut_points = {(cut.app_id, cut.processor_type): cut for cut in cuts}
        self.run = run


class MemoryGenerations(OnTables):
    """Stores generations in this process. Runs may overlap."""

    def __init__(self, registry: Registry, work: Work) -> None:
        super().__init__(registry, work)
        self._generations: list[_Generation] = []
        self._runs: list[HostStatisticsRun] = []
        self._last = 0
        self._running = False

    @asynccontextmanager
    async def new(self, *, now: Instant, full: bool) -> AsyncIterator[_Generation | None]:
        del now  # the cut points contain the time of their computation
        if self._running:
            yield None
            return
        self._running = True
        self._last += 1
        generation = _Generation(self._last, full, self._registry)
        try:
            yield generation
        finally:
            self._running = False
            if generation.run is not None:
                self._generations.append(generation)
                self._runs.append(generation.run)

    async def remove_old(self) -> int:
        """Remove all generations except the last two with percentiles and the last two without."""
        kept = {id(one) for one in (*self._generations[-2:], *[one for one in self._generations if one.full][-2:])}
        removed = [one for one in self._generations if id(one) not in kept]
        self._generations = [one for one in self._generations if id(one) in kept]
        return len(removed)

    async def runs(self, limit: int) -> Sequence[HostStatisticsRun]:
        return self._runs[::-1][:limit]
