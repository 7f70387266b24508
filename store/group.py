"""How do concurrent calls share one round trip and one transaction? What waits while a group runs is the next group."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

import asyncpg

from domain.errors import UnavailableError
from store.pool import CONFLICTS, LOST, TRIES, connect

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

MOST = 64  # members of a group
TURNS = 2  # of the event loop between a request's arrival and its ask
MOST_TURNS = 8  # pairs of them: a few milliseconds at full load
MOST_GROUPS_WAITING = 20  # at a few ms each; who comes later would have hung up before it is served


class Grouped(Generic[Ask, Answer]):
    """Runs `work` on groups of asks, on a connection of its own; each asker gets its own answer.

    An idle group starts at once. When a group fails it is rolled back and its members are done one by one,
    so that only the culprit gets the exception. A lost connection is UnavailableError for every member;
    the next group connects again. An asker that is cancelled leaves; its ask may still be done.
    """

    def __init__(
        self,
        dsn: str,
        work: Callable[[asyncpg.Connection[asyncpg.Record], Sequence[Ask]], Awaitable[Sequence[Answer]]],
        *,
        in_transaction: bool,
        most: int = MOST,
    ) -> None:
        self.dsn = dsn
        self._work = work
        self._in_transaction = in_transaction
        self._most = most
        self._waiting: deque[tuple[Ask, asyncio.Future[Answer]]] = deque()
        self._running: asyncio.Task[None] | None = None
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._closed = False
        self.groups = 0  # done so far
        self.members = 0  # of them

    async def ask(self, ask: Ask) -> Answer:
        """The answer to one ask. Raises UnavailableError, or whatever its own work raises.

        When too many are waiting already, it is refused at once: a queue that only grows serves nobody.
        """
        if self._closed:
            raise UnavailableError("the store is closed")
        if len(self._waiting) >= MOST_GROUPS_WAITING * self._most:
            raise UnavailableError(f"the database is busy: {len(self._waiting)} requests are waiting for it")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, answer))
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await answer

    async def close(self) -> None:
        """Finish what is waiting, then let go of the connection."""
        self._closed = True
        if self._running is not None:
            await self._running
        if self._connection is not None:
            await self._connection.close()

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._gather()
                count = min(self._most, len(self._waiting))
                group = [self._waiting.popleft() for _ in range(count)]
                present = [(ask, answer) for ask, answer in group if not answer.done()]
                if present:
                    await self._serve(present)
        finally:
            self._running = None

    async def _gather(self) -> None:
        """Let the loop go round while more asks come with each turn: who is nearly here shares the round trip.

        An idle process waits for nothing: its turns are over at once.
        """
        loop = asyncio.get_running_loop()
        before = -1
        for _ in range(MOST_TURNS):
            if before == len(self._waiting) or len(self._waiting) >= self._most:
                return
            before = len(self._waiting)
            for _ in range(TURNS):
                turned = loop.create_future()
                loop.call_soon(turned.set_result, None)
                await turned

    async def _serve(self, group: Sequence[tuple[Ask, asyncio.Future[Answer]]]) -> None:
        """Answer every member of a group, with a value or an exception."""
        self.groups += 1
        self.members += len(group)
        try:
            answers = await self._attempt([ask for ask, _ in group])
        except Exception as error:
            await self._explain(group, error)
            return
        for (_, answer), value in zip(group, answers, strict=True):
            if not answer.done():
                answer.set_result(value)

    async def _explain(self, group: Sequence[tuple[Ask, asyncio.Future[Answer]]], error: Exception) -> None:
        """Hand a group's exception to those it concerns; do the members one by one when that is not known."""
        if isinstance(error, LOST):
            self._drop_connection()
            error = UnavailableError(f"the database does not serve: {error or type(error).__name__}")
        if len(group) > 1 and not isinstance(error, UnavailableError):
            for member in group:
                await self._serve([member])
            return
        for _, answer in group:
            if not answer.done():
                answer.set_exception(error)

    async def _attempt(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        """The answers to a group, or its exception; a lone member that met another transaction tries again."""
        tries = TRIES if len(asks) == 1 and self._in_transaction else 1
        for _ in range(tries - 1):
            try:
                return await self._once(asks)
            except (*CONFLICTS, asyncpg.UniqueViolationError):
                continue
        return await self._once(asks)

    async def _once(self, asks: Sequence[Ask]) -> Sequence[Answer]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await connect(self.dsn)
        if not self._in_transaction:
            return await self._work(self._connection, asks)
        async with self._connection.transaction():
            return await self._work(self._connection, asks)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None
