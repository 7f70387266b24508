"""Guards of a worker: its database answers soon or the request fails, and it hands out work only while that is safe.

Safe: its clock agrees with the database's, and its locks are held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import structlog

from domain.clock import Clock
from domain.dispatch import RequestKey, RequestView, RequestWrites, SentJob, Trickle, WriteOutcome
from domain.errors import UnavailableError
from domain.formatting import in_words
from domain.hosts import Host
from domain.jobs import JobClass
from domain.quotas import QuotaGrant, QuotaRequest
from domain.units import HostId, InstanceId, Instant, JobClassId, Seconds, VolunteerId
from scheduler.ports import Ledger

ANSWER_S = Seconds(15.0)  # for any step of a request, whoever else is waiting
AWAY_S = Seconds(5.0)  # a lock connection that could not be made anew for so long: the database is away


log = structlog.get_logger()

Answer = TypeVar("Answer")


class LockHealth(Protocol):
    def in_doubt(self) -> bool: ...

    def silent_s(self) -> float: ...


class NewcomersOf(Protocol):
    async def admit(self, volunteer_id: VolunteerId) -> None:
        """Raises TooManyHostsError when the volunteer may not bring another computer now."""
        ...

    def network(self) -> str:
        """Where the request of this task comes from; empty: not known, or shared by others."""
        ...


class LedgerDoor:
    """Satisfies the scheduler's Ledger with another one. Every call may raise UnavailableError."""

    def __init__(
        self, ledger: Ledger, locks: LockHealth, newcomers: NewcomersOf | None = None, *, answer_s: float = ANSWER_S
    ) -> None:
        self._newcomers = newcomers
        self._ledger = ledger
        self._locks = locks
        self._answer_s = answer_s

    async def read(self, key: RequestKey) -> RequestView:
        """With the quota of the address that the request comes from."""
        self._check()
        if self._newcomers is not None:
            key = replace(key, network=self._newcomers.network())
        return await self._soon(self._ledger.read(key))

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        self._check()
        if self._newcomers is not None:
            await self._soon(self._newcomers.admit(volunteer_id))
        return await self._soon(self._ledger.create_host(volunteer_id, host))

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        self._check()
        return await self._soon(self._ledger.write(writes))

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        self._check()
        return await self._soon(
            self._ledger.keep_trickles(found, per_instance=per_instance, forget_before=forget_before)
        )

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        self._check()
        return await self._soon(self._ledger.reserve_quota(request))

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        """What cannot be released now stays charged until tomorrow: the host has its jobs, and must be told."""
        try:
            await self._soon(self._ledger.release_quota(request, unused))
        except UnavailableError as error:
            log.warning("quota not released", host_id=request.host_id, unused=unused, why=str(error))

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        self._check()
        return await self._soon(self._ledger.sent_jobs(instance_ids))

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        self._check()
        return await self._soon(self._ledger.job_classes(ids))

    def _check(self) -> None:
        if self._locks.in_doubt() and self._locks.silent_s() > AWAY_S:
            raise UnavailableError("the database is away")

    async def _soon(self, step: Awaitable[Answer]) -> Answer:
        try:
            async with asyncio.timeout(self._answer_s):
                return await step
        except TimeoutError:
            raise UnavailableError(f"the database has not answered for {in_words(self._answer_s)}") from None


CHECK_S = Seconds(30.0)
WARN_S = Seconds(1.0)
REFUSE_S = Seconds(5.0)


class ClockOffset(Protocol):
    async def database_now(self) -> Instant: ...


class ShardLocks(Protocol):
    def in_doubt(self) -> bool: ...


class NodePauses:
    """Satisfies the scheduler's Pauses: the clock must be right and the lock connection must live."""

    def __init__(self, clock_check: ClockCheck, locks: ShardLocks) -> None:
        self._clock_check = clock_check
        self._locks = locks

    def refuse_work_because(self, now: Instant) -> str | None:
        """A sentence when this node may not hand out work."""
        if self._locks.in_doubt():
            return "this server has lost sight of its database; no work until it is back"
        return self._clock_check.refuse_work_because(now)


class ClockCheck:
    """Compares the node's clock with the database's every 30 s; half the round trip is taken off."""

    def __init__(self, database: ClockOffset, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._drift_s = Seconds(0.0)
        self.round_trip_s = Seconds(0.0)  # of the last check that was answered
        self.answered = False  # whether the last check was

    @property
    def drift_s(self) -> Seconds:
        """This node's clock less the database's, as of the last check."""
        return self._drift_s

    def refuse_work_because(self, now: Instant) -> str | None:
        """A sentence when the clocks differ by 5 s or more."""
        if abs(self._drift_s) < REFUSE_S:
            return None
        return f"this server's clock is {self._drift_s:+.1f} s off; no work until it is right"

    async def check_once(self) -> Seconds:
        """Measure the drift: node minus database, seconds."""
        before, asked_at = self._clock.now(), self._clock.monotonic()
        self.answered = False
        database_now = await self._database.database_now()
        after = self._clock.now()
        self.answered, self.round_trip_s = True, Seconds(self._clock.monotonic() - asked_at)
        self._drift_s = Seconds((before + after) / 2 - database_now)
        if abs(self._drift_s) >= WARN_S:
            log.warning("the clock differs from the database's", drift_s=round(self._drift_s, 3))
        return self._drift_s

    async def run(self) -> None:
        while True:
            try:
                await self.check_once()
            except UnavailableError as error:
                log.warning("clock not checked", why=str(error))
            await self._clock.sleep(CHECK_S)
