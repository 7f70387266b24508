"""Periodic tasks: which process runs them, and their behaviour while the database is away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from domain.errors import MusterError, UnavailableError
from domain.units import later
from runtime.periodic_tasks import GIVEN_UP_S, GRACE_S, STAND_BY_S, PeriodicTask, RoundThreads
from tests.builders import NOW
from tests.facts import missing
from tests.faults.waiting import until
from tests.unit.administration.clocks import HastyClock, StillClock


class OneLock:
    """Holds the named locks."""

    def __init__(self, *held: str) -> None:
        self.held = set(held)
        self.away = False

    async def mine(self, duty: str) -> bool:
        if self.away:
            raise UnavailableError
        return duty in self.held

    async def give_up(self, duty: str) -> None:
        self.held.discard(duty)

    @contextmanager
    def fence(self, duty: str) -> Iterator[None]:
        assert duty in self.held
        yield


@dataclass(frozen=True)
class FullRound:
    """A report that says whether work is left."""

    more: bool


class Round:
    """Counts its calls; raises the given errors."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls = 0
        self.error = error

    async def __call__(self) -> object:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return "report"


def a_duty(run_once: Callable[[], Awaitable[object]], locks: OneLock, interval_s: float = 10.0) -> PeriodicTask:
    return PeriodicTask("sweep", run_once, locks=locks, clock=StillClock(), interval_s=lambda: interval_s)


async def test_lock_holder_runs_the_task_at_its_interval() -> None:
    work = Round()

    assert await a_duty(work, OneLock("sweep")).step() == 10.0
    assert work.calls == 1


async def test_without_the_lock_a_process_stands_by() -> None:
    work = Round()

    assert await a_duty(work, OneLock("validate")).step() == STAND_BY_S
    assert work.calls == 0


async def test_a_process_that_gets_the_lock_later_takes_over() -> None:
    work, locks = Round(), OneLock()
    duty = a_duty(work, locks)
    await duty.step()

    locks.held.add("sweep")

    assert await duty.step() == 10.0
    assert work.calls == 1


async def test_while_the_database_is_away_a_duty_waits_and_goes_on() -> None:
    work, locks = Round(UnavailableError()), OneLock("sweep")
    duty = a_duty(work, locks)

    assert await duty.step() == STAND_BY_S
    work.error = None
    assert await duty.step() == 10.0
    assert work.calls == 2


async def test_while_the_lock_cannot_be_asked_for_nothing_is_done() -> None:
    work, locks = Round(), OneLock("sweep")
    locks.away = True

    assert await a_duty(work, locks).step() == STAND_BY_S
    assert work.calls == 0


async def test_unexpected_error_is_counted_and_the_task_continues() -> None:
    duty = a_duty(Round(MusterError("broken promise")), OneLock("sweep"))

    pause_s = await duty.step()

    assert (pause_s, duty.failures) == (STAND_BY_S, 1)


async def test_a_round_that_left_work_behind_is_followed_at_once() -> None:
    async def full_round() -> FullRound:
        return FullRound(more=True)

    duty = PeriodicTask(
        "settle", full_round, locks=OneLock("settle"), clock=HastyClock(rounds=1), interval_s=lambda: 9.0
    )

    assert await duty.step() == 0.0


async def test_a_duty_of_one_folder_is_done_for_each_folder() -> None:
    locks, ran = {"leftovers of here": 0}, []

    class Shared(OneLock):
        def __init__(self, process: int) -> None:
            super().__init__(*(f"leftovers of {folder}" for folder in ("here", "there")))
            self.process = process

        async def mine(self, duty: str) -> bool:
            return locks.setdefault(duty, self.process) == self.process

    for process, folder in enumerate(("here", "here", "there")):

        async def run_once(process: int = process) -> None:
            ran.append(process)

        lock = f"leftovers of {folder}"
        duty = PeriodicTask(
            "leftovers", run_once, locks=Shared(process), clock=StillClock(), interval_s=lambda: 9.0, lock=lock
        )
        await duty.step()

    assert ran == [0, 2]


async def test_interval_is_read_each_round() -> None:
    clock, intervals = HastyClock(rounds=2), iter((1.0, 2.0, 3.0))
    duty = PeriodicTask("sweep", Round(), locks=OneLock("sweep"), clock=clock, interval_s=lambda: next(intervals))

    task = asyncio.create_task(duty.run())
    await clock.done.wait()
    task.cancel()

    assert clock.sleeps == [1.0, 2.0, 3.0]


async def test_shorter_interval_shortens_the_pause() -> None:
    clock, ran = HastyClock(rounds=3), Round()
    duty = PeriodicTask(
        "sweep", ran, locks=OneLock("sweep"), clock=clock, interval_s=lambda: 7.0 if clock.sleeps else 60.0
    )

    task = asyncio.create_task(duty.run())
    await clock.done.wait()
    task.cancel()

    assert (clock.sleeps, ran.calls) == ([5.0, 2.0, 5.0, 2.0], 2)


class StuckRound:
    """Waits forever, also in a thread if `read` is given."""

    def __init__(self, read: threading.Event | None = None) -> None:
        self.read = read

    async def __call__(self) -> object:
        if self.read is not None:
            await asyncio.to_thread(self.read.wait)
        await asyncio.Event().wait()
        return None


def a_short_duty(run_once: Callable[[], Awaitable[object]], locks: OneLock, clock: HastyClock) -> PeriodicTask:
    return PeriodicTask("sweep", run_once, locks=locks, clock=clock, interval_s=lambda: 10.0, limit_s=0.05)


async def test_round_over_its_limit_is_cancelled_and_given_up() -> None:
    locks = OneLock("sweep")
    duty = a_short_duty(StuckRound(), locks, HastyClock(rounds=1))

    assert await duty.step() == GIVEN_UP_S
    assert (duty.is_mine, duty.failures, locks.held) == (False, 1, set())
    assert not missing(duty.failure or "", "OverrunError:", "longer than 0.05 s")
    assert not duty.hangs()


async def test_lost_duty_ends_work_it_left_running() -> None:
    """Once per loss: of the lock, of the database, after a round over its limit; not while another process has it."""
    locks, lost = OneLock("sweep"), list[int]()
    duty = PeriodicTask(
        "sweep",
        Round(),
        locks=locks,
        clock=StillClock(),
        interval_s=lambda: 10.0,
        on_lost=lambda: lost.append(duty.runs),
    )
    await duty.step()
    assert lost == []
    locks.held.clear()
    for _ in range(2):
        await duty.step()
    assert lost == [1]
    locks.held.add("sweep")
    await duty.step()
    locks.away = True
    await duty.step()
    assert lost == [1, 2]


async def test_round_over_its_limit_ends_work_it_left_running() -> None:
    lost = list[str]()
    duty = PeriodicTask(
        "sweep",
        StuckRound(),
        locks=OneLock("sweep"),
        clock=HastyClock(rounds=1),
        interval_s=lambda: 10.0,
        limit_s=0.05,
        on_lost=lambda: lost.append("sweep"),
    )
    await duty.step()
    assert lost == ["sweep"]


async def test_limit_doubles_until_a_round_succeeds() -> None:
    """A slow round that does not hang is not cancelled forever."""
    locks = OneLock("sweep")
    work: list[Callable[[], Awaitable[object]]] = [StuckRound(), StuckRound(), Round()]

    async def next_round() -> object:
        return await work.pop(0)()

    duty, limits = a_short_duty(next_round, locks, HastyClock(rounds=1)), []
    for _ in range(3):
        limits.append(duty.limit_s)
        locks.held.add("sweep")
        await duty.step()

    assert (limits, duty.limit_s) == ([0.05, 0.1, 0.2], 0.05)


async def test_round_without_progress_is_given_up_before_its_limit() -> None:
    locks = OneLock("sweep")
    duty = PeriodicTask(
        "sweep",
        StuckRound(),
        locks=locks,
        clock=HastyClock(rounds=1),
        interval_s=lambda: 10.0,
        limit_s=3600.0,
        silence_s=0.05,
    )

    assert await duty.step() == GIVEN_UP_S
    assert (missing(duty.failure or "", "OverrunError:", "no progress for 0.05 s"), locks.held) == ([], set())


@pytest.mark.parametrize("limit_s", [3600.0, 150.0], ids=["limit far away", "limit near"])
async def test_progress_keeps_a_round_until_its_limit(limit_s: float) -> None:
    """Statements and calls in threads are progress. After 100 s without any, or at its limit, the round is overdue."""
    clock, hung = HastyClock(rounds=9), list[bool]()
    asyncio.get_running_loop().set_default_executor(RoundThreads(1))

    async def run_once() -> None:
        await clock.sleep(90.0)
        await asyncio.to_thread(hung.append, duty.hangs())
        await clock.sleep(59.0 + GRACE_S)  # 149 s and the grace after the start
        hung.append(duty.hangs())
        await clock.sleep(2.0)
        hung.append(duty.hangs())
        await clock.sleep(40.0)
        hung.append(duty.hangs())

    duty = PeriodicTask(
        "sweep",
        run_once,
        locks=OneLock("sweep"),
        clock=clock,
        interval_s=lambda: 10.0,
        limit_s=limit_s,
        silence_s=100.0,
    )
    await duty.step()

    assert hung == [False, False, limit_s == 150.0, True]


async def test_progress_moves_the_instant_of_cancelling() -> None:
    """The round would be cancelled after 0.3 s; each call in a thread postpones that."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(RoundThreads(1))
    waits = threading.Event()

    async def run_once() -> str:
        began_s = loop.time()
        while loop.time() < began_s + 0.4:
            await asyncio.to_thread(waits.wait, 0.01)
        return "report"

    duty = PeriodicTask(
        "sweep",
        run_once,
        locks=OneLock("sweep"),
        clock=HastyClock(rounds=1),
        interval_s=lambda: 10.0,
        limit_s=60.0,
        silence_s=0.3,
    )
    await duty.step()

    assert (duty.runs, duty.failures) == (1, 0)


async def test_call_left_in_thread_hangs_after_grace() -> None:
    """Like a read from an unresponsive file server: cancelling the round does not end it."""
    locks, clock, answer = OneLock("sweep"), HastyClock(rounds=2), threading.Event()
    asyncio.get_running_loop().set_default_executor(RoundThreads(2))
    duty = a_short_duty(StuckRound(answer), locks, clock)
    try:
        await duty.step()
        assert not duty.hangs()
        await clock.sleep(GRACE_S + 0.1)
        assert duty.hangs()
    finally:
        answer.set()
    await until(lambda: not duty.hangs(), 10.0, "the call has ended")


async def test_round_tells_its_deadline() -> None:
    clock, locks = HastyClock(rounds=1), OneLock("sweep")
    deadlines = []

    async def run_once() -> object:
        deadlines.append(duty.deadline_at)
        return None

    duty = PeriodicTask("sweep", run_once, locks=locks, clock=clock, interval_s=lambda: 10.0, limit_s=30.0)
    await duty.step()
    deadlines.append(duty.deadline_at)
    await clock.sleep(100.0)
    locks.held.clear()
    await duty.step()  # the lock is lost, and the task overdue until another process runs it
    deadlines.append(duty.deadline_at)
    locks.held.add("sweep")
    await duty.step()

    assert deadlines == [later(NOW, 30.0), later(NOW, 40.0), later(NOW, 40.0), later(NOW, 130.0)]
