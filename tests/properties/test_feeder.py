"""Properties of the feeder for any batches, hosts and workers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.batches import QoS
from domain.jobs import Candidate, Ready
from domain.refusals import RefusalCode
from domain.settings import FeederSettings
from domain.units import AppId, BatchId, HostId, InstanceId, JobClassId, JobId, VolunteerId
from feeder.array import JobArray, room_for_search
from feeder.groups import slot_rank
from feeder.in_flight import IN_FLIGHT_S
from feeder.partitions import Supply, app_weights, capacities, partition_weights, plan
from tests.builders import a_batch, a_job_class
from tests.unit.feeder.fakes import ALL_SHARDS, StillClock
from tests.unit.feeder.rig import Rig

# ---------------------------------------------------------------- the array

readies = st.builds(
    Ready,
    instance_id=st.integers(1, 60).map(InstanceId),
    job_id=st.integers(1, 30).map(JobId),
    batch_id=st.integers(1, 4).map(BatchId),
    job_class_id=st.integers(1, 2).map(JobClassId),
    retries=st.integers(0, 2),
    sibling_returned=st.booleans(),
)
order_of_batch = {1: (0, 5.0), 2: (0, 5.0), 3: (1, 1.0), 4: (0, 2.0)}


def place(array: JobArray, ready: Ready) -> bool:
    tier, key = order_of_batch[ready.batch_id]
    batch = a_batch(batch_id=ready.batch_id, order_tier=tier, order_key=key)
    return array.place(Candidate(ready), batch, a_job_class(job_class_id=ready.job_class_id, batch_id=ready.batch_id))


def held(array: JobArray) -> list[Ready]:
    return [slot for group in array.groups() for slot in group.slots()]


class Model:
    """The array beside a plain dictionary of its expected contents."""

    def __init__(self) -> None:
        self.array = JobArray(StillClock(), FeederSettings)
        self.expected: dict[InstanceId, Ready] = {}
        self.in_flight: dict[InstanceId, Ready] = {}

    def place(self, ready: Ready) -> None:
        new = ready.instance_id not in self.expected and ready.instance_id not in self.in_flight
        assert place(self.array, ready) == new
        if new:
            self.expected[ready.instance_id] = ready

    def take(self, ready: Ready) -> None:
        if ready.instance_id in self.expected:
            self.array.take(ready, HostId(1), VolunteerId(1))
            self.in_flight[ready.instance_id] = self.expected.pop(ready.instance_id)

    def give_back(self, ready: Ready) -> None:
        self.array.give_back(ready)
        if ready.instance_id in self.in_flight:
            self.expected[ready.instance_id] = self.in_flight.pop(ready.instance_id)

    def drop(self, ready: Ready) -> None:
        assert self.array.drop(ready.instance_id) == self.expected.pop(ready.instance_id, None)

    def check(self) -> None:
        walked = held(self.array)
        assert {slot.instance_id: slot for slot in walked} == self.expected
        assert len(walked) == len(self.expected)
        groups = self.array.groups()
        ranks = [(group.batch.order_tier, group.batch.order_key, slot_rank(group.slots()[0])) for group in groups]
        assert ranks == sorted(set(ranks))
        for group in groups:
            assert list(group.slots()) == sorted(group.slots(), key=slot_rank)
            assert len({(slot.batch_id, slot.job_class_id, slot.urgent) for slot in group.slots()}) == 1


@given(
    slots=st.lists(readies, min_size=1, unique_by=lambda ready: ready.instance_id),
    steps=st.lists(st.tuples(st.sampled_from([Model.place, Model.take, Model.give_back, Model.drop]), st.integers())),
)
def test_groups_and_slots_stay_in_total_order(
    slots: list[Ready], steps: list[tuple[Callable[[Model, Ready], None], int]]
) -> None:
    model = Model()
    for ready in slots:
        model.place(ready)
    for step, number in steps:
        step(model, slots[number % len(slots)])
        model.check()


# ---------------------------------------------------------------- the plan

weights = st.dictionaries(st.sampled_from(["cpu", "NVIDIA", "ATI"]), st.floats(0.0, 1e6))
apps = st.dictionaries(
    st.integers(1, 6).map(AppId), st.sets(st.sampled_from(["cpu", "NVIDIA", "ATI"]), min_size=1), min_size=1
)


@given(slots=st.integers(1, 500), types=apps, requests=weights, data=st.data())
def test_app_with_work_has_slots_and_none_is_wasted(
    slots: int, types: dict[AppId, set[str]], requests: dict[str, float], data: st.DataObject
) -> None:
    instances = {app_id: data.draw(st.integers(0, 600)) for app_id in types}
    shares = capacities(slots, weights=app_weights(partition_weights(types, requests)), instances=instances)  # type: ignore[arg-type]  # texts for processor types
    assert sum(shares.values()) == min(slots, sum(instances.values()))
    hungry = [app_id for app_id, count in instances.items() if count]
    for app_id, share in shares.items():
        assert share <= instances[app_id]
        if slots >= len(hungry):
            assert share >= min(instances[app_id], max(1, slots // (4 * len(hungry))))


@given(data=st.data(), slots=st.integers(2, 200), gated_share=st.floats(0.1, 0.9), batch_share=st.floats(0.1, 0.9))
def test_the_caps_hold_while_others_have_work(
    data: st.DataObject, slots: int, gated_share: float, batch_share: float
) -> None:
    supplies = []
    for number in range(1, data.draw(st.integers(1, 6)) + 1):
        gated = data.draw(st.booleans())
        for urgent in (True, False):
            count = data.draw(st.integers(0, 300))
            supplies.append(Supply(BatchId(number), AppId(1), urgent, gated or urgent, count))
    shares = FeederSettings(gated_share_fraction=gated_share, batch_share_fraction=batch_share)
    target = plan(supplies, {AppId(1): slots}, shares)
    assert sum(target.values()) == min(slots, sum(supply.instances for supply in supplies))
    assert all(target[supply.part] <= supply.instances for supply in supplies)
    gated_slots = sum(target[supply.part] for supply in supplies if supply.gated)
    ungated_left = sum(supply.instances - target[supply.part] for supply in supplies if not supply.gated)
    if gated_slots > max(1, int(slots * gated_share)):
        assert ungated_left == 0
    for number in {supply.batch_id for supply in supplies}:
        of_batch = sum(target[supply.part] for supply in supplies if supply.batch_id == number)
        free_others = [
            supply
            for supply in supplies
            if supply.batch_id != number and not supply.gated and supply.instances > target[supply.part]
        ]
        small_others = [
            supply
            for supply in free_others
            if sum(target[other.part] for other in supplies if other.batch_id == supply.batch_id)
            < max(1, int(slots * batch_share))
        ]
        if of_batch > max(1, int(slots * batch_share)):
            assert not small_others, "another batch under its own cap had ungated work"


@given(counts=st.lists(st.integers(0, 50), min_size=1, max_size=8), slots=st.integers(1, 100))
def test_without_caps_the_plan_fills_the_batches_in_order(counts: list[int], slots: int) -> None:
    supplies = [Supply(BatchId(i + 1), AppId(1), False, False, count) for i, count in enumerate(counts)]
    target = plan(supplies, {AppId(1): slots}, FeederSettings(gated_share_fraction=1.0, batch_share_fraction=1.0))
    left = slots
    for supply in supplies:
        assert target[supply.part] == min(left, supply.instances)
        left -= target[supply.part]


# ---------------------------------------------------------------- the whole


class Project:
    """Random actions of hosts and operators on one feeder; checks the invariants."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.rig = Rig(slots=self.random.choice([10, 40, 200]))
        self.rig.catalogue.change("feeder.refusals_to_rotate", 3)
        self.rig.catalogue.change("feeder.cool_off_s", 20.0)
        self.rig.catalogue.types = {1: ("cpu",), 2: ("cpu", "NVIDIA")}  # type: ignore[dict-item]  # texts for types
        self.submitted: set[InstanceId] = set()
        self.taken: dict[InstanceId, Ready] = {}

    def submit(self, number: int) -> None:
        rig, random = self.rig, self.random
        qos = random.choice([QoS.THROUGHPUT, QoS.AFAP])
        rig.database.add_batch(number, app_id=random.choice([1, 2]), qos=qos, order_key=float(random.randrange(5)))
        for _ in range(random.randrange(1, 4)):
            added = rig.database.add_jobs(
                number,
                random.choice([1, 15, 120, 400]),
                class_number=number * 10 + random.randrange(2),
                retries=random.choice([0, 0, 0, 1]),
                handed_back=random.random() < 0.2,
            )
            self.submitted |= {ready.instance_id for ready in added}

    async def step(self) -> None:
        """Do one random action."""
        rig, random = self.rig, self.random
        slots = rig.slots()
        host = random.randrange(1, 9)
        match random.randrange(8):
            case 0 | 1 if slots:
                for slot in random.sample(slots, min(len(slots), 8)):
                    rig.array.take(slot, HostId(host), VolunteerId(host))
                    self.taken[slot.instance_id] = slot
            case 2 if self.taken:
                self.finish(random.choice(sorted(self.taken)), committed=True)
            case 3 if self.taken:
                self.finish(random.choice(sorted(self.taken)), committed=False)
            case 4 if slots:
                group = random.choice(rig.array.groups())
                for number in range(random.choice([1, 4])):
                    rig.array.note_refusals([(group.key, RefusalCode.MEMORY)], HostId(host + number))
            case 5:
                owned = random.choice([ALL_SHARDS, frozenset(range(0, 64, 2)), frozenset()])
                rig.shards.shards = owned
            case 6:
                await rig.array.search([(AppId(random.choice([1, 2])), "cpu")], random.choice([1, 50]))  # type: ignore[list-item]  # text for a type
            case _:
                await rig.refill()
                assert len(rig.array) <= rig.catalogue.settings.feeder.slots
        self.check()

    def finish(self, instance_id: InstanceId, *, committed: bool) -> None:
        """End the write of a dispatch: committed, returned, or lost."""
        slot = self.taken.pop(instance_id)
        if committed:
            del self.rig.database.unsent[instance_id]
        elif self.random.random() < 0.7:
            self.rig.array.give_back(slot)

    def check(self) -> None:
        slots = self.rig.slots()
        limits = self.rig.catalogue.settings.feeder
        assert len(slots) <= limits.slots + room_for_search(limits)
        assert len({slot.instance_id for slot in slots}) == len(slots) == len(self.rig.array)
        assert not self.taken.keys() & {slot.instance_id for slot in slots}
        self.rig.offered |= {slot.instance_id for slot in slots}

    async def drain(self) -> None:
        """From now on every host takes all it can: everything unsent must be offered."""
        rig = self.rig
        rig.shards.shards = ALL_SHARDS
        for instance_id in sorted(self.taken):
            self.finish(instance_id, committed=self.random.random() < 0.5)
        rig.clock.pass_s(IN_FLIGHT_S)
        for _ in range(600):
            if not rig.database.unsent:
                return
            await rig.refill()
            self.check()
            for slot in rig.slots():
                rig.send(slot)
        raise AssertionError(f"never offered: {sorted(rig.database.unsent)[:20]}")


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_slots_are_unique_limited_and_complete(seed: int) -> None:
    async def live() -> None:
        project = Project(seed)
        for number in range(1, project.random.randrange(2, 6)):
            project.submit(number)
        for _ in range(60):
            await project.step()
        await project.drain()
        assert project.rig.offered == project.submitted

    asyncio.run(live())
