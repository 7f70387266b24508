"""Guards of a worker: database timeouts, and the conditions for sending work.

A worker sends work only while its clock agrees with the database's and its locks are held.
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
from runtime.rate_limits.hosts import NewcomerLimit
from scheduler.ports import Ledger

ANSWER_S = Seconds(15.0)  # for each step of a request, including the wait for a connection
AWAY_S = Seconds(5.0)  # if a lock connection cannot be restored within this time, the database counts as unavailable


log = structlog.get_logger()

Answer = TypeVar("Answer")


class LockHealth(Protocol):
    def in_doubt(self) -> bool: ...

    def silent_s(self) -> float: ...


class GuardedLedger:
    """Adds a time limit to the scheduler's Ledger. Any call may raise UnavailableError."""

    def __init__(
        self, ledger: Ledger, locks: LockHealth, newcomers: NewcomerLimit | None = None, *, answer_s: float = ANSWER_S
    ) -> None:
        self._newcomers = newcomers
        self._ledger = ledger
        self._locks = locks
        self._answer_s = answer_s

    async def read(self, key: RequestKey) -> RequestView:
        """Read the view, including the newcomer quota of the request's network."""
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
        """Release quota. On failure it stays charged until tomorrow: the host has its jobs and must get the reply."""
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
            raise UnavailableError("the database is unavailable")

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


class NodePauses:
    """Implements the scheduler's Pauses: sending work requires a correct clock and a live lock connection."""

    def __init__(self, clock_check: ClockCheck, locks: LockHealth) -> None:
        self._clock_check = clock_check
        self._locks = locks

    def refuse_work_because(self, now: Instant) -> str | None:
        """Return why this node may not send work, or None."""
        if self._locks.in_doubt():
            return "this server lost its database connection; no work until it is restored"
        return self._clock_check.refuse_work_because(now)


class ClockCheck:
    """Compares the node's clock with the database's every 30 s, corrected by half the round-trip time."""

    def __init__(self, database: ClockOffset, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._drift_s = Seconds(0.0)
        self.round_trip_s = Seconds(0.0)  # at the last successful check
        self.answered = False  # whether the last check succeeded

    @property
    def drift_s(self) -> Seconds:
        """Return by how many seconds this node's clock was ahead of the database's clock at the last check."""
        return self._drift_s

    def refuse_work_because(self, now: Instant) -> str | None:
        """Return the reason if the clocks differ by at least 5 s, otherwise None."""
        if abs(self._drift_s) < REFUSE_S:
            return None
        return f"this server's clock is off by {self._drift_s:+.1f} s; no work until it is corrected"

    async def check_once(self) -> Seconds:
        """Measure and return the drift in seconds: node minus database."""
        before, asked_at = self._clock.now(), self._clock.monotonic()
        self.answered = False
        database_now = await self._database.database_now()
        after = self._clock.now()
        self.answered, self.round_trip_s = True, Seconds(self._clock.monotonic() - asked_at)
        self._drift_s = Seconds((before + after) / 2 - database_now)
        if abs(self._drift_s) >= WARN_S:
            log.warning("clock differs from the database's", drift_s=round(self._drift_s, 3))
        return self._drift_s

    async def run(self) -> None:
        while True:
            try:
                await self.check_once()
            except UnavailableError as error:
                log.warning("clock check failed", why=str(error))
            await self._clock.sleep(CHECK_S)
