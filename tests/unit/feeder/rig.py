"""A feeder on an in-memory database, and a host that takes its slots."""

from __future__ import annotations

from domain.jobs import Ready
from domain.units import HostId, InstanceId, VolunteerId
from feeder.refill import Refill
from feeder.service import Feeder, build_feeder
from tests.unit.feeder.fakes import FakeCatalogue, FakeShards, FakeWaiting, StillClock


class Rig:
    """The parts of a test; `offered` are all instances that have ever been a slot."""

    def __init__(self, *, slots: int = 100, database: FakeWaiting | None = None) -> None:
        self.clock = StillClock()
        self.database = FakeWaiting() if database is None else database
        self.shards = FakeShards()
        self.catalogue = FakeCatalogue()
        self.catalogue.change("feeder.slots", slots)
        self.feeder: Feeder = build_feeder(self.database, self.shards, self.catalogue, self.clock)
        self.array = self.feeder.array
        self.offered: set[InstanceId] = set()

    async def refill(self, times: int = 1) -> Refill:
        for _ in range(times):
            done = await self.feeder.refill_once()
            self.clock.pass_s(1.0)
            self.offered |= {ready.instance_id for ready in self.slots()}
        return done

    async def fill_up(self) -> Refill:
        done = await self.feeder.fill_up_once()
        self.offered |= {ready.instance_id for ready in self.slots()}
        return done

    def slots(self) -> list[Ready]:
        return [slot for group in self.array.groups() for slot in group.slots()]

    def ids(self) -> list[int]:
        return [slot.instance_id for slot in self.slots()]

    def per_batch(self) -> dict[int, int]:
        counts: dict[int, int] = {}
        for slot in self.slots():
            counts[slot.batch_id] = counts.get(slot.batch_id, 0) + 1
        return counts

    def send(self, slot: Ready, host: int = 1) -> None:
        """Dispatch a slot and commit it."""
        self.database.count_sent(slot.batch_id)
        self.array.take(slot, HostId(host), VolunteerId(host))
        del self.database.unsent[slot.instance_id]
        self.array.sent([slot.instance_id])
