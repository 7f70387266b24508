"""The database as a worker's requests see it: it answers soon, or it is said at once that it does not.

A client that is told to come back later costs nothing; one that is left waiting hangs up after minutes, and
its connection is missed by others. Reads and writes that are given up may still be done: told to nobody, what
they sent is found again as held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

import structlog

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


class Locks(Protocol):
    def in_doubt(self) -> bool: ...

    def silent_s(self) -> float: ...


class Newcomers(Protocol):
    async def admit(self, volunteer_id: VolunteerId) -> None:
        """Raises TooManyHostsError when the volunteer may not bring another computer now."""
        ...

    def network(self) -> str:
        """Where the request of this task comes from; empty: not known, or shared by others."""
        ...


class LedgerDoor:
    """Satisfies the scheduler's Ledger with another one. Every call may raise UnavailableError."""

    def __init__(
        self, ledger: Ledger, locks: Locks, newcomers: Newcomers | None = None, *, answer_s: float = ANSWER_S
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
