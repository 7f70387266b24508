"""Time-outs, due dates that pass, outages, and uploads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush

from domain.dispatch import Upload
from domain.jobs import InstanceState
from domain.settlement import InstanceStep, Overdue
from domain.units import InstanceId, Instant, Seconds, later
from store.memory.registry import Registry
from store.memory.rows import StoredInstance
from store.memory.settling import make_step
from store.memory.work import Work

DUE_COUNTED = "count_due"  # duties: until when due dates were counted, when the project was last alive
HEARTBEAT = "heartbeat"


class MemoryOverdue:
    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def overdue(self, *, now: Instant, limit: int) -> Sequence[Overdue]:
        """The heap's entries that no longer hold are dropped; the rest stays for time_out."""
        heap = self._work.timeouts
        found: list[StoredInstance] = []
        while heap and heap[0][0] <= now and len(found) < limit:
            timeout_at, instance_id = heappop(heap)
            row = self._work.instances[instance_id - 1]
            # Two equal entries: its due date was moved back and forth. The last found is the only candidate.
            if _times_out_at(row, timeout_at) and (not found or found[-1] is not row):
                found.append(row)
        for row in found:
            assert row.timeout_at is not None
            heappush(heap, (row.timeout_at, row.instance_id))
        return [Overdue(row.as_held(), row.job.job_class.fpops_est_flop) for row in found]

    async def time_out(self, steps: Sequence[InstanceStep], *, now: Instant) -> int:
        made = [step for step in steps if self._is_due(step.instance_id, now) and make_step(self._work, step)]
        self._work.mark(self._work.instances[step.instance_id - 1].job.job_id for step in made)
        self._work.apply_events(step.hav_event for step in made if step.hav_event is not None)
        return len(made)

    def _is_due(self, instance_id: InstanceId, now: Instant) -> bool:
        row = self._work.instance(instance_id)
        return row is not None and row.timeout_at is not None and row.timeout_at <= now

    async def count_due(self, *, now: Instant) -> int:
        """Returns how many instances were counted."""
        heap = self._work.dues
        counted = 0
        counted_until = self._registry.duty_done_at.get(DUE_COUNTED, Instant(0.0))
        while heap and heap[0][0] <= now:
            due_at, instance_id = heappop(heap)
            row = self._work.instances[instance_id - 1]
            if row.due_at == due_at and due_at > counted_until:
                add_due(self._work, row, 1)
                counted += 1
        self._registry.duty_done_at[DUE_COUNTED] = max(now, counted_until)
        return counted


class MemoryOutages:
    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    async def heartbeat(self, *, now: Instant) -> Instant | None:
        before = self._registry.duty_done_at.get(HEARTBEAT)
        self._registry.duty_done_at[HEARTBEAT] = now
        return before

    async def move_open_deadlines(self, *, by_s: Seconds, alive_until: Instant) -> int:
        """Returns how many were moved. One whose due date was counted already is taken back: it lies ahead again."""
        counted_until = self._registry.duty_done_at.get(DUE_COUNTED, Instant(0.0))
        moved = 0
        for stored in self._work.hosts.values():
            for row in stored.held.values():
                assert row.due_at is not None and row.timeout_at is not None
                if row.timeout_at <= alive_until:
                    continue
                if row.due_at <= counted_until < row.due_at + by_s:
                    add_due(self._work, row, -1)
                self._work.set_due(row, due_at=later(row.due_at, by_s), timeout_at=later(row.timeout_at, by_s))
                moved += 1
        return moved


class MemoryUploads:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def record_upload(
        self, instance_id: InstanceId, *, name: str, nbytes: int, md5: str, completed_at: Instant
    ) -> bool:
        """What the file holds now is remembered; when it came is asked by nobody here."""
        del completed_at
        row = self._work.instance(instance_id)
        if row is None:
            return False
        others = [upload for upload in row.uploads if upload.name != name]
        row.uploads = tuple(sorted((*others, Upload(name, nbytes, md5)), key=lambda upload: upload.name))
        return True


def add_due(work: Work, row: StoredInstance, number: int) -> None:
    """Change n_due of the sent instance's (host, app version)."""
    assert row.host_id is not None and row.app_version_id is not None
    havs = work.hosts[row.host_id].havs
    hav = havs[row.app_version_id]
    havs[row.app_version_id] = replace(hav, n_due=hav.n_due + number)


def _times_out_at(row: StoredInstance, timeout_at: Instant) -> bool:
    return row.state is InstanceState.IN_PROGRESS and row.timeout_at == timeout_at
