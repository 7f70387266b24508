"""What does an exception of the database say: about the connection, about the moment, or about what was asked? Pure.

A shared transaction must know. A connection that is gone concerns everybody who shared it; a conflict passes when the
whole is done again; and what one member brought with it must not be held against its neighbours.
"""

from __future__ import annotations

from enum import StrEnum

import asyncpg


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
