"""Input and result of settling a job. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, field

from domain.dispatch import InstanceStep, Upload
from domain.jobs import InstanceInProgress, InstanceState, JobClass, JobState
from domain.quick import quick_dataclass
from domain.units import AppVersionId, BatchId, Flop, HostId, InstanceId, Instant, JobId, Seconds


@dataclass(frozen=True, slots=True)
class JobShare:
    """The jobs that one of `of` processes settles, namely those with id modulo `of` equal to `part`."""

    part: int = 0
    of: int = 1


ALL_JOBS = JobShare()


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
    median_turnaround_s: Seconds | None = None  # as in domain.jobs.InstanceInProgress


@quick_dataclass(frozen=True, slots=True)
class JobFacts:
    """A job with new events. If `serial` has changed since the job was read, further events have followed."""

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
    tail_copies: int = 0  # extra copies made because the batch waited for this job
    more_instances: int = 0  # how much those copies raised its max_instances
    retried_after: InstanceId = field(default=InstanceId(0))  # instances up to this id count towards no limit

    @property
    def max_instances(self) -> int:
        """Return the maximum number of instances. Lost instances, and cancelled ones that no host had, do not count."""
        return self.job_class.max_instances + self.more_instances

    @property
    def agreeing_needed(self) -> int:
        """Return how many results must agree: the quorum's or adaptive replication's number, at most max_instances."""
        return min(self.max_instances, max(self.job_class.quorum, self.copies))


@quick_dataclass(frozen=True, slots=True)
class JobSettlement:
    """The changes that settle a job, written in one transaction.

    They are applied only if the job's `serial` is unchanged; otherwise the job is read again. `failure` is the reason
    why the job fails now, empty if it had already ended. `new_instances` unsent instances are created with `retries`,
    the number of finished unusable instances after the steps; they are urgent if `retries` > 0 or a sibling was
    returned. `hasten` marks the job's unsent instances urgent for the same reason. `copies_needed`: unsent copies are
    no longer extra, because the instances that they were to help have ended; they become retries. When the last open
    job of a batch ends, the batch is complete.
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
    copies_needed: bool = False


@dataclass(frozen=True, slots=True)
class Overdue:
    """An instance that was not reported by the end of its grace period."""

    held: InstanceInProgress
    fpops_est_flop: Flop


@dataclass(frozen=True, slots=True)
class OutageReport:
    """The result of handling an outage: `moved` due dates moved by `by_s` each. `more`: further due dates remain."""

    by_s: Seconds = Seconds(0.0)
    moved: int = 0
    more: bool = False


@quick_dataclass(frozen=True, slots=True)
class TailInstance:
    """An instance of a job that its batch still waits for, with its host's statistics.

    `ln_ratio` is the mean of the host's turnaround samples for this type of due date (tight or relaxed), shrunk towards
    0 by two pseudo-samples. Hosts, instants and runtimes are 0 for unsent instances.
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
    """The instances that a batch's jobs need (by quorum or adaptive replication), and its extra copies so far."""

    wanted: int
    copies: int = 0


@dataclass(frozen=True, slots=True)
class ExtraCopy:
    """An additional urgent instance of a job, and the reason.

    It is created only if the job is open and still has `instances` instances and `tail_copies` extra copies. It starts
    with `retries`, like the retry it may replace. `more_instances` raises the job's limit.
    """

    job_id: JobId
    instances: int
    tail_copies: int
    retries: int
    because: str
    more_instances: int = 0
