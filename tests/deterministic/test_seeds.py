"""The guarantees hold with any failures and in any order. `make deterministic` runs thousands of seeds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from domain.dispatch import AssignmentFate, RequestWrites, SentJob, WriteOutcome
from domain.settlement import JobSettlement
from tests.deterministic.__main__ import be_quiet
from tests.deterministic.clients import STORMY
from tests.deterministic.clocks import NodeClock
from tests.deterministic.course import SMALL, Weather, run
from tests.deterministic.faults import FAILURES, Fate, Plan, only
from tests.deterministic.loop import SeededLoop
from tests.memory import MemoryStore

SEEDS = 8
PLACES = ("ledger.read", "ledger.write", "unsettled.settle", "submissions.add_jobs", "uploads.record_upload")


@pytest.fixture(autouse=True)
def _quiet() -> None:
    be_quiet()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_promised_holds_through_a_storm(seed: int) -> None:
    outcome = run(seed)
    assert outcome.breaches == ()
    assert outcome.failures > 0
    assert outcome.acknowledged > 0


def test_a_seed_gives_the_same_run_every_time() -> None:
    first, second = run(3, SMALL), run(3, SMALL)
    assert first == second
    assert run(4, SMALL).trace != first.trace


def test_seed_repeats_its_run_after_any_other() -> None:
    """Processes die in this run in the middle of their work; garbage collection must not finish it later."""
    first = run(10323)
    run(3, SMALL)

    assert run(10323) == first
    assert first.deaths > 0


def test_dead_process_leaves_no_partial_work() -> None:
    loop = SeededLoop(1)  # type: ignore[abstract]  # without input and output
    happened: list[str] = []
    clock = NodeClock(loop)

    async def run_all() -> None:
        lock = asyncio.Lock()

        async def dies() -> None:
            try:
                async with lock:
                    await loop.create_future()
            finally:
                await clock.sleep(0)
                happened.append("went on")

        async def parent() -> None:
            await asyncio.gather(dies())

        loop.start(1, parent())
        await clock.sleep(1.0)
        assert lock.locked()
        loop.kill(1)
        async with asyncio.timeout(1.0):
            await lock.acquire()
        await clock.sleep(10.0)

    loop.run(run_all())
    assert happened == []
    assert loop.errors == []


@pytest.mark.parametrize("place", PLACES)
def test_one_failure_of_the_main_path_breaks_no_promise(place: str) -> None:
    """The first call of each kind fails, in each possible way."""
    for fate in FAILURES:
        outcome = run(7, SMALL, first_of(place, fate))
        assert outcome.breaches == (), fate
        assert dict(outcome.injected) == {(place, fate): 1}


@pytest.mark.parametrize("seed", [1, 7, 13])
def test_late_result_is_stored_or_reported_again(seed: int) -> None:
    """Writes are slow, and results arrive as their grace period ends: these seeds once lost a result."""
    manners = replace(STORMY, late=0.7, vanishes=0.0, error=0.0, wrong=0.0, restores=0.0, resets=0.0)
    weather = Weather(deaths_per_h=0.0, clock_steps_per_h=0.0, manners=manners, most_slow_s=14.0)
    outcome = run(seed, weather, lambda number, name: Fate.SLOW if name == "ledger.write" and number % 5 else Fate.DONE)
    assert outcome.breaches == ()


def first_of(place: str, fate: Fate) -> Plan:
    done: list[int] = []

    def plan(number: int, name: str) -> Fate:
        if name != place or done:
            return Fate.DONE
        done.append(number)
        return fate

    return plan


# ---------------------------------------------------------------- the checks find what is broken


def forgets_uploads(store: MemoryStore) -> None:
    async def record_upload(*args: object, **named: object) -> bool:
        return True

    store.uploads.record_upload = record_upload  # type: ignore[method-assign]


def takes_reports_for_nothing(store: MemoryStore) -> None:
    whole = store.ledger.write

    async def write(writes: RequestWrites) -> WriteOutcome:
        return await whole(replace(writes, reports=()))

    store.ledger.write = write  # type: ignore[method-assign]


def sends_nothing(store: MemoryStore) -> None:
    """A store that reports commits without making them."""

    async def write(writes: RequestWrites) -> WriteOutcome:
        ids = [one.instance_id for one in writes.assignments]
        sent = {one: SentJob(one, "", ()) for one in ids}
        return WriteOutcome(dict.fromkeys(ids, AssignmentFate.SENT), sent)

    store.ledger.write = write  # type: ignore[method-assign]


def never_settles(store: MemoryStore) -> None:
    async def settle(settlements: Sequence[JobSettlement]) -> int:
        return len(settlements)

    store.unsettled.settle = settle  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (forgets_uploads, "acknowledged but is missing"),
        (takes_reports_for_nothing, "done but is in_progress"),
        (sends_nothing, "was sent to host"),
        (never_settles, "unfinished batches"),
    ],
)
def test_a_store_that_breaks_a_promise_is_found_out(spoil: Callable[[MemoryStore], None], said: str) -> None:
    outcome = run(1, SMALL, only(0, Fate.DONE), spoil)
    assert any(said in breach for breach in outcome.breaches), outcome.breaches
