"""A database comes to the present schema, whichever way it takes."""

from __future__ import annotations

import asyncpg
import pytest

from store.migrate import SchemaVersionError, migrate, migrations
from store.postgres import open_store
from tests.builders import NOW
from tests.pg import database, empty_database

COLUMNS = """
    SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default, is_identity
    FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name
"""
INDEXES = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n' ORDER BY 1, 2
"""
OPTIONS = "SELECT relname, relkind, reloptions FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
VIEWS = "SELECT viewname, definition FROM pg_views WHERE schemaname = 'public' ORDER BY 1"
FIRST_ROWS = "SELECT 'account', name FROM account UNION ALL SELECT 'plan class', name FROM plan_class ORDER BY 1, 2"


async def described(dsn: str) -> list[tuple[object, ...]]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = []
        for query in (COLUMNS, INDEXES, CONSTRAINTS, OPTIONS, VIEWS, FIRST_ROWS):
            rows += [tuple(row) for row in await connection.fetch(query)]
        return rows
    finally:
        await connection.close()


async def test_schema_equals_the_sum_of_the_migrations() -> None:
    async with database() as installed, empty_database() as migrated:
        connection = await asyncpg.connect(migrated)
        for migration in migrations():
            await connection.execute(migration.sql())
        await connection.close()

        assert await described(installed) == await described(migrated)


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in migrations()] == list(range(1, len(migrations()) + 1))


async def test_migrating_twice_changes_nothing(dsn: str) -> None:
    assert await migrate(dsn, now=NOW) == []


async def test_a_fresh_database_is_installed_whole() -> None:
    async with empty_database() as dsn:
        assert await migrate(dsn, now=NOW) == ["schema.sql"]
        store = await open_store(dsn, min_size=1, max_size=1)
        await store.close()


async def test_an_empty_database_is_refused_with_what_to_do() -> None:
    async with empty_database() as dsn:
        with pytest.raises(SchemaVersionError, match="run `muster migrate`"):
            await open_store(dsn)


async def test_a_newer_database_is_refused(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO schema_version VALUES (9999, 'from the future', 0)")
    await connection.close()

    with pytest.raises(SchemaVersionError, match="version 9999"):
        await open_store(dsn)
    with pytest.raises(SchemaVersionError, match="version 9999"):
        await migrate(dsn, now=NOW)
