"""What submission, validation and the sweeper need from the database and the files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from domain.settlement import CopyUse, ExtraCopy, JobFacts, JobSettlement, OutageReport, Overdue, TailJob
from domain.submission import NewBatch, NewJob, SubmissionKey, SubmittedBefore, SubmitterLimits
from domain.units import AccountId, AppId, BatchId, Flop, Instant, JobClassId, JobId, Seconds, SubmitterId
from jobs.requirements import InputSpec

# ------------------------------------------------------------------ submission


class BatchWriter(Protocol):
    """One batch being written, inside one transaction: all of it or nothing."""

    async def standing(self, submitter_id: SubmitterId, *, now: Instant) -> SubmitterLimits:
        """The submitter's standing, its row locked until the transaction ends."""
        ...

    async def order(
        self, submitter_id: SubmitterId, account_id: AccountId, *, app_id: AppId, queue: str
    ) -> SubmissionOrder:
        """What else the batch's place and the right to submit it depend on."""
        ...

    async def add_batch(self, batch: NewBatch) -> BatchId:
        """Write the batch row and advance the submitter's logical time to logical_start + charged."""
        ...

    async def explain(self, batch_id: BatchId, record: Mapping[str, object], *, now: Instant) -> None:
        """Keep why the batch stands where it stands."""
        ...

    async def remember(self, key: SubmissionKey, batch_id: BatchId, *, now: Instant) -> None:
        """Keep what the submission is known by when it is sent again.

        Raises AlreadyExistsError when it has been: whoever was first is waited for.
        """
        ...

    async def add_classes(self, batch_id: BatchId, job_classes: Sequence[JobClass]) -> Sequence[JobClassId]:
        """Write job classes; their ids are ignored, the new ids are returned in the same order."""
        ...

    async def add_jobs(self, batch_id: BatchId, jobs: Sequence[NewJob]) -> None:
        """Write jobs with their unsent instances (binary COPY), and count them."""
        ...


class Submissions(Protocol):
    def submission(self) -> AbstractAsyncContextManager[BatchWriter]:
        """A transaction; left normally it commits, left by an exception nothing was written."""
        ...

    async def submitted_before(self, key: SubmissionKey, *, now: Instant) -> SubmittedBefore | None:
        """What became of a submission with that key of that owner, whatever it said; None when it is long ago."""
        ...

    async def note_answer(self, key: SubmissionKey, answer: Mapping[str, object]) -> None:
        """Keep what was answered, for whoever sends it again."""
        ...

    async def abort_batch(self, batch_id: BatchId, *, now: Instant) -> Batch:
        """End an active batch: its open jobs become cancelled, their unsent instances too.

        Raises NotFoundError. A batch that has ended is returned as it is.
        """
        ...


class Submitters(Protocol):
    async def submitter(self, name: str) -> Submitter:
        """Raises NotFoundError."""
        ...

    async def accounts(self) -> Sequence[Account]: ...

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        """The submitter's shares in further accounts, besides its own."""
        ...


class Apps(Protocol):
    async def app(self, name: str) -> App:
        """Raises NotFoundError."""
        ...

    async def load_catalogue(self) -> Catalogue:
        """With the versions work is given for."""
        ...


class InputFiles(Protocol):
    async def input_files(self, wanted: Sequence[InputSpec]) -> Sequence[Input]:
        """The files under the names clients know them by, in the same order; a path is registered first.

        Safe to repeat. Raises NotFoundError for a name nobody registered, InvalidInputError for a path.
        """
        ...


# ------------------------------------------------------------------ settling jobs


class UnsettledJobs(Protocol):
    async def unsettled(self, limit: int, *, now: Instant) -> Sequence[JobFacts]:
        """Jobs in the order in which something happened to them, but those whose outputs are being compared."""
        ...

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        """Count an attempt to compare jobs' outputs before it is made; returns the attempts of each.

        `unsettled` leaves the jobs out for a minute, longer with each attempt, or until something happens to them: a
        job whose outputs end the process that compares them is not taken again at once, by any process.
        """
        ...

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        """Apply them; returns how many were still current."""
        ...


# ------------------------------------------------------------------ the sweeper


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
        """Add to n_due of every HAV the instances whose due_at lies in (last count, now].

        A last count that lies ahead of `now` was made while a clock did: what it counted too early is taken back.
        """
        ...


class TailWork(Protocol):
    """The last jobs of batches."""

    async def tails(self, *, fraction: float, jobs: int, limit: int, unsent: float = -1.0) -> Sequence[Batch]:
        """Active batches in order with at most max(fraction of their jobs, `jobs`) open ones, or with at most `unsent`
        unsent instances per job."""
        ...

    async def tail_jobs(self, batch_id: BatchId, *, after: JobId, limit: int, now: Instant) -> Sequence[TailJob]:
        """The open jobs of a batch behind `after`, by id; what is known of hosts as of `now`."""
        ...

    async def copy_use(self, batch_id: BatchId) -> CopyUse:
        """How many results a batch needs, the sum over all its jobs of max(quorum, copies), and the copies made."""
        ...

    async def add_copies(self, copies: Sequence[ExtraCopy], *, now: Instant) -> int:
        """Make the copies of jobs that are still as they were when that was decided; how many were made."""
        ...

    async def hasten(self, job_ids: Sequence[JobId]) -> None:
        """Make the unsent instances of jobs urgent."""
        ...

    async def low_turnaround(self, *, since: Instant) -> LowTurnaround:
        """Over the batches made since; a host's mean is over those with a median (domain.acceleration)."""
        ...


class AccelerationNotes(Protocol):
    async def note_acceleration(self, acceleration: Acceleration) -> None:
        """Requests go by it once the catalogue was read again."""
        ...


class EndedWork(Protocol):
    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        """Move some jobs of a batch that ended until `before` to the history, with everything that belongs to them.

        Looks at the next `limit` jobs behind `after`, all of one batch, and leaves those that something may still
        happen to: marked ones, and those with an instance under way or a due date that has not passed or is not
        counted. In one transaction; safe to repeat.
        """
        ...


class Outages(Protocol):
    async def note_alive(self, *, now: Instant, outage_at_least_s: Seconds, limit: int) -> OutageReport:
        """Note that the project is alive, and move at most `limit` due dates because it was not.

        A note `outage_at_least_s` or more after the one before ends an outage. due_at and timeout_at of every
        instance move by as long as it was, if the instance was in progress and not overdue when the outage
        began. The outage is remembered with the note, and how far the move has come with every part of it:
        broken off anywhere, the next call goes on. Outages are made up for one after the other.
        """
        ...


class OrderedWork(Protocol):
    async def view(self) -> OrderingView:
        """Everything an ordering goes by."""
        ...

    async def reference(self, *, active_since: Instant, now: Instant) -> Reference:
        """What hosts are like that called since then; looks at all of them."""
        ...

    async def used_fractions(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Sequence[float]]:
        """What some valid results of each batch took of their estimates, newest first; no entry without any."""
        ...

    async def charge(self, charges: OrderingCharges) -> int | None:
        """Write all of it in one transaction; the new serial, or None when another ordering came first."""
        ...

    async def move(self, places: Sequence[StoredPlace]) -> int:
        """Move batches that are active still, some at a time; how many. One that somebody is changing stays."""
        ...

    async def explain(self, records: Mapping[BatchId, Mapping[str, object]], *, now: Instant) -> None:
        """Keep these breakdowns, some at a time."""
        ...


class ReservedWork(Protocol):
    async def reference(self) -> Reference | None:
        """What a host is like, as the last ordering found it."""
        ...

    async def big_batches(self, least: Request, app_ids: Sequence[AppId], limit: int) -> Sequence[BigBatch]:
        """The first waiting batches in order, of these apps or with a job that asks for as much as `least` of anything.

        Batches that a limit holds are left out.
        """
        ...

    async def reserved(self) -> Reserved:
        """What is kept and leased now."""
        ...

    async def standing_leases(self) -> Sequence[LeaseStanding]:
        """Leases that are not over, by host."""
        ...

    async def reserve(
        self, kept: Sequence[Kept], ends: Sequence[LeaseEnd], *, forget_before: Instant, now: Instant
    ) -> None:
        """Keep these slots and no others, end these leases, and forget those that ended before an instant.

        A lease that was of use is forgotten at once. Requests go by all of it once the catalogue was read again.
        """
        ...


class RedundantWork(Protocol):
    async def redundant_lines(self) -> Mapping[tuple[AppId, int], Mapping[int, Flop]]:
        """(app, hr_type) of waiting jobs whose replicas need hosts alike: per class, unsent work committed to it."""
        ...

    async def alike_hosts(self, *, active_since: Instant) -> Sequence[AlikeHosts]:
        """Hosts that called since then, in groups that say the same of themselves; looks at all of them."""
        ...

    async def note_classes(self, classes: HostClasses) -> None:
        """Requests go by it once the catalogue was read again."""
        ...
