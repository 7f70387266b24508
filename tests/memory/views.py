"""Batches, jobs, hosts, lists and a volunteer's own data, in memory; and a recount of the counters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import inf

import store.memory.waiting
from domain.batches import Batch, BatchCounts, BatchState, QoS
from domain.credit import NO_CREDIT, CreditKind
from domain.errors import NotFoundError
from domain.forecasts import ForecastRecord, ForecastState, batch_state, risk_of
from domain.history import month_of
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceState, JobState
from domain.units import AccountId, AppId, BatchId, HostId, InstanceId, Instant, JobId, VolunteerId
from domain.views import (
    ALL_SENT,
    MOST_EXTRAS,
    ActiveCounts,
    ActiveTotal,
    BatchChoice,
    BatchPlace,
    BatchSort,
    InstancePlace,
    InstanceRow,
    JobRow,
    ListedBatch,
    ListedInProgress,
    ListedInstance,
    NotSent,
    Returned,
    UnsentExtras,
    Whose,
)
from domain.volunteers import OUTCOMES, Outcome, OwnHost, OwnResult, OwnTotals, ResultPlace
from store.counting import added, job_counts
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredHost, StoredInstance, StoredJob
from store.memory.work import Work
from tests.memory.files import MemoryForecasts
from tests.recount import instance_counts


class MemoryViews(store.memory.waiting.MemoryViews):
    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        batch = self._work.batches.get(batch_id)
        if batch is None:
            return []
        first = batch.job_ids.start if after is None else max(batch.job_ids.start, after + 1)
        ids = (job_id for job_id in range(first, batch.job_ids.stop) if job_id not in self._work.purged)
        return [_job_row(self._work.jobs[job_id - 1], ()) for job_id in islice(ids, limit)]

    async def job(self, job_id: JobId) -> JobRow:
        job = self._work.job(job_id)
        if job is None:
            raise NotFoundError("job", job_id)
        return _job_row(job, tuple(_instance_row(row) for row in job.instances))

    async def job_of_instance(self, instance_id: InstanceId) -> JobRow:
        row = self._work.instance_of_any_age(instance_id)
        if row is None:
            raise NotFoundError("instance", instance_id)
        return await self.job(row.job.job_id)

    async def returned(self, batch_id: BatchId, instances: Sequence[InstanceId]) -> Mapping[InstanceId, Returned]:
        found = (self._work.instance_of_any_age(one) for one in instances)
        return {
            one.instance_id: Returned(one.host_id, one.elapsed_s, one.cpu_s, one.exit_status, one.uploads)
            for one in found
            if one is not None and one.job.batch.batch_id == batch_id
        }

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]:
        first = 1 if after is None else after + 1
        ids = range(first, min(len(self._work.hosts) + 1, first + limit))
        return [self._work.hosts[HostId(host_id)].host for host_id in ids]

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]:
        stored = self._work.hosts.get(host_id)
        if stored is None:
            raise NotFoundError("host", host_id)
        return stored.host, [stored.havs[app_version_id] for app_version_id in sorted(stored.havs)]

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]:
        found = (self._work.batches.get(batch_id) for batch_id in ids)
        return {one.batch_id: self._whose(one.as_batch()) for one in found if one is not None}

    def _whose(self, batch: Batch) -> Whose:
        registry = self._registry
        return Whose(
            registry.apps[batch.app_id].name,
            registry.submitters[batch.submitter_id].name,
            registry.accounts[batch.account_id].name,
        )

    async def account_name(self, account_id: AccountId) -> str:
        if account_id not in self._registry.accounts:
            raise NotFoundError("account", account_id)
        return self._registry.accounts[account_id].name

    async def app_name(self, app_id: AppId) -> str:
        if app_id not in self._registry.apps:
            raise NotFoundError("app", app_id)
        return self._registry.apps[app_id].name

    async def check_counters(self) -> Sequence[str]:
        """Return a sentence for each batch whose counters differ from its rows."""
        return [
            f"batch {batch.batch_id}: counters say {batch.counts}, rows say {recounted}"
            for batch in self._work.batches.values()
            if not self._was_purged(batch) and (recounted := self._recounted(batch)) != batch.counts
        ]

    def _was_purged(self, batch: StoredBatch) -> bool:
        return batch.ended_at is not None and self._work.months.get(month_of(batch.ended_at)) is not None

    def _recounted(self, batch: StoredBatch) -> BatchCounts:
        total = BatchCounts(jobs_total=batch.new.jobs_total)
        for job_id in batch.job_ids:
            job = self._work.jobs[job_id - 1]
            total = added(total, job_counts(JobState.OPEN, job.state))
            for row in job.instances:
                total = added(total, instance_counts(row.counted()))
        return total


class MemoryListings:
    def __init__(self, registry: Registry, work: Work, forecasts: MemoryForecasts) -> None:
        self._registry = registry
        self._work = work
        self._forecasts = forecasts

    async def batches(
        self,
        choice: BatchChoice,
        sort: BatchSort,
        *,
        after: BatchPlace | None,
        limit: int,
        until: BatchPlace | None = None,
        not_sent: NotSent = ALL_SENT,
        first: Collection[BatchId] = (),
    ) -> Sequence[ListedBatch]:
        chosen = [one for one in self._work.batches.values() if _is_chosen(one, choice)]
        if sort.key != "id" or choice.active_only:
            chosen = [one for one in chosen if one.state is BatchState.ACTIVE]
        if choice.at_risk_at is not None:
            chosen = await self._at_risk(chosen, choice.at_risk_at)

        def key(place: BatchPlace) -> tuple[float, float, int]:
            return place.first, place.second, sort.sign * place.batch_id

        last = await self._forecasts.last([one.batch_id for one in chosen])
        batches = [one.as_batch() for one in chosen]
        places = [
            _batch_place(
                one,
                sort,
                list(first) if self._work.has_fresh(self._work.batches[one.batch_id]) else None,
                has_end=_has_end(one, last.get(one.batch_id), not_sent),
            )
            for one in batches
        ]
        found = [one for one in sorted(places, key=key) if after is None or key(one) > key(after)]
        if until is not None:
            found = [one for one in found if sort.sign * one.batch_id <= sort.sign * until.batch_id]
        return [replace(self._listed(self._work.batches[one.batch_id]), place=one) for one in found[:limit]]

    async def place_at(self, sort: BatchSort, *, after: BatchPlace | None, number: int) -> BatchPlace | None:
        found = await self.batches(BatchChoice(), sort, after=after, limit=number)
        return found[-1].place if len(found) == number else None

    async def listed(self, batch_ids: Sequence[BatchId]) -> Sequence[ListedBatch]:
        return [self._listed(self._work.batches[one]) for one in batch_ids if one in self._work.batches]

    async def counts(self, choice: BatchChoice, now: Instant, attention: Collection[BatchId]) -> ActiveCounts:
        narrowed = replace(choice, state=BatchState.ACTIVE, at_risk_at=None, blocked=False, ids=None, failed=False)
        active = [one for one in self._work.batches.values() if _is_chosen(one, narrowed)]
        return ActiveCounts(
            len(active),
            len(await self._at_risk(active, now)),
            sum(one.hold is not None for one in active),
            sum(one.batch_id in attention for one in active),
        )

    async def _at_risk(self, batches: Sequence[StoredBatch], now: Instant) -> list[StoredBatch]:
        last = await self._forecasts.last([one.batch_id for one in batches])
        return [one for one in batches if risk_of(one.new.deadline_at, last.get(one.batch_id), now) is not None]

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

    async def latest(
        self, batch_id: BatchId, states: Collection[InstanceState], *, before: InstanceId | None, limit: int
    ) -> Sequence[ListedInstance]:
        found = await self.instances(batch_id, states, after=None, limit=10**9)
        ids = [one for one in found if before is None or one.instance_id < before]
        return sorted(ids, key=lambda one: -one.instance_id)[:limit]

    async def extras(self, batch_id: BatchId) -> UnsentExtras:
        found = await self.instances(batch_id, [InstanceState.UNSENT], after=None, limit=MOST_EXTRAS)
        extra = [one for one in found if one.retries > 0]
        copies = sum(one.copied_because is not None for one in extra)
        return UnsentExtras(copies, len(extra) - copies)

    async def held_by(self, host_id: HostId, *, limit: int) -> Sequence[ListedInProgress]:
        rows = (row for job in self._work.jobs for row in job.instances)
        held = [held_instance(row) for row in rows if row.host_id == host_id and row.state is InstanceState.IN_PROGRESS]
        return sorted(held, key=lambda one: (one.due_at, one.instance_id))[:limit]


def _batch_place(batch: Batch, sort: BatchSort, first: Sequence[BatchId] | None, *, has_end: bool) -> BatchPlace:
    """Return the place of a batch in a list; only the order of the queue has a second key. `first` None: the batch has
    no place in the order.
    """
    value: float | None = 0.0
    match sort.key:
        case "order" if first is None:
            return BatchPlace(batch.batch_id, inf, inf)
        case "order" if first and batch.batch_id in first:
            return BatchPlace(batch.batch_id, sort.sign * -inf, float(sort.sign * (1 + first.index(batch.batch_id))))
        case "order":
            return BatchPlace(batch.batch_id, float(sort.sign * batch.order_tier), sort.sign * batch.order_key)
        case "deadline":
            value = batch.deadline_at
        case "expected_end":
            value = batch.completion_q50_at if has_end else None
        case "latest_end":
            value = batch.completion_q90_at if has_end else None
        case "failed":
            value = float(batch.counts.jobs_failed)
    return BatchPlace(batch.batch_id, inf if value is None else sort.sign * value)


def _has_end(batch: Batch, last: ForecastRecord | None, not_sent: NotSent) -> bool:
    is_stopped = (
        not_sent.all
        or batch.batch_id in not_sent.batch_ids
        or batch.app_id in not_sent.app_ids
        or batch.queue in not_sent.queues
    )
    return batch_state(batch, last) is ForecastState.SHOWN and not (is_stopped and batch.counts.unsent)


def _is_chosen(one: StoredBatch, choice: BatchChoice) -> bool:
    return (
        choice.state in (None, one.state)
        and choice.qos in (None, one.new.qos)
        and choice.app_id in (None, one.new.app_id)
        and choice.submitter_id in (None, one.new.submitter_id)
        and choice.account_id in (None, one.new.account_id)
        and choice.queue in (None, one.new.queue)
        and (one.hold is not None or not choice.blocked)
        and choice.text.lower() in one.new.name.lower()
        and (choice.ids is None or one.batch_id in choice.ids)
        and (one.as_batch().counts.jobs_failed > 0 or not choice.failed)
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
        row.copied_because,
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


def _job_row(job: StoredJob, instances: tuple[InstanceRow, ...]) -> JobRow:
    return JobRow(
        job.job_id,
        job.batch.batch_id,
        job.job_class.job_class_id,
        job.state,
        job.command_line,
        job.failure,
        job.canonical_instance_id,
        job.inputs or (),
        instances,
    )


def _instance_row(row: StoredInstance) -> InstanceRow:
    return InstanceRow(
        row.instance_id,
        row.job.job_id,
        row.state,
        row.retries,
        row.tight,
        row.host_id,
        row.app_version_id,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.est_runtime_s,
        row.elapsed_s,
        row.exit_status,
        row.reason,
        row.due_terms,
        row.stderr,
        row.uploads,
        row.timeout_at,
        row.turnaround_sample,
        row.copied_because,
        row.credit,
    )


class MemoryVolunteerViews:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]:
        own = [one for one in self._own(volunteer_id) if before is None or one.host.host_id < before]
        return [self._own_host(one) for one in sorted(own, key=lambda one: one.host.host_id, reverse=True)[:limit]]

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost:
        stored = self._work.hosts.get(host_id)
        if stored is None or stored.host.volunteer_id != volunteer_id:
            raise NotFoundError("computer", host_id)
        return self._own_host(stored)

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]:
        own = [one for one in self._own(volunteer_id) if host_id in (None, one.host.host_id)]
        held = [held_instance(row) for one in own for row in one.held.values()]
        return sorted(held, key=lambda one: (one.due_at, one.instance_id))[:limit]

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]:
        rows = (row for job in self._work.jobs if job.job_id not in self._work.history for row in job.instances)
        own = [_own_result(row) for row in rows if row.volunteer_id == volunteer_id and row.state in OUTCOMES]
        own.sort(key=_place, reverse=True)
        return [
            one
            for one in own
            if (after is None or _place(one) < (after.sent_at, after.instance_id))
            and host_id in (None, one.host_id)
            and outcome in (None, one.outcome)
        ][:limit]

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals:
        own = list(self._own(volunteer_id))
        havs = [hav for one in own for hav in one.havs.values()]
        return OwnTotals(
            len(own),
            sum(len(one.held) for one in own),
            sum(hav.n_valid for hav in havs),
            sum(hav.n_error for hav in havs),
            sum(hav.n_timeout for hav in havs),
            self._work.credit.get((CreditKind.VOLUNTEER, volunteer_id), NO_CREDIT),
        )

    def _own_host(self, stored: StoredHost) -> OwnHost:
        credit = self._work.credit.get((CreditKind.HOST, stored.host.host_id), NO_CREDIT)
        return OwnHost(stored.host, len(stored.held), stored.refused_at, stored.refused, credit)

    def _own(self, volunteer_id: VolunteerId) -> Iterable[StoredHost]:
        return (one for one in self._work.hosts.values() if one.host.volunteer_id == volunteer_id)


def _place(one: OwnResult) -> tuple[float, int]:
    return one.sent_at, one.instance_id


def _own_result(row: StoredInstance) -> OwnResult:
    assert row.host_id is not None
    assert row.sent_at is not None
    assert row.due_at is not None
    batch = row.job.batch
    return OwnResult(
        row.instance_id,
        batch.batch_id,
        batch.app_name,
        row.host_id,
        row.state,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.elapsed_s,
        row.reason or "",
        row.credit,
    )
