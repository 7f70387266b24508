"""Tests that session locks are held on connections with keep-alive on both sides."""

from __future__ import annotations

import socket

from domain.clock import SystemClock
from store.locks import DutyLocks, PostgresShards, WatchedConnection, probe

# The requested values; over a Unix socket the server shows 0 for the ones in use.
ASKED_FOR = "SELECT name, reset_val FROM pg_settings WHERE name LIKE 'tcp_%'"


def test_tcp_connections_are_probed_and_unix_sockets_are_not() -> None:
    with socket.socket(socket.AF_INET) as tcp, socket.socket(socket.AF_UNIX) as local:
        probe(tcp)
        probe(local)

        idle, interval, count = socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT
        assert [tcp.getsockopt(socket.IPPROTO_TCP, option) for option in (idle, interval, count)] == [10, 5, 3]
        assert tcp.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_000
        assert local.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


async def test_the_server_watches_who_feeds_shards(dsn: str) -> None:
    shards = PostgresShards(dsn, SystemClock())
    await shards.run_once()
    await assert_watched(shards._connection)
    await shards.close()


async def test_the_server_watches_who_does_duties(dsn: str) -> None:
    locks = DutyLocks(dsn)
    await locks.mine("sweep")
    await assert_watched(locks._connection)
    await locks.close()


async def assert_watched(connection: WatchedConnection | None) -> None:
    assert connection is not None
    asked_for = {row["name"]: row["reset_val"] for row in await connection.fetch(ASKED_FOR)}
    assert asked_for == {
        "tcp_keepalives_idle": "10",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "3",
        "tcp_user_timeout": "30000",
    }
