"""Handles timeouts, passed due dates, outages, uploads, and jobs of batches that ended long ago, in memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush, nlargest

from domain.batches import BatchState
from domain.clock import CLOCK_WAS_AHEAD_S
from domain.dispatch import ExpectedOutput, InstanceStep, Upload
from domain.history import JobPlace, MovedJobs, month_of
from domain.jobs import InstanceState, JobState
from domain.settlement import OutageReport, Overdue
from domain.units import InstanceId, Instant, Seconds, elapsed_s, later
from lifecycle.states import ACCEPTS_OUTPUTS, OUTSTANDING
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredInstance, StoredJob
from store.memory.settling import make_step
from store.memory.work import OnTables, Work

DUE_COUNTED = "count_due"  # periodic tasks: time up to which due dates are counted, and last time alive
ALIVE = "alive"


class MemoryOverdue(OnTables):
    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        """Return overdue instances. Outdated heap entries are dropped; the others stay for time_out."""
        heap = self._work.timeouts
        found: list[StoredInstance] = []
        while heap and heap[0][0] <= now and len(found) < limit:
            timeout_at, instance_id = heappop(heap)
            row = self._work.instances[instance_id - 1]
            # Two equal entries: its due date was moved away and back. The last entry found is the only candidate.
            is_current = row.state is InstanceState.IN_PROGRESS and row.timeout_at == timeout_at
            if is_current and (not found or found[-1] is not row):
                found.append(row)
        for row in found:
            assert row.timeout_at is not None
            heappush(heap, (row.timeout_at, row.instance_id))
        return [Overdue(row.as_held, row.job.job_class.fpops_est_flop) for row in found]

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        made = [step for step in steps if self._is_due(step.instance_id, now) and make_step(self._work, step)]
        self._work.mark(self._work.instances[step.instance_id - 1].job.job_id for step in made)
        self._work.apply_events(step.hav_event for step in made if step.hav_event is not None)
        return len(made)

    def _is_due(self, instance_id: InstanceId, now: Instant) -> bool:
        row = self._work.instance(instance_id)
        return row is not None and row.timeout_at is not None and row.timeout_at <= now

    async def count_due(self, *, now: Instant) -> int:
        """Count passed due dates. Return how many instances were counted."""
        heap = self._work.dues
        counted = 0
        counted_until = self._registry.duty_done_at.get(DUE_COUNTED, Instant(0.0))
        if counted_until - now >= CLOCK_WAS_AHEAD_S:
            self._take_back(now, counted_until)
            self._registry.duty_done_at[DUE_COUNTED] = now
            return 0
        while heap and heap[0][0] <= now:
            due_at, instance_id = heappop(heap)
            row = self._work.instances[instance_id - 1]
            if row.due_at == due_at and due_at > counted_until:
                add_due(self._work, row, 1)
                counted += 1
        self._registry.duty_done_at[DUE_COUNTED] = max(now, counted_until)
        return counted

    def _take_back(self, now: Instant, counted_until: Instant) -> None:
        """Subtract instances that were counted while the clock was ahead. They are counted again when due."""
        waiting = set(self._work.dues)
        for row in self._work.instances:
            if row.due_at is None or not now < row.due_at <= counted_until or (row.due_at, row.instance_id) in waiting:
                continue
            add_due(self._work, row, -1)
            heappush(self._work.dues, (row.due_at, row.instance_id))


@dataclass(slots=True)
class _Outage:
    """An unfinished outage. `down_to`: original timeout_at and id of the last due date processed."""

    alive_until: Instant
    by_s: Seconds
    down_to: tuple[float, int] = (math.inf, 0)


class MemoryOutages(OnTables):
    def __init__(self, registry: Registry, work: Work) -> None:
        super().__init__(registry, work)
        self._open: deque[_Outage] = deque()

    async def note_alive(self, *, now: Instant, outage_at_least_s: Seconds, limit: int) -> OutageReport:
        before = self._registry.duty_done_at.get(ALIVE)
        ahead = before is not None and before - now >= outage_at_least_s
        self._registry.duty_done_at[ALIVE] = now if before is None or ahead else max(now, before)
        if before is not None and elapsed_s(before, now) >= outage_at_least_s:
            self._open.append(_Outage(before, elapsed_s(before, now)))
            self._work.note_resumed(now)
        if not self._open:
            return OutageReport()
        outage = self._open[0]
        rows = self._next(outage, limit)
        for row in rows:
            self._move(row, outage.by_s)
        if len(rows) < limit:
            self._open.popleft()
        return OutageReport(outage.by_s, len(rows), more=bool(self._open))

    def _next(self, outage: _Outage, limit: int) -> list[StoredInstance]:
        """Return the next instances by timeout_at descending, so that instances already moved are not found again."""
        found: list[tuple[Instant, InstanceId]] = []
        for stored in self._work.hosts.values():
            for row in stored.held.values():
                assert row.sent_at is not None and row.timeout_at is not None
                place = (row.timeout_at, row.instance_id)
                if row.sent_at <= outage.alive_until < row.timeout_at and place < outage.down_to:
                    found.append(place)
        chosen = nlargest(limit, found)
        if chosen:
            outage.down_to = chosen[-1]
        return [self._work.instances[instance_id - 1] for _, instance_id in chosen]

    def _move(self, row: StoredInstance, by_s: Seconds) -> None:
        """Shift a due date. If it was already counted, subtract it, because it is now in the future again."""
        assert row.due_at is not None and row.timeout_at is not None
        counted_until = self._registry.duty_done_at.get(DUE_COUNTED, Instant(0.0))
        if row.due_at <= counted_until < row.due_at + by_s:
            add_due(self._work, row, -1)
        self._work.set_due(row, due_at=later(row.due_at, by_s), timeout_at=later(row.timeout_at, by_s))


class MemoryUploads(OnTables):
    async def expected(self, instance_id: InstanceId, name: str) -> ExpectedOutput | None:
        row = self._work.instance_of_any_age(instance_id)
        if row is None:
            return None
        recorded = next((upload for upload in row.uploads if upload.name == name), None)
        return ExpectedOutput(row.state in ACCEPTS_OUTPUTS, recorded)

    async def record_upload(
        self,
        instance_id: InstanceId,
        *,
        name: str,
        nbytes: int,
        md5: str,
        completed_at: Instant,
        replace: bool = False,
    ) -> bool:
        """Record an upload, without its time, which no query of this store reads."""
        del completed_at
        upload, expected = Upload(name, nbytes, md5), await self.expected(instance_id, name)
        if expected is None:
            return False
        if expected.recorded == upload:
            return True
        if not expected.accepted or (expected.recorded is not None and not replace):
            return False
        row = self._work.instance_of_any_age(instance_id)
        assert row is not None
        others = [one for one in row.uploads if one.name != name]
        row.uploads = tuple(sorted((*others, upload), key=lambda one: one.name))
        return True


def add_due(work: Work, row: StoredInstance, number: int) -> None:
    """Add `number` to n_due of the sent instance's (host, app version)."""
    assert row.host_id is not None and row.app_version_id is not None
    hav = work.hosts[row.host_id].havs[row.app_version_id]
    work.put_hav(replace(hav, n_due=hav.n_due + number))


class MemoryHistory(OnTables):
    async def move_ended(self, *, before: Instant, after: JobPlace, limit: int) -> MovedJobs:
        for batch_id in sorted(batch_id for batch_id in self._work.batches if batch_id >= after.batch_id):
            batch = self._work.batches[batch_id]
            if batch.state is BatchState.ACTIVE or batch.ended_at is None or batch.ended_at > before:
                continue
            first = after.job_id + 1 if batch_id == after.batch_id else 0
            found = [job for job in self._busy(batch) if job.job_id >= first][:limit]
            if found:
                moved = [job for job in found if self._is_movable(job, before)]
                self._work.history.update(job.job_id for job in moved)
                if moved:
                    self._work.months.setdefault(month_of(batch.ended_at), None)
                instances = sum(len(job.instances) for job in moved)
                return MovedJobs(len(moved), instances, JobPlace(batch_id, found[-1].job_id), more=True)
        return MovedJobs()

    def _busy(self, batch: StoredBatch) -> Iterator[StoredJob]:
        """Return the batch's jobs that are not in the history."""
        return (self._work.jobs[job_id - 1] for job_id in batch.job_ids if job_id not in self._work.history)

    def _is_movable(self, job: StoredJob, before: Instant) -> bool:
        passed = min(before, self._registry.duty_done_at.get(DUE_COUNTED, Instant(0.0)))
        return (
            job.state is not JobState.OPEN
            and job.job_id not in self._work.todo
            and not any(row.state in OUTSTANDING or (row.due_at or 0.0) > passed for row in job.instances)
        )
