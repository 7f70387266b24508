"""Input and output of settling a job, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.dispatch import InstanceStep, Upload
from domain.jobs import InstanceInProgress, InstanceState, JobClass, JobState
from domain.quick import quick_dataclass
from domain.units import AppVersionId, BatchId, Flop, HostId, InstanceId, Instant, JobId, Seconds


@dataclass(frozen=True, slots=True)
class JobShare:
    """The jobs that one of `of` processes settles: those whose id modulo `of` is `part`."""

    part: int = 0
    of: int = 1


ALL_JOBS = JobShare()


@quick_dataclass(frozen=True, slots=True)
class InstanceFacts:
    """One instance of a job to be settled."""

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
    median_turnaround_s: Seconds | None = None  # as in domain.jobs.InstanceInProgress


@quick_dataclass(frozen=True, slots=True)
class JobFacts:
    """A job with new events. `serial` shows whether more events followed since it was read."""

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
    tail_copies: int = 0  # extra copies made because the batch waited for the job
    more_instances: int = 0  # by which those raised its max_instances

    @property
    def max_instances(self) -> int:
        """Return the maximum of instances, not counting lost ones and cancelled ones, which no host had."""
        return self.job_class.max_instances + self.more_instances

    @property
    def agreeing_needed(self) -> int:
        """Return how many results must agree: the quorum, or `copies` (adaptive replication), at most max_instances."""
        return min(self.max_instances, max(self.job_class.quorum, self.copies))


@quick_dataclass(frozen=True, slots=True)
class JobSettlement:
    """The changes of settling a job, made in one transaction.

    Applied only if the job's `serial` is unchanged; otherwise the job is read again. `failure`: why the job fails now;
    empty if it had already ended. `new_instances` unsent instances are created, with `retries`, the job's finished
    unusable instances after the steps; they are urgent if `retries` > 0 or a sibling was returned. `hasten` marks the
    job's unsent instances urgent for the same reason. When the last open job of a batch ends, the batch is complete.
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
    """An instance without a report after its due date and grace."""

    held: InstanceInProgress
    fpops_est_flop: Flop


@dataclass(frozen=True, slots=True)
class OutageReport:
    """The handling of an outage: `moved` due dates by `by_s`. `more`: further due dates remain to be moved."""

    by_s: Seconds = Seconds(0.0)
    moved: int = 0
    more: bool = False


@quick_dataclass(frozen=True, slots=True)
class TailInstance:
    """An instance of a job its batch waits for, with its host's statistics.

    `ln_ratio` is the mean of the host's turnaround samples for such due dates (tight or relaxed), shrunk to 0 by two
    pseudo-samples. Hosts, instants and runtimes are 0 for unsent instances.
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
    """An open job of a batch that is nearly complete."""

    job_id: JobId
    job_class: JobClass
    copies: int
    tail_copies: int
    instances: tuple[TailInstance, ...]
    median_turnaround_s: Seconds | None = None  # as in domain.jobs.InstanceInProgress


@dataclass(frozen=True, slots=True)
class CopyUse:
    """The instances a batch's jobs need (quorum, or as adaptive replication requires), and its extra copies so far."""

    wanted: int
    copies: int = 0


@dataclass(frozen=True, slots=True)
class ExtraCopy:
    """One additional urgent instance of a job, with the reason.

    Created only if the job is open and still has `instances` instances and `tail_copies` such copies. It starts with
    `retries`, like the retry it may save. `more_instances` raises the job's limit.
    """

    job_id: JobId
    instances: int
    tail_copies: int
    retries: int
    because: str
    more_instances: int = 0
