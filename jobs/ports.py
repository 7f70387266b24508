"""Ports through which submission, validation and the sweeper use the database and files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from domain.acceleration import Acceleration, LowTurnaround
from domain.apps import App
from domain.batches import Account, Batch, Submitter
from domain.catalogue import Catalogue
from domain.dispatch import InstanceStep
from domain.history import JobPlace, MovedJobs
from domain.host_classes import AlikeHosts, HostClasses
from domain.jobs import Input, JobClass
from domain.ordered_work import OrderingCharges, OrderingView, Reference, StoredPlace, SubmissionOrder
from domain.ordering import Request
from domain.reservations import BigBatch, Kept, LeaseEnd, LeaseStanding, Reserved
from domain.settlement import (
    ALL_JOBS,
    CopyUse,
    ExtraCopy,
    JobFacts,
    JobSettlement,
    JobShare,
    OutageReport,
    Overdue,
    TailJob,
)
from domain.submission import NewBatch, NewJob, SubmissionKey, SubmitterLimits
from domain.units import AccountId, AppId, BatchId, Flop, Instant, JobClassId, JobId, Seconds, SubmitterId
from jobs.requirements import InputSpec

# ------------------------------------------------------------------ submission


class BatchWriter(Protocol):
    """Writes one batch in one transaction: completely or not at all."""

    async def standing(self, submitter_id: SubmitterId, *, now: Instant, lock: bool = True) -> SubmitterLimits:
        """Return the submitter's limits. With `lock`, locks the submitter's row until the end of the transaction."""
        ...

    async def order(
        self, submitter_id: SubmitterId, account_id: AccountId, *, app_id: AppId, queue: str
    ) -> SubmissionOrder:
        """Return the further inputs for admitting and placing a batch."""
        ...

    async def add_batch(self, batch: NewBatch) -> BatchId:
        """Write the batch row, and advance the submitter's logical time to logical_start + charged."""
        ...

    async def explain(self, batch_id: BatchId, record: Mapping[str, object], *, now: Instant) -> None:
        """Store the breakdown that explains the batch's place."""
        ...

    async def remember(self, key: SubmissionKey, batch_id: BatchId, *, now: Instant) -> None:
        """Store the submission key, so that a repeat of the submission is recognised.

        Raises AlreadyExistsError if the key exists, after waiting for a concurrent transaction that writes it.
        """
        ...

    async def add_classes(self, batch_id: BatchId, job_classes: Sequence[JobClass]) -> Sequence[JobClassId]:
        """Write job classes, ignoring their ids. Return the new ids in the same order."""
        ...

    async def add_jobs(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        """Write jobs with their unsent instances (binary COPY), and count them."""
        ...


class Submissions(Protocol):
    def submission(self) -> AbstractAsyncContextManager[BatchWriter]:
        """Open a transaction. It commits on normal exit and is rolled back by an exception."""
        ...


class BatchJobs(Protocol):
    """Reads the jobs of a batch of any age, to copy them."""

    async def class_counts(self, batch_id: BatchId) -> Mapping[JobClassId, int]:
        """Return the number of jobs of each class; purged jobs are missing."""
        ...

    def jobs_to_copy(self, batch_id: BatchId) -> AsyncIterator[Sequence[NewJob]]:
        """Yield the jobs in order of id, with the ids of their present classes."""
        ...


class Submitters(Protocol):
    async def submitter(self, name: str) -> Submitter:
        """Return the submitter with this name. Raises NotFoundError."""
        ...

    async def accounts(self) -> Sequence[Account]: ...

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        """Return the submitter's shares in accounts other than its own."""
        ...


class Apps(Protocol):
    async def app(self, name: str) -> App:
        """Return the app with this name. Raises NotFoundError."""
        ...

    async def load_catalogue(self) -> Catalogue:
        """Return the catalogue with each app's current versions."""
        ...


class InputFiles(Protocol):
    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        """Return the files with these client-side names, in the same order. Paths are registered first.

        Can be repeated safely. Raises NotFoundError for an unregistered name, InvalidInputError for a path.
        """
        ...


# ------------------------------------------------------------------ settling jobs


class UnsettledJobs(Protocol):
    async def unsettled(
        self, limit: int, *, now: Instant, share: JobShare = ALL_JOBS, with_content: bool = True
    ) -> Sequence[JobFacts]:
        """Return jobs of the share to settle, oldest change first, except those whose outputs are being compared.

        Without `with_content`, jobs whose validator reads outputs are left out too.
        """
        ...

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        """Count an attempt to compare each job's outputs before the attempt starts. Return each job's attempts.

        `unsettled` then omits the jobs for a minute, longer with each attempt, or until they change: a job whose
        outputs crash the comparing process is not retried immediately by another process. For that time no other
        attempt begins: jobs that another process compares, and settled ones, are left out of the result.
        """
        ...

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        """Apply the settlements and return how many were still current."""
        ...


# ------------------------------------------------------------------ the sweeper


class OverdueWork(Protocol):
    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        """Return instances in progress with timeout_at <= now, earliest first."""
        ...

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        """Record the timeouts that are still due (state and timeout_at are checked again) and mark their jobs.

        Returns the number of instances timed out.
        """
        ...

    async def count_due(self, *, now: Instant) -> int:
        """Add to each HAV's n_due the number of its instances whose due_at is in (last count, now].

        If the last count is later than `now`, its clock was ahead: instances counted too early are subtracted.
        """
        ...


class TailWork(Protocol):
    """Reads and copies the last jobs of batches."""

    async def tails(self, *, fraction: float, jobs: int, limit: int, unsent: float = -1.0) -> Sequence[Batch]:
        """Return active batches with at most max(fraction, `jobs`) open jobs or `unsent` unsent instances per job."""
        ...

    async def tail_jobs(self, batch_id: BatchId, *, after: JobId, limit: int, now: Instant) -> Sequence[TailJob]:
        """Return a batch's open jobs with ids above `after`, in order of id, with host statistics as of `now`."""
        ...

    async def copy_use(self, batch_id: BatchId) -> CopyUse:
        """Return the results a batch needs (the sum over its jobs of max(quorum, copies)) and its copies so far."""
        ...

    async def add_copies(self, copies: Sequence[ExtraCopy], *, now: Instant) -> int:
        """Create copies of jobs that have not changed since the decision. Return the number of copies."""
        ...

    async def hasten(self, job_ids: Sequence[JobId]) -> None:
        """Make these jobs' unsent instances urgent."""
        ...

    async def low_turnaround(self, *, since: Instant) -> LowTurnaround:
        """Return turnaround statistics of the batches created since `since` (defined in domain.acceleration)."""
        ...


class AccelerationNotes(Protocol):
    async def note_acceleration(self, acceleration: Acceleration) -> None:
        """Store the flags. Requests use them after the next reload of the catalogue."""
        ...


class EndedWork(Protocol):
    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        """Move some jobs of a batch that ended before `before`, with all their rows, to the history.

        Considers the next `limit` jobs after `after`, all of one batch, and skips jobs that may still change: marked
        jobs, and jobs with an instance in progress or a due date that is in the future or not yet counted. One
        transaction; can be repeated safely.
        """
        ...


class Outages(Protocol):
    async def note_alive(self, *, now: Instant, outage_at_least_s: Seconds, limit: int) -> OutageReport:
        """Record that the project is alive, and shift up to `limit` due dates because of an outage.

        A gap of `outage_at_least_s` or more between two records is an outage. Its length is added to due_at and
        timeout_at of all instances that were in progress and not overdue when it began. The outage is stored with the
        record, and progress with each portion, so an interrupted shift continues at the next call. Outages are handled
        one at a time. After each, the active batches count as sent again (docs/decisions/0083).
        """
        ...


class OrderedWork(Protocol):
    async def view(self) -> OrderingView:
        """Return the complete input of an ordering pass."""
        ...

    async def reference(self, *, active_since: Instant, now: Instant) -> Reference:
        """Compute the reference host from all hosts that contacted the server since then. Reads all of them."""
        ...

    async def used_fractions(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Sequence[float]]:
        """Return used / estimated of some of each batch's valid results, newest first; others are omitted."""
        ...

    async def charge(self, charges: OrderingCharges) -> int | None:
        """Write the charges in one transaction. Return the new serial, or None if another pass committed first."""
        ...

    async def move(self, places: Sequence[StoredPlace]) -> int:
        """Move batches that are still active, in portions, and return how many moved. Skips locked rows."""
        ...

    async def explain(self, records: Mapping[BatchId, Mapping[str, object]], *, now: Instant) -> None:
        """Store these breakdowns, in portions."""
        ...


class ReservedWork(Protocol):
    async def reference(self) -> Reference | None:
        """Return the reference host of the last ordering pass, if any."""
        ...

    async def big_batches(self, least: Request, app_ids: Sequence[AppId], limit: int) -> Sequence[BigBatch]:
        """Return the first waiting batches in order of these apps or with a job that requests at least `least`.

        Excludes batches blocked by a limit.
        """
        ...

    async def reserved(self) -> Reserved:
        """Return the reserved slots and the leases."""
        ...

    async def standing_leases(self) -> Sequence[LeaseStanding]:
        """Return, by host, the leases that have not ended."""
        ...

    async def reserve(
        self, kept: Sequence[Kept], ends: Sequence[LeaseEnd], *, forget_before: Instant, now: Instant
    ) -> None:
        """Replace the reserved slots, end these leases, and delete leases that ended before `forget_before`.

        A lease that was used is deleted immediately. Requests use the changes after the next reload of the catalogue.
        """
        ...


class RedundantWork(Protocol):
    async def redundant_lines(self) -> Mapping[tuple[AppId, int], Mapping[int, Flop]]:
        """Return the unsent work of each class, by (app, hr_type) of waiting jobs with homogeneous redundancy."""
        ...

    async def alike_hosts(self, *, active_since: Instant) -> Sequence[AlikeHosts]:
        """Return the hosts that contacted the server since then, grouped by equal description. Reads all of them."""
        ...

    async def note_classes(self, classes: HostClasses) -> None:
        """Store the classes. Requests use them after the next reload of the catalogue."""
        ...
