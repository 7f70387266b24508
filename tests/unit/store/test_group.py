"""Who waits for a database that is away is told so at once, and nobody is forgotten when work goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from domain.errors import UnavailableError
from store.group import Grouped
from store.pool import Connection
from store.sessions import Session
from tests.unit.store.standing import stand


class AwayDatabase:
    """Takes no connections; each try is counted."""

    def __init__(self) -> None:
        self.tries = 0
        self.gate = asyncio.Event()

    async def connect(self, dsn: str) -> Session:
        self.tries += 1
        await self.gate.wait()
        raise UnavailableError("the database is away")


async def doubled(connection: Connection, asks: Sequence[int]) -> list[int]:
    return [2 * ask for ask in asks]


async def test_everybody_who_waits_is_told_when_no_connection_is_to_be_had() -> None:
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


async def test_everybody_is_told_when_work_gives_another_number_of_answers() -> None:
    async def one_too_few(connection: Connection, asks: Sequence[int]) -> list[int]:
        return [*asks][1:]

    grouped = Grouped("", one_too_few, in_transaction=False, most=10, lanes=1, connect=stand)
    answers = await asyncio.gather(*(grouped.ask(number) for number in range(3)), return_exceptions=True)

    assert [type(answer) for answer in answers] == [ValueError] * 3
    await grouped.close()
