"""Rows shown in lists and pages: jobs, instances, batches, setting changes, process reports, simulations. Values only.

`BatchPlace` and `InstancePlace` are the last entry of a page; the next page starts after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.batches import Batch, BatchState, QoS
from domain.dispatch import Upload
from domain.due_terms import DueTerms
from domain.host_lists import Sort
from domain.jobs import Input, InstanceState, JobState
from domain.units import (
    AccountId,
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
    """An operator's change to a setting. A value of None stands for the default."""

    key: str
    from_value: object
    to_value: object
    changed_at: Instant
    changed_by: str
    why: str
    change_id: int = field(default=0, compare=False)  # assigned by the store


@dataclass(frozen=True, slots=True)
class Whose:
    """The names of a batch's submitter, account and app."""

    app: str
    submitter: str
    account: str


@dataclass(frozen=True, slots=True)
class InstanceRow:
    """An instance as shown to users."""

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
    turnaround_sample: float | None = None  # the sample added to its host's statistics: lifecycle.turnaround
    copied_because: str | None = None  # why this copy was made (lifecycle.tail); None if it is no copy
    credit: float | None = None  # None: none was granted

    @property
    def because(self) -> str:
        """Return the reason for the due date; empty for an unsent instance."""
        return "" if self.due_terms is None else self.due_terms.in_full


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as shown to users."""

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


class BatchSort(Sort):
    """The order of a list of batches, descending with `-`. Batches without the value, or whose end is not shown, come
    last.

    `order` is that of the positions; batches not sent now stand between the others without one.
    Only lists in order of id contain ended batches.
    """

    NEWEST = "-id"
    OLDEST = "id"
    ORDER = "order"
    ORDER_DOWN = "-order"
    DEADLINE = "deadline"
    DEADLINE_DOWN = "-deadline"
    EXPECTED_END = "expected_end"
    EXPECTED_END_DOWN = "-expected_end"
    LATEST_END = "latest_end"
    LATEST_END_DOWN = "-latest_end"
    FAILED = "failed"
    FAILED_DOWN = "-failed"


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """Selects batches for a list. None and "" select all; `text` is a part of the name, in any case.

    `at_risk_at`: only active batches that have missed their deadline at this time, or may miss it by their forecast.
    `blocked`: only active batches over a limit. `ids`: only these, as far as they are active. `failed`: only those with
    failed jobs.
    """

    state: BatchState | None = None
    qos: QoS | None = None
    app_id: AppId | None = None
    submitter_id: SubmitterId | None = None
    account_id: AccountId | None = None
    queue: str | None = None
    at_risk_at: Instant | None = None
    blocked: bool = False
    text: str = ""
    ids: tuple[BatchId, ...] | None = None
    failed: bool = False

    @property
    def is_sparse(self) -> bool:
        """Return whether few of all batches, ended ones included, may be selected."""
        return not self.active_only and self != BatchChoice()

    @property
    def active_only(self) -> bool:
        return self.state is BatchState.ACTIVE or self.at_risk_at is not None or self.blocked or self.ids is not None


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """The id and the sort keys of the last batch on a page, after which the next page starts."""

    batch_id: BatchId
    first: float = 0.0
    second: float = 0.0


@dataclass(frozen=True, slots=True)
class NotSent:
    """Selects the batches whose unsent instances no host gets: all, or these and those of some apps and queues."""

    all: bool = False
    batch_ids: Collection[BatchId] = ()
    app_ids: Collection[AppId] = ()
    queues: Collection[str] = ()


ALL_SENT = NotSent()


@dataclass(frozen=True, slots=True)
class ListedBatch:
    """A batch with the names of its submitter, account and app, and its place in the list that was read."""

    batch: Batch
    app: str
    submitter: str
    account: str
    place: BatchPlace | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class InstancePlace:
    """The last instance on a page, after which the next page starts; instances with most retries come first."""

    retries: int
    instance_id: InstanceId


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """An instance with its outcome. `urgent`: unsent, and a retry, a copy, with a returned sibling, or handed back.

    `copied_because` as in InstanceRow.
    """

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
    copied_because: str | None = None


MOST_EXTRAS = 5_000  # counted per batch


@dataclass(frozen=True, slots=True)
class UnsentExtras:
    """Unsent copies and retries of a batch, at most MOST_EXTRAS together. A copy is no retry, see InstanceRow.

    >>> UnsentExtras(copies=373, retries=2).least, UnsentExtras(copies=4_900, retries=100).least
    ('', 'at least ')
    """

    copies: int = 0
    retries: int = 0

    @property
    def least(self) -> str:
        return "at least " if self.copies + self.retries >= MOST_EXTRAS else ""


@dataclass(frozen=True, slots=True)
class FailedInstance:
    """An instance with an error: its version, the reason, and the end of its standard error."""

    instance_id: InstanceId
    batch_id: BatchId
    job_id: JobId
    state: InstanceState
    host_id: HostId
    exit_status: int | None
    reason: str
    stderr: str
    platform: str
    version_num: int
    plan_class: str


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
class ActiveCounts:
    """Numbers of active batches: all, at risk (see BatchChoice), blocked by a limit, and in need of attention."""

    active: int
    at_risk: int
    blocked: int
    attention: int = 0


@dataclass(frozen=True, slots=True)
class ActiveTotal:
    """The open work of one app at one quality of service: the active batches and the sums of their counters."""

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
    """The latest report of a process on a node. `kind` is worker or background."""

    name: str
    kind: str
    reported_at: Instant
    report: Mapping[str, object] = field(default_factory=dict)


# ---- simulations started from the console

SILENT_S = Seconds(60.0)  # the process that runs a simulation reports about once a second
MOST_HOSTS, MOST_DAYS = 5000, 365.0  # limits of a simulation
SOME_SEEDS, SOME_HOSTS, SOME_DAYS = 3, 500, 14.0  # default size of a comparison of thresholds


class SimulationState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Simulation:
    """A requested simulation. `asked` is the request, `result` the comparison of rules, `failure` why it failed."""

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
        """Return whether the process that ran the simulation has disappeared."""
        return self.state is SimulationState.RUNNING and now - self.heard_at > SILENT_S
