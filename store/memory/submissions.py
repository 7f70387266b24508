"""Writes and aborts batches atomically in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from domain.batches import BatchCounts, BatchState, Submitter
from domain.errors import AlreadyExistsError, NotFoundError
from domain.jobs import JobClass
from domain.limits import Quantity, Scope
from domain.ordered_work import ACTIVE_HOST_S, OrderNotes, SubmissionOrder
from domain.ordering import QueueClock
from domain.submission import (
    ACTIVE_SUBMITTER_S,
    NewBatch,
    NewJob,
    SubmissionKey,
    SubmittedBefore,
    SubmitterLimits,
    fraction_of_shares,
)
from domain.units import AccountId, AppId, BatchId, Instant, JobClassId, JobId, SubmitterId
from store.memory.ordering import OrderBook
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredJob
from store.memory.work import Work


@dataclass(slots=True)
class _Draft:
    """A batch that is not committed yet."""

    new: NewBatch
    classes: list[JobClass] = field(default_factory=list)
    jobs: list[NewJob] = field(default_factory=list)
    record: Mapping[str, object] | None = None  # breakdown of its place in the order


class MemoryBatchWriter:
    """Collects a batch until `commit` writes it. Ids are assigned immediately and lost on rollback."""

    def __init__(self, submissions: MemorySubmissions) -> None:
        self._submissions = submissions
        self._registry = submissions.registry
        self._drafts: dict[BatchId, _Draft] = {}
        self._logical_at: dict[SubmitterId, Instant] = {}
        self._locks: dict[SubmitterId, asyncio.Lock] = {}
        self._key_locks: list[asyncio.Lock] = []
        self._remembered: list[tuple[SubmissionKey, BatchId, Instant]] = []

    async def standing(self, submitter_id: SubmitterId, *, now: Instant, lock: bool = True) -> SubmitterLimits:
        """Raises NotFoundError."""
        if submitter_id not in self._registry.submitters:
            raise NotFoundError("submitter", submitter_id)
        if lock and submitter_id not in self._locks:
            of_submitter = self._submissions.lock(submitter_id)
            await of_submitter.acquire()
            self._locks[submitter_id] = of_submitter
        submitter = self._registry.submitters[submitter_id]
        return SubmitterLimits(
            self._logical_at.get(submitter_id, submitter.logical_at),
            share_fraction=self._submissions.share_fraction(submitter, now),
            pool_flop_per_s=self._submissions.pool_flop_per_s(now),
        )

    async def order(
        self, submitter_id: SubmitterId, account_id: AccountId, *, app_id: AppId, queue: str
    ) -> SubmissionOrder:
        return self._submissions.order(submitter_id, account_id, app_id, queue)

    async def add_batch(self, batch: NewBatch) -> BatchId:
        if batch.submitter_id not in self._registry.submitters:
            raise NotFoundError("submitter", batch.submitter_id)
        if batch.app_id not in self._registry.apps:
            raise NotFoundError("app", batch.app_id)
        for other_id in (*batch.after_ok, *batch.after_any):
            if other_id not in self._submissions.work.batches:
                raise NotFoundError("batch", other_id)
        batch_id = BatchId(next(self._submissions.batch_ids))
        self._drafts[batch_id] = _Draft(batch)
        self._logical_at[batch.submitter_id] = batch.submitter_logical_at
        return batch_id

    async def explain(self, batch_id: BatchId, record: Mapping[str, object], *, now: Instant) -> None:
        del now  # also in the record
        self._draft(batch_id).record = json.loads(json.dumps(record))

    async def remember(self, key: SubmissionKey, batch_id: BatchId, *, now: Instant) -> None:
        lock = self._submissions.key_lock(key)
        await lock.acquire()
        self._key_locks.append(lock)
        if await self._submissions.submitted_before(key, now=now) is not None:
            raise AlreadyExistsError("submission", key.key)
        self._remembered.append((key, batch_id, now))

    async def add_classes(self, batch_id: BatchId, job_classes: Sequence[JobClass]) -> Sequence[JobClassId]:
        ids = [JobClassId(next(self._submissions.class_ids)) for _ in job_classes]
        self._draft(batch_id).classes.extend(
            replace(job_class, job_class_id=job_class_id, batch_id=batch_id)
            for job_class_id, job_class in zip(ids, job_classes, strict=True)
        )
        return ids

    async def add_jobs(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        self._draft(batch_id).jobs.extend(job.without_template() for job in jobs)

    def _draft(self, batch_id: BatchId) -> _Draft:
        if batch_id not in self._drafts:
            raise NotFoundError("batch of this submission", batch_id)
        return self._drafts[batch_id]

    def commit(self) -> None:
        for batch_id, draft in self._drafts.items():
            self._submissions.write(batch_id, draft)
        for submitter_id, logical_at in self._logical_at.items():
            submitter = self._registry.submitters[submitter_id]
            self._registry.submitters[submitter_id] = replace(submitter, logical_at=logical_at)

        for key, batch_id, now in self._remembered:
            self._submissions.keys[key.owner, key.key] = (SubmittedBefore(key.said, batch_id, None), now)

    def release(self) -> None:
        for lock in (*self._locks.values(), *self._key_locks):
            lock.release()


class MemorySubmissions:
    def __init__(self, registry: Registry, work: Work, book: OrderBook) -> None:
        self.registry = registry
        self.work = work
        self._book = book
        self._locks: dict[SubmitterId, asyncio.Lock] = {}
        self._key_locks: dict[tuple[str, str], asyncio.Lock] = {}
        self.keys: dict[tuple[str, str], tuple[SubmittedBefore, Instant]] = {}
        self.batch_ids, self.class_ids = itertools.count(1), itertools.count(1)

    @asynccontextmanager
    async def submission(self) -> AsyncIterator[MemoryBatchWriter]:
        writer = MemoryBatchWriter(self)
        try:
            yield writer
            writer.commit()
        finally:
            writer.release()

    # ------------------------------------------------------------ for the writer

    def order(self, submitter_id: SubmitterId, account_id: AccountId, app_id: AppId, queue: str) -> SubmissionOrder:
        book, leaf = self._book, (submitter_id, account_id)
        active: dict[Scope, int] = {}
        if any(limit.quantity is Quantity.BATCHES for limit in book.limits.values()):
            new = [batch.new for batch in self.work.batches.values() if batch.state is BatchState.ACTIVE]
            active = {
                Scope.SUBMITTER: sum(one.submitter_id == submitter_id for one in new),
                Scope.ACCOUNT: sum(one.account_id == account_id for one in new),
                Scope.APP: sum(one.app_id == app_id for one in new),
                Scope.QUEUE: sum(one.queue == queue for one in new),
            }
        limits = [book.limits[key] for key in sorted(book.limits)]
        payer: AccountId | None = account_id
        while payer is not None and payer not in book.grants:
            payer = self.registry.accounts[payer].parent_id
        grant = None if payer is None else book.grants[payer]
        return SubmissionOrder(book.standings.get(leaf), book.reference, grant, limits, active)

    async def submitted_before(self, key: SubmissionKey, *, now: Instant) -> SubmittedBefore | None:
        found = self.keys.get((key.owner, key.key))
        return None if found is None or found[1] < now - key.kept_s else found[0]

    def key_lock(self, key: SubmissionKey) -> asyncio.Lock:
        return self._key_locks.setdefault((key.owner, key.key), asyncio.Lock())

    def lock(self, submitter_id: SubmitterId) -> asyncio.Lock:
        return self._locks.setdefault(submitter_id, asyncio.Lock())

    def share_fraction(self, submitter: Submitter, now: Instant) -> float:
        """Return the submitter's fraction of the shares of all submitters of the last 30 days, including itself."""
        submitters = self.registry.submitters
        others = sum(
            submitters[submitter_id].shares
            for submitter_id, last_at in self.registry.last_submission_at.items()
            if submitter_id != submitter.submitter_id and last_at >= now - ACTIVE_SUBMITTER_S
        )
        return fraction_of_shares(submitter.shares, others)

    def pool_flop_per_s(self, now: Instant) -> float:
        """Return the CPU speed of all hosts active within 7 days, weighted by their availability."""
        return sum(
            host.ncpus * host.flop_per_s * host.cpu_availability_fraction
            for host in (stored.host for stored in self.work.hosts.values())
            if host.last_rpc_at >= now - ACTIVE_HOST_S
        )

    def write(self, batch_id: BatchId, draft: _Draft) -> None:
        """Store the batch, with its classes, jobs and first instances."""
        work, new = self.work, draft.new
        batch = StoredBatch(
            batch_id,
            new,
            self.registry.apps[new.app_id].name,
            new.state,
            BatchCounts(jobs_total=new.jobs_total),
            turnaround_s_per_flop=work.turnaround_s_per_flop,
        )
        batch.hold = new.hold
        work.batches[batch_id] = batch
        self._book.notes[batch_id] = OrderNotes(QueueClock(since=new.created_at))
        batch.classes.extend(draft.classes)
        if draft.record is not None:
            self._book.breakdowns[batch_id] = draft.record
        classes = {job_class.job_class_id: job_class for job_class in draft.classes}
        work.classes.update(classes)
        first_job = len(work.jobs) + 1
        batch.job_ids = range(first_job, first_job + len(draft.jobs))
        for job_id, new_job in zip(batch.job_ids, draft.jobs, strict=True):
            job_class = classes[new_job.job_class_id]
            job = StoredJob(JobId(job_id), batch, job_class, new_job.command_line, new_job.inputs)
            work.jobs.append(job)
            for _ in range(new_job.copies):
                work.add_instance(job, retries=0, urgent=False)
        work.count(batch, BatchCounts(unsent=sum(new_job.copies for new_job in draft.jobs)))
        last_at = self.registry.last_submission_at.get(new.submitter_id, new.created_at)
        self.registry.last_submission_at[new.submitter_id] = max(last_at, new.created_at)
