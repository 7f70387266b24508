"""A node whose clock is wrong hands out no work."""

from __future__ import annotations

import asyncio

import pytest

from domain.errors import UnavailableError
from domain.units import Instant
from runtime.pauses import CHECK_S, ClockCheck
from tests.builders import NOW
from tests.unit.administration.clocks import HastyClock, StillClock


class DatabaseAt:
    """A database whose clock shows `now`, or that is away."""

    def __init__(self, now: float) -> None:
        self.now: float | None = now
        self.asked = 0

    async def database_now(self) -> Instant:
        self.asked += 1
        if self.now is None:
            raise UnavailableError
        return Instant(self.now)


@pytest.mark.parametrize("ahead_s", [5.0, 3600.0, -5.0, -3600.0])
async def test_five_seconds_of_difference_are_too_many(ahead_s: float) -> None:
    check = ClockCheck(DatabaseAt(NOW - ahead_s), StillClock())

    assert await check.check_once() == ahead_s
    assert check.refuse_work_because(NOW) == f"this server's clock is {ahead_s:+.1f} s off; no work until it is right"


@pytest.mark.parametrize("ahead_s", [0.0, 1.0, -4.9, 4.9])
async def test_less_is_no_reason_to_refuse(ahead_s: float) -> None:
    check = ClockCheck(DatabaseAt(NOW - ahead_s), StillClock())

    await check.check_once()

    assert check.refuse_work_because(NOW) is None


def test_before_the_first_check_nothing_is_held_against_the_clock() -> None:
    assert ClockCheck(DatabaseAt(0.0), StillClock()).refuse_work_because(NOW) is None


async def test_half_the_round_trip_is_taken_off() -> None:
    class SlowDatabase:
        """Reads its clock halfway through a question of four seconds."""

        def __init__(self, clock: HastyClock) -> None:
            self._clock = clock

        async def database_now(self) -> Instant:
            await self._clock.sleep(2.0)
            now = self._clock.now()
            await self._clock.sleep(2.0)
            return now

    clock = HastyClock(rounds=2)

    assert await ClockCheck(SlowDatabase(clock), clock).check_once() == 0.0


async def test_a_clock_that_was_set_right_gives_work_again() -> None:
    database = DatabaseAt(NOW - 100.0)
    check = ClockCheck(database, StillClock())
    await check.check_once()

    database.now = NOW
    await check.check_once()

    assert check.refuse_work_because(NOW) is None


async def test_while_the_database_is_away_the_last_finding_stays() -> None:
    database, clock = DatabaseAt(NOW - 100.0), HastyClock(rounds=2)
    check = ClockCheck(database, clock)
    await check.check_once()
    database.now = None

    task = asyncio.create_task(check.run())
    await clock.done.wait()
    task.cancel()

    assert check.refuse_work_because(NOW) is not None
    assert (clock.sleeps, database.asked) == ([CHECK_S] * 3, 4)
