"""Groups concurrent calls: they share one round trip and one transaction; later calls form the next group.

If enough calls wait, a second group starts on another connection while one is running.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from domain.errors import UnavailableError
from store.pool import CLOSE_S, LOST, TRIES, DatabaseSession, Failure, connect, failure_of


@dataclass(slots=True, eq=False)  # compared by identity
class Lane:
    """A connection that runs one group at a time; None until it is needed, and after it was lost."""

    session: DatabaseSession | None = None
    back_at: int = 0  # number of groups served by all lanes before it retries connecting
    is_new: bool = False  # no statement has run on its connection yet

    def serves(self) -> bool:
        """Return whether it has a connection, as far as known."""
        return self.session is not None and not self.session.is_closed()

    def drop(self) -> None:
        """Drop a connection that no longer works."""
        if self.session is not None:
            self.session.terminate()
            self.session = None


class Pace:
    """Decides when calls start a group while another runs: only if the last group to start takes `beside_s` already.

    Larger groups are cheaper per call, and waiting for the next group takes no longer than a second group that competes
    for the processor. A group that itself waits, for a lock or a slow disk, must not delay the others.

    Reads and writes of requests share a pace: requests that were read together are then written together, instead of
    dividing into more and smaller groups of each kind. Writes start first, because their requests began earlier.
    """

    def __init__(self, beside_s: float) -> None:
        self._beside_s = beside_s
        self._begun_at: list[float] = []  # start times of the running groups, on the loop's clock
        self._starts: list[Callable[[], None]] = []
        self._timer: asyncio.TimerHandle | None = None

    def join(self, start: Callable[[], None]) -> None:
        """Add a function that starts a group if calls wait. The first to join comes first."""
        self._starts.append(start)

    def begin(self) -> float:
        """Count a group as running; returns when it started, for `end`."""
        self._begun_at.append(begun_at := asyncio.get_running_loop().time())
        return begun_at

    def end(self, begun_at: float) -> None:
        """Start what waits, after the callers of the group that ended have made their next calls."""
        self._begun_at.remove(begun_at)
        asyncio.get_running_loop().call_soon(self._start_all)

    def has_time(self) -> bool:
        """Return whether the next group should wait: until a group ends, or the last one to start takes long."""
        if not self._begun_at:
            return False
        loop = asyncio.get_running_loop()
        until = self._begun_at[-1] + self._beside_s
        if loop.time() >= until:
            return False
        if self._timer is None:
            self._timer = loop.call_at(until, self._look)
        return True

    def _look(self) -> None:
        self._timer = None  # loops may call slightly too early: then the timer is set again
        self._start_all()

    def _start_all(self) -> None:
        for start in self._starts:
            start()


Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

MOST = 64  # calls per group
LANES = 2  # concurrent groups,
BESIDE_S = 0.05  # when the last one has taken this long, or a full group waits: later calls share the next group
TURNS = 2  # turns of the event loop between a request's arrival and its call
MOST_TURNS = 8  # pairs of turns: a few milliseconds at full load
GROUP_TRIES = 2  # of a whole group after a conflict with another transaction; then it is halved
SITS_OUT = 100  # groups served by other lanes before a lane that could not connect tries again
MOST_GROUPS_WAITING = 20  # at a few ms each; later callers would disconnect before they are served


class Grouped(Generic[Ask, Answer]):
    """Runs `work` on groups of calls, on connections of its own; each caller gets its own result.

    An idle group starts as soon as no more calls arrive; later calls join the next one (see Pace). A group that fails
    is rolled back and retried in halves, recursively, so that only the failing call gets the exception; a group that
    conflicted with another transaction is first retried as a whole, if `retried` (default: `in_transaction`). Without
    `in_transaction` the work commits by itself: in one statement, or in a transaction that it begins.

    A lost connection raises UnavailableError for the calls in the statement in which it was lost. A lane that cannot
    connect, or loses its connection before its first statement, leaves the work to the other lanes; if none is
    connected, all waiting calls get UnavailableError at once.
    The work of a cancelled call may still be done.
    """

    def __init__(
        self,
        dsn: str,
        work: Callable[[DatabaseSession, Sequence[Ask]], Awaitable[Sequence[Answer]]],
        *,
        in_transaction: bool,
        retried: bool | None = None,
        most: int = MOST,
        lanes: int = LANES,
        sits_out: int = SITS_OUT,
        pace: Pace | None = None,
        connect: Callable[[str], Awaitable[DatabaseSession]] = connect,
    ) -> None:
        self.dsn = dsn
        self._work = work
        self._in_transaction = in_transaction
        self._retried = in_transaction if retried is None else retried
        self._most = most
        self._sits_out = sits_out
        self._pace = pace or Pace(BESIDE_S)
        self._pace.join(self._start)
        self._connect = connect
        self._waiting: deque[tuple[Ask, asyncio.Future[Answer]]] = deque()
        self._lanes = [Lane() for _ in range(lanes)]
        self._idle = list(self._lanes)
        self._running: set[asyncio.Task[None]] = set()
        self._gathering = False
        self._served = 0  # groups
        self.sizes: Counter[int] = Counter()  # groups by size
        self._closed = False

    async def ask(self, ask: Ask) -> Answer:
        """Return the result of one call. Raises UnavailableError, or any exception of the work.

        If too many calls wait already, it fails at once, because a queue that only grows helps no client.
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
        """Number of calls that wait for the next group."""
        return len(self._waiting)

    def connected(self) -> int:
        """Number of connected lanes."""
        return sum(lane.serves() for lane in self._lanes)

    async def close(self) -> None:
        """Finish the waiting calls, then close the connections."""
        self._closed = True
        while self._waiting or self._running:
            self._start()
            await (asyncio.wait(self._running) if self._running else _turn())
        for lane in self._lanes:
            if lane.session is not None:
                with contextlib.suppress(*LOST):
                    await lane.session.close(timeout=CLOSE_S)

    def _start(self) -> None:
        """Start a lane if calls wait, unless a lane is gathering them."""
        if not self._waiting or self._gathering:
            return
        if len(self._waiting) < self._most and not self._closed and self._pace.has_time():
            return
        if (lane := self._choose()) is None:
            return
        self._idle.remove(lane)
        self._gathering = lane.serves()
        task = asyncio.create_task(self._run(lane, self._pace.begin()) if self._gathering else self._join(lane))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def _choose(self) -> Lane | None:
        """Choose the most recently used idle lane that is connected, else one that may try to connect."""
        apart: Lane | None = None
        for lane in reversed(self._idle):
            if lane.serves():
                return lane
            if apart is None and self._served >= lane.back_at:
                apart = lane
        return apart

    async def _join(self, lane: Lane) -> None:
        """Connect a lane. Until then it takes no calls, so that the other lanes can serve them."""
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
        """Leave the waiting calls to the other lanes.

        If no other lane is connected, the waiting calls fail now, and later ones may try any lane.
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

    async def _run(self, lane: Lane, begun_at: float) -> None:
        """Gather a group and serve it; the other lanes may do the same at the same time."""
        group: list[tuple[Ask, asyncio.Future[Answer]]] = []
        try:
            try:
                await self._gather()
                group += [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
            finally:
                self._gathering = False
            self._start()
            self.sizes[len(group)] += 1
            await self._serve(lane, group)
            if lane.is_new and not lane.serves():
                self._sit_out(lane, _lost_at_once())
        except BaseException as error:  # an unexpected error: no call of the group may wait forever
            lane.drop()
            again = {answer for _, answer in self._waiting}
            _tell([member for member in group if member[1] not in again], _told(error))
            if not isinstance(error, Exception):
                raise
        finally:
            self._served += 1
            self._idle.append(lane)
            self._pace.end(begun_at)

    async def _gather(self) -> None:
        """Let the event loop turn while each turn adds calls: calls that have almost arrived share the round trip.

        An idle process waits for nothing: its turns end at once.
        """
        before = 0
        for _ in range(MOST_TURNS):
            if before == len(self._waiting) or len(self._waiting) >= self._most:
                return
            before = len(self._waiting)
            for _ in range(TURNS):
                await _turn()

    async def _serve(self, lane: Lane, group: list[tuple[Ask, asyncio.Future[Answer]]]) -> None:
        """Give every call of a group a result or an exception.

        If the connection is lost, calls outside the statement in which it was lost wait for another connection.
        """
        tries = GROUP_TRIES
        parts = [group]  # parts to run, the first one last
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
                tries = 1  # for parts of a group: halving works as well
            else:
                for (_, answer), value in zip(part, answers, strict=True):
                    if not answer.done():
                        answer.set_result(value)

    def _halves(
        self, lane: Lane, part: list[tuple[Ask, asyncio.Future[Answer]]], error: Exception
    ) -> list[list[tuple[Ask, asyncio.Future[Answer]]]]:
        """Return the halves to retry, the first one last, while the failing call is not isolated.

        An isolated call gets the exception.
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
        """Return the results of a group, or its exception. After a conflict the group is retried unchanged."""
        if not self._retried:
            return await self._answers(session, asks)
        for _ in range((tries if len(asks) > 1 else TRIES) - 1):
            try:
                return await self._transact(session, asks)
            except Exception as error:
                if failure_of(error) is not Failure.MET or session.is_closed():
                    raise
        return await self._transact(session, asks)

    async def _transact(self, session: DatabaseSession, asks: Sequence[Ask]) -> Sequence[Answer]:
        if not self._in_transaction:
            return await self._answers(session, asks)
        async with session.transaction():
            return await self._answers(session, asks)

    async def _answers(self, session: DatabaseSession, asks: Sequence[Ask]) -> Sequence[Answer]:
        """Return the results of the work. Raises ValueError, before the commit, unless there is one per call."""
        answers = await self._work(session, asks)
        if len(answers) != len(asks):
            raise ValueError(f"expected {len(asks)} results, got {len(answers)}")
        return answers


async def _turn() -> None:
    """Let the event loop turn once."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    await turned


_FOR_ALL = frozenset({Failure.GONE, Failure.FULL})  # no call is at fault, and halves would fail as well


def _told(error: BaseException) -> Exception:
    """Return the exception for a caller: a cancellation of the shared work must not cancel the caller's task."""
    return error if isinstance(error, Exception) else _unavailable(error)


def _lost_at_once() -> UnavailableError:
    return UnavailableError("the database is unavailable: a connection was lost as soon as it was made")


def _unavailable(error: BaseException) -> UnavailableError:
    return UnavailableError(f"the database is unavailable: {str(error) or type(error).__name__}")


def _tell(group: Iterable[tuple[Ask, asyncio.Future[Answer]]], error: Exception) -> None:
    """Raise the exception in every call that still waits."""
    for _, answer in group:
        if not answer.done():
            answer.set_exception(error)
