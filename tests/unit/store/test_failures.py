"""Which exceptions mean that the connection is gone, which pass, and which are somebody's own."""

from __future__ import annotations

import asyncpg
import pytest

from domain.errors import UnavailableError
from store.failures import Failure, failure_of
from store.pool import lost_means_unavailable

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


def test_a_roll_back_on_a_closed_connection_does_not_hide_why_it_was_closed() -> None:
    def time_out() -> None:
        try:
            raise TimeoutError
        finally:
            raise asyncpg.InterfaceError("cannot perform operation: connection is closed")

    with pytest.raises(UnavailableError, match=r"serve: a command took longer than it may$"), lost_means_unavailable():
        time_out()
