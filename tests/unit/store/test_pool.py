"""Tests the servers in a DSN, and connections that are lost at once."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest
import uvloop

from domain.errors import UnavailableError
from store.pool import Address, Failure, addresses_of, failure_of, lost_means_unavailable, probe
from tests.facts import states


@pytest.mark.parametrize(
    ("dsn", "addresses"),
    [
        ("postgresql://me:secret@db.example.org/muster", [("db.example.org", None)]),
        ("postgresql://me:se%40cret@a:5433,b:5434/muster", [("a", 5433), ("b", 5434)]),
        ("postgresql://me@[::1]:5433,[fe80::1]/muster", [("::1", 5433), ("fe80::1", None)]),
        ("postgresql://me@%2Frun%2Fone:5433/muster", [("/run/one", 5433)]),
        ("postgresql://me@/muster?host=a,b&port=5433,5434&target_session_attrs=read-write", [("a", 5433), ("b", 5434)]),
        ("postgresql:///muster?host=/run/one,b", [("/run/one", None), ("b", None)]),
        ("postgresql:///muster?host=a,b&port=5433", [("a", 5433), ("b", 5433)]),
        ("postgresql:///muster?service=project", []),
    ],
)
def test_every_server_of_a_dsn_is_found(dsn: str, addresses: list[Address]) -> None:
    assert addresses_of(dsn) == addresses


@pytest.mark.parametrize("looked_before", [True, False])
def test_connection_lost_at_start_is_a_lost_connection(looked_before: bool) -> None:
    """Under uvloop such a connection has no socket, or a closed one, when asyncpg uses it."""

    async def end(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def lose_one() -> None:
        lost = asyncio.Event()
        server = await asyncio.start_server(end, "127.0.0.1", 0)
        async with server:
            address = server.sockets[0].getsockname()
            transport, _ = await asyncio.get_running_loop().create_connection(lambda: Losing(lost), *address)
            if looked_before:
                transport.get_extra_info("socket")
            await lost.wait()
            with pytest.raises(ConnectionResetError, match="immediately after"):
                probe(transport.get_extra_info("socket"))

    uvloop.run(lose_one())


class Losing(asyncio.Protocol):
    """Reports when its connection is lost."""

    def __init__(self, lost: asyncio.Event) -> None:
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()


GONE: tuple[Exception, ...] = (
    OSError("refused"),
    TimeoutError(),
    ConnectionResetError(),
    asyncpg.InterfaceError("the connection is closed"),
    asyncpg.InternalClientError("in the middle of a message"),
    asyncpg.PostgresConnectionError("said so"),
    asyncpg.ConnectionDoesNotExistError("said so"),
    asyncpg.AdminShutdownError("said so"),
    asyncpg.CrashShutdownError("said so"),
    asyncpg.CannotConnectNowError("said so"),
    asyncpg.DatabaseDroppedError("said so"),
    asyncpg.IdleSessionTimeoutError("said so"),
    asyncpg.IdleInTransactionSessionTimeoutError("said so"),
    asyncpg.ReadOnlySQLTransactionError("said so"),
    asyncpg.TooManyConnectionsError("said so"),
    asyncpg.InvalidPasswordError("said so"),
    asyncpg.InvalidCatalogNameError("said so"),
)
FULL = (
    asyncpg.InsufficientResourcesError("said so"),
    asyncpg.DiskFullError("said so"),
    asyncpg.ConfigurationLimitExceededError("said so"),
    asyncpg.PostgresIOError("said so"),
    asyncpg.UndefinedFileError("said so"),
)
MET = (
    asyncpg.SerializationError("said so"),
    asyncpg.DeadlockDetectedError("said so"),
    asyncpg.LockNotAvailableError("said so"),
    asyncpg.UniqueViolationError("said so"),
    asyncpg.InvalidCachedStatementError("cached plan must not change result type"),
)
TOO_MUCH = (asyncpg.OutOfMemoryError("said so"), asyncpg.QueryCanceledError("said so"))
ITS_OWN = (
    asyncpg.DataError("invalid input for query argument $1: 4294967296"),
    asyncpg.CheckViolationError("said so"),
    asyncpg.NotNullViolationError("said so"),
    asyncpg.ForeignKeyViolationError("said so"),
    asyncpg.ExclusionViolationError("said so"),
    asyncpg.DivisionByZeroError("said so"),
    asyncpg.UndefinedTableError("said so"),
    asyncpg.InFailedSQLTransactionError("said so"),
    asyncpg.InternalServerError("said so"),
    asyncpg.FeatureNotSupportedError("said so"),
    asyncpg.ProgramLimitExceededError("said so"),  # a text too long for an index
    asyncpg.PostgresError("of no class"),
    ZeroDivisionError(),
)
TABLE = [
    (error, failure)
    for failure, errors in (
        (Failure.GONE, GONE),
        (Failure.FULL, FULL),
        (Failure.MET, MET),
        (Failure.TOO_MUCH, TOO_MUCH),
        (Failure.ITS_OWN, ITS_OWN),
    )
    for error in errors
]


@pytest.mark.parametrize(("error", "failure"), TABLE, ids=[type(error).__name__ for error, _ in TABLE])
def test_what_an_exception_says(error: Exception, failure: Failure) -> None:
    assert failure_of(error) is failure


def test_an_argument_that_does_not_fit_is_no_lost_connection() -> None:
    with pytest.raises(asyncpg.DataError), lost_means_unavailable():
        raise asyncpg.DataError("invalid input for query argument $1: 4294967296")


@pytest.mark.parametrize("error", [*GONE, *FULL, *TOO_MUCH], ids=lambda error: type(error).__name__)
def test_what_is_not_the_askers_fault_is_unavailable(error: Exception) -> None:
    with pytest.raises(UnavailableError), lost_means_unavailable():
        raise error


def test_rollback_failure_does_not_hide_first_cause() -> None:
    def time_out() -> None:
        try:
            raise TimeoutError
        finally:
            raise asyncpg.InterfaceError("cannot perform operation: connection is closed")

    with states(UnavailableError, "unavailable:", "time limit") as caught, lost_means_unavailable():
        time_out()
    assert "connection is closed" not in str(caught.value)
