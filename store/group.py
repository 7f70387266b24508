"""Groups concurrent calls: they share one round trip and one transaction; calls that come meanwhile are the next group.

A second group begins on another connection beside one that is under way when enough calls wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from domain.errors import UnavailableError
from store.pool import CLOSE_S, LOST, TRIES, DatabaseSession, Failure, connect, failure_of


@dataclass(slots=True, eq=False)  # each is itself
class Lane:
    """A connection that one group at a time runs on; None until it is needed, and after it was lost."""

    session: DatabaseSession | None = None
    back_at: int = 0  # groups served by all lanes: until then it sits out
    is_new: bool = False  # no statement has been made on its connection yet

    def serves(self) -> bool:
        """Whether it has a connection, as far as is known."""
        return self.session is not None and not self.session.is_closed()

    def drop(self) -> None:
        """Let go of a connection that no longer serves."""
        if self.session is not None:
            self.session.terminate()
            self.session = None


class Pace:
    """Who comes while a group is under way waits for the next one, unless the last to begin takes `beside_s` already.

    Groups are cheaper the more share them, and who waits for one is served as soon as by a second group that takes the
    processor from the first. One that has to wait itself, for a lock or a slow disk, does not hold the others up.
    """

    def __init__(self, beside_s: float) -> None:
        self._beside_s = beside_s
        self._begun_at: list[float] = []  # of the groups under way, on the loop's clock
        self._will_look = False

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """While a group is."""
        begun_at = asyncio.get_running_loop().time()
        self._begun_at.append(begun_at)
        try:
            yield
        finally:
            self._begun_at.remove(begun_at)

    def has_time(self, look_again: Callable[[], None]) -> bool:
        """Whether the next group had better wait; `look_again` is called when the last one to begin takes long."""
        if not self._begun_at:
            return False
        loop = asyncio.get_running_loop()
        until = self._begun_at[-1] + self._beside_s
        if loop.time() >= until:
            return False
        if not self._will_look:
            self._will_look = True
            loop.call_at(until, self._look, look_again)
        return True

    def _look(self, look_again: Callable[[], None]) -> None:
        self._will_look = False  # loops may call a little too early: then it is set once more
        look_again()


Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

MOST = 64  # members of a group
LANES = 2  # groups that may be under way at once,
BESIDE_S = 0.05  # when the last one has taken so long, or a whole group waits: what comes meanwhile shares the next
TURNS = 2  # of the event loop between a request's arrival and its ask
MOST_TURNS = 8  # pairs of them: a few milliseconds at full load
GROUP_TRIES = 2  # of a whole group that met another transaction; then it is halved
SITS_OUT = 100  # groups: what a lane that could not connect leaves to the others before it tries again
MOST_GROUPS_WAITING = 20  # at a few ms each; who comes later would have hung up before it is served


class Grouped(Generic[Ask, Answer]):
    """Runs `work` on groups of asks, on connections of its own; each asker gets its own answer.

    An idle group starts as soon as nobody else is coming; who comes later is in the next one (store/group.py says when
    that begins). When a group fails it is rolled back and done again in halves, and those in halves, so that only the
    culprit gets the exception; a group that met another transaction is done again as a whole first. A lost connection
    is UnavailableError for those who shared the statement it was lost in. A lane that cannot connect, or whose
    connection is lost before its first statement, leaves the others to serve; when none is connected, whoever waits
    gets UnavailableError at once. An asker that is cancelled leaves; its ask may still be done.
    """

    def __init__(
        self,
        dsn: str,
        work: Callable[[DatabaseSession, Sequence[Ask]], Awaitable[Sequence[Answer]]],
        *,
        in_transaction: bool,
        most: int = MOST,
        lanes: int = LANES,
        sits_out: int = SITS_OUT,
        beside_s: float = BESIDE_S,
        connect: Callable[[str], Awaitable[DatabaseSession]] = connect,
    ) -> None:
        self.dsn = dsn
        self._work = work
        self._in_transaction = in_transaction
        self._most = most
        self._sits_out = sits_out
        self._pace = Pace(beside_s)
        self._connect = connect
        self._waiting: deque[tuple[Ask, asyncio.Future[Answer]]] = deque()
        self._lanes = [Lane() for _ in range(lanes)]
        self._idle = list(self._lanes)
        self._running: set[asyncio.Task[None]] = set()
        self._gathering = False
        self._served = 0  # groups
        self.sizes: Counter[int] = Counter()  # groups by how many were in them
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

    def waiting(self) -> int:
        """How many asks wait for the next group."""
        return len(self._waiting)

    def connected(self) -> int:
        """How many lanes have a connection."""
        return sum(lane.serves() for lane in self._lanes)

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
        if not self._waiting or self._gathering:
            return
        if len(self._waiting) < self._most and self._pace.has_time(self._start):
            return
        if (lane := self._choose()) is None:
            return
        self._idle.remove(lane)
        self._gathering = lane.serves()
        task = asyncio.create_task(self._run(lane) if self._gathering else self._join(lane))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _choose(self) -> Lane | None:
        """Of the idle lanes the last one at work that is connected; else one that may try to connect."""
        apart: Lane | None = None
        for lane in reversed(self._idle):
            if lane.serves():
                return lane
            if apart is None and self._served >= lane.back_at:
                apart = lane
        return apart

    async def _join(self, lane: Lane) -> None:
        """Connect a lane; it takes nobody before, so that the other lanes may serve whoever waits."""
        lane.drop()
        try:
            lane.session = await self._connect(self.dsn)
            lane.is_new = True
            if not lane.serves():
                self._sit_out(lane, _lost_at_once())
        except BaseException as error:
            self._sit_out(lane, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._idle.append(lane)
            self._start()

    def _sit_out(self, lane: Lane, error: BaseException) -> None:
        """The lane leaves those who wait to the others.

        When none of those is connected, whoever waits is told so now, and who comes next may try any lane.
        """
        lane.drop()
        lane.back_at = self._served + self._sits_out
        if any(one.serves() for one in self._lanes):
            return
        waiting, self._waiting = self._waiting, deque()
        for member in waiting:
            _tell([member], UnavailableError(str(error)) if isinstance(error, UnavailableError) else _told(error))
        for one in self._lanes:
            one.back_at = 0

    async def _run(self, lane: Lane) -> None:
        """Gather a group and serve it; meanwhile the other lanes may do the same."""
        group: list[tuple[Ask, asyncio.Future[Answer]]] = []
        try:
            try:
                await self._gather()
                group += [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            finally:
                self._gathering = False
            with self._pace.under_way():
                self._start()
                self.sizes[len(group)] += 1
                await self._serve(lane, group)
            if lane.is_new and not lane.serves():
                self._sit_out(lane, _lost_at_once())
        except BaseException as error:  # of what was done for them: nobody of the group must wait for ever
            lane.drop()
            again = {answer for _, answer in self._waiting}
            _tell([member for member in group if member[1] not in again], _told(error))
            if not isinstance(error, Exception):
                raise
        finally:
            self._served += 1
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

    async def _serve(self, lane: Lane, group: list[tuple[Ask, asyncio.Future[Answer]]]) -> None:
        """Answer every member of a group, with a value or an exception.

        When the connection is lost, those who did not share the statement it was lost in wait for a connection again.
        """
        tries = GROUP_TRIES
        parts = [group]  # to be done, the first one last
        while parts:
            part = [member for member in parts.pop() if not member[1].done()]
            if not part:
                continue
            if lane.session is None or lane.session.is_closed():
                self._waiting.extendleft(reversed([*part, *(one for rest in reversed(parts) for one in rest)]))
                return
            lane.is_new = False
            try:
                answers = await self._attempt(lane.session, [ask for ask, _ in part], tries)
            except Exception as error:
                parts += self._halves(lane, part, error)
                tries = 1  # for parts of a group: halving is as good
            else:
                for (_, answer), value in zip(part, answers, strict=True):
                    if not answer.done():
                        answer.set_result(value)

    def _halves(
        self, lane: Lane, part: list[tuple[Ask, asyncio.Future[Answer]]], error: Exception
    ) -> list[list[tuple[Ask, asyncio.Future[Answer]]]]:
        """The halves to do again, the first one last, as long as it is not known whom an exception concerns.

        Those whom it does concern are told.
        """
        failure = failure_of(error)
        if failure in _FOR_ALL:
            if failure is Failure.GONE:
                lane.drop()
            _tell(part, _unavailable(error))
        elif len(part) == 1:
            _tell(part, _unavailable(error) if failure is Failure.TOO_MUCH else error)
        else:
            middle = (len(part) + 1) // 2
            return [part[middle:], part[:middle]]
        return []

    async def _attempt(self, session: DatabaseSession, asks: Sequence[Ask], tries: int) -> Sequence[Answer]:
        """The answers to a group, or its exception. What met another transaction is tried again as it is."""
        if not self._in_transaction:
            return await self._answers(session, asks)
        for _ in range((tries if len(asks) > 1 else TRIES) - 1):
            try:
                return await self._transact(session, asks)
            except Exception as error:
                if failure_of(error) is not Failure.MET or session.is_closed():
                    raise
        return await self._transact(session, asks)

    async def _transact(self, session: DatabaseSession, asks: Sequence[Ask]) -> Sequence[Answer]:
        async with session.transaction():
            return await self._answers(session, asks)

    async def _answers(self, session: DatabaseSession, asks: Sequence[Ask]) -> Sequence[Answer]:
        """What the work gives. Raises ValueError, so that nothing is committed, when that is not one answer each."""
        answers = await self._work(session, asks)
        if len(answers) != len(asks):
            raise ValueError(f"{len(asks)} answers were due, and {len(answers)} came")
        return answers


_FOR_ALL = frozenset({Failure.GONE, Failure.FULL})  # whoever shared it: nobody's fault, and halves would fare no better


def _told(error: BaseException) -> Exception:
    """What to tell an asker: what broke off the work for it, say a cancellation, is no business of its own task."""
    return error if isinstance(error, Exception) else _unavailable(error)


def _lost_at_once() -> UnavailableError:
    return UnavailableError("the database does not serve: a connection was lost as soon as it was made")


def _unavailable(error: BaseException) -> UnavailableError:
    return UnavailableError(f"the database does not serve: {str(error) or type(error).__name__}")


def _tell(group: Iterable[tuple[Ask, asyncio.Future[Answer]]], error: Exception) -> None:
    """The exception to every one who still waits for his answer."""
    for _, answer in group:
        if not answer.done():
            answer.set_exception(error)
