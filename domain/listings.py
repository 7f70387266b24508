"""What lists of the console show: batches chosen and sorted, a batch's instances, what processes say. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from domain.batches import Batch, BatchState, QoS
from domain.jobs import InstanceState
from domain.units import AppId, BatchId, HostId, InstanceId, Instant, JobId, SubmitterId


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
class HeldInstance:
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
