"""Who comes while a group is under way shares the next one, and nobody waits for a group that is stuck."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import uvloop

from store.group import Grouped
from store.sessions import Session
from tests.unit.store.standing import stand


class Work:
    """Groups wait until their gate is open; it is told when one begins."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def __call__(self, connection: Session, asks: Sequence[int]) -> list[int]:
        self.groups.append(list(asks))
        self.begun.set()
        await self.gate.wait()
        return list(asks)


async def first_group(grouped: Grouped[int, int], work: Work) -> asyncio.Task[int]:
    task = asyncio.create_task(grouped.ask(0))
    await work.begun.wait()
    work.begun.clear()
    return task


async def at_rest() -> None:
    for _ in range(100):  # turns of the loop
        await asyncio.wait({asyncio.create_task(asyncio.wait_for(asyncio.Event().wait(), 0))}, timeout=0)


async def test_who_comes_while_a_group_is_under_way_is_in_the_next_one() -> None:
    work = Work()
    grouped = Grouped("", work, in_transaction=False, most=4, lanes=2, beside_s=1e9, connect=stand)
    asked = [await first_group(grouped, work)]
    for number in (1, 2, 3):
        asked.append(asyncio.create_task(grouped.ask(number)))
        await at_rest()
    assert work.groups == [[0]]

    work.gate.set()
    assert await asyncio.gather(*asked) == [0, 1, 2, 3]
    assert work.groups == [[0], [1, 2, 3]]
    await grouped.close()


async def test_a_whole_group_does_not_wait_for_the_one_under_way() -> None:
    work = Work()
    grouped = Grouped("", work, in_transaction=False, most=3, lanes=2, beside_s=1e9, connect=stand)
    asked = [await first_group(grouped, work)]
    asked += [asyncio.create_task(grouped.ask(number)) for number in (1, 2, 3)]
    await work.begun.wait()

    assert work.groups == [[0], [1, 2, 3]]
    work.gate.set()
    await asyncio.gather(*asked)
    await grouped.close()


async def test_nobody_waits_longer_for_a_group_that_is_stuck() -> None:
    work = Work()
    grouped = Grouped("", work, in_transaction=False, most=3, lanes=2, beside_s=0.01, connect=stand)
    asked = [await first_group(grouped, work), asyncio.create_task(grouped.ask(1))]
    await work.begun.wait()

    assert work.groups == [[0], [1]]
    work.gate.set()
    await asyncio.gather(*asked)
    await grouped.close()


def test_it_is_looked_at_again_on_the_loop_that_workers_run_on() -> None:
    """Its timers of less than a millisecond are calls of the next turn, and know no time."""

    async def asked_for() -> list[int]:
        work = Work()
        grouped = Grouped("", work, in_transaction=False, most=9, lanes=2, beside_s=0.0004, connect=stand)
        asked = [await first_group(grouped, work)]
        for number in range(1, 6):
            asked += [asyncio.create_task(grouped.ask(number)), asyncio.create_task(grouped.ask(-number))]
            await at_rest()
        work.gate.set()
        answers = await asyncio.gather(*asked)
        await grouped.close()
        return answers

    assert uvloop.run(asked_for()) == [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5]
