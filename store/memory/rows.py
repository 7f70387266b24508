"""Defines the memory store's changing rows as slotted objects with references, and the queue of unsent instances.

Only `work.Work` changes the columns on which an index depends (states, hosts, urgency). Ids of fresh instances are
appended in ascending order. When they no longer wait they are skipped, not removed: a head moves past them and never
back, so no read passes the same dispatched instances twice. Urgent instances are few and form a sorted list.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from domain.batches import Batch, BatchCounts, BatchState
from domain.dispatch import Upload
from domain.due_terms import DueTerms
from domain.hosts import Host, HostAppVersion
from domain.jobs import Candidate, Input, InstanceInProgress, InstanceState, JobClass, JobState, instance_name
from domain.refusals import Whys
from domain.submission import NewBatch
from domain.units import AppId, AppVersionId, BatchId, Flop, HostId, InstanceId, Instant, JobId, Seconds, VolunteerId
from store.counting import Counted
from store.rows import due_terms

Value = TypeVar("Value")

BLOCK = 256  # number of texts compressed together
BETWEEN = "\0"  # separator: does not occur in texts, as in databases
LEVEL = 1  # compression level: the fastest


class Texts:
    """Stores texts by number, from 0. They are compressed in blocks, which reduces similar texts to a sixth.

    >>> texts = Texts()
    >>> numbers = [texts.add(f"due in {days} days") for days in range(1000)]
    >>> texts[numbers[7]], texts[numbers[999]]
    ('due in 7 days', 'due in 999 days')
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._last: list[str] = []  # not a full block yet
        self._read: tuple[int, list[str]] = (-1, [])  # the last block read

    def add(self, text: str) -> int:
        """Add a text. Return its number."""
        number = len(self._blocks) * BLOCK + len(self._last)
        self._last.append(text)
        if len(self._last) == BLOCK:
            self._blocks.append(zlib.compress(BETWEEN.join(self._last).encode(), LEVEL))
            self._last = []
        return number

    def __getitem__(self, number: int) -> str:
        block, place = divmod(number, BLOCK)
        if block == len(self._blocks):
            return self._last[place]
        if self._read[0] != block:
            self._read = (block, zlib.decompress(self._blocks[block]).decode().split(BETWEEN))
        return self._read[1][place]


COMPACT_FROM = 4096  # number of skipped ids that are removed together

Row = TypeVar("Row")
FreshOf = Callable[
    [Sequence[InstanceId]], list[Row]
]  # returns the stored instances for ids that still wait, in the same order


@dataclass(slots=True, eq=False)
class FreshQueue:
    """The instance ids of one shard, ascending. Ids before `head` are no longer fresh."""

    ids: list[InstanceId] = field(default_factory=list)
    head: int = 0

    def after(self, instance_id: InstanceId, limit: int, fresh_of: FreshOf[Row]) -> list[Row]:
        """Return the first `limit` fresh ids greater than `instance_id`, ascending."""
        ids = self.ids
        start = bisect_right(ids, instance_id, lo=self.head)
        found = fresh_of(ids[start : start + limit])
        if len(found) == limit:
            return found
        end = start + limit
        while len(found) < limit and end < len(ids):
            start, end = end, end + limit - len(found)
            found += fresh_of(ids[start:end])
        self._advance(fresh_of)
        return found

    def _advance(self, fresh_of: FreshOf[Row]) -> None:
        ids, head = self.ids, self.head
        while head < len(ids) and not fresh_of(ids[head : head + 1]):
            head += 1
        if head >= COMPACT_FROM:
            del ids[:head]
            head = 0
        self.head = head


@dataclass(slots=True, eq=False)
class WaitingQueues:
    fresh: dict[int, FreshQueue] = field(default_factory=dict)  # by shard
    urgent: list[tuple[int, InstanceId]] = field(default_factory=list)  # (-retries, id), sorted

    def add_fresh(self, shard: int, instance_id: InstanceId) -> None:
        """Append an id, which must be greater than all previous ids."""
        queue = self.fresh.get(shard)
        if queue is None:
            queue = self.fresh[shard] = FreshQueue()
        queue.ids.append(instance_id)

    def add_urgent(self, retries: int, instance_id: InstanceId) -> None:
        insort(self.urgent, (-retries, instance_id))

    def remove_urgent(self, retries: int, instance_id: InstanceId) -> None:
        del self.urgent[bisect_left(self.urgent, (-retries, instance_id))]


class Columns(Protocol):
    """A batch's tables, created on first read and notified of changed jobs."""

    changed: set[JobId]


def taken(cls: Callable[..., Value], **sources: str) -> Callable[[Any], Value]:
    """Return a function that creates a `cls` value from a row.

    Each field is read from the row's attribute of the same name, or from the one given in `sources`.
    """
    read = attrgetter(*[sources.get(one.name, one.name) for one in fields(cls)])  # type: ignore[arg-type]
    return lambda row: cls(*read(row))


@dataclass(slots=True, eq=False)
class StoredHost:
    """A host with its statistics and its instances in progress."""

    host: Host
    havs: dict[AppVersionId, HostAppVersion] = field(default_factory=dict)
    held: dict[InstanceId, StoredInstance] = field(default_factory=dict)
    rpc_interval_s: Seconds | None = None  # decayed mean of the time between requests
    refused_at: Instant | None = None  # time of the last request for work that got none,
    refused: Whys = ()  # and the reason


@dataclass(slots=True, eq=False)
class StoredBatch:
    """A batch with its counters. `job_ids` are consecutive."""

    batch_id: BatchId
    new: NewBatch
    app_name: str
    state: BatchState
    counts: BatchCounts
    job_ids: range = range(0)
    classes: list[JobClass] = field(default_factory=list)
    waiting: WaitingQueues = field(default_factory=WaitingQueues)
    last_first_dispatch_at: Instant | None = None
    ended_at: Instant | None = None
    completion_at: Instant | None = None
    completion_q50_at: Instant | None = None
    completion_q90_at: Instant | None = None
    median_turnaround_s: Seconds | None = None
    turnaround_s_per_flop: Mapping[AppId, float] = field(default_factory=dict)  # by app, current
    moved_at: Instant | None = None
    foremost_tier: int | None = None  # among those it had before its moves
    hold: str | None = None  # the limits that block it
    sent_most: int | None = None
    refunded_s: Seconds = Seconds(0.0)  # part of the charge to its submitter's logical time
    wanted: int | None = None  # the sum over its jobs, computed on first use
    tail: Sequence[JobId] | None = None  # its open jobs, and jobs that were open when its tail was last read
    columns: Columns | None = None  # store.memory.batch_columns
    returns: Columns | None = None  # store.memory.turnarounds
    due_terms: Texts = field(default_factory=Texts)  # its instances' due terms, as JSON

    @property
    def order(self) -> tuple[int, float, BatchId]:
        return (self.new.order_tier, self.new.order_key, self.batch_id)

    @property
    def is_ready(self) -> bool:
        """Return whether the feeder may send its instances."""
        return self.state is BatchState.ACTIVE and self.counts.unsent > 0 and self.hold is None

    @property
    def instance_flop(self) -> Flop:
        """Return the mean work of an instance."""
        new = self.new
        return Flop(new.batch_flop / (new.quorum_total or new.jobs_total * max(one.quorum for one in self.classes)))

    def as_batch(self) -> Batch:
        return _as_batch(self)


_OWN = {one.name for one in fields(StoredBatch)}
_as_batch = taken(Batch, **{one.name: f"new.{one.name}" for one in fields(Batch) if one.name not in _OWN})


@dataclass(slots=True, eq=False)
class StoredJob:
    job_id: JobId
    batch: StoredBatch
    job_class: JobClass
    command_line: str
    inputs: tuple[Input, ...] | None
    copies: int = 0  # set by adaptive replication; 0 = the quorum
    tail_copies: int = 0
    more_instances: int = 0
    retried_after: InstanceId = field(default=InstanceId(0))
    state: JobState = JobState.OPEN
    hr_class: int = 0
    first_sent_at: Instant | None = None
    canonical_instance_id: InstanceId | None = None
    failure: str = ""
    ended_at: Instant | None = None
    instances: tuple[StoredInstance, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.state is not JobState.OPEN

    @property
    def wanted(self) -> int:
        """Return the instances needed if none fails."""
        return max(self.job_class.quorum, self.copies)

    def ask_for(self, copies: int) -> None:
        """Require more instances, starting now."""
        before, self.copies = self.wanted, copies
        if self.batch.wanted is not None:
            self.batch.wanted += self.wanted - before
        self.changed()

    def changed(self) -> None:
        """Invalidate what requests, the feeder and forecasts have cached about the job or its instances."""
        for row in self.instances:
            row.candidate = row.held = None
        if self.batch.columns is not None:
            self.batch.columns.changed.add(self.job_id)
        if self.batch.returns is not None:
            self.batch.returns.changed.add(self.job_id)

    @property
    def median_turnaround_s(self) -> Seconds | None:
        """Return the median turnaround of the batch's results, or of the app's results scaled by job size."""
        of_app = self.batch.turnaround_s_per_flop.get(self.batch.new.app_id)
        if self.batch.median_turnaround_s is not None or of_app is None:
            return self.batch.median_turnaround_s
        return Seconds(of_app * self.job_class.fpops_est_flop)


@dataclass(slots=True, eq=False)
class StoredInstance:
    """An instance. Fields that are None are set at dispatch or report."""

    instance_id: InstanceId
    job: StoredJob
    retries: int = 0
    urgent: bool = False
    state: InstanceState = InstanceState.UNSENT
    tight: bool = False
    host_id: HostId | None = None
    volunteer_id: VolunteerId | None = None
    app_version_id: AppVersionId | None = None
    sent_at: Instant | None = None
    due_at: Instant | None = None
    timeout_at: Instant | None = None
    est_runtime_s: Seconds | None = None
    terms_number: int | None = None  # index in its batch's due terms
    reported_at: Instant | None = None
    elapsed_s: Seconds | None = None
    cpu_s: Seconds | None = None
    exit_status: int | None = None
    reason: str = ""
    stderr: str = ""
    turnaround_sample: float | None = None
    copied_because: str | None = None
    credit: float | None = None
    gated: bool = False
    uploads: tuple[Upload, ...] = ()
    created_at: Instant | None = None  # None: created with its batch
    # The feeder's view, and a request's view while a host has it; None: invalidated by a change.
    candidate: Candidate | None = None
    held: InstanceInProgress | None = None

    @property
    def name(self) -> str:
        job = self.job
        return instance_name(job.batch.app_name, job.batch.batch_id, job.job_id, self.instance_id)

    @property
    def due_terms(self) -> DueTerms | None:
        """Return the terms of its due date, None before it is sent."""
        return None if self.terms_number is None else due_terms(self.job.batch.due_terms[self.terms_number])

    def counted(self) -> Counted:
        return Counted(self.state, self.sent_at, self.due_at, self.reported_at)

    @property
    def as_held(self) -> InstanceInProgress:
        """Return the instance as one in progress on its host. It must have been sent."""
        held, usual_s = self.held, self.job.median_turnaround_s
        if held is None or held.median_turnaround_s != usual_s:
            assert self.sent_at is not None
            held = self.held = _as_held(self)
        return held


_as_held = taken(
    InstanceInProgress,
    job_id="job.job_id",
    batch_id="job.batch.batch_id",
    job_class_id="job.job_class.job_class_id",
    ncpus="job.job_class.ncpus",
    no_longer_needed="job.is_over",
    median_turnaround_s="job.median_turnaround_s",
)
