"""Databases for tests: one per test (for several: tests.reused_database), copied from a migrated template.

MUSTER_TEST_DATABASE_URL names a server, as a superuser. Without it an embedded server is started, in
memory if there is room, else in the temporary folder. Concurrent runs share it, and the last one stops it. fsync and
full_page_writes are off, because a test database need not survive a crash. On a disk, creating the 450 files of a
database takes most of a test's time. They are copied as files, which takes half the CPU time of a copy through the log
and needs PostgreSQL 15 or later.
"""

from __future__ import annotations

import asyncio
import atexit
import hashlib
import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from domain.clock import Clock
from store import embedded
from store.migrate import migrate, migrations
from store.postgres import PostgresStore, open_store
from tests.builders import NOW

TEMPLATE_LOCK = 1_977_000
MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 * 2**30
_templates: dict[str, str] = {}  # by the server's DSN


def scratch() -> Path:
    """Return the folder where databases are created and dropped fastest."""
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM_BYTES
    return MEMORY if roomy else Path(tempfile.gettempdir())


@cache
def embedded_server_dsn() -> str:
    """Return the DSN of the embedded test server; start it if needed."""
    folder = scratch() / f"muster-tests-{os.getuid()}" / "postgres"
    dsn = embedded.ensure_running(folder)
    atexit.register(embedded.release, folder)
    return dsn


async def server_dsn() -> str:
    """Return the DSN of a database of the test server that may create others."""
    if given := os.environ.get("MUSTER_TEST_DATABASE_URL"):
        return given
    return await asyncio.to_thread(embedded_server_dsn)


def with_database(dsn: str, name: str) -> str:
    """Return the DSN of another database on the same server."""
    parts = urlsplit(dsn)
    return urlunsplit(("postgresql", parts.netloc, f"/{name}", parts.query, ""))


@asynccontextmanager
async def empty_database() -> AsyncIterator[str]:
    """Yield the DSN of a new empty database."""
    async with _created("template0") as dsn:
        yield dsn


@asynccontextmanager
async def database() -> AsyncIterator[str]:
    """Yield the DSN of a new migrated database."""
    async with _created(await _template()) as dsn:
        yield dsn


@asynccontextmanager
async def opened_store(clock: Clock | None = None) -> AsyncIterator[PostgresStore]:
    """Yield a store on a new migrated database."""
    async with database() as dsn:
        store = await open_store(dsn, clock=clock, min_size=1, max_size=4)
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def _created(template: str) -> AsyncIterator[str]:
    name = f"muster_test_{uuid.uuid4().hex}"
    dsn = await server_dsn()
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        try:
            yield with_database(dsn, name)
        finally:
            await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


async def _template() -> str:
    """Return the name of a template with the current schema; the first test that needs it creates it."""
    dsn = await server_dsn()
    if dsn in _templates:
        return _templates[dsn]
    made_of = "".join(migration.name + migration.sql() for migration in migrations())
    name = "muster_template_" + hashlib.sha256(made_of.encode()).hexdigest()[:16]
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SELECT pg_advisory_lock($1)", TEMPLATE_LOCK)
        if await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", name) is None:
            if "MUSTER_TEST_DATABASE_URL" not in os.environ:
                await connection.execute("ALTER SYSTEM SET fsync = off")
                await connection.execute("ALTER SYSTEM SET full_page_writes = off")
                await connection.execute("SELECT pg_reload_conf()")
            building = f"building_{uuid.uuid4().hex}"
            await connection.execute(f"CREATE DATABASE {building} TEMPLATE template0")
            await migrate(with_database(dsn, building), now=NOW)
            await connection.execute(f"ALTER DATABASE {building} RENAME TO {name}")
    finally:
        await connection.close()
    _templates[dsn] = name
    return name
