"""Writes a batch with all its jobs in one transaction, or not at all.

Steps: 1 check all jobs before anything is written; 2 find app, submitter and account; 3 register the input files; 4 in
one transaction, place the batch in the order and write its jobs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice

from domain.apps import App, ProcessorType
from domain.batches import UNNUMBERED, Account, Submitter
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.errors import ConflictError, InvalidInputError, NotFoundError
from domain.forecasting import PlannedBatch, SendPlace
from domain.formatting import both_in_words
from domain.jobs import Input, JobClass
from domain.limits import Scope
from domain.ordered_work import Permission, Reference, SubmissionOrder
from domain.ordering import BatchFacts, QueueClock
from domain.ordering_settings import OrderingSettings
from domain.settings import DeadlineSettings, FileSettings
from domain.submission import JobTemplate, NewBatch, NewJob, SubmissionKey, SubmitterLimits
from domain.units import BatchId, Instant, JobClassId, later
from jobs.ordering.admission import SubmissionPlace, check_rights, permissions_of, place
from jobs.ordering.ordering_pass import importance_of, record_of
from jobs.ordering.sizing import gpu_of, job_size
from jobs.ports import Apps, BatchJobs, BatchWriter, InputFiles, Submissions, Submitters
from jobs.requirements import InputSpec, JobSpec, SharedTexts
from jobs.spec import BatchSize, BatchSpec, size_of
from priority.logical_time import charge_batch

CHUNK_JOBS = 5_000  # per round trip to the database


class JobStream:
    """Writes the jobs of one batch. Jobs with the same requirements share a class."""

    def __init__(self, writer: BatchWriter, batch_id: BatchId, inputs: Mapping[InputSpec, Input]) -> None:
        self._writer = writer
        self._batch_id = batch_id
        self._inputs = inputs
        self._classes: dict[JobClass, JobClassId] = {}
        self._shared = SharedTexts(self._template_of)

    async def write(self, spec: BatchSpec, total: int) -> None:
        """Write all jobs. Raises InvalidInputError if their number changed since the batch was checked."""
        jobs = zip((job for job in spec.jobs for _ in range(job.count)), count(), strict=False)
        written = 0
        while chunk := await asyncio.to_thread(_take, jobs):
            classes = [self._class_of(job) for job, _ in chunk]
            await self._add_classes(classes)
            new = [self._new_job(job, index, asked) for (job, index), asked in zip(chunk, classes, strict=True)]
            await self._writer.add_jobs(self._batch_id, new)
            written += len(chunk)
        if written != total:
            raise InvalidInputError(
                "jobs_csv" if spec.jobs_csv else "jobs", f"{total} jobs, as when the batch was checked", written
            )

    async def _add_classes(self, asked: Iterable[JobClass]) -> None:
        """Write the new classes in one call, because there may be one class per job."""
        new = [job_class for job_class in dict.fromkeys(asked) if job_class not in self._classes]
        if new:
            ids = await self._writer.add_classes(self._batch_id, new)
            self._classes.update(zip(new, ids, strict=True))

    def _new_job(self, job: JobSpec, index: int, asked: JobClass) -> NewJob:
        template = self._shared.of(job)
        if template is not None:
            return NewJob(self._classes[asked], copies=asked.quorum, template=template, number=index)
        return NewJob(
            self._classes[asked],
            job.command_line_of(index),
            inputs=self._files(job.own_inputs) if job.own_inputs else None,
            copies=asked.quorum,
        )

    def _template_of(self, job: JobSpec) -> JobTemplate:
        return JobTemplate(job.command_line, self._files(job.own_inputs) if job.own_inputs else None)

    def _class_of(self, job: JobSpec) -> JobClass:
        if not job.shared_inputs:
            return job.job_class
        return replace(job.job_class, inputs=self._files(job.shared_inputs))

    def _files(self, inputs: tuple[InputSpec, ...]) -> tuple[Input, ...]:
        return tuple(self._inputs[wanted] for wanted in inputs)


def _take(jobs: Iterator[tuple[JobSpec, int]]) -> list[tuple[JobSpec, int]]:
    return list(islice(jobs, CHUNK_JOBS))


CHUNK_FILES = 200


@dataclass(frozen=True, slots=True)
class SubmissionPorts:
    submissions: Submissions
    submitters: Submitters
    apps: Apps
    files: InputFiles


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch that passed all checks, with its app, submitter, account and input files."""

    spec: BatchSpec
    size: BatchSize
    app: App
    submitter: Submitter
    account: Account
    inputs: Mapping[InputSpec, Input]
    gpu: ProcessorType | None = None  # the type that its jobs need
    may_date: bool = False  # its deadline affects its place in the order
    copied: CopiedJobs | None = None  # in place of the jobs in `spec`, which then have only their classes

    def planned(self, new: NewBatch, batch_id: BatchId = UNNUMBERED) -> PlannedBatch:
        """Return the demand that the batch places on its app's hosts, and its place in the order."""
        size = self.size
        return PlannedBatch(
            self.app.app_id,
            self.spec.qos,
            size.delay_bound_s,
            size.jobs_of,
            deadline_at=new.deadline_at,
            place=SendPlace(new.qos, new.deadline_at, new.unpaid, new.order_tier, new.order_key, batch_id),
        )


async def submit(
    spec: BatchSpec,
    *,
    ports: SubmissionPorts,
    ordering: OrderingSettings,
    clock: Clock,
) -> BatchId:
    """Submit a batch. It is committed when this returns.

    Raises InvalidInputError, or NotFoundError for an unknown input file or batch.
    """
    batch = await checked(spec, ports=ports)
    batch_id, _ = await write(batch, submissions=ports.submissions, ordering=ordering, clock=clock)
    return batch_id


async def checked(spec: BatchSpec, *, ports: SubmissionPorts, by_operator: bool = False) -> CheckedBatch:
    """Run all checks that precede writing a batch. Raises the same errors as `submit`."""
    size = await asyncio.to_thread(size_of, spec)
    app, gpu = await _app(spec, size, ports.apps)
    submitter, account, permissions = await _submitter(spec, ports.submitters, by_operator=by_operator)
    inputs = await _inputs(size.inputs, ports.files)
    return CheckedBatch(spec, size, app, submitter, account, inputs, gpu, Permission.DEADLINE in permissions)


async def write(
    batch: CheckedBatch,
    *,
    submissions: Submissions,
    ordering: OrderingSettings,
    clock: Clock,
    key: SubmissionKey | None = None,
    logical_end_at: Instant | None = None,
) -> tuple[BatchId, NewBatch]:
    """Write a whole batch. It is committed when this returns.

    `logical_end_at`: its place by logical time from the next ordering pass on, None for the place of a new batch.
    Raises AlreadyExistsError if a batch was already submitted with that key.
    """
    async with submissions.submission() as writer:
        now = clock.now()
        new, found = await _placed(batch, writer, ordering, now)
        if logical_end_at is not None:
            new = replace(new, logical_end_at=logical_end_at)
        batch_id = await writer.add_batch(new)
        if key is not None:
            await writer.remember(key, batch_id, now=now)
        breakdown = replace(found.breakdown, batch_id=batch_id)
        record = record_of(breakdown, importance_of(new), queue=found.queue_because, hold=None)
        await writer.explain(batch_id, record, now=now)
        if batch.copied is None:
            await JobStream(writer, batch_id, batch.inputs).write(batch.spec, batch.size.jobs)
        else:
            await batch.copied.write(writer, batch_id, batch.size.jobs)
    return batch_id, new


async def foreseen(
    batch: CheckedBatch, *, submissions: Submissions, ordering: OrderingSettings, clock: Clock
) -> NewBatch:
    """Return the batch as it would be written now, without waiting for submissions in progress. Writes nothing.

    Raises InvalidInputError for an exceeded limit.
    """
    async with submissions.submission() as writer:
        new, _ = await _placed(batch, writer, ordering, clock.now(), lock=False)
    return new


async def _placed(
    batch: CheckedBatch, writer: BatchWriter, ordering: OrderingSettings, now: Instant, *, lock: bool = True
) -> tuple[NewBatch, SubmissionPlace]:
    limits = await writer.standing(batch.submitter.submitter_id, now=now, lock=lock)
    leaf = (batch.submitter.submitter_id, batch.account.account_id)
    known = await writer.order(*leaf, app_id=batch.app.app_id, queue=batch.spec.queue)
    return _new_batch(batch, limits=limits, known=known, ordering=ordering, now=now)


async def _app(spec: BatchSpec, size: BatchSize, apps: Apps) -> tuple[App, ProcessorType | None]:
    """Return the app and the GPU type its jobs need. Raises InvalidInputError."""
    try:
        app = await apps.app(spec.app)
    except NotFoundError:
        raise InvalidInputError("app", "the name of an app (see `muster app list`)", spec.app) from None
    if app.deprecated:
        raise InvalidInputError("app", "an app that is not deprecated", spec.app)
    catalogue = await apps.load_catalogue()
    if not catalogue.current.get(app.app_id):
        raise InvalidInputError("app", "an app with a version (see `muster app version add`)", spec.app)
    _check_bounds(size, catalogue.settings.deadline)
    _check_bytes(size, catalogue.settings.files)
    return app, gpu_of(catalogue, app.app_id)


def _check_bounds(size: BatchSize, settings: DeadlineSettings) -> None:
    """Raise InvalidInputError if a delay bound is not above the minimum slack: no host could then get the job."""
    least_s = settings.min_slack_s
    if traits_of(settings).adds_slack and size.shortest_bound_s <= least_s:
        expected = f"more than {least_s:g} s, the minimum slack of a due date (deadline.min_slack_s)"
        raise InvalidInputError("jobs.delay_bound_s", expected, size.shortest_bound_s)


def _check_bytes(size: BatchSize, settings: FileSettings) -> None:
    """Raise InvalidInputError if the batch would be too large in the database."""
    if size.nbytes > settings.max_batch_bytes:
        most, asked = both_in_words(settings.max_batch_bytes, size.nbytes)
        expected = f"a batch that takes at most {most} in the database (files.max_batch_bytes)"
        raise InvalidInputError("jobs", expected, f"about {asked}")


async def _submitter(
    spec: BatchSpec, submitters: Submitters, *, by_operator: bool
) -> tuple[Submitter, Account, frozenset[str]]:
    """Return the submitter, the account (as given, otherwise its own), and the submitter's permissions there.

    Operators need no permission for the level and priority they give. Raises InvalidInputError.
    """
    try:
        submitter = await submitters.submitter(spec.submitter)
    except NotFoundError:
        raise InvalidInputError("submitter", "the name of a submitter", spec.submitter) from None
    accounts = await submitters.accounts()
    further = await submitters.memberships(submitter.submitter_id)
    mine = [account for account in accounts if account.account_id in {submitter.account_id, *further}]
    mine.sort(key=lambda account: account.account_id != submitter.account_id)
    chosen = [account for account in mine if spec.account in ("", account.name)]
    if not chosen:
        expected = f"an account of submitter {spec.submitter} ({', '.join(account.name for account in mine)})"
        raise InvalidInputError("account", expected, spec.account)
    permissions = permissions_of(submitter, chosen[0].account_id, accounts)
    if not by_operator:
        check_rights(spec.level, spec.user_priority, permissions)
    return submitter, chosen[0], permissions


async def _inputs(wanted: tuple[InputSpec, ...], files: InputFiles) -> Mapping[InputSpec, Input]:
    found: dict[InputSpec, Input] = {}
    for start in range(0, len(wanted), CHUNK_FILES):
        chunk = wanted[start : start + CHUNK_FILES]
        found.update(zip(chunk, await files.input_files(chunk), strict=True))
    return found


def _new_batch(
    batch: CheckedBatch,
    *,
    limits: SubmitterLimits,
    known: SubmissionOrder,
    ordering: OrderingSettings,
    now: Instant,
) -> tuple[NewBatch, SubmissionPlace]:
    spec, size, app = batch.spec, batch.size, batch.app
    times = charge_batch(
        logical_at=limits.logical_at,
        now=now,
        batch_flop=size.flop,
        pool_flop_per_s=limits.pool_flop_per_s,
        share_fraction=limits.share_fraction,
        rule=ordering.let_rule,
    )
    deadline_at = None if spec.deadline_s is None else later(now, spec.deadline_s)
    facts = BatchFacts(
        UNNUMBERED,
        batch.submitter.submitter_id,
        batch.account.account_id,
        now,
        logical_end_at=times.logical_end_at,
        app_id=app.app_id,
        queue=spec.queue,
        level=spec.level,
        user_priority=spec.user_priority,
        clock=QueueClock(since=now),  # an ordering pass pauses it if the batch waits for other batches
        deadline_at=deadline_at if batch.may_date else None,
        batch_flop=size.flop,
        unsent=size.jobs,
    )
    one_job = job_size(size.request, size.job_flop, known.reference or Reference(now), batch.gpu)
    found = place(
        facts,
        one_job,
        known=known,
        names=_names(batch),
        settings=ordering,
        pool_flop_per_s=limits.pool_flop_per_s,
    )
    new = NewBatch(
        batch.submitter.submitter_id,
        batch.account.account_id,
        app.app_id,
        spec.name,
        spec.qos,
        size.jobs,
        created_at=now,
        order_tier=found.breakdown.tier,
        order_key=found.breakdown.key,
        logical_start_at=times.logical_start_at,
        logical_end_at=times.logical_end_at,
        submitter_logical_at=times.submitter_logical_at,
        charged_s=times.charged_s,
        batch_flop=size.flop,
        deadline_at=deadline_at,
        user_priority=spec.user_priority,
        queue=spec.queue,
        level=spec.level,
        unpaid=found.queue.is_unpaid,
        job_pe=one_job.pe,
        hold="; ".join(f"waits for batch {one}" for one in sorted({*spec.after_ok, *spec.after_any})) or None,
        after_ok=spec.after_ok,
        after_any=spec.after_any,
        quorum_total=size.quorum_total,
    )
    return new, found


def _names(batch: CheckedBatch) -> Mapping[Scope, str]:
    """Return the names to which limits may apply."""
    return {
        Scope.SUBMITTER: batch.submitter.name,
        Scope.ACCOUNT: batch.account.name,
        Scope.APP: batch.app.name,
        Scope.QUEUE: batch.spec.queue,
    }


@dataclass(frozen=True, slots=True)
class CopiedJobs:
    """The jobs of a batch, read from the database when they are written."""

    batch_id: BatchId
    classes: Sequence[JobClass]
    source: BatchJobs

    async def write(self, writer: BatchWriter, batch_id: BatchId, total: int) -> None:
        """Write all jobs. Raises ConflictError if some were purged since the copy was checked."""
        ids = await writer.add_classes(batch_id, self.classes)
        new = {one.job_class_id: (made, one.quorum) for one, made in zip(self.classes, ids, strict=True)}
        written = 0
        async for jobs in self.source.jobs_to_copy(self.batch_id):
            made = [(job, *new[job.job_class_id]) for job in jobs]
            await writer.add_jobs(batch_id, [replace(job, job_class_id=id_, copies=n) for job, id_, n in made])
            written += len(jobs)
        if written != total:
            raise ConflictError(f"batch {self.batch_id} had {total} jobs and now has {written}")


async def classes_to_copy(
    batch_id: BatchId, jobs_total: int, classes: Sequence[JobClass], source: BatchJobs
) -> Sequence[JobSpec]:
    """Return one entry per job class with its number of jobs. Raises ConflictError if some jobs were purged."""
    counts = await source.class_counts(batch_id)
    if sum(counts.values()) != jobs_total:
        raise ConflictError(f"{jobs_total - sum(counts.values())} of {jobs_total} jobs of batch {batch_id} were purged")
    return [JobSpec(counts[one.job_class_id], "", one) for one in classes if one.job_class_id in counts]
