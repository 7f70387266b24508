"""Times refills of a feeder on a real database, and sends its jobs in between."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import asyncpg

from benchmarks.refill.figures import Timed
from domain.apps import AppVersion
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestWrites
from domain.jobs import Candidate
from domain.settings import Settings
from domain.units import SHARDS, HostId
from feeder.refill import Refill
from feeder.service import Feeder, build_feeder
from store.postgres import PostgresStore
from tests.worlds import RegisteredHost, an_assignment, the_version

PER_WRITE = 500  # jobs sent in one transaction
ALL = frozenset(range(SHARDS))
HALF = frozenset(range(SHARDS // 2))  # shards of the first of two workers


@dataclass
class Owned:
    """Satisfies Shards."""

    shards: frozenset[int]

    def owned(self) -> frozenset[int]:
        return self.shards


@dataclass
class FixedCatalogue:
    """A catalogue with another number of slots."""

    read: Catalogue

    def with_slots(self, slots: int) -> FixedCatalogue:
        settings: Settings = self.read.settings.changed("feeder.slots", slots)
        return FixedCatalogue(replace(self.read, settings=settings))

    def catalogue(self) -> Catalogue:
        return self.read


class Steps:
    """Times refills on one project. `send` writes real dispatches."""

    def __init__(
        self,
        store: PostgresStore,
        clock: Clock,
        *,
        catalogue: FixedCatalogue,
        server_pid: int,
        host: RegisteredHost,
        version: AppVersion,
    ) -> None:
        self._store = store
        self._clock = clock
        self._catalogue = catalogue
        self._server_pid = server_pid
        self._host = host
        self._version = version

    @classmethod
    async def of(cls, store: PostgresStore, connection: asyncpg.Connection, clock: Clock) -> Steps:
        """Return the steps for `store`, which has one connection. `connection` identifies its server process."""
        catalogue = FixedCatalogue(await store.applications.load_catalogue())
        [pid] = [
            row["pid"]
            for row in await connection.fetch(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'muster' AND datname = current_database()"
            )
        ]
        host, _ = await store.views.host(HostId(1))
        return cls(
            store,
            clock,
            catalogue=catalogue,
            server_pid=pid,
            host=RegisteredHost(host, ""),
            version=await the_version(store),
        )

    async def full(self, slots: int) -> Timed:
        """Refill a new feeder's array until it is full."""
        feeder = self._feeder(slots)

        async def fill() -> int:
            return await filled(feeder, slots)

        return await self._timed(fill)

    async def after_sending(self, slots: int, *, sent: int, repeats: int, whole: bool) -> list[Timed]:
        """Time full or partial refills of a full array, each after its first `sent` slots were sent."""
        feeder = self._feeder(slots)
        await filled(feeder, slots)
        await feeder.refill_once()
        timed = []
        for _ in range(repeats):
            await self._send(feeder, sent)
            refill = feeder.refill_once if whole else feeder.fill_up_once

            async def once(refill: Callable[[], Awaitable[Refill]] = refill) -> int:
                return (await refill()).placed

            timed.append(await self._timed(once))
        return timed

    async def send_many(self, jobs: int) -> None:
        """Send this many jobs in order."""
        feeder = build_feeder(self._store.waiting, Owned(ALL), self._catalogue.with_slots(10_000), self._clock)
        while jobs > 0:
            await filled(feeder, 10_000)
            some = min(jobs, len(feeder.array))
            if not some:
                return
            await self._send(feeder, some)
            jobs -= some

    def _feeder(self, slots: int) -> Feeder:
        return build_feeder(self._store.waiting, Owned(HALF), self._catalogue.with_slots(slots), self._clock)

    async def _timed(self, refill: Callable[[], Awaitable[int]]) -> Timed:
        server_s, began_s, python_s = ran_s(self._server_pid), time.perf_counter(), time.process_time()
        placed = await refill()
        took_s, used_s = time.perf_counter() - began_s, time.process_time() - python_s
        return Timed(took_s, used_s, ran_s(self._server_pid) - server_s, placed)

    async def _send(self, feeder: Feeder, count: int) -> None:
        """Dispatch the first slots and commit."""
        array = feeder.array
        slots = list(islice((slot for group in array.groups() for slot in group.slots()), count))
        for start in range(0, len(slots), PER_WRITE):
            some = slots[start : start + PER_WRITE]
            for slot in some:
                array.take(slot, self._host.host_id, self._host.volunteer_id)
            assignments = tuple(an_assignment(Candidate(slot), self._host, self._version) for slot in some)
            await self._store.ledger.write(RequestWrites(self._host.host, assignments=assignments))
            array.sent(slot.instance_id for slot in some)


async def filled(feeder: Feeder, slots: int) -> int:
    """Refill until the array is full or no jobs are left. Return how many slots were filled."""
    done = await feeder.refill_once()
    placed = done.placed
    while len(feeder.array) < slots and not done.found_nothing:
        done = await feeder.fill_up_once()
        placed += done.placed
    return placed


def ran_s(pid: int) -> float:
    """Return the CPU seconds of a process so far, more precisely than in clock ticks of 10 ms."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9
