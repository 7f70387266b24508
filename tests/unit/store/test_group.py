"""Tests that calls fail at once while the database is unavailable, and that every call gets a reply if work fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import uvloop

from domain.errors import UnavailableError
from store.group import Grouped, Pace
from store.pool import Connection, DatabaseSession
from tests.unit.store.standing import stand


class AwayDatabase:
    """Refuses connections, and counts the attempts."""

    def __init__(self) -> None:
        self.tries = 0
        self.gate = asyncio.Event()

    async def connect(self, dsn: str) -> DatabaseSession:
        self.tries += 1
        await self.gate.wait()
        raise UnavailableError("the database is away")


async def doubled(connection: Connection, asks: Sequence[int]) -> list[int]:
    return [2 * ask for ask in asks]


async def test_all_waiting_calls_fail_without_a_connection() -> None:
    away = AwayDatabase()
    grouped = Grouped("", doubled, in_transaction=True, most=10, lanes=1, connect=away.connect)
    asked = [asyncio.create_task(grouped.ask(n)) for n in range(25)]
    while not away.tries:
        await asyncio.wait(asked, timeout=0)

    away.gate.set()
    answers = await asyncio.gather(*asked, return_exceptions=True)

    assert {str(answer) for answer in answers} == {"the database is away"}
    assert away.tries == 1
    await grouped.close()


async def test_all_calls_fail_on_wrong_number_of_results() -> None:
    async def one_too_few(connection: Connection, asks: Sequence[int]) -> list[int]:
        return [*asks][1:]

    grouped = Grouped("", one_too_few, in_transaction=False, most=10, lanes=1, connect=stand)
    answers = await asyncio.gather(*(grouped.ask(number) for number in range(3)), return_exceptions=True)

    assert [type(answer) for answer in answers] == [ValueError] * 3
    await grouped.close()


class Work:
    """Groups that wait until their gate is open; notifies when one begins."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def __call__(self, connection: DatabaseSession, asks: Sequence[int]) -> list[int]:
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
    grouped = Grouped("", work, in_transaction=False, most=4, lanes=2, pace=Pace(1e9), connect=stand)
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
    grouped = Grouped("", work, in_transaction=False, most=3, lanes=2, pace=Pace(1e9), connect=stand)
    asked = [await first_group(grouped, work)]
    asked += [asyncio.create_task(grouped.ask(number)) for number in (1, 2, 3)]
    await work.begun.wait()

    assert work.groups == [[0], [1, 2, 3]]
    work.gate.set()
    await asyncio.gather(*asked)
    await grouped.close()


async def test_stuck_group_does_not_delay_others() -> None:
    work = Work()
    grouped = Grouped("", work, in_transaction=False, most=3, lanes=2, pace=Pace(0.01), connect=stand)
    asked = [await first_group(grouped, work), asyncio.create_task(grouped.ask(1))]
    await work.begun.wait()

    assert work.groups == [[0], [1]]
    work.gate.set()
    await asyncio.gather(*asked)
    await grouped.close()


async def test_reads_and_writes_of_one_pace_take_turns() -> None:
    """Calls that were read together are written together; the writes that wait start before the reads that wait."""
    reading, writing, pace = Work(), Work(), Pace(1e9)
    writes = Grouped("", writing, in_transaction=False, most=9, lanes=2, pace=pace, connect=stand)
    reads = Grouped("", reading, in_transaction=False, most=9, lanes=2, pace=pace, connect=stand)

    async def request(number: int) -> int:
        return await writes.ask(await reads.ask(number))

    opening = await first_group(writes, writing)  # opens the connection
    writing.gate.set()
    await opening
    writing.gate.clear()
    writing.groups.clear()

    asked = [await first_group(reads, reading)]
    asked += [asyncio.create_task(request(number)) for number in (1, 2)]
    asked.append(asyncio.create_task(writes.ask(3)))
    await at_rest()
    assert (reading.groups, writing.groups) == ([[0]], [])

    reading.gate.set()
    await writing.begun.wait()
    await at_rest()
    assert (reading.groups, writing.groups) == ([[0]], [[3]])

    writing.gate.set()
    assert await asyncio.gather(*asked) == [0, 1, 2, 3]
    assert (reading.groups, writing.groups) == ([[0], [1, 2]], [[3], [1, 2]])
    await reads.close()
    await writes.close()


def test_it_is_looked_at_again_on_the_loop_that_workers_run_on() -> None:
    """Timers below a millisecond run in the loop's next turn, too early."""

    async def asked_for() -> list[int]:
        work = Work()
        grouped = Grouped("", work, in_transaction=False, most=9, lanes=2, pace=Pace(0.0004), connect=stand)
        asked = [await first_group(grouped, work)]
        for number in range(1, 6):
            asked += [asyncio.create_task(grouped.ask(number)), asyncio.create_task(grouped.ask(-number))]
            await at_rest()
        work.gate.set()
        answers = await asyncio.gather(*asked)
        await grouped.close()
        return answers

    assert uvloop.run(asked_for()) == [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5]
