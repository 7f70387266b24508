"""The feeder on the in-memory store, used like the request handler does."""

from __future__ import annotations

from dataclasses import dataclass

from domain.catalogue import Catalogue
from domain.dispatch import AssignmentFate
from domain.jobs import Candidate
from domain.restrictions import Restricted, Restriction
from domain.units import BatchId
from feeder.service import Feeder, build_feeder
from scheduler import ports as scheduler_ports
from tests.memory import AllShards, MemoryStore
from tests.unit.feeder.fakes import StillClock
from tests.worlds import RegisteredHost, a_registered_host, a_submitted_batch, an_assignment, send, the_version


@dataclass
class StoredCatalogue:
    """The store's catalogue, read once."""

    read: Catalogue

    def catalogue(self) -> Catalogue:
        return self.read


async def a_feeder(store: MemoryStore, clock: StillClock) -> Feeder:
    await the_version(store)
    catalogue = StoredCatalogue(await store.applications.load_catalogue())
    return build_feeder(store.waiting, AllShards(), catalogue, clock)


async def send_everything(feeder: Feeder, store: MemoryStore, host: RegisteredHost) -> list[BatchId]:
    """Send and commit every slot in order; return their batches."""
    version = await the_version(store)
    batches = []
    for slot in [slot for group in feeder.array.groups() for slot in group.slots()]:
        feeder.array.take(slot, host.host_id, host.volunteer_id)
        assignment = an_assignment(Candidate(slot), host, version)
        outcome = await send(store, host, assignment)
        assert outcome.fates[slot.instance_id] is AssignmentFate.SENT
        batches.append(slot.batch_id)
    return batches


async def test_each_stored_job_is_sent_once_in_batch_order() -> None:
    store, clock = MemoryStore(), StillClock()
    late = await a_submitted_batch(store, jobs=30, order_key=2.0)
    early = await a_submitted_batch(store, jobs=100, order_key=1.0)
    feeder = await a_feeder(store, clock)
    host = await a_registered_host(store)
    await feeder.refill_once()
    sent = await send_everything(feeder, store, host)
    assert sent == [early.batch_id] * 100 + [late.batch_id] * 30
    clock.pass_s(1.0)
    assert (await feeder.refill_once()).slots == 0


async def test_a_pause_takes_effect_at_the_next_full_refill() -> None:
    """A top-up uses the batches of the last full refill, which follows within `feeder.interval_s`."""
    store, clock = MemoryStore(), StillClock()
    paused = await a_submitted_batch(store, jobs=30)
    other = await a_submitted_batch(store, jobs=20)
    feeder = await a_feeder(store, clock)
    assert (await feeder.refill_once()).slots == 50
    pause = Restriction(Restricted.BATCH, str(paused.batch_id), 0, "wrong input", "ada", clock.now())
    await store.restrictions.put(pause)
    clock.pass_s(1.0)

    done = await feeder.refill_once()
    held = feeder.array.batches()
    await store.restrictions.lift(pause.kind, pause.name, now=clock.now())
    clock.pass_s(1.0)

    assert (done.slots, done.dropped, set(held)) == (20, 30, {other.batch_id})
    assert (await feeder.refill_once()).slots == 50


async def test_the_array_is_what_the_request_handler_asks_for() -> None:
    store = MemoryStore()
    await a_submitted_batch(store, jobs=3)
    feeder = await a_feeder(store, StillClock())
    await feeder.refill_once()
    array: scheduler_ports.JobSource = feeder.array
    group: scheduler_ports.SlotGroup = array.groups()[0]
    assert (len(group.slots()), group.urgent, group.sticky_files) == (3, False, frozenset())
