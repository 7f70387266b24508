"""A connection whose death is noticed on both sides: for session locks, which others take over when their holder dies.

A dead machine is noticed by TCP keep-alive after 25 s, and by the user time-out after 30 s at the latest; without
them the server would keep its locks for hours.
"""

from __future__ import annotations

import asyncio
import socket

import asyncpg

from store.pool import CONNECT_TIMEOUT_S, SESSION, lost_means_unavailable

COMMAND_TIMEOUT_S = 5.0
KEEP_ALIVE = {"idle": 10, "interval": 5, "count": 3}  # s, s, probes
USER_TIMEOUT_MS = 30_000
SERVER_SIDE = {
    "tcp_keepalives_idle": str(KEEP_ALIVE["idle"]),
    "tcp_keepalives_interval": str(KEEP_ALIVE["interval"]),
    "tcp_keepalives_count": str(KEEP_ALIVE["count"]),
    "tcp_user_timeout": str(USER_TIMEOUT_MS),
}


class WatchedConnection(asyncpg.Connection):
    """Made by `connect_watched`."""

    _transport: asyncio.Transport

    def keep_alive(self) -> None:
        """Let our kernel notice when the server is gone."""
        probe(self._transport.get_extra_info("socket"))


async def connect_watched(dsn: str) -> WatchedConnection:
    """A connection that both kernels probe; each command has 5 s. Raises UnavailableError."""
    with lost_means_unavailable():
        connection: WatchedConnection = await asyncpg.connect(
            dsn,
            timeout=CONNECT_TIMEOUT_S,
            command_timeout=COMMAND_TIMEOUT_S,
            connection_class=WatchedConnection,
            server_settings=SESSION | SERVER_SIDE,
        )
    connection.keep_alive()
    return connection


def probe(sock: socket.socket) -> None:
    """Let the kernel probe the other side of a TCP connection; a Unix socket needs no probes."""
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
