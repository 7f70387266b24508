"""What lists of the console show, over the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from domain.batches import BatchState, QoS
from domain.jobs import InstanceState
from domain.units import BatchId, HostId, Instant
from domain.views import (
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    InstancePlace,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
)
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance
from store.memory.work import Work


class MemoryListings:
    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def batches(
        self, choice: BatchChoice, sort: BatchSort, *, after: BatchPlace | None, limit: int
    ) -> Sequence[ListedBatch]:
        chosen = [one for one in self._work.batches.values() if _is_chosen(one, choice)]
        active = [one for one in chosen if one.state is BatchState.ACTIVE]
        match sort:
            case BatchSort.NEWEST:
                ids = {one.batch_id for one in chosen if after is None or one.batch_id < after.batch_id}
                found = [self._work.batches[batch_id] for batch_id in sorted(ids, reverse=True)]
            case BatchSort.QUEUE:
                start = None if after is None else (after.order_tier, after.order_key, after.batch_id)
                found = sorted((one for one in active if start is None or one.order > start), key=lambda one: one.order)
            case BatchSort.DEADLINE:
                first = None if after is None else (after.deadline_at, after.batch_id)
                dated = {(one.new.deadline_at, one.batch_id) for one in active if one.new.deadline_at is not None}
                found = [self._work.batches[place[1]] for place in sorted(dated) if first is None or place > first]
        return [self._listed(one) for one in found[:limit]]

    def _listed(self, one: StoredBatch) -> ListedBatch:
        submitter = self._registry.submitters[one.new.submitter_id].name
        account = self._registry.accounts[one.new.account_id].name
        return ListedBatch(one.as_batch(), one.app_name, submitter, account)

    async def names(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, str]:
        known = self._work.batches
        return {batch_id: known[batch_id].new.name for batch_id in sorted(batch_ids) if batch_id in known}

    async def totals(self) -> Sequence[ActiveTotal]:
        groups: dict[tuple[str, QoS], list[StoredBatch]] = {}
        for one in self._work.batches.values():
            if one.state is BatchState.ACTIVE:
                groups.setdefault((one.app_name, one.new.qos), []).append(one)
        return [_total(app, qos, groups[app, qos]) for app, qos in sorted(groups)]

    async def instances(
        self, batch_id: BatchId, states: Collection[InstanceState], *, after: InstancePlace | None, limit: int
    ) -> Sequence[ListedInstance]:
        batch = self._work.batches.get(batch_id)
        ids = () if batch is None else (job_id for job_id in batch.job_ids if job_id not in self._work.purged)
        rows = (row for job_id in ids for row in self._work.jobs[job_id - 1].instances if row.state in states)
        found = sorted(rows, key=_by_retries)
        start = None if after is None else (-after.retries, after.instance_id)
        return [_instance(row) for row in found if start is None or _by_retries(row) > start][:limit]

    async def held_by(self, host_id: HostId, *, limit: int) -> Sequence[ListedInProgress]:
        rows = (row for job in self._work.jobs for row in job.instances)
        held = [held_instance(row) for row in rows if row.host_id == host_id and row.state is InstanceState.IN_PROGRESS]
        return sorted(held, key=lambda one: (one.due_at, one.instance_id))[:limit]


def _is_chosen(one: StoredBatch, choice: BatchChoice) -> bool:
    return (
        choice.state in (None, one.state)
        and choice.qos in (None, one.new.qos)
        and choice.app_id in (None, one.new.app_id)
        and choice.submitter_id in (None, one.new.submitter_id)
        and choice.text.lower() in one.new.name.lower()
    )


def _total(app: str, qos: QoS, batches: Iterable[StoredBatch]) -> ActiveTotal:
    every = list(batches)
    counts = [one.counts for one in every]
    return ActiveTotal(
        app,
        qos,
        len(every),
        sum(one.hold is not None for one in every),
        sum(one.jobs_total for one in counts),
        sum(one.jobs_validated for one in counts),
        sum(one.jobs_failed for one in counts),
        sum(one.unsent for one in counts),
        sum(one.in_progress for one in counts),
        sum(one.sent for one in counts),
        sum(one.deadlines_missed for one in counts),
    )


def _by_retries(row: StoredInstance) -> tuple[int, int]:
    return -row.retries, row.instance_id


def _instance(row: StoredInstance) -> ListedInstance:
    return ListedInstance(
        row.instance_id,
        row.job.job_id,
        row.state,
        row.retries,
        row.urgent and row.state is InstanceState.UNSENT,
        row.tight,
        _made_at(row),
        row.host_id,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.reason,
    )


def _made_at(row: StoredInstance) -> Instant:
    return row.job.batch.new.created_at if row.created_at is None else row.created_at


def held_instance(row: StoredInstance) -> ListedInProgress:
    assert row.host_id is not None
    assert row.sent_at is not None
    assert row.due_at is not None
    batch = row.job.batch
    runtime_s = row.est_runtime_s or 0.0
    return ListedInProgress(
        row.instance_id,
        row.job.job_id,
        batch.batch_id,
        batch.app_name,
        row.host_id,
        row.sent_at,
        row.due_at,
        runtime_s,
        row.tight,
    )
