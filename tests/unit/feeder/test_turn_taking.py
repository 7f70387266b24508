from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.units import AccountId, BatchId, SubmitterId
from tests.builders import NOW
from tests.unit.feeder.rig import Rig

ADA, BOB, EVE = SubmitterId(1), SubmitterId(2), SubmitterId(3)


class Project(Rig):
    """A rig with batches of several submitters, each in an account of its own."""

    def __init__(self, policy: str = "fifo") -> None:
        super().__init__(slots=400)
        self.catalogue.change("ordering.policy", policy)
        self.submitters: dict[BatchId, SubmitterId] = {}

    def submit(self, number: int, who: SubmitterId, *, key: float = 0.0, jobs: int = 130, job_pe: float = 1.0) -> None:
        self.submitters[BatchId(number)] = who
        self.database.add_batch(
            number, submitter_id=who, account_id=AccountId(who), order_key=key, job_pe=job_pe, order_tier=0
        )
        self.database.add_jobs(number, jobs)

    def send_first(self) -> SubmitterId:
        first = self.array.groups()[0].slots()[0]
        self.send(first)
        return self.submitters[first.batch_id]

    async def sent(self, count: int, *, refill_every: int = 7) -> Counter[SubmitterId]:
        """Send the first job `count` times, with refills in between; return how many each submitter had."""
        had = Counter[SubmitterId]()
        for turn in range(count):
            if turn % refill_every == 0:
                await self.refill()
            had[self.send_first()] += 1
        return had


@pytest.mark.parametrize("policy", ["equal_access", "logical_time", "multifactor", "components", "fifo"])
@settings(max_examples=10)
@given(refill_every=st.integers(5, 50), adas=st.integers(1, 6))
async def test_equals_share_any_forty_dispatches(policy: str, refill_every: int, adas: int) -> None:
    rig = Project(policy)
    for number in range(adas):
        rig.submit(1 + number, ADA)
    rig.submit(20, BOB)
    for _ in range(2):
        had = await rig.sent(40, refill_every=refill_every)
        assert min(had[ADA], had[BOB]) >= 16


async def test_smaller_numbers_still_go_first() -> None:
    rig = Project()
    rig.submit(1, ADA, key=2.0)
    rig.submit(2, BOB, key=1.0, jobs=30)
    assert await rig.sent(40) == {BOB: 30, ADA: 10}


async def test_equal_access_counts_work_held_at_the_last_ordering() -> None:
    rig = Project("equal_access")
    rig.submit(1, ADA, key=10.0)
    rig.submit(2, BOB, key=0.0)
    assert (await rig.sent(10))[BOB] == 10
    assert min((await rig.sent(20)).values()) >= 9


async def test_processor_equivalents_are_what_equals_share() -> None:
    rig = Project("equal_access")
    rig.submit(1, ADA, job_pe=3.0)
    rig.submit(2, BOB)
    had = await rig.sent(80)
    assert had[BOB] == pytest.approx(3 * had[ADA], abs=3)


async def test_logical_ends_within_one_percent_are_equal() -> None:
    rig = Project("logical_time")
    now = NOW + rig.clock.elapsed_s
    rig.submit(1, ADA, key=now + 10_000.0)
    rig.submit(2, BOB, key=now + 10_050.0)
    rig.submit(3, EVE, key=now + 10_500.0)
    had = await rig.sent(40)
    assert had[EVE] == 0 and min(had[ADA], had[BOB]) >= 16


async def test_newcomer_starts_level_with_the_one_furthest_behind() -> None:
    rig = Project()
    rig.submit(1, ADA)
    rig.submit(2, BOB)
    await rig.sent(100)
    rig.submit(3, EVE)
    had = await rig.sent(30, refill_every=5)
    assert min(had.values()) >= 8


async def test_submitter_not_served_for_long_does_not_get_all_slots() -> None:
    rig = Project()
    rig.submit(1, ADA)
    rig.submit(2, BOB)
    for turn in range(100):
        if turn % 10 == 0:
            await rig.refill()
        rig.send(next(slot for slot in rig.slots() if rig.submitters[slot.batch_id] is ADA))
    assert (await rig.sent(40))[BOB] <= 24


async def test_slot_given_back_gives_its_turn_back() -> None:
    rig = Project()
    rig.submit(1, ADA)
    rig.submit(2, BOB)
    await rig.refill()
    first = rig.slots()[0]
    rig.array.take(first, host_id=1, volunteer_id=1)  # type: ignore[arg-type]
    assert rig.slots()[0].batch_id != first.batch_id
    rig.array.give_back(first)
    assert rig.slots()[0] == first
