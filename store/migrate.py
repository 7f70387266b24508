"""How does a database come to this version's schema? A fresh one by schema.sql, an older one step by step.

A migration is a file NNNN_pre_name.sql or NNNN_post_name.sql, numbered without gaps. "pre" works with the code
before it and with the code after it, and may be run while the old code serves; "post" needs the old code gone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import asyncpg

from domain.errors import MusterError
from domain.units import Instant
from store.pool import connect_patiently
from store.queries import load


class SchemaVersionError(MusterError):
    """The database's schema is of another version."""


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    phase: str  # pre or post
    name: str  # of its file

    def sql(self) -> str:
        return files("store").joinpath("migrations", self.name).read_text(encoding="utf-8")


def migrations() -> list[Migration]:
    """Every migration, in order."""
    found = []
    for entry in files("store").joinpath("migrations").iterdir():
        match = re.fullmatch(r"(\d{4})_(pre|post)_[a-z0-9_]+\.sql", entry.name)
        if match:
            found.append(Migration(int(match[1]), match[2], entry.name))
    return sorted(found, key=lambda migration: migration.version)


def schema() -> str:
    """The whole schema as a fresh database gets it."""
    return files("store").joinpath("schema.sql").read_text(encoding="utf-8")


async def migrate(dsn: str, *, now: Instant, pre_only: bool = False) -> list[str]:
    """Bring a database to this version; returns the names of what was applied. Safe to repeat.

    `pre_only` stops before the first migration that needs the old code gone.
    Raises SchemaVersionError for a database that is newer than this code.
    """
    connection = await connect_patiently(dsn)
    try:
        await connection.execute(load("lock_migrations"))
        if await connection.fetchval(load("is_fresh")):
            return await _install(connection, now)
        return await _upgrade(connection, now, pre_only=pre_only)
    finally:
        await connection.close()


async def check_version(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Raises SchemaVersionError unless the database has had exactly this code's migrations, post ones excepted."""
    done = await _done(connection)
    known = migrations()
    missing = [m.name for m in known if m.version not in done and m.phase == "pre"]
    if not done or missing:
        lacks = ", ".join(missing) or "everything"
        raise SchemaVersionError(f"the database lacks {lacks}: run `muster migrate`")
    _refuse_newer(done, known)


async def _install(connection: asyncpg.Connection[asyncpg.Record], now: Instant) -> list[str]:
    async with connection.transaction():
        await connection.execute(schema())
        for migration in migrations():
            await _note(connection, migration, now)
    return ["schema.sql"]


async def _upgrade(connection: asyncpg.Connection[asyncpg.Record], now: Instant, *, pre_only: bool) -> list[str]:
    done = await _done(connection)
    known = migrations()
    _refuse_newer(done, known)
    applied = []
    for migration in known:
        if migration.version in done:
            continue
        if pre_only and migration.phase == "post":
            break
        async with connection.transaction():
            await connection.execute(migration.sql())
            await _note(connection, migration, now)
        applied.append(migration.name)
    return applied


async def _done(connection: asyncpg.Connection[asyncpg.Record]) -> set[int]:
    if await connection.fetchval(load("is_fresh")):
        return set()
    return {row["version"] for row in await connection.fetch(load("schema_version"))}


async def _note(connection: asyncpg.Connection[asyncpg.Record], migration: Migration, now: Instant) -> None:
    await connection.execute(load("insert_schema_version"), migration.version, migration.name, now)


def _refuse_newer(done: set[int], known: Sequence[Migration]) -> None:
    newest = max(migration.version for migration in known)
    if max(done) > newest:
        raise SchemaVersionError(f"the database is of version {max(done)}, this code knows versions up to {newest}")
