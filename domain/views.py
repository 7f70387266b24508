"""Rows of pages and lists: jobs, instances, batches, setting changes, process reports, simulations. Values only.

`BatchPlace` and `InstancePlace` are the last entry of a page, after which the next one starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.batches import Batch, BatchState, QoS
from domain.dispatch import Upload
from domain.due_terms import DueTerms
from domain.jobs import Input, InstanceState, JobState
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
    """A change of a setting by an operator; the value None is the default."""

    key: str
    from_value: object
    to_value: object
    changed_at: Instant
    changed_by: str
    why: str
    change_id: int = field(default=0, compare=False)  # the store's own number


@dataclass(frozen=True, slots=True)
class Whose:
    """The names of a batch's submitter, account and app."""

    app: str
    submitter: str
    account: str


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance as shown to people."""

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
    turnaround_sample: float | None = None  # the sample in its host's statistics: lifecycle.turnaround
    copied_because: str = ""  # why this extra copy was made (lifecycle.tail); empty for ordinary instances

    @property
    def because(self) -> str:
        """Return the reason for its due date; empty if it was not sent."""
        return "" if self.due_terms is None else self.due_terms.in_full


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as shown to people."""

    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    state: JobState
    command_line: str
    failure: str
    canonical_instance_id: InstanceId | None
    inputs: tuple[Input, ...] = ()  # of this job alone
    instances: tuple[InstanceRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Returned:
    """What a host returned for an instance."""

    host_id: HostId | None = None
    elapsed_s: Seconds | None = None
    cpu_s: Seconds | None = None
    exit_status: int | None = None
    uploads: tuple[Upload, ...] = ()


# ---- lists of batches and instances


class BatchSort(StrEnum):
    """The order of a list of batches. By queue and by deadline only active batches are listed."""

    NEWEST = "newest"
    QUEUE = "queue"
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """The batches to list; None and "" select all. `text` is a part of the name, ignoring case."""

    state: BatchState | None = None
    qos: QoS | None = None
    app_id: AppId | None = None
    submitter_id: SubmitterId | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """The last batch of a page, after which the next one starts: its sort key and id."""

    batch_id: BatchId
    order_tier: int = 0
    order_key: float = 0.0
    deadline_at: Instant = Instant(0.0)


@dataclass(frozen=True, slots=True)
class ListedBatch:
    """A batch with the names of its ids."""

    batch: Batch
    app: str
    submitter: str
    account: str


@dataclass(frozen=True, slots=True)
class InstancePlace:
    """The last instance of a page, after which the next one starts; those with most retries come first."""

    retries: int
    instance_id: InstanceId


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """An instance with its outcome. `urgent`: unsent, and a retry, with a returned sibling, or handed back."""

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
    """An instance in progress on a host."""

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
    """Open work of one app at one quality of service: active batches and the sums of their counters."""

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
    """The last report of a process on a node. `kind` is worker or background."""

    name: str
    kind: str
    reported_at: Instant
    report: Mapping[str, object] = field(default_factory=dict)


# ---- simulations run from the console

SILENT_S = Seconds(60.0)  # the process that runs a simulation reports about every second
MOST_HOSTS, MOST_DAYS = 5000, 365.0  # of a simulation
SOME_SEEDS, SOME_HOSTS, SOME_DAYS = 3, 500, 14.0  # by default, to compare thresholds


class SimulationState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Simulation:
    """`asked` is the requested run, `result` the comparison of rules once it is done, `failure` the reason if it
    failed.
    """

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
        """Return whether the process that ran it no longer exists."""
        return self.state is SimulationState.RUNNING and now - self.heard_at > SILENT_S
