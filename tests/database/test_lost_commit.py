"""Tests a connection lost while a write commits: the outcome is unknown, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit, urlunsplit

import asyncpg
import pytest

from domain.dispatch import AssignmentFate, RequestWrites
from domain.errors import UnavailableError
from domain.jobs import InstanceState
from store.postgres import PostgresStore, open_store
from tests.worlds import (
    a_registered_host,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    read,
    the_version,
    waiting_of,
)

COMMITTED = (b"COMMIT\x00", b"SELECT 1\x00Z\x00\x00\x00\x05I")  # the server's reply: ready, outside a transaction


class Cut:
    """A proxy between clients and server that, while armed, drops the reply that says that a write is committed."""

    def __init__(self, server: str | tuple[str, int]) -> None:
        self._server = server
        self._passing: set[asyncio.Task[None]] = set()
        self.armed = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(self._server, str):
            from_server, to_server = await asyncio.open_unix_connection(self._server)
        else:
            from_server, to_server = await asyncio.open_connection(*self._server)
        there = asyncio.create_task(self._pass(reader, to_server, ()))
        back = asyncio.create_task(self._pass(from_server, writer, COMMITTED))
        self._passing |= {there, back}

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut_at: tuple[bytes, ...]
    ) -> None:
        try:
            while data := await reader.read(65_536):
                if self.armed and any(one in data for one in cut_at):
                    break
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # the other side is closed: close this one
        writer.close()

    async def close(self) -> None:
        for task in self._passing:
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)


async def server_address(dsn: str) -> str | tuple[str, int]:
    """Return the path of the server's socket, or its host and port."""
    connection = await asyncpg.connect(dsn)
    port = int(await connection.fetchval("SHOW port"))
    by_socket = await connection.fetchval("SELECT inet_server_addr() IS NULL")
    await connection.close()
    parts = urlsplit(dsn)
    if by_socket:
        return f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.{port}"
    return parts.hostname or "127.0.0.1", parts.port or port


@asynccontextmanager
async def through_a_cut(dsn: str) -> AsyncIterator[tuple[PostgresStore, Cut]]:
    cut = Cut(await server_address(dsn))
    listener = await asyncio.start_server(cut.serve, "127.0.0.1", 0)
    parts = urlsplit(dsn)
    address = f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    store = await open_store(urlunsplit((parts.scheme, address, parts.path, "sslmode=disable", "")), min_size=1)
    try:
        yield store, cut
    finally:
        await store.close()
        listener.close()
        await cut.close()


async def test_instance_of_lost_reply_is_not_sent_to_another_host(store: PostgresStore) -> None:
    one, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    version, [candidate] = await the_version(store), await waiting_of(store, batch.batch_id)
    first, second = (an_assignment(candidate, host, version) for host in (one, other))
    async with through_a_cut(store.ledger.writes.dsn) as (node, cut):
        await node.ledger.write(RequestWrites(one.host))  # connects, and prepares the statement
        cut.armed = True
        with pytest.raises(UnavailableError):
            await node.ledger.write(RequestWrites(one.host, assignments=(first,)))
        cut.armed = False

        again = await node.ledger.write(RequestWrites(other.host, assignments=(second,)))

    assert again.fates == {candidate.ready.instance_id: AssignmentFate.LOST}
    assert [held.instance_id for held in (await read(store, one)).held] == [candidate.ready.instance_id]


async def test_a_report_that_was_written_unheard_counts_once(store: PostgresStore) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    said = RequestWrites(host.host, reports=(a_report(sent, to_state=InstanceState.FAILED),))
    async with through_a_cut(store.ledger.writes.dsn) as (node, cut):
        await node.ledger.write(RequestWrites(host.host))  # connects, and prepares the statement
        cut.armed = True
        with pytest.raises(UnavailableError):
            await node.ledger.write(said)
        cut.armed = False

        await node.ledger.write(said)

    counts = (await store.views.batch(batch.batch_id)).counts
    assert (counts.reported, counts.retries) == (1, 1)
