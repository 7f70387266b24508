"""How is a connection to PostgreSQL made, and how is it noticed that the other side is gone?

Both kernels probe every TCP connection: a machine that vanished is noticed after 25 s, and after 30 s at the latest
when something was under way. Without them its sessions would keep their row locks and advisory locks for hours.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
from asyncpg.connect_utils import SessionAttribute

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
    "tcp_keepalives_idle": str(KEEP_ALIVE["idle"]),
    "tcp_keepalives_interval": str(KEEP_ALIVE["interval"]),
    "tcp_keepalives_count": str(KEEP_ALIVE["count"]),
    "tcp_user_timeout": str(USER_TIMEOUT_MS),
}

REFUSED = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)  # another may not
Address = tuple[str, int | None]  # a host or the folder of a socket, and a port unless it is the usual one


class Session(asyncpg.Connection):
    """A connection that both kernels probe."""

    _loop: asyncio.AbstractEventLoop
    _transport: asyncio.Transport

    def keep_alive(self) -> None:
        """Let our kernel notice when the server is gone."""
        probe(self._transport.get_extra_info("socket"))


class ShortSession(Session):
    """A session of short commands: one that takes too long ends the session.

    The usual way is to ask the server to cancel the command and to wait for that; where the server does not answer,
    that takes as long again, and whatever waits for the session waits with it.
    """

    def _cancel_current_command(self, *_waiters: asyncio.Future[None] | None) -> None:
        self._loop.call_soon(self.terminate)  # completes what the protocol waits for


Made = TypeVar("Made", bound=Session)


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
        if isinstance(opened, Session) and opened is not chosen:
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
