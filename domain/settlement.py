"""What settling a job looks at and what it changes, as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.dispatch import Upload
from domain.havs import HavEvent
from domain.jobs import Held, InstanceState, JobClass, JobState
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
    timeout_at: Instant | None = None
    median_turnaround_s: Seconds | None = None  # as domain.jobs.Held has it


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


@dataclass(frozen=True, slots=True)
class Overdue:
    """An instance whose due date and grace have passed in silence."""

    held: Held
    fpops_est_flop: Flop


@dataclass(frozen=True, slots=True)
class OutageReport:
    """What was done about an outage: `moved` due dates by `by_s`. `more`: others have yet to be moved."""

    by_s: Seconds = Seconds(0.0)
    moved: int = 0
    more: bool = False
