"""Which servers a DSN names, and what a connection is that is lost at once."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from store.sessions import Address, addresses_of, probe


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
def test_a_connection_that_is_lost_as_soon_as_it_is_made_is_a_lost_connection(looked_before: bool) -> None:
    """Under uvloop such a connection has no socket, or one that is no longer open, and asyncpg has looked at it."""

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
            with pytest.raises(ConnectionResetError, match="as soon as"):
                probe(transport.get_extra_info("socket"))

    uvloop.run(lose_one())


class Losing(asyncio.Protocol):
    """Says when its connection is lost."""

    def __init__(self, lost: asyncio.Event) -> None:
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
