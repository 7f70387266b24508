"""Connects to PostgreSQL: sessions, the pool, transactions, and the classification of failures.

A failure concerns the connection (all calls that share it must fail), the moment (a conflict; retry everything), or the
input of one call (other calls in the transaction must not fail). Both kernels probe every TCP connection, so a vanished
machine is detected after 25 s, or after at most 30 s with data in flight. Without keep-alive its sessions would hold
row locks and advisory locks for hours.
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
    """How to handle an exception."""

    GONE = "connection unusable: drop it"
    FULL = "the server runs, but its disk is full or fails, or a limit is reached: all calls fail now"
    MET = "conflict with another transaction: a retry may succeed"
    TOO_MUCH = "too much work at once for the server: less may succeed"
    ITS_OWN = "can never succeed"


# By SQLSTATE, or by its first two characters (the class) or three. PostgreSQL itself ends the session for 25P0x, 57P0x.
_BY_STATE = {
    "08": Failure.GONE,  # connection exceptions
    "25006": Failure.GONE,  # read-only: the server has become a standby
    "25P03": Failure.GONE,  # idle in a transaction for too long
    "25P04": Failure.GONE,  # transaction too long
    "28": Failure.GONE,  # authentication failed
    "3D": Failure.GONE,  # no such database
    "53300": Failure.GONE,  # too many connections; occurs while connecting
    "57P": Failure.GONE,  # shut down, crashed, starting up, database dropped, idle for too long
    "53": Failure.FULL,  # disk full, or a configuration limit
    "58": Failure.FULL,  # disk I/O error
    "40": Failure.MET,  # deadlock, serialisation failure
    "55P03": Failure.MET,  # lock not available in time
    "23505": Failure.MET,  # unique key just used by another transaction; a retry sees its row
    "53200": Failure.TOO_MUCH,  # out of memory
    "57014": Failure.TOO_MUCH,  # cancelled: statement_timeout, or by an administrator
}


def failure_of(error: BaseException) -> Failure:
    """Classify an exception from asyncpg, the network or the work itself.

    A client-side timeout makes the connection unusable, because a late reply could not be matched to its command.

    >>> failure_of(asyncpg.DeadlockDetectedError()).name, failure_of(asyncpg.OutOfMemoryError()).name
    ('MET', 'TOO_MUCH')
    >>> failure_of(TimeoutError()).name, failure_of(ZeroDivisionError()).name
    ('GONE', 'ITS_OWN')
    """
    if isinstance(error, asyncpg.InvalidCachedStatementError):  # invalid state, or unsupported feature
        return Failure.MET  # a table was altered; asyncpg has dropped the statement and will prepare it again
    if isinstance(error, asyncpg.PostgresError):
        state = getattr(error, "sqlstate", None) or ""
        for length in (5, 3, 2):
            if (failure := _BY_STATE.get(state[:length])) is not None:
                return failure
        return Failure.ITS_OWN
    if isinstance(error, asyncpg.DataError):  # an argument has the wrong type and was not sent
        return Failure.ITS_OWN
    if isinstance(error, (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError)):
        return Failure.GONE
    return Failure.ITS_OWN


UNAVAILABLE = frozenset({Failure.GONE, Failure.FULL, Failure.TOO_MUCH})  # not the caller's fault: retry later


CONNECT_TIMEOUT_S = 10.0
KEEP_ALIVE = {"idle": 10, "interval": 5, "count": 3}  # s, s, probes
USER_TIMEOUT_MS = 30_000
# The store finds its rows by key. Without the enable_ settings, a plan cached while a table was small would keep
# scanning the whole table when it has a million jobs, until the table is analysed.
SESSION = {
    "application_name": "muster",
    "jit": "off",
    "synchronous_commit": "on",
    "default_transaction_isolation": "read committed",  # statements after a lock see everything committed before it
    "timezone": "UTC",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    # A statement with a one-element array would be planned at every call: a custom plan is estimated at one row and the
    # generic plan at ten rows, so the generic plan never looks cheaper. Planning costs more than execution.
    "plan_cache_mode": "force_generic_plan",
    "tcp_keepalives_idle": str(KEEP_ALIVE["idle"]),
    "tcp_keepalives_interval": str(KEEP_ALIVE["interval"]),
    "tcp_keepalives_count": str(KEEP_ALIVE["count"]),
    "tcp_user_timeout": str(USER_TIMEOUT_MS),
}

REFUSED = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)  # another may not
Address = tuple[str, int | None]  # a host or socket directory, and a port unless it is the default


class DatabaseSession(asyncpg.Connection):
    """A connection with TCP keep-alive on both sides."""

    _loop: asyncio.AbstractEventLoop
    _transport: asyncio.Transport

    def keep_alive(self) -> None:
        """Enable keep-alive in our kernel, to detect when the server is gone."""
        probe(self._transport.get_extra_info("socket"))


class ShortSession(DatabaseSession):
    """A session for short commands, which closes if a command takes too long.

    By default asyncpg would request cancellation and wait for it. If the server does not respond, that doubles the
    delay, and all users of the session wait too.
    """

    def _cancel_current_command(self, *_waiters: asyncio.Future[None] | None) -> None:
        self._loop.call_soon(self.terminate)  # completes the future on which the protocol waits


Made = TypeVar("Made", bound=DatabaseSession)


async def open_session(
    dsn: str, kind: type[Made], *, command_timeout_s: float | None, settings: dict[str, str] | None = None
) -> Made:
    """Connect to the server in `dsn` or, if it names several, to the one that accepts writes.

    All servers are tried concurrently, so that a silent server causes no delay. Raises the first asyncpg exception.
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
    """Cancel the remaining attempts, and close sessions that were opened too late."""
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
        max_cacheable_statement_size=0,  # any size, because asyncpg would prepare a long statement at every call
        server_settings=SESSION | (settings or {}),
    )
    session.keep_alive()
    return session


def addresses_of(dsn: str) -> list[Address]:
    """Return the servers in a DSN. Empty if it leaves them to the environment.

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
    """Parse HOST, HOST:PORT or [HOST]:PORT."""
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        return text.strip("[]"), None
    return host.strip("[]"), int(port)


def probe(sock: socket.socket | None) -> None:
    """Enable keep-alive on a TCP connection. A Unix socket does not need it.

    Raises ConnectionResetError if the connection is already lost: its socket is missing or closed.
    """
    if sock is None or sock.fileno() < 0:
        raise ConnectionResetError("the connection was lost immediately after it was opened")
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEP_ALIVE["idle"]),
        ("TCP_KEEPINTVL", KEEP_ALIVE["interval"]),
        ("TCP_KEEPCNT", KEEP_ALIVE["count"]),
        ("TCP_USER_TIMEOUT", USER_TIMEOUT_MS),
    ):
        if hasattr(socket, name):  # not every system has all of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
else:  # generic only in the type stubs
    Connection = asyncpg.Connection

Result = TypeVar("Result")

COMMAND_TIMEOUT_S = 60.0  # also for an idle transaction, because others may wait for its locks
REQUEST_TIMEOUT_S = 10.0  # the same while clients wait
STATEMENT_TIMEOUT_S = 12.0  # on the server; longer, so that the client's limit applies first
CLOSE_S = 5.0  # a connection that takes longer to close is dropped
TRIES = 4  # attempts at a transaction after conflicts

CONFLICTS = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.InvalidCachedStatementError,
)
_SAID = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
LOST = (OSError, *_SAID)  # may indicate a lost connection; see failure_of
LOST_INSIDE = (ConnectionError, TimeoutError, *_SAID)  # the same inside code that may read files


@contextmanager
def lost_means_unavailable(lost: tuple[type[Exception], ...] = LOST) -> Iterator[None]:
    """Raise UnavailableError inside the block for a lost, refused or silent connection, or lack of server resources.

    Exceptions in `lost` that concern the statement itself pass through unchanged (see failure_of).
    """
    try:
        yield
    except lost as error:
        if failure_of(error) not in UNAVAILABLE:
            raise
        raise UnavailableError(f"the database is unavailable: {_why(error)}") from error


def _why(error: BaseException) -> str:
    """Describe the first failure in the chain, because a rollback on a closed connection does not say why it closed.

    >>> _why(TimeoutError())
    'a command exceeded its time limit'
    """
    while isinstance(error.__context__, LOST):
        error = error.__context__
    if isinstance(error, TimeoutError) and not str(error):
        return "a command exceeded its time limit"
    return str(error) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Fence:
    """The periodic task that a coroutine runs, and the server process of the session that holds its lock."""

    duty: str
    holder: int


# In a round of a periodic task, every pool transaction first checks that the lock is still held, and prevents others
# from taking it until it ends. So a process that was frozen for a minute cannot write as if it held the lock.
FENCE: ContextVar[Fence | None] = ContextVar("FENCE", default=None)


async def _pass_fence(connection: Connection) -> None:
    fence = FENCE.get()
    if fence is not None and not await connection.fetchval(load("enter_duty"), fence.duty, fence.holder):
        raise UnavailableError(
            f"this process lost the lock of the periodic task {fence.duty}: another process may run it now"
        )


async def connect(dsn: str) -> DatabaseSession:
    """Open a dedicated connection outside the pool, for the short commands of requests.

    It closes after a command of 10 s or a transaction idle for 10 s. The server stops a statement soon after its client
    gives up, because it could otherwise commit much later. Raises UnavailableError.
    """
    settings = _idle_in_transaction(REQUEST_TIMEOUT_S) | {"statement_timeout": f"{STATEMENT_TIMEOUT_S * 1000:.0f}"}
    with lost_means_unavailable():
        return await open_session(dsn, ShortSession, command_timeout_s=REQUEST_TIMEOUT_S, settings=settings)


async def connect_patiently(dsn: str) -> DatabaseSession:
    """Open a connection without a time limit for commands. Raises UnavailableError."""
    with lost_means_unavailable():
        return await open_session(dsn, DatabaseSession, command_timeout_s=None)


async def _connect_pooled(dsn: str | None = None, **_unused: Any) -> DatabaseSession:
    """Open a connection for the pool. The other arguments that the pool passes are asyncpg's defaults."""
    assert dsn is not None
    settings = _idle_in_transaction(COMMAND_TIMEOUT_S)
    return await open_session(dsn, DatabaseSession, command_timeout_s=COMMAND_TIMEOUT_S, settings=settings)


def _idle_in_transaction(most_s: float) -> dict[str, str]:
    """Return the setting that ends a transaction abandoned by its client."""
    return {"idle_in_transaction_session_timeout": f"{most_s * 1000:.0f}"}


class Database:
    """A pool of connections that runs queries by name. Every method may raise UnavailableError."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], dsn: str) -> None:
        self._pool = pool
        self.dsn = dsn
        self.calls = 0  # calls through the pool: single statements, and transactions as one call each

    @classmethod
    async def open(cls, dsn: str, *, min_size: int, max_size: int) -> Database:
        """Open `min_size` connections, and up to `max_size` under load. On failure no connection stays open."""
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
            for session in list(opened):  # asyncpg would leave them to the garbage collector
                session.terminate()
            raise
        return cls(pool, dsn)

    async def close(self) -> None:
        """Close all connections, dropping any that a silent server does not close."""
        try:
            await asyncio.wait_for(self._pool.close(), CLOSE_S)
        except LOST:
            self._pool.terminate()

    def connections(self) -> tuple[int, int, int]:
        """Return the pool's idle, open and maximum connections."""
        return self._pool.get_idle_size(), self._pool.get_size(), self._pool.get_max_size()

    def _count(self) -> None:
        self.calls += 1
        note_progress()

    async def fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """Return all rows of sql/<query>.sql."""
        self._count()
        with lost_means_unavailable():
            return await self._pool.fetch(load(query), *arguments)

    async def fetch_one(self, query: str, *arguments: object) -> asyncpg.Record | None:
        """Return the first row of sql/<query>.sql, None if there is none."""
        self._count()
        with lost_means_unavailable():
            return await self._pool.fetchrow(load(query), *arguments)

    async def fetch_first(self, query: str, *arguments: object) -> asyncpg.Record:
        """Return the first row of a query that always returns one."""
        row = await self.fetch_one(query, *arguments)
        assert row is not None
        return row

    async def fetch_known(self, query: str, *arguments: object, kind: str, key: object = None) -> asyncpg.Record:
        """Return the first row, or raise NotFoundError for the `kind` and `key` (default: the first argument)."""
        row = await self.fetch_one(query, *arguments)
        if row is None:
            raise NotFoundError(kind, arguments[0] if key is None else key)
        return row

    async def execute(self, query: str, *arguments: object) -> None:
        """Run one statement in its own transaction. Retries after a conflict with another transaction."""

        async def write(connection: Connection) -> None:
            await connection.execute(load(query), *arguments)

        await self.in_transaction(write)

    @asynccontextmanager
    async def transaction(self, *, snapshot: bool = False) -> AsyncIterator[Connection]:
        """Open a transaction, which commits on normal exit and rolls back on an exception.

        All statements of a `snapshot` read the data of one moment, and it cannot write.

        An OSError from the caller's own code, which may read files inside, passes through unchanged. A lost connection
        and a command that takes too long raise UnavailableError.
        """
        self._count()
        with lost_means_unavailable():
            connection = await self._pool.acquire()
        try:
            with lost_means_unavailable(LOST_INSIDE):
                async with connection.transaction(isolation="repeatable_read" if snapshot else None, readonly=snapshot):
                    await _pass_fence(connection)
                    yield connection
        finally:
            await self._pool.release(connection)

    async def in_transaction(
        self, work: Callable[[Connection], Awaitable[Result]], *, snapshot: bool = False
    ) -> Result:
        """Run `work` in one transaction and return its result. Retries after a conflict with another transaction.

        `work` must be safe to repeat after a rollback.
        """
        with lost_means_unavailable():
            for _ in range(TRIES - 1):
                try:
                    async with self.transaction(snapshot=snapshot) as connection:
                        return await work(connection)
                except CONFLICTS:
                    continue
            async with self.transaction(snapshot=snapshot) as connection:
                return await work(connection)


class OnDatabase:
    """Base class for parts of the store that need only the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
