"""A request never waits long for the database, and fails at once while it is away."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Never

import pytest

from domain.dispatch import RequestKey, RequestView, RequestWrites, SentJob, Trickle, WriteOutcome
from domain.errors import UnavailableError
from domain.hosts import Host
from domain.jobs import JobClass
from domain.quotas import QuotaGrant, QuotaRequest
from domain.units import HostId, InstanceId, Instant, JobClassId, VolunteerId
from runtime.guards import AWAY_S, CHECK_S, ClockCheck, GuardedLedger
from scheduler.ports import Ledger
from tests.builders import NOW
from tests.unit.administration.clocks import HastyClock, StillClock


class Locks:
    """A lock connection with a settable state."""

    def __init__(self, *, lost: bool = False, silent_s: float = 0.0) -> None:
        self._lost = lost
        self._silent_s = silent_s

    def in_doubt(self) -> bool:
        return self._lost

    def silent_s(self) -> float:
        return self._silent_s


class SilentLedger:
    """Answers one call; all others wait forever. `given_up` counts cancelled calls."""

    def __init__(self) -> None:
        self.given_up = 0

    async def read(self, key: RequestKey) -> RequestView:
        return RequestView(None)

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        return await self._never()

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        return await self._never()

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        return await self._never()

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        return await self._never()

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        await self._never()

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        return await self._never()

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        return await self._never()

    async def _never(self) -> Never:
        try:
            await asyncio.Event().wait()
        finally:
            self.given_up += 1
        raise AssertionError("this event is never set")


KEY = RequestKey(b"hash", HostId(1))


async def test_what_the_database_answers_is_passed_on() -> None:
    ledger: Ledger = GuardedLedger(SilentLedger(), Locks())
    assert await ledger.read(KEY) == RequestView(None)


async def test_a_step_that_takes_too_long_is_given_up() -> None:
    silent = SilentLedger()
    authenticator = GuardedLedger(silent, Locks(), answer_s=0.001)
    for step in (authenticator.sent_jobs([InstanceId(1)]), authenticator.job_classes([JobClassId(1)])):
        with pytest.raises(UnavailableError, match=r"has not answered for 1 ms"):
            await step
    assert silent.given_up == 2


async def test_while_the_database_is_away_nothing_is_asked() -> None:
    authenticator = GuardedLedger(SilentLedger(), Locks(lost=True, silent_s=AWAY_S + 0.1))
    with pytest.raises(UnavailableError, match="the database is unavailable"):
        await authenticator.read(KEY)


async def test_requests_go_on_after_the_lock_connection_is_lost() -> None:
    authenticator = GuardedLedger(SilentLedger(), Locks(lost=True, silent_s=AWAY_S))
    assert await authenticator.read(KEY) == RequestView(None)


async def test_failed_release_of_quota_still_sends_the_jobs() -> None:
    authenticator = GuardedLedger(SilentLedger(), Locks(), answer_s=0.001)
    request = QuotaRequest(HostId(1), VolunteerId(1), 20000, wanted=8, idle=8)
    await authenticator.release_quota(request, 3)
    with pytest.raises(UnavailableError):
        await authenticator.reserve_quota(request)


class DatabaseAt:
    """A database with the clock at `now`, or an unavailable one."""

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
    assert f"clock is off by {ahead_s:+.1f} s;" in (check.refuse_work_because(NOW) or "")


@pytest.mark.parametrize("ahead_s", [0.0, 1.0, -4.9, 4.9])
async def test_less_is_no_reason_to_refuse(ahead_s: float) -> None:
    check = ClockCheck(DatabaseAt(NOW - ahead_s), StillClock())

    await check.check_once()

    assert check.refuse_work_because(NOW) is None


def test_clock_counts_as_right_before_the_first_check() -> None:
    assert ClockCheck(DatabaseAt(0.0), StillClock()).refuse_work_because(NOW) is None


async def test_half_the_round_trip_is_taken_off() -> None:
    class SlowDatabase:
        """Reads its clock in the middle of a query of four seconds."""

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
