"""What the completion estimator reads of a batch, over the tables."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import numpy as np

from domain.batches import BatchState
from domain.forecasting import (
    ACTIVE_WITHIN_S,
    FORECAST_HAV_FIELDS,
    INSTANCE_FIELDS,
    JOB_FIELDS,
    OTHERS_MOST,
    SAMPLED_HAV_FIELDS,
    SENT_FIELDS,
    SENT_MOST,
    SENT_WITHIN_S,
    STANDINGS,
    AppTables,
    BatchTables,
    BatchTerms,
    counted_as,
)
from domain.hosts import HostAppVersion
from domain.jobs import InstanceState, JobState
from domain.units import AppId, AppVersionId, BatchId, HostId, Instant
from store.binary_copy import Table, native_dtype
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance, StoredJob
from store.memory.work import Work

NAN = float("nan")
Pair = tuple[HostId, AppVersionId]


class MemoryForecasting:
    """Samples are the first of what there is."""

    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        batch = self._work.batches.get(batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE:
            return None
        jobs = [job for job_id in batch.job_ids if (job := self._work.jobs[job_id - 1]).state is not JobState.CANCELLED]
        own = [row for job in jobs for row in job.instances if row.state is not InstanceState.CANCELLED]
        versions = self._versions(batch.new.app_id)
        sent = list(self._sent(batch, versions, now))
        return BatchTables(
            self._terms(batch, own, now),
            np.array([_job(job) for job in jobs], native_dtype(JOB_FIELDS)),
            np.array([_instance(row, batch) for row in own], native_dtype(INSTANCE_FIELDS)),
            self._havs(_pairs(own) | _pairs(sent[:SENT_MOST])),
            self._others(versions),
            1.0,
            *_sample(sent),
        )

    async def of_app(self, app_id: AppId, *, now: Instant) -> AppTables[Table] | None:
        if app_id not in self._registry.apps:
            return None
        versions = self._versions(app_id)
        sent = list(self._sent(None, versions, now))
        return AppTables(
            *self._active(now),
            self._havs(_pairs(sent[:SENT_MOST])),
            self._others(versions),
            1.0,
            *_sample(sent),
        )

    def _versions(self, app_id: AppId) -> set[AppVersionId]:
        return {version.app_version_id for version in self._registry.versions.values() if version.app_id == app_id}

    def _active(self, now: Instant) -> tuple[int, float]:
        """How many hosts called lately, and the median of their speeds."""
        hosts = [stored.host for stored in self._work.hosts.values()]
        active = [host.flop_per_s for host in hosts if host.last_rpc_at >= now - ACTIVE_WITHIN_S]
        return len(active), median(active) if active else NAN

    def _terms(self, batch: StoredBatch, own: list[StoredInstance], now: Instant) -> BatchTerms:
        held = batch.hold is not None
        begun = not held and any(row.host_id is not None for row in own)
        ahead = [] if begun else [self._work.batches[at[2]] for at in self._work.ready if at < batch.order]
        of_app = sum(other.counts.unsent for other in ahead if other.new.app_id == batch.new.app_id)
        return BatchTerms(
            batch.batch_id,
            batch.new.app_id,
            batch.new.created_at,
            max(one.delay_bound_s for one in batch.classes),
            *self._active(now),
            of_app,
            sum(other.counts.unsent for other in ahead) - of_app,
            held,
        )

    def _sent(self, batch: StoredBatch | None, versions: set[AppVersionId], now: Instant) -> Iterator[StoredInstance]:
        for row in self._work.instances:
            lately = row.sent_at is not None and row.sent_at >= now - SENT_WITHIN_S
            known = row.job.job_id not in self._work.purged
            if lately and known and row.job.batch is not batch and row.app_version_id in versions:
                yield row

    def _others(self, versions: set[AppVersionId]) -> Table:
        found = sorted(
            (host_id, version_id)
            for host_id, stored in self._work.hosts.items()
            for version_id in stored.havs
            if version_id in versions
        )
        rows = [(*self._hav(pair), len(found)) for pair in found[:OTHERS_MOST]]
        return np.array(rows, native_dtype(SAMPLED_HAV_FIELDS))

    def _havs(self, pairs: set[Pair]) -> Table:
        return np.array([self._hav(pair) for pair in sorted(pairs)], native_dtype(FORECAST_HAV_FIELDS))

    def _hav(self, pair: Pair) -> tuple[object, ...]:
        """The fields of FORECAST_HAV_FIELDS."""
        stored = self._work.hosts[pair[0]]
        row = stored.havs.get(pair[1]) or HostAppVersion(*pair)
        sums = (row.log_n, row.log_sum, row.log_sum_sq)
        return (*pair, *sums, row.n_error, row.n_timeout, row.n_due, stored.host.last_rpc_at)


def _pairs(rows: list[StoredInstance]) -> set[Pair]:
    return {
        (row.host_id, row.app_version_id) for row in rows if row.host_id is not None and row.app_version_id is not None
    }


def _job(job: StoredJob) -> tuple[object, ...]:
    """The fields of JOB_FIELDS."""
    one = job.job_class
    needed = min(one.max_instances, max(one.quorum, job.copies))
    return (job.job_id, one.fpops_est_flop, job.state is JobState.OPEN, needed)


def _instance(row: StoredInstance, batch: StoredBatch) -> tuple[object, ...]:
    """The fields of INSTANCE_FIELDS. Spelled out: a batch may have a hundred thousand."""
    created_at = row.created_at
    if row.host_id is None:
        created = batch.new.created_at if created_at is None else created_at
        counted = counted_as(row.state, has_sample=row.turnaround_sample is not None)
        return (row.job.job_id, -1, -1, STANDINGS[row.state], counted, created, NAN, NAN, NAN, NAN)
    return (
        row.job.job_id,
        row.host_id,
        -1 if row.app_version_id is None else row.app_version_id,
        STANDINGS[row.state],
        counted_as(row.state, has_sample=row.turnaround_sample is not None),
        batch.new.created_at if created_at is None else created_at,
        NAN if row.sent_at is None else row.sent_at,
        NAN if row.due_at is None else row.due_at,
        NAN if row.timeout_at is None else row.timeout_at,
        NAN if row.reported_at is None else row.reported_at,
    )


def _sample(sent: list[StoredInstance]) -> tuple[Table, float]:
    """The fields of SENT_FIELDS, and how many each found stands for."""
    rows = [(*_sent(row), len(sent)) for row in sent[:SENT_MOST]]
    return np.array(rows, native_dtype(SENT_FIELDS)), 1.0


def _sent(row: StoredInstance) -> tuple[object, ...]:
    """The fields of SENT_FIELDS but for `found`."""
    times = (_or_nan(row.sent_at), _or_nan(row.reported_at))
    return (row.host_id, row.app_version_id, STANDINGS[row.state], *times, row.job.job_class.fpops_est_flop)


def _or_nan(at: Instant | None) -> float:
    return NAN if at is None else at
