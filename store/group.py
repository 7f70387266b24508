"""How do concurrent calls share one round trip and one transaction? What waits while groups run is the next group."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import asyncpg

from domain.errors import UnavailableError
from store.pool import CLOSE_S, CONFLICTS, LOST, TRIES, connect
from store.sessions import Session

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

MOST = 64  # members of a group
LANES = 2  # groups that may be under way at once: while one waits for the disk, the next is at work
TURNS = 2  # of the event loop between a request's arrival and its ask
MOST_TURNS = 8  # pairs of them: a few milliseconds at full load
MOST_GROUPS_WAITING = 20  # at a few ms each; who comes later would have hung up before it is served


@dataclass(slots=True)
class Lane:
    """A connection that one group at a time runs on; None until it is needed, and after it was lost."""

    session: Session | None = None

    def drop(self) -> None:
        """Let go of a connection that no longer serves."""
        if self.session is not None:
            self.session.terminate()
            self.session = None


class Grouped(Generic[Ask, Answer]):
    """Runs `work` on groups of asks, on connections of its own; each asker gets its own answer.

    An idle group starts as soon as nobody else is coming. When a group fails it is rolled back and its members
    are done one by one, so that only the culprit gets the exception. A lost connection is UnavailableError for
    every member; the next group connects again. An asker that is cancelled leaves; its ask may still be done.
    """

    def __init__(
        self,
        dsn: str,
        work: Callable[[Session, Sequence[Ask]], Awaitable[Sequence[Answer]]],
        *,
        in_transaction: bool,
        most: int = MOST,
        lanes: int = LANES,
        connect: Callable[[str], Awaitable[Session]] = connect,
    ) -> None:
        self.dsn = dsn
        self._work = work
        self._in_transaction = in_transaction
        self._most = most
        self._connect = connect
        self._waiting: deque[tuple[Ask, asyncio.Future[Answer]]] = deque()
        self._lanes = [Lane() for _ in range(lanes)]
        self._idle = list(self._lanes)
        self._running: set[asyncio.Task[None]] = set()
        self._gathering = False
        self._closed = False

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
        self._start()
        return await answer

    async def close(self) -> None:
        """Finish what is waiting, then let go of the connections."""
        self._closed = True
        while self._running:
            await asyncio.wait(self._running)
        for lane in self._lanes:
            if lane.session is not None:
                with contextlib.suppress(*LOST):
                    await lane.session.close(timeout=CLOSE_S)

    def _start(self) -> None:
        """Set a lane to work when there is some, unless one is just gathering what comes."""
        if self._waiting and self._idle and not self._gathering:
            self._gathering = True
            task = asyncio.create_task(self._run(self._idle.pop()))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _run(self, lane: Lane) -> None:
        """Gather a group and serve it; meanwhile the other lanes may do the same."""
        try:
            await self._gather()
            group = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
        finally:
            self._gathering = False
        try:
            self._start()
            present = [(ask, answer) for ask, answer in group if not answer.done()]
            if present:
                await self._serve(lane, present)
        finally:
            self._idle.append(lane)
            self._start()

    async def _gather(self) -> None:
        """Let the loop go round while more asks come with each turn: who is nearly here shares the round trip.

        An idle process waits for nothing: its turns are over at once.
        """
        loop = asyncio.get_running_loop()
        before = 0
        for _ in range(MOST_TURNS):
            if before == len(self._waiting) or len(self._waiting) >= self._most:
                return
            before = len(self._waiting)
            for _ in range(TURNS):
                turned = loop.create_future()
                loop.call_soon(turned.set_result, None)
                await turned

    async def _serve(self, lane: Lane, group: Sequence[tuple[Ask, asyncio.Future[Answer]]]) -> UnavailableError | None:
        """Answer every member of a group, with a value or an exception; the exception if no connection is to be had."""
        try:
            answers = await self._attempt(lane, [ask for ask, _ in group])
        except UnavailableError as error:
            _tell(group, error)
            return error
        except Exception as error:
            await self._explain(lane, group, error)
            return None
        for (_, answer), value in zip(group, answers, strict=True):
            if not answer.done():
                answer.set_result(value)
        return None

    async def _explain(self, lane: Lane, group: Sequence[tuple[Ask, asyncio.Future[Answer]]], error: Exception) -> None:
        """Hand a group's exception to those it concerns; do the members one by one when that is not known."""
        if isinstance(error, LOST):
            lane.drop()
            _tell(group, UnavailableError(f"the database does not serve: {error or type(error).__name__}"))
        elif len(group) == 1:
            _tell(group, error)
        else:
            refused: UnavailableError | None = None
            for member in group:
                if refused is None:
                    refused = await self._serve(lane, [member])
                else:
                    _tell([member], UnavailableError(str(refused)))

    async def _attempt(self, lane: Lane, asks: Sequence[Ask]) -> Sequence[Answer]:
        """The answers to a group, or its exception; a lone member that met another transaction tries again."""
        tries = TRIES if len(asks) == 1 and self._in_transaction else 1
        for _ in range(tries - 1):
            try:
                return await self._once(lane, asks)
            except (*CONFLICTS, asyncpg.UniqueViolationError):
                continue
        return await self._once(lane, asks)

    async def _connected(self) -> Session:
        """A new connection. When there is none to be had, whoever waits is told so now and not one group at a time."""
        try:
            return await self._connect(self.dsn)
        except UnavailableError as error:
            waiting, self._waiting = self._waiting, deque()
            for one in waiting:
                _tell([one], UnavailableError(str(error)))
            raise

    async def _once(self, lane: Lane, asks: Sequence[Ask]) -> Sequence[Answer]:
        if lane.session is None or lane.session.is_closed():
            lane.session = await self._connected()
        if not self._in_transaction:
            return await self._work(lane.session, asks)
        async with lane.session.transaction():
            return await self._work(lane.session, asks)


def _tell(group: Iterable[tuple[Ask, asyncio.Future[Answer]]], error: Exception) -> None:
    """The exception to every one who still waits for his answer."""
    for _, answer in group:
        if not answer.done():
            answer.set_exception(error)
