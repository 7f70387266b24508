"""A connection for session locks, which others take over when their holder dies, or falls silent.

Keep-alive ends the locks of a machine that is gone (store.sessions). A process that is stopped, or cut off behind
something that still answers for it, keeps its connection; the server ends that when nothing was asked for a while.
"""

from __future__ import annotations

from store.pool import lost_means_unavailable
from store.sessions import ShortSession, open_session, probe

__all__ = ["WatchedConnection", "connect_watched", "probe"]

COMMAND_TIMEOUT_S = 5.0


class WatchedConnection(ShortSession):
    """Made by `connect_watched`."""


async def connect_watched(dsn: str, *, silence_s: float | None = None) -> WatchedConnection:
    """A connection that both kernels probe; each command has 5 s. Raises UnavailableError.

    The server ends it after `silence_s` seconds without a command.
    """
    settings = {} if silence_s is None else {"idle_session_timeout": f"{silence_s * 1000:.0f}"}
    with lost_means_unavailable():
        return await open_session(dsn, WatchedConnection, command_timeout_s=COMMAND_TIMEOUT_S, settings=settings)
