"""The locks of shards and of periodic tasks, which end with the connection they were taken on."""

from __future__ import annotations

import math
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext

import structlog

from domain.errors import UnavailableError
from domain.settlement import ALL_JOBS, JobShare
from domain.units import SHARDS, Instant, Seconds
from store.locks import SILENCE_S, fair_share
from tests.deterministic.clocks import EPOCH, NodeClock
from tests.deterministic.faults import Link

INTERVAL_S = 13.0
STAND_BY_S = 180.0  # how long a process waits for a task's lock before it reports another holder


class LockTable:
    """The locks of the cluster."""

    def __init__(self) -> None:
        self._holders: dict[object, int] = {}
        self.workers: set[int] = set()
        self.sharers: dict[str, set[int]] = {}  # of tasks that run in every background process

    def take(self, what: object, process: int) -> bool:
        return self._holders.setdefault(what, process) == process

    def give_up(self, what: object, process: int) -> None:
        if self._holders.get(what) == process:
            del self._holders[what]

    def end(self, process: int) -> None:
        """Release all locks of a process whose connection is gone."""
        for holders in (self.workers, *self.sharers.values()):
            holders.discard(process)
        self._holders = {what: holder for what, holder in self._holders.items() if holder != process}

    def shards_of(self, process: int) -> frozenset[int]:
        return frozenset([shard for shard in range(SHARDS) if self._holders.get(shard) == process])


class WorkerShards:
    """Satisfies the feeder's Shards, and reports whether the locks are in doubt, like store.shards."""

    def __init__(self, table: LockTable, process: int, link: Link, clock: NodeClock) -> None:
        self._table, self._process, self._link, self._clock = table, process, link, clock
        self._owned: frozenset[int] = frozenset()
        self._heard_at = Seconds(-math.inf)

    def owned(self) -> frozenset[int]:
        return frozenset() if self.in_doubt() else self._owned

    def in_doubt(self) -> bool:
        return self._link.is_away() or self.silent_s() > SILENCE_S

    def silent_s(self) -> Seconds:
        return Seconds(self._clock.monotonic() - self._heard_at)

    async def run_once(self) -> None:
        asked_at = self._clock.monotonic()
        try:
            await self._link.call("shards.run_once", self._rebalance)
        except UnavailableError:
            self._table.end(self._process)
            self._owned = frozenset()
            raise
        self._heard_at = asked_at

    async def _rebalance(self) -> None:
        table, me = self._table, self._process
        table.workers.add(me)
        fair = fair_share(sorted(table.workers), me)
        held = table.shards_of(me)
        for shard in sorted(held)[fair:]:
            table.give_up(shard, me)
        missing = fair - len(held)
        for shard in range(SHARDS) if missing > 0 else ():
            missing -= shard not in held and table.take(shard, me)
            if missing <= 0:
                break
        self._owned = table.shards_of(me) if len(held) != fair else held

    async def run(self) -> None:
        while True:
            await self._clock.sleep(INTERVAL_S)
            try:
                await self.run_once()
            except UnavailableError as error:
                structlog.get_logger("shards").warning("shards lost", error=str(error))


class DutyLocks:
    """Satisfies the locks of periodic tasks: each task runs in one process, a shared one in every process."""

    def __init__(self, table: LockTable, process: int, link: Link, shared: Collection[str]) -> None:
        self._table, self._process, self._link = table, process, link
        self._shares = dict.fromkeys(shared, ALL_JOBS)

    async def mine(self, duty: str) -> bool:
        take = self._take_share if duty in self._shares else self._take
        return bool(await self._link.call("duties.mine", lambda: take(duty)))

    def share(self, duty: str) -> JobShare:
        return self._shares[duty]

    async def give_up(self, duty: str) -> None:
        async def free() -> None:
            self._table.give_up(f"duty {duty}", self._process)
            self._table.sharers.get(duty, set()).discard(self._process)

        await self._link.call("duties.give_up", free)

    def fence(self, duty: str) -> AbstractContextManager[None]:
        """None: the store in memory has no lock to lose, and rounds of two processes may overlap."""
        return nullcontext()

    async def _take_share(self, duty: str) -> bool:
        holders = self._table.sharers.setdefault(duty, set())
        holders.add(self._process)
        self._shares[duty] = JobShare(sorted(holders).index(self._process), len(holders))
        return True

    async def _take(self, duty: str) -> bool:
        what = f"duty {duty}"
        if self._table.take(what, self._process):
            return True
        await self._link.clock.sleep(STAND_BY_S)
        return self._table.take(what, self._process)


class DatabaseClock:
    """The database's own clock, which is never stepped."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def database_now(self) -> Instant:
        async def now() -> Instant:
            return Instant(EPOCH + self._link.clock.monotonic())

        answer: Instant = await self._link.call("clock.database_now", now)
        return answer
