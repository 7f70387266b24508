"""What submission, validation and the sweeper need from the database and the files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from domain.batches import Batch
from domain.dispatch import Upload
from domain.havs import HavEvent
from domain.jobs import Held, InstanceState, JobClass, JobState
from domain.submission import NewBatch, NewJob, SubmitterStanding
from domain.units import (
    AppVersionId,
    BatchId,
    Flop,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    SubmitterId,
)

# ------------------------------------------------------------------ submission


class BatchWriter(Protocol):
    """One batch being written, inside one transaction: all of it or nothing."""

    async def standing(self, submitter_id: SubmitterId) -> SubmitterStanding:
        """The submitter's standing, its row locked until the transaction ends."""
        ...

    async def add_batch(self, batch: NewBatch) -> BatchId:
        """Write the batch row and advance the submitter's logical time to logical_start + charged."""
        ...

    async def add_class(self, batch_id: BatchId, job_class: JobClass) -> JobClassId:
        """Write a job class; its ids are ignored, the new id is returned."""
        ...

    async def add_jobs(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        """Write jobs with their unsent instances (binary COPY), and count them."""
        ...


class Submissions(Protocol):
    def submission(self) -> AbstractAsyncContextManager[BatchWriter]:
        """A transaction; left normally it commits, left by an exception nothing was written."""
        ...

    async def abort_batch(self, batch_id: BatchId, *, now: Instant) -> Batch:
        """End an active batch: its open jobs become cancelled, their unsent instances too.

        Raises NotFoundError. A batch that has ended is returned as it is.
        """
        ...


# ------------------------------------------------------------------ settling jobs


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """One instance of a job that is being settled."""

    instance_id: InstanceId
    name: str
    state: InstanceState
    host_id: HostId | None
    app_version_id: AppVersionId | None
    sent_at: Instant | None
    due_at: Instant | None
    reported_at: Instant | None
    est_runtime_s: Seconds | None
    elapsed_s: Seconds | None
    tight: bool
    uploads: tuple[Upload, ...]
    turnaround_sample: float | None = None


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job something happened to. `serial` tells whether more has happened since it was read."""

    job_id: JobId
    batch_id: BatchId
    serial: int
    state: JobState
    job_class: JobClass
    copies: int
    canonical_instance_id: InstanceId | None
    batch_aborted: bool
    app_name: str
    instances: tuple[InstanceFacts, ...]


@dataclass(frozen=True, slots=True)
class InstanceStep:
    """A guarded change of one instance: applied only while it is still in `from_state`."""

    instance_id: InstanceId
    from_state: InstanceState
    to_state: InstanceState
    turnaround_sample: float | None = None
    hav_event: HavEvent | None = None  # counts only if this step is really made


@dataclass(frozen=True, slots=True)
class JobSettlement:
    """What settling a job changes, all in one transaction.

    Applied only while the job's `serial` is unchanged; otherwise it is looked at again.
    `new_instances` are made unsent and urgent when `retries` > 0 or a sibling is back; `hasten` marks the
    job's unsent instances urgent because a sibling is back. When the last open job of a batch ends, the
    batch is complete.
    """

    job_id: JobId
    serial: int
    state: JobState
    settled_at: Instant
    canonical_instance_id: InstanceId | None = None
    failure: str = ""
    steps: tuple[InstanceStep, ...] = ()
    new_instances: int = 0
    retries: int = 0
    hasten: bool = False


class UnsettledJobs(Protocol):
    async def unsettled(self, limit: int) -> Sequence[JobFacts]:
        """Jobs in the order in which something happened to them."""
        ...

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        """Apply them; returns how many were still current."""
        ...


class OutputReader(Protocol):
    """The bytes of uploaded outputs, for comparers that must read them."""

    async def read_output(self, file_name: str) -> bytes | None:
        """The whole file; None when it is not there."""
        ...


# ------------------------------------------------------------------ the sweeper


@dataclass(frozen=True, slots=True)
class Overdue:
    """An instance whose due date and grace have passed in silence."""

    held: Held
    fpops_est_flop: Flop


class OverdueWork(Protocol):
    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        """In-progress instances with timeout_at <= now, earliest first."""
        ...

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        """Record the time-outs still due (state and timeout_at are checked again) and mark their jobs.

        Returns how many instances really timed out.
        """
        ...

    async def count_due(self, *, now: Instant) -> int:
        """Add to n_due of every HAV the instances whose due_at lies in (last count, now]."""
        ...


class Outages(Protocol):
    async def heartbeat(self, *, now: Instant) -> Instant | None:
        """Note that the project is alive; returns the previous note."""
        ...

    async def move_open_deadlines(self, *, by_s: Seconds, alive_until: Instant) -> int:
        """Move due_at and timeout_at of every instance in progress that was not overdue at `alive_until`."""
        ...
