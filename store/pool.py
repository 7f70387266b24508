"""How does the store reach PostgreSQL? Connections, transactions, and what a lost one looks like to callers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakSet

import asyncpg

from domain.errors import UnavailableError
from domain.progress import note_progress
from store.failures import UNAVAILABLE, failure_of
from store.queries import load
from store.sessions import Session, ShortSession, open_session

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
else:  # generic only in its stubs
    Connection = asyncpg.Connection

Result = TypeVar("Result")

COMMAND_TIMEOUT_S = 60.0  # and of a transaction in which nothing is asked: somebody may be waiting for its locks
REQUEST_TIMEOUT_S = 10.0  # the same while clients wait
CLOSE_S = 5.0  # a connection that does not end by then is dropped
TRIES = 4  # of a transaction that met another one

CONFLICTS = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)
_SAID = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
LOST = (OSError, *_SAID)  # may be; see failures
LOST_INSIDE = (ConnectionError, TimeoutError, *_SAID)  # the same where whoever uses it may be reading files


@contextmanager
def lost_means_unavailable(lost: tuple[type[Exception], ...] = LOST) -> Iterator[None]:
    """Inside, a connection that is lost, refused or silent raises UnavailableError, and so does a server with no room.

    Of the exceptions `lost`, those that are the statement's own pass (store.failures).
    """
    try:
        yield
    except lost as error:
        if failure_of(error) not in UNAVAILABLE:
            raise
        raise UnavailableError(f"the database does not serve: {_why(error)}") from error


def _why(error: BaseException) -> str:
    """What happened first: a roll-back that finds the connection closed does not say why it was.

    >>> _why(TimeoutError())
    'a command took longer than it may'
    """
    while isinstance(error.__context__, LOST):
        error = error.__context__
    if isinstance(error, TimeoutError) and not str(error):
        return "a command took longer than it may"
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Fence:
    """The duty that a task does, and the server's process of the session that holds its lock."""

    duty: str
    holder: int


# Inside the round of a duty, every transaction of a pool begins by asking whether the lock is still held, and keeps
# others from taking it until it ends: a process that was frozen for a minute writes nothing as if it held the lock.
FENCE: ContextVar[Fence | None] = ContextVar("FENCE", default=None)


async def _pass_fence(connection: Connection) -> None:
    fence = FENCE.get()
    if fence is not None and not await connection.fetchval(load("enter_duty"), fence.duty, fence.holder):
        raise UnavailableError(f"this process lost the lock of the duty {fence.duty}: another may do it now")


async def connect(dsn: str) -> Session:
    """A connection of its owner's own, outside the pool, for the short commands of requests.

    A command that takes 10 s ends it, and so does a transaction in which nothing is asked for 10 s: then its
    locks are free. Raises UnavailableError.
    """
    with lost_means_unavailable():
        return await open_session(
            dsn, ShortSession, command_timeout_s=REQUEST_TIMEOUT_S, settings=_idle_in_transaction(REQUEST_TIMEOUT_S)
        )


async def connect_patiently(dsn: str) -> Session:
    """A connection whose commands may take as long as they need. Raises UnavailableError."""
    with lost_means_unavailable():
        return await open_session(dsn, Session, command_timeout_s=None)


async def _connect_pooled(dsn: str | None = None, **_unused: Any) -> Session:
    """A connection for the pool. Whatever else the pool would tell asyncpg is what it tells it anyhow."""
    assert dsn is not None
    settings = _idle_in_transaction(COMMAND_TIMEOUT_S)
    return await open_session(dsn, Session, command_timeout_s=COMMAND_TIMEOUT_S, settings=settings)


def _idle_in_transaction(most_s: float) -> dict[str, str]:
    """The server ends a transaction that its client has forgotten, or died in."""
    return {"idle_in_transaction_session_timeout": f"{most_s * 1000:.0f}"}


class Database:
    """A pool of connections, spoken to by the names of queries. Every method may raise UnavailableError."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], dsn: str) -> None:
        self._pool = pool
        self.dsn = dsn
        self.calls = 0  # of the pool: statements, and transactions whatever is in them

    @classmethod
    async def open(cls, dsn: str, *, min_size: int, max_size: int) -> Database:
        """Connect `min_size` times; grow to `max_size` when busy. If that fails, no connection stays open."""
        opened: WeakSet[Session] = WeakSet()

        async def connect_noted(dsn: str | None = None, **unused: Any) -> Session:
            session = await _connect_pooled(dsn, **unused)
            opened.add(session)
            return session

        try:
            with lost_means_unavailable():
                pool = await asyncpg.create_pool(
                    dsn, min_size=min_size, max_size=max_size, connect=connect_noted, connection_class=Session
                )
        except BaseException:
            for session in list(opened):  # asyncpg leaves them to the garbage collector
                session.terminate()
            raise
        return cls(pool, dsn)

    async def close(self) -> None:
        """Let go of every connection; drop those that a silent server does not end."""
        try:
            await asyncio.wait_for(self._pool.close(), CLOSE_S)
        except LOST:
            self._pool.terminate()

    def connections(self) -> tuple[int, int, int]:
        """Of the pool: idle ones, all, and the most there may be."""
        return self._pool.get_idle_size(), self._pool.get_size(), self._pool.get_max_size()

    def _count(self) -> None:
        self.calls += 1
        note_progress()

    async def fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """Every row of sql/<query>.sql."""
        self._count()
        with lost_means_unavailable():
            return await self._pool.fetch(load(query), *arguments)

    async def fetch_one(self, query: str, *arguments: object) -> asyncpg.Record | None:
        """The first row of sql/<query>.sql; None when there is none."""
        self._count()
        with lost_means_unavailable():
            return await self._pool.fetchrow(load(query), *arguments)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: committed when left normally, rolled back when left by an exception.

        An OSError of the caller's own, who may be reading files inside, stays what it is; a connection that is lost
        and a command that takes too long are UnavailableError.
        """
        self._count()
        with lost_means_unavailable():
            connection = await self._pool.acquire()
        try:
            with lost_means_unavailable(LOST_INSIDE):
                async with connection.transaction():
                    await _pass_fence(connection)
                    yield connection
        finally:
            await self._pool.release(connection)

    async def in_transaction(self, work: Callable[[Connection], Awaitable[Result]]) -> Result:
        """The result of `work`, done in one transaction; done again when it met another transaction.

        `work` must be safe to repeat after a roll-back.
        """
        with lost_means_unavailable():
            for _ in range(TRIES - 1):
                try:
                    async with self.transaction() as connection:
                        return await work(connection)
                except CONFLICTS:
                    continue
            async with self.transaction() as connection:
                return await work(connection)
