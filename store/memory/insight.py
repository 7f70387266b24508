"""Answers operators' queries about host rankings, waiting work and batches from memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from domain.apps import CPU, AppVersion
from domain.batches import Batch
from domain.errors import NotFoundError
from domain.insight import LEAST_INTERVAL_S, SILENT_INTERVALS, STANDING_FIELDS, Newcomers, WaitingBatch, calls_per_hour
from domain.jobs import JobClass
from domain.units import HOUR_S, BatchId, Instant, SubmitterId
from store.binary_copy import Table, native_dtype
from store.memory.columns import HAV_COLUMNS
from store.memory.rows import StoredBatch
from store.memory.work import OnTables

SAME = {name for name, _ in HAV_COLUMNS}


class MemoryInsight(OnTables):
    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant, one_in: int = 1
    ) -> Sequence[tuple[Table, Newcomers]]:
        assert one_in == 1, "a simulated project has no samples"
        found = []
        for versions in groups:
            rows = self._work.host_columns.of_versions({version.app_version_id for version in versions})
            table = _standings(rows[rows["last_rpc_at"] >= active_since], now)
            found.append((table, self._newcomers(versions, active_since, now)))
        return found

    def _newcomers(self, versions: Sequence[AppVersion], active_since: Instant, now: Instant) -> Newcomers:
        ids = {version.app_version_id for version in versions}
        platforms = {version.platform for version in versions}
        kind = versions[0].processor_type
        rates = [
            calls_per_hour(stored.rpc_interval_s, stored.host.last_rpc_at, now)
            for stored in self._work.hosts.values()
            if ids.isdisjoint(stored.havs)  # skip nearly all hosts after this test
            and stored.host.last_rpc_at >= active_since
            and not platforms.isdisjoint(stored.host.platforms)
            and (kind == CPU or any(gpu.type == kind for gpu in stored.host.coprocessors))
        ]
        return Newcomers(len(rates), sum(rates))

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        return [_waiting(self._work.batches[batch_id]) for _, _, batch_id in self._work.ready[:limit]]


def _standings(rows: Table, now: Instant) -> Table:
    """Convert HAV_COLUMNS to STANDING_FIELDS. Calls per hour are defined in domain.insight."""
    table = np.empty(rows.size, native_dtype(STANDING_FIELDS))
    for name, _ in STANDING_FIELDS:
        if name in SAME:
            table[name] = rows[name]
    silence_s = now - rows["last_rpc_at"]
    believed_s = np.maximum(np.maximum(rows["rpc_interval_s"], silence_s / SILENT_INTERVALS), LEAST_INTERVAL_S)
    table["calls_per_hour"] = np.where(np.isnan(rows["rpc_interval_s"]), 0.0, HOUR_S / believed_s)
    return table


def _waiting(batch: StoredBatch) -> WaitingBatch:
    retries = [-minus_retries for minus_retries, _ in batch.waiting.urgent if minus_retries != 0]
    least_s, most_quorum = min(one.delay_bound_s for one in batch.classes), max(one.quorum for one in batch.classes)
    return WaitingBatch(batch.as_batch(), len(retries), least_s, most_quorum, max(retries, default=0))


class MemoryViews(OnTables):
    async def batch(self, batch_id: BatchId) -> Batch:
        return self._batch(batch_id).as_batch()

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        return [self._work.batches[one].as_batch() for one in sorted(set(ids)) if one in self._work.batches]

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]:
        batch = self._work.batches.get(batch_id)
        return list(batch.classes) if batch else []

    async def submitter_name(self, submitter_id: SubmitterId) -> str:
        if submitter_id not in self._registry.submitters:
            raise NotFoundError("submitter", submitter_id)
        return self._registry.submitters[submitter_id].name

    def _batch(self, batch_id: BatchId) -> StoredBatch:
        batch = self._work.batches.get(batch_id)
        if batch is None:
            raise NotFoundError("batch", batch_id)
        return batch
