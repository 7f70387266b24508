"""A database in memory whose sessions wait before every step until the test decides its outcome."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import asyncpg

from domain.errors import UnavailableError


class Fate(StrEnum):
    """The outcome of a step."""

    DONE = "done"
    REFUSED = "the server refuses it: conflict with another transaction"
    FULL = "the server refuses it: the disk is full"
    TOO_MUCH = "the server refuses it: out of memory"
    LOST = "the connection is lost before it is done"
    UNHEARD = "it is done, and then the connection is lost"
    SILENT = "the server never answers, and it is not done"
    BROKEN_OFF = "the driver cancels it, and it is not done"


class Place(StrEnum):
    """Where a session waits for its next step."""

    CONNECT = "connect"
    BEGIN = "begin"
    READ = "read"
    WRITE = "write"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    CLOSE = "close"


REFUSABLE = (Place.READ, Place.WRITE, Place.COMMIT)
CONFLICTS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.UniqueViolationError)


NO_ROOM = {Fate.FULL: asyncpg.DiskFullError, Fate.TOO_MUCH: asyncpg.OutOfMemoryError}


class BadAskError(Exception):
    """This ask can never succeed."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Adds one to a row. `conflicts`: how many conflicts with other transactions it has before it succeeds."""

    number: int
    row: int = 0
    bad: bool = False
    conflicts: int = 0


@dataclass(frozen=True, slots=True)
class Added:
    """The answer to an ask: its number, and the row's new value."""

    number: int
    total: int


@dataclass(slots=True)
class Attempt:
    """Asks attempted together, and the outcome."""

    asks: tuple[Ask, ...]
    conflict: bool = False
    lost: bool = False
    full: bool = False
    too_much: bool = False
    over: bool = False


@dataclass(slots=True)
class Step:
    """A waiting session's next step."""

    place: Place
    let: asyncio.Future[Fate]
    session: FakeSession | None = None


@dataclass(slots=True)
class FakeDatabase:
    """Rows that count, changed by transactions that wait for each other's rows. `gated`: where sessions wait."""

    gated: frozenset[Place] = frozenset(Place)
    rows: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # numbers of the asks, in order
    sessions: list[FakeSession] = field(default_factory=list)
    pending: list[Step] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    owners: dict[int, FakeSession] = field(default_factory=dict)
    lock_waits: list[asyncio.Future[None]] = field(default_factory=list)
    conflicts_met: Counter[int] = field(default_factory=Counter)
    losses_outside: int = 0  # at the beginning, when the asks are unknown
    broken_off: int = 0  # steps: the rest of that group fails too
    breaches: list[str] = field(default_factory=list)  # of rules for users of a connection

    async def connect(self, dsn: str) -> FakeSession:
        fate = await self.reach(Place.CONNECT, None)
        if fate is Fate.BROKEN_OFF:
            raise asyncio.CancelledError
        if fate is not Fate.DONE:
            raise UnavailableError("the database is unavailable: refused")
        session = FakeSession(self, len(self.sessions))
        self.sessions.append(session)
        return session

    async def reach(self, place: Place, session: FakeSession | None) -> Fate:
        """Wait until the test lets this step happen; return its outcome."""
        if place not in self.gated:
            return Fate.DONE
        step = Step(place, asyncio.get_running_loop().create_future(), session)
        self.pending.append(step)
        return await step.let

    def let(self, which: int, fate: Fate) -> None:
        """Let one of the pending steps happen."""
        self.pending.pop(which).let.set_result(fate)

    def added(self) -> Counter[int]:
        """Return how often each ask's addition is committed."""
        return Counter(number for row in self.rows.values() for number in row)

    def wake(self) -> None:
        for waiter in self.lock_waits:
            if not waiter.done():
                waiter.set_result(None)
        self.lock_waits.clear()


class FakeSession:
    """The part of a connection that groups use, with asyncpg's rules enforced."""

    def __init__(self, database: FakeDatabase, number: int) -> None:
        self._database = database
        self.number = number
        self.closed = False
        self.cut = False  # by the server, at any moment
        self.used = False
        self._deaf = False  # timed out or cancelled, and not yet released
        self.attempt: Attempt | None = None
        self.waits_for: FakeSession | None = None
        self._in_transaction = False
        self._busy = False
        self._written: list[Ask] = []

    @property
    def busy(self) -> bool:
        return self._busy or self._in_transaction

    def is_closed(self) -> bool:
        return self.closed

    def terminate(self) -> None:
        self.closed = True
        self._end()

    async def close(self, *, timeout: float) -> None:
        """Close it; if the server does not answer, raise after `timeout` seconds."""
        if self.closed:
            return
        if self.busy:
            self._database.breaches.append("a session was closed during a command")
        fate = await self._database.reach(Place.CLOSE, self)
        self.terminate()
        if fate is Fate.SILENT:
            raise TimeoutError
        if fate is not Fate.DONE:
            raise ConnectionResetError

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        if self._in_transaction:
            self._database.breaches.append("a transaction in a transaction")
        self.attempt = None
        await self._step(Place.BEGIN)
        self._in_transaction = True
        try:
            yield
        except asyncio.CancelledError:
            self._end()
            raise
        except BaseException:
            await self._step(Place.ROLLBACK)
            self._end()
            raise
        try:
            await self._step(Place.COMMIT)
        finally:
            self._end()

    async def add(self, asks: Sequence[Ask]) -> list[Added]:
        """Do the work of a group: read the rows, lock and change them, all of it or an exception."""
        with self._attempting(asks) as attempt:
            seen = {ask.row: len(self._database.rows[ask.row]) for ask in asks}
            await self._step(Place.READ)
            for ask in asks:
                self._check(ask, attempt)
            if self._in_transaction:
                await self._step(Place.WRITE)
                for ask in asks:
                    await self._lock(ask.row)
                    if len(self._database.rows[ask.row]) != seen[ask.row]:
                        self._conflict(ask.number)
                self._written = list(asks)
            return [Added(ask.number, seen[ask.row] + _place(ask, asks)) for ask in asks]

    async def add_at_once(self, asks: Sequence[Ask]) -> list[Added]:
        """Do the work of a group in one statement that commits by itself; the server rolls back a failed one."""
        self._in_transaction = True
        try:
            answers = await self.add(asks)
            await self._step(Place.COMMIT)
        finally:
            self._end()
        return answers

    @contextmanager
    def _attempting(self, asks: Sequence[Ask]) -> Iterator[Attempt]:
        attempt = self.attempt = Attempt(tuple(asks))
        self._database.attempts.append(attempt)
        try:
            yield attempt
        finally:
            attempt.over = not self._in_transaction

    def _check(self, ask: Ask, attempt: Attempt) -> None:
        if ask.bad:
            raise BadAskError(ask.number)
        if self._database.conflicts_met[ask.number] < ask.conflicts:
            self._database.conflicts_met[ask.number] += 1
            self._conflict(ask.number)

    def _conflict(self, kind: int) -> None:
        if self.attempt is not None:
            self.attempt.conflict = True
        raise CONFLICTS[kind % len(CONFLICTS)]("met another transaction")

    async def _step(self, place: Place) -> None:
        """Run one command, with any outcome."""
        if self.closed:
            raise asyncpg.InterfaceError("the connection is closed")
        self.used = True
        if self._deaf:
            if place is not Place.ROLLBACK:
                self._database.breaches.append("a session was used again after a time-out or cancellation")
            raise TimeoutError
        if self._busy:
            self._database.breaches.append("two commands at once on one connection")
        self._busy = True
        try:
            fate = await self._database.reach(place, self)
        finally:
            self._busy = False
        if self.is_closed():  # meanwhile
            fate = Fate.LOST
        if place is Place.COMMIT and fate in (Fate.DONE, Fate.UNHEARD):
            for ask in self._written:
                self._database.rows[ask.row].append(ask.number)
        if place in REFUSABLE:
            self._refuse(fate)
        if fate in (Fate.LOST, Fate.UNHEARD, Fate.SILENT, Fate.BROKEN_OFF):
            self._lose(fate)

    def _refuse(self, fate: Fate) -> None:
        if fate is Fate.REFUSED:
            self._conflict(len(self._database.attempts))
        if fate in NO_ROOM:
            assert self.attempt is not None  # only its steps are refused
            self.attempt.full |= fate is Fate.FULL
            self.attempt.too_much |= fate is Fate.TOO_MUCH
            raise NO_ROOM[fate](fate)

    def _lose(self, fate: Fate) -> None:
        if self.attempt is None:
            self._database.losses_outside += 1
        else:
            self.attempt.lost = True
        if fate is Fate.SILENT:
            self._deaf = True
            raise TimeoutError
        if fate is Fate.BROKEN_OFF:
            self._deaf = True
            self._database.broken_off += 1
            raise asyncio.CancelledError
        self.terminate()
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    async def _lock(self, row: int) -> None:
        """Wait for a row that another transaction has changed; detect deadlocks."""
        owners = self._database.owners
        while (owner := owners.get(row)) not in (None, self):
            if _waits_on(owner, self):
                self._conflict(1)
            self.waits_for = owner
            freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._database.lock_waits.append(freed)
            await freed
            self.waits_for = None
            if self.is_closed():  # by the server, while it waited
                self._lose(Fate.LOST)
        owners[row] = self

    def _end(self) -> None:
        """End the transaction and free its rows."""
        self._in_transaction = False
        self._written = []
        if self.attempt is not None:
            self.attempt.over = True
        for row in [row for row, owner in self._database.owners.items() if owner is self]:
            del self._database.owners[row]
        self._database.wake()


def _place(ask: Ask, asks: Sequence[Ask]) -> int:
    """Return an ask's position among the asks of its row."""
    return [other.number for other in asks if other.row == ask.row].index(ask.number) + 1


def _waits_on(session: FakeSession | None, other: FakeSession) -> bool:
    while session is not None and session is not other:
        session = session.waits_for
    return session is other
