"""What pages and lists show: jobs, instances, batches, setting changes, process reports, simulations. Values only.

`BatchPlace` and `InstancePlace` say behind which entry a list continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.batches import Batch, BatchState, QoS
from domain.dispatch import Upload
from domain.due_terms import DueTerms
from domain.jobs import InstanceState, JobState
from domain.units import (
    AppId,
    AppVersionId,
    BatchId,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    SubmitterId,
)


@dataclass(frozen=True, slots=True)
class SettingChange:
    """A setting an operator changed; a value of None is the default."""

    key: str
    from_value: object
    to_value: object
    changed_at: Instant
    changed_by: str
    why: str
    change_id: int = field(default=0, compare=False)  # of the store's own


@dataclass(frozen=True, slots=True)
class Whose:
    """Whose a batch is, and of which app, by name."""

    app: str
    submitter: str
    account: str


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance as people look at it."""

    instance_id: InstanceId
    job_id: JobId
    state: InstanceState
    retries: int
    tight: bool
    host_id: HostId | None
    app_version_id: AppVersionId | None
    sent_at: Instant | None
    due_at: Instant | None
    reported_at: Instant | None
    est_runtime_s: Seconds | None
    elapsed_s: Seconds | None
    exit_status: int | None
    reason: str
    due_terms: DueTerms | None  # None: not sent
    stderr: str
    uploads: tuple[Upload, ...] = ()
    timeout_at: Instant | None = None
    turnaround_sample: float | None = None  # what its host's statistics were given: lifecycle.turnaround
    copied_because: str = ""  # why it was made beyond what its job needs (lifecycle.tail); empty for all others

    @property
    def because(self) -> str:
        """How its due date came about; empty if it was not sent."""
        return "" if self.due_terms is None else self.due_terms.in_full


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as people look at it."""

    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    state: JobState
    command_line: str
    failure: str
    canonical_instance_id: InstanceId | None
    instances: tuple[InstanceRow, ...] = ()


# ---- lists of batches and instances


class BatchSort(StrEnum):
    """In which order batches are listed. By queue and by deadline there are active ones alone."""

    NEWEST = "newest"
    QUEUE = "queue"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """Which batches are listed: None and "" stand for all. `text` is a part of the name, whatever its case."""

    state: BatchState | None = None
    qos: QoS | None = None
    app_id: AppId | None = None
    submitter_id: SubmitterId | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """Behind which batch a list goes on: what it is sorted by, and its id."""

    batch_id: BatchId
    order_tier: int = 0
    order_key: float = 0.0
    deadline_at: Instant = Instant(0.0)


@dataclass(frozen=True, slots=True)
class ListedBatch:
    """A batch with the names that its ids stand for."""

    batch: Batch
    app: str
    submitter: str
    account: str


@dataclass(frozen=True, slots=True)
class InstancePlace:
    """Behind which instance a list goes on, of those with most retries first."""

    retries: int
    instance_id: InstanceId


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """An instance and what became of it. `urgent`: it waits, and is a retry, has a sibling that is back, or was handed
    back."""

    instance_id: InstanceId
    job_id: JobId
    state: InstanceState
    retries: int
    urgent: bool
    tight: bool
    created_at: Instant
    host_id: HostId | None
    sent_at: Instant | None
    due_at: Instant | None
    reported_at: Instant | None
    reason: str


@dataclass(frozen=True, slots=True)
class ListedInProgress:
    """An instance that a host has in progress."""

    instance_id: InstanceId
    job_id: JobId
    batch_id: BatchId
    app: str
    host_id: HostId
    sent_at: Instant
    due_at: Instant
    est_runtime_s: float
    tight: bool


@dataclass(frozen=True, slots=True)
class ActiveTotal:
    """What is to do for one app at one quality of service: active batches, and their counters together."""

    app: str
    qos: QoS
    batches: int
    held: int
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    unsent: int
    in_progress: int
    sent: int
    deadlines_missed: int


@dataclass(frozen=True, slots=True)
class ProcessReport:
    """What a process of a node said of itself last. `kind` is worker or background."""

    name: str
    kind: str
    reported_at: Instant
    report: Mapping[str, object] = field(default_factory=dict)


# ---- simulations run from the console

SILENT_S = Seconds(60.0)  # the process that runs a simulation reports about every second


class SimulationState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Simulation:
    """`asked` says what is run, `result` is the comparison of rules once it is done, `failure` why it is not."""

    simulation_id: int
    asked_at: Instant
    asked_by: str
    asked: Mapping[str, object]
    state: SimulationState
    heard_at: Instant
    done_fraction: float
    result: Mapping[str, object] | None = None
    failure: str | None = None

    def is_lost(self, now: Instant) -> bool:
        """Whether the process that ran it is gone."""
        return self.state is SimulationState.RUNNING and now - self.heard_at > SILENT_S
