"""Runs a trick in virtual time and counts its gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

from benchmarks.cheaters.clients import Hostile, Place
from benchmarks.cheaters.tricks import WORKS, Trick, tricked
from domain.dispatch import RequestKey, RequestView
from domain.jobs import InstanceState, JobState
from domain.quick import quick_dataclass
from domain.units import HOUR_S, BatchId, Instant
from domain.views import JobRow
from scheduler.ports import Ledger
from simulator.engine import Engine
from simulator.run import warnings_only
from simulator.traits import digest_of
from simulator.virtual_time import run_without_threads
from store.memory.ledger import MemoryLedger
from tests.memory import MemoryStore

LOST = (InstanceState.ABORTED, InstanceState.TIMED_OUT)


class PlacedLedger:
    """A ledger that knows the network of a request, as in a worker."""

    def __init__(self, ledger: Ledger, place: Place) -> None:
        self._ledger = ledger
        self._place = place
        self.write = ledger.write
        self.sent_jobs = ledger.sent_jobs
        self.job_classes = ledger.job_classes
        self.create_host = ledger.create_host
        self.keep_trickles = ledger.keep_trickles
        self.reserve_quota = ledger.reserve_quota
        self.release_quota = ledger.release_quota

    async def read(self, key: RequestKey) -> RequestView:
        return await self._ledger.read(replace(key, network=self._place.network))


@quick_dataclass(frozen=True, slots=True)
class Gain:
    """The gain from a trick on a batch.

    `taken` instances were sent to the cheaters: `lost` never returned, `wasted` returned an error or a rejected answer,
    `urgent` required passing a gate. `failed` jobs failed without being faulty, `wrong` jobs ended with a wrong answer,
    and `unfinished` jobs had not ended. `makespan_h` is the time from submission to the last end.
    """

    jobs: int
    failed: int
    wrong: int
    unfinished: int
    taken: int
    lost: int
    wasted: int
    urgent: int
    makespan_h: float


def measured(trick: Trick, seed: int, settings: Mapping[str, object]) -> Gain:
    """Run the trick. The same seed gives the same figures."""
    place = Place()
    scenario = tricked(trick, place)
    engine = Engine(
        scenario,
        seed,
        store=lambda _clock: _store(place),
        settings=settings,
        more_tasks=lambda *_: (),
        watch=_unwatched,
        sequence=True,
    )
    with warnings_only():
        run_without_threads(engine.run())
        return run_without_threads(_gain(engine, [one for one, _ in scenario.cheaters]))


def _store(place: Place) -> MemoryStore:
    store = MemoryStore()
    store.ledger = cast(MemoryLedger, PlacedLedger(store.ledger, place))
    return store


def _unwatched(at: Instant) -> None:
    """Ignore progress."""


async def _gain(engine: Engine, cheaters: Sequence[Hostile]) -> Gain:
    batch = next(one for one in engine.record.batches.values() if one.name == WORKS)
    jobs = await _jobs(engine.store, batch.batch_id)
    theirs = set().union(*(one.host_ids for one in cheaters)) if cheaters else set()
    instances = [row for job in jobs for row in job.instances if row.host_id in theirs]
    states = [row.state for row in instances]
    given = engine.record.sequence or []
    ends = batch.ended_at
    return Gain(
        jobs=batch.jobs,
        failed=sum(job.state is JobState.FAILED for job in jobs),
        wrong=sum(_is_wrong(job) for job in jobs),
        unfinished=sum(job.state is JobState.OPEN for job in jobs),
        taken=len(instances),
        lost=sum(state in LOST for state in states),
        wasted=sum(state in (InstanceState.FAILED, InstanceState.INVALID) for state in states),
        urgent=sum(one.gated and one.host_id in theirs and one.batch_id == batch.batch_id for one in given),
        makespan_h=round((max(ends) - batch.submitted_at) / HOUR_S, 1) if ends else 0.0,
    )


async def _jobs(store: object, batch_id: BatchId) -> list[JobRow]:
    assert isinstance(store, MemoryStore)
    found = await store.views.jobs(batch_id, limit=100_000)
    return [await store.views.job(one.job_id) for one in found]


def _is_wrong(job: JobRow) -> bool:
    """Return whether the canonical result is a wrong answer."""
    if job.state is not JobState.VALID:
        return False
    [canonical] = [row for row in job.instances if row.instance_id == job.canonical_instance_id]
    [output] = canonical.uploads
    workunit = output.name.rsplit("_", 2)[0]  # the name without the numbers of the instance and the output
    return output.md5 != digest_of(workunit)
