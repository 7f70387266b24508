"""What settling a job looks at and what it changes, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.dispatch import InstanceStep, Upload
from domain.jobs import InstanceInProgress, InstanceState, JobClass, JobState
from domain.quick import quick_dataclass
from domain.units import (
    AppVersionId,
    BatchId,
    Flop,
    HostId,
    InstanceId,
    Instant,
    JobId,
    Seconds,
)


@quick_dataclass(frozen=True, slots=True)
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
    timeout_at: Instant | None = None
    median_turnaround_s: Seconds | None = None  # as domain.jobs.InstanceInProgress has it


@quick_dataclass(frozen=True, slots=True)
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
    tail_copies: int = 0  # made beyond what it needs, because its batch waited for it
    more_instances: int = 0  # what those raised its most instances by

    @property
    def max_instances(self) -> int:
        """Counts all instances but the cancelled, which no host ever had, and the lost."""
        return self.job_class.max_instances + self.more_instances

    @property
    def agreeing_needed(self) -> int:
        """How many results must agree: the quorum, or `copies` (adaptive replication), at most max_instances."""
        return min(self.max_instances, max(self.job_class.quorum, self.copies))


@quick_dataclass(frozen=True, slots=True)
class JobSettlement:
    """What settling a job changes, all in one transaction.

    Applied only while the job's `serial` is unchanged; otherwise it is looked at again. `failure` says why the job
    fails now; empty for one that was over before. `new_instances` are made unsent, with `retries`, the job's
    instances that are over and unusable after the steps; they are urgent when `retries` > 0 or a sibling is back.
    `hasten` marks the job's unsent instances urgent because a sibling is back. When the last open job of a batch
    ends, the batch is complete.
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


@dataclass(frozen=True, slots=True)
class Overdue:
    """An instance whose due date and grace have passed in silence."""

    held: InstanceInProgress
    fpops_est_flop: Flop


@dataclass(frozen=True, slots=True)
class OutageReport:
    """What was done about an outage: `moved` due dates by `by_s`. `more`: others have yet to be moved."""

    by_s: Seconds = Seconds(0.0)
    moved: int = 0
    more: bool = False


@quick_dataclass(frozen=True, slots=True)
class TailInstance:
    """An instance of a job its batch waits for, and what is known of the host that has it.

    `ln_ratio` is the mean of the host's turnaround samples for such due dates (tight or relaxed), shrunk to 0 by two
    pseudo-samples. Hosts, instants and runtimes are 0 for what was never sent.
    """

    instance_id: InstanceId
    state: InstanceState
    tight: bool = False
    host_id: HostId | None = None
    app_version_id: AppVersionId | None = None
    sent_at: Instant = Instant(0.0)
    est_runtime_s: Seconds = Seconds(0.0)
    ln_ratio: float = 0.0


@quick_dataclass(frozen=True, slots=True)
class TailJob:
    """An open job of a batch that is nearly done."""

    job_id: JobId
    job_class: JobClass
    copies: int
    tail_copies: int
    instances: tuple[TailInstance, ...]
    median_turnaround_s: Seconds | None = None  # as domain.jobs.InstanceInProgress has it


@dataclass(frozen=True, slots=True)
class CopyUse:
    """Of a batch: the instances its jobs want (quorum, or as many as trust asks for), and the copies made so far."""

    wanted: int
    copies: int = 0


@dataclass(frozen=True, slots=True)
class ExtraCopy:
    """One more unsent instance of a job, urgent, and why.

    Made only while the job is open and still has `instances` instances and `tail_copies` such copies. It starts with
    `retries`, like the retry it may save. `more_instances` raises what the job allows.
    """

    job_id: JobId
    instances: int
    tail_copies: int
    retries: int
    because: str
    more_instances: int = 0
