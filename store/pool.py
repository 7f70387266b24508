"""Connections to PostgreSQL: sessions, the pool, transactions, and what a failure says to callers.

A failure is about the connection (everyone who shared it must know), about the moment (a conflict passes when the whole
is done again), or about what one caller brought (not to be held against others in the same transaction). Both kernels
probe every TCP connection: a machine that vanished is noticed after 25 s, and after 30 s at the latest when something
was under way. Without them its sessions would keep row locks and advisory locks for hours.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit
from weakref import WeakSet

import asyncpg
from asyncpg.connect_utils import SessionAttribute

from domain.errors import NotFoundError, UnavailableError
from domain.progress import note_progress
from store.queries import load


class Failure(StrEnum):
    """What to do about an exception."""

    GONE = "the connection no longer serves: let go of it"
    FULL = "the server is there, but its disk is full or fails, or a limit is reached: nobody is served now"
    MET = "another transaction was in the way: the same may pass when it is done again"
    TOO_MUCH = "the server could not do so much at once: less may pass"
    ITS_OWN = "this can never be done"


# By SQLSTATE, or by its first two characters (the class) or three. PostgreSQL itself ends the session for 25P0x, 57P0x.
_BY_STATE = {
    "08": Failure.GONE,  # connection exceptions
    "25006": Failure.GONE,  # read only: the server has become a standby
    "25P03": Failure.GONE,  # idle in a transaction for too long
    "25P04": Failure.GONE,  # a transaction that took too long
    "28": Failure.GONE,  # not let in
    "3D": Failure.GONE,  # no such database
    "53300": Failure.GONE,  # too many connections: met while connecting
    "57P": Failure.GONE,  # shut down, crashed, starting up, the database dropped, idle for too long
    "53": Failure.FULL,  # the disk, a limit of the configuration
    "58": Failure.FULL,  # the disk cannot be read or written
    "40": Failure.MET,  # a deadlock, a serialisation failure
    "55P03": Failure.MET,  # a lock was not to be had in time
    "23505": Failure.MET,  # a unique key that another transaction has just used: who looks again sees its row
    "53200": Failure.TOO_MUCH,  # out of memory
    "57014": Failure.TOO_MUCH,  # cancelled: statement_timeout, or by an administrator
}


def failure_of(error: BaseException) -> Failure:
    """What an exception of asyncpg, of the network or of the work itself says.

    A time-out of ours is a connection that no longer serves: the answer may still come, and nobody would know to what.

    >>> failure_of(asyncpg.DeadlockDetectedError()).name, failure_of(asyncpg.OutOfMemoryError()).name
    ('MET', 'TOO_MUCH')
    >>> failure_of(TimeoutError()).name, failure_of(ZeroDivisionError()).name
    ('GONE', 'ITS_OWN')
    """
    if isinstance(error, asyncpg.InvalidCachedStatementError):  # of the state of what is not supported at all
        return Failure.MET  # a table was altered: asyncpg has forgotten the statement, and will prepare it anew
    if isinstance(error, asyncpg.PostgresError):
        state = getattr(error, "sqlstate", None) or ""
        for length in (5, 3, 2):
            if (failure := _BY_STATE.get(state[:length])) is not None:
                return failure
        return Failure.ITS_OWN
    if isinstance(error, asyncpg.DataError):  # an argument that does not fit its type was never sent
        return Failure.ITS_OWN
    if isinstance(error, (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return Failure.GONE
    return Failure.ITS_OWN


UNAVAILABLE = frozenset({Failure.GONE, Failure.FULL, Failure.TOO_MUCH})  # not the asker's fault: it may try later


CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE = {"idle": 10, "interval": 5, "count": 3}  # s, s, probes
USER_TIMEOUT_MS = 30_000
# The store finds its rows by key. Without the enable_ settings, a plan made while a table was small would go on
# reading the whole of it when a million jobs have come, until somebody analyses it.
SESSION = {
    "application_name": "muster",
    "jit": "off",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",  # what follows a lock sees what was committed before it
    "timezone": "UTC",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # A statement with an array of one would be planned at every call: its own plan is estimated at one row, the kept
    # one at ten, so that the kept one never looks cheaper. Planning costs more than running it.
    "plan_cache_mode": "force_generic_plan",
    "tcp_keepalives_idle": str(KEEP_ALIVE["idle"]),
    "tcp_keepalives_interval": str(KEEP_ALIVE["interval"]),
    "tcp_keepalives_count": str(KEEP_ALIVE["count"]),
    "tcp_user_timeout": str(USER_TIMEOUT_MS),
}

REFUSED = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)  # another may not
Address = tuple[str, int | None]  # a host or the folder of a socket, and a port unless it is the usual one


class DatabaseSession(asyncpg.Connection):
    """A connection that both kernels probe."""

    _loop: asyncio.AbstractEventLoop
    _transport: asyncio.Transport

    def keep_alive(self) -> None:
        """Let our kernel notice when the server is gone."""
        probe(self._transport.get_extra_info("socket"))


class ShortSession(DatabaseSession):
    """A session of short commands: one that takes too long ends the session.

    The usual way is to ask the server to cancel the command and to wait for that; where the server does not answer,
    that takes as long again, and whatever waits for the session waits with it.
    """

    def _cancel_current_command(self, *_waiters: asyncio.Future[None] | None) -> None:
        self._loop.call_soon(self.terminate)  # completes what the protocol waits for


Made = TypeVar("Made", bound=DatabaseSession)


async def open_session(
    dsn: str, kind: type[Made], *, command_timeout_s: float | None, settings: dict[str, str] | None = None
) -> Made:
    """A connection to the server `dsn` names; of several servers, to the one that takes writes.

    All of them are tried at once, so that one that is silent does not keep anybody from the others.
    Raises what asyncpg raises; of several servers, what the first one said.
    """
    addresses = addresses_of(dsn)
    if len(addresses) < 2:
        return await _open(dsn, kind, None, command_timeout_s, settings)
    tries = [asyncio.create_task(_open(dsn, kind, one, command_timeout_s, settings)) for one in addresses]
    chosen: Made | None = None
    try:
        for finished in asyncio.as_completed(tries):
            try:
                chosen = await finished
            except REFUSED:
                continue
            return chosen
        return await tries[0]  # raises
    finally:
        await _let_go(tries, chosen)


async def _let_go(tries: Sequence[asyncio.Task[Made]], chosen: Made | None) -> None:
    """End the tries that are still under way, and sessions that came second."""
    for attempt in tries:
        attempt.cancel()
    for opened in await asyncio.gather(*tries, return_exceptions=True):
        if isinstance(opened, DatabaseSession) and opened is not chosen:
            opened.terminate()


async def _open(
    dsn: str,
    kind: type[Made],
    address: Address | None,
    command_timeout_s: float | None,
    settings: dict[str, str] | None,
) -> Made:
    host, port = address if address is not None else (None, None)
    session: Made = await asyncpg.connect(
        dsn,
        host=host,
        port=port,
        timeout=CONNECT_TIMEOUT_S,
        command_timeout=command_timeout_s,
        connection_class=kind,
        target_session_attrs=None if address is None else SessionAttribute.read_write,
        statement_cache_size=500,
        max_cached_statement_lifetime=0,
        server_settings=SESSION | (settings or {}),
    )
    session.keep_alive()
    return session


def addresses_of(dsn: str) -> list[Address]:
    """The servers that a DSN names; none when it leaves that to the environment.

    >>> addresses_of("postgresql://me@a:5433,b/muster")
    [('a', 5433), ('b', None)]
    >>> addresses_of("postgresql://me@/muster?host=a,b&port=5433,5434&target_session_attrs=read-write")
    [('a', 5433), ('b', 5434)]
    >>> addresses_of("postgresql://me@/muster?host=/run/one,/run/two&port=5433")
    [('/run/one', 5433), ('/run/two', 5433)]
    """
    parts = urlsplit(dsn)
    named = parts.netloc.rpartition("@")[2]
    if named:
        return [_address(unquote(one)) for one in named.split(",")]
    query = parse_qs(parts.query)
    hosts = [host for host in query.get("host", [""])[-1].split(",") if host]
    ports = [int(port) for port in query.get("port", [""])[-1].split(",") if port]
    if len(ports) == 1:
        ports *= len(hosts)
    return [(host, ports[at] if ports else None) for at, host in enumerate(hosts)]


def _address(text: str) -> Address:
    """Of HOST, HOST:PORT or [HOST]:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        return text.strip("[]"), None
    return host.strip("[]"), int(port)


def probe(sock: socket.socket | None) -> None:
    """Let the kernel probe the other side of a TCP connection; a Unix socket needs no probes.

    A connection that was lost since it was made has no socket, or a closed one: ConnectionResetError.
    """
    if sock is None or sock.fileno() < 0:
        raise ConnectionResetError("the connection was lost as soon as it was made")
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEP_ALIVE["idle"]),
        ("TCP_KEEPINTVL", KEEP_ALIVE["interval"]),
        ("TCP_KEEPCNT", KEEP_ALIVE["count"]),
        ("TCP_USER_TIMEOUT", USER_TIMEOUT_MS),
    ):
        if hasattr(socket, name):  # not every system has each of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


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


async def connect(dsn: str) -> DatabaseSession:
    """A connection of its owner's own, outside the pool, for the short commands of requests.

    A command that takes 10 s ends it, and so does a transaction in which nothing is asked for 10 s: then its
    locks are free. Raises UnavailableError.
    """
    with lost_means_unavailable():
        return await open_session(
            dsn, ShortSession, command_timeout_s=REQUEST_TIMEOUT_S, settings=_idle_in_transaction(REQUEST_TIMEOUT_S)
        )


async def connect_patiently(dsn: str) -> DatabaseSession:
    """A connection whose commands may take as long as they need. Raises UnavailableError."""
    with lost_means_unavailable():
        return await open_session(dsn, DatabaseSession, command_timeout_s=None)


async def _connect_pooled(dsn: str | None = None, **_unused: Any) -> DatabaseSession:
    """A connection for the pool. Whatever else the pool would tell asyncpg is what it tells it anyhow."""
    assert dsn is not None
    settings = _idle_in_transaction(COMMAND_TIMEOUT_S)
    return await open_session(dsn, DatabaseSession, command_timeout_s=COMMAND_TIMEOUT_S, settings=settings)


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
        opened: WeakSet[DatabaseSession] = WeakSet()

        async def connect_noted(dsn: str | None = None, **unused: Any) -> DatabaseSession:
            session = await _connect_pooled(dsn, **unused)
            opened.add(session)
            return session

        try:
            with lost_means_unavailable():
                pool = await asyncpg.create_pool(
                    dsn, min_size=min_size, max_size=max_size, connect=connect_noted, connection_class=DatabaseSession
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

    async def fetch_first(self, query: str, *arguments: object) -> asyncpg.Record:
        """The first row of a query that always returns one."""
        row = await self.fetch_one(query, *arguments)
        assert row is not None
        return row

    async def fetch_known(self, query: str, *arguments: object, kind: str, key: object = None) -> asyncpg.Record:
        """The first row. Raises NotFoundError, of a `kind` named `key` or else the first argument, without any."""
        row = await self.fetch_one(query, *arguments)
        if row is None:
            raise NotFoundError(kind, arguments[0] if key is None else key)
        return row

    async def execute(self, query: str, *arguments: object) -> None:
        """Run one statement in a transaction of its own, again when it met another transaction."""

        async def write(connection: Connection) -> None:
            await connection.execute(load(query), *arguments)

        await self.in_transaction(write)

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


class OnDatabase:
    """A part of the store that needs the database and nothing else."""

    def __init__(self, database: Database) -> None:
        self._database = database
