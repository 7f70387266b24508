"""How does the store reach PostgreSQL? Connections, transactions, and what a lost one looks like to callers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import asyncpg

from domain.errors import UnavailableError
from store.queries import load

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]
else:  # generic only in its stubs
    Connection = asyncpg.Connection

Result = TypeVar("Result")

CONNECT_TIMEOUT_S = 10.0
COMMAND_TIMEOUT_S = 60.0
TRIES = 4  # of a transaction that met another one
# The store finds its rows by key. Without the last three, a plan made while a table was small would go on
# reading the whole of it when a million jobs have come, until somebody analyses it.
SESSION = {
    "application_name": "muster",
    "jit": "off",
    "synchronous_commit": "on",
    "timezone": "UTC",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}

CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError)
SESSION_LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby
    asyncpg.InvalidCatalogNameError,  # no such database
    asyncpg.InvalidAuthorizationSpecificationError,
)
LOST = (OSError, *SESSION_LOST)  # TimeoutError is an OSError


@contextmanager
def lost_means_unavailable(lost: tuple[type[Exception], ...] = LOST) -> Iterator[None]:
    """Inside, a connection that is lost, refused or silent raises UnavailableError."""
    try:
        yield
    except lost as error:
        raise UnavailableError(f"the database does not serve: {error or type(error).__name__}") from error


async def connect(dsn: str) -> asyncpg.Connection[asyncpg.Record]:
    """A connection of its owner's own, outside the pool. Raises UnavailableError."""
    with lost_means_unavailable():
        return await asyncpg.connect(
            dsn,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            statement_cache_size=500,
            max_cached_statement_lifetime=0,
            server_settings=SESSION,
        )


class Database:
    """A pool of connections, spoken to by the names of queries. Every method may raise UnavailableError."""

    def __init__(self, pool: asyncpg.Pool[asyncpg.Record], dsn: str) -> None:
        self._pool = pool
        self.dsn = dsn

    @classmethod
    async def open(cls, dsn: str, *, min_size: int, max_size: int) -> Database:
        """Connect `min_size` times; grow to `max_size` when busy."""
        with lost_means_unavailable():
            pool = await asyncpg.create_pool(
                dsn,
                min_size=min_size,
                max_size=max_size,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=COMMAND_TIMEOUT_S,
                statement_cache_size=500,
                max_cached_statement_lifetime=0,
                server_settings=SESSION,
            )
        return cls(pool, dsn)

    async def close(self) -> None:
        await self._pool.close()

    async def fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """Every row of sql/<query>.sql."""
        with lost_means_unavailable():
            return await self._pool.fetch(load(query), *arguments)

    async def fetch_one(self, query: str, *arguments: object) -> asyncpg.Record | None:
        """The first row of sql/<query>.sql; None when there is none."""
        with lost_means_unavailable():
            return await self._pool.fetchrow(load(query), *arguments)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction: committed when left normally, rolled back when left by an exception.

        An OSError of the caller's own, who may be reading files inside, stays what it is.
        """
        with lost_means_unavailable():
            connection = await self._pool.acquire()
        try:
            with lost_means_unavailable(SESSION_LOST):
                async with connection.transaction():
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
