"""A manual clock and an in-memory database of waiting instances."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from domain.apps import CPU, App, AppVersion, ProcessorType
from domain.batches import Batch, BatchState
from domain.catalogue import Catalogue
from domain.jobs import Candidate, FreshRange, JobClass, Ready
from domain.ranking import CutPoints
from domain.settings import Settings
from domain.units import AppId, AppVersionId, BatchId, HostId, InstanceId, Instant, JobClassId, JobId, Seconds, shard_of
from tests.builders import NOW, a_batch, a_job_class, a_plan_class, a_ready, an_app, an_app_version


async def a_few_turns() -> None:
    """Let all runnable tasks run."""
    loop = asyncio.get_running_loop()
    for _ in range(20):
        turn: asyncio.Future[None] = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


ALL_SHARDS = frozenset(range(64))


class StillClock:
    """Time moves only in `pass_s`, which wakes the sleepers."""

    def __init__(self) -> None:
        self.elapsed_s = 1000.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> Instant:
        return Instant(NOW + self.elapsed_s)

    def monotonic(self) -> Seconds:
        return Seconds(self.elapsed_s)

    async def sleep(self, duration_s: float) -> None:
        woken = asyncio.Event()
        self._sleepers.append((self.elapsed_s + duration_s, woken))
        await woken.wait()

    def pass_s(self, duration_s: float) -> None:
        self.elapsed_s += duration_s
        for until_s, woken in self._sleepers:
            if until_s <= self.elapsed_s:
                woken.set()


@dataclass
class FakeShards:
    shards: frozenset[int] = ALL_SHARDS

    def owned(self) -> frozenset[int]:
        return self.shards


@dataclass
class FakeCatalogue:
    """Apps with versions for the given processor types, and the given settings."""

    types: dict[int, tuple[ProcessorType, ...]] = field(default_factory=lambda: {1: (CPU,)})
    settings: Settings = field(default_factory=Settings)
    medians_s: dict[int, float] = field(default_factory=dict)  # R_q per app

    def change(self, key: str, value: object) -> None:
        self.settings = self.settings.changed(key, value)

    def catalogue(self) -> Catalogue:
        apps: dict[AppId, App] = {}
        current: dict[AppId, tuple[AppVersion, ...]] = {}
        for number, types in self.types.items():
            app_id = AppId(number)
            apps[app_id] = an_app(app_id=app_id, name=f"app{number}")
            current[app_id] = tuple(_version(app_id, kind, index) for index, kind in enumerate(types))
        cuts = {
            (AppId(number), CPU): CutPoints(AppId(number), CPU, NOW, 1, (), (), median_safe_runtime_s=Seconds(median_s))
            for number, median_s in self.medians_s.items()
        }
        return Catalogue(apps=apps, current=current, cut_points=cuts, settings=self.settings)


def _version(app_id: AppId, kind: ProcessorType, index: int) -> AppVersion:
    gpu_type = None if kind == CPU else kind
    plan_class = a_plan_class(name=str(kind), gpu_type=gpu_type)
    return an_app_version(app_version_id=AppVersionId(app_id * 100 + index), app_id=app_id, plan_class=plan_class)


@dataclass
class FakeRow:
    ready: Ready
    by_urgent_range: bool
    hosts: tuple[HostId, ...] = ()


@dataclass
class FakeWaiting:
    """Implements WaitingWork; counts calls and rows so that tests can bound them."""

    batches: dict[BatchId, Batch] = field(default_factory=dict)
    classes: dict[JobClassId, JobClass] = field(default_factory=dict)
    unsent: dict[InstanceId, FakeRow] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    rows_read: int = 0
    next_id: int = 1

    def add_batch(self, number: int, **changes: object) -> Batch:
        batch_id = BatchId(number)
        batch = a_batch(**{"batch_id": batch_id, "order_key": float(number), **changes})
        self.batches[batch_id] = batch
        return batch

    def add_jobs(
        self, number: int, count: int, *, class_number: int | None = None, retries: int = 0, handed_back: bool = False
    ) -> list[Ready]:
        batch_id = BatchId(number)
        class_id = JobClassId(number * 10 if class_number is None else class_number)
        self.classes.setdefault(class_id, a_job_class(job_class_id=class_id, batch_id=batch_id))
        added = []
        for _ in range(count):
            ready = a_ready(
                instance_id=InstanceId(self.next_id),
                job_id=JobId(self.next_id),
                batch_id=batch_id,
                job_class_id=class_id,
                retries=retries,
            )
            self.next_id += 1
            self.unsent[ready.instance_id] = FakeRow(ready, by_urgent_range=retries > 0 or handed_back)
            added.append(ready)
        batch = self.batches[batch_id]
        counts = replace(batch.counts, jobs_total=batch.counts.jobs_total + count)
        self.batches[batch_id] = replace(batch, counts=counts)
        return added

    def count_sent(self, batch_id: BatchId) -> None:
        batch = self.batches[batch_id]
        self.batches[batch_id] = replace(batch, counts=replace(batch.counts, sent=batch.counts.sent + 1))

    def end(self, number: int) -> None:
        batch_id = BatchId(number)
        self.batches[batch_id] = replace(self.batches[batch_id], state=BatchState.ABORTED)
        self.unsent = {key: row for key, row in self.unsent.items() if row.ready.batch_id != batch_id}

    async def ready_batches(self, limit: int, apps: Collection[AppId] | None = None) -> Sequence[Batch]:
        self.calls.append("ready_batches")
        unsent: dict[BatchId, int] = {}
        for row in self.unsent.values():
            unsent[row.ready.batch_id] = unsent.get(row.ready.batch_id, 0) + 1
        ready = [
            replace(batch, counts=replace(batch.counts, unsent=unsent[batch_id]))
            for batch_id, batch in self.batches.items()
            if batch.state is BatchState.ACTIVE and batch_id in unsent and (apps is None or batch.app_id in apps)
        ]
        return sorted(ready, key=lambda b: (b.order_tier, b.order_key, b.batch_id))[:limit]

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        self.calls.append("job_classes")
        return {class_id: self.classes[class_id] for class_id in ids}

    async def fresh(self, ranges: Sequence[FreshRange]) -> Sequence[Candidate]:
        self.calls.append("fresh")
        by_range: dict[tuple[BatchId, int], list[FakeRow]] = {}
        for row in sorted(self.unsent.values(), key=lambda row: row.ready.instance_id):
            if not row.by_urgent_range:
                by_range.setdefault((row.ready.batch_id, shard_of(row.ready.job_id)), []).append(row)
        found: list[FakeRow] = []
        for wanted in ranges:
            rows = by_range.get((wanted.batch_id, wanted.shard), [])
            found += [row for row in rows if row.ready.instance_id > wanted.after_instance_id][: wanted.limit]
        return self._candidates(found)

    async def urgent(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        self.calls.append("urgent")
        rows = [row for row in self.unsent.values() if row.by_urgent_range]
        rows.sort(key=lambda row: (-row.ready.retries, row.ready.instance_id))
        return self._per_batch(rows, batch_ids, per_batch)

    async def tail(self, batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        self.calls.append("tail")
        rows = [row for row in self.unsent.values() if not row.by_urgent_range]
        rows.sort(key=lambda row: (shard_of(row.ready.job_id), row.ready.instance_id))
        return self._per_batch(rows, batch_ids, per_batch)

    async def still_unsent(self, instance_ids: Sequence[InstanceId]) -> Collection[InstanceId]:
        self.calls.append("still_unsent")
        return {instance_id for instance_id in instance_ids if instance_id in self.unsent}

    def _per_batch(self, rows: list[FakeRow], batch_ids: Sequence[BatchId], per_batch: int) -> Sequence[Candidate]:
        found: list[FakeRow] = []
        for batch_id in batch_ids:
            found += [row for row in rows if row.ready.batch_id == batch_id][:per_batch]
        return self._candidates(found)

    def _candidates(self, rows: list[FakeRow]) -> list[Candidate]:
        self.rows_read += len(rows)
        return [Candidate(row.ready, sibling_hosts=row.hosts) for row in rows]
