"""Migrations bring a database to the present schema, also while nodes use it."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import asyncpg
import pytest

from cli.manual.pages import schema_sql
from store.migrate import InUseError, NodesRunningError, SchemaVersionError, check_version, migrate, migrations
from store.pool import connect
from store.postgres import open_store
from tests.builders import NOW
from tests.conformance.test_forecasts import a_record
from tests.facts import missing, states
from tests.pg import database, empty_database
from tests.worlds import a_submitted_batch

ROOT = Path(__file__).parents[2]
VERSION_1 = {
    "0001_pre_initial.sql": """
        CREATE TABLE schema_version (
            version int PRIMARY KEY, name text NOT NULL, applied_at double precision NOT NULL
        );
        CREATE TABLE app (app_id int PRIMARY KEY, name text NOT NULL);
        CREATE TABLE work (work_id int PRIMARY KEY, app_id int NOT NULL, cost double precision NOT NULL);
        INSERT INTO app VALUES (1, 'a');
    """,
}
# The next version replaces `name` by `title` and adds `size`.
ADD = {"0002_pre_title.sql": "ALTER TABLE app ADD COLUMN title text; UPDATE app SET title = name;"}
DROP = {"0003_post_no_name.sql": "ALTER TABLE app DROP COLUMN name;"}
ADD_MORE = {"0004_pre_size.sql": "ALTER TABLE app ADD COLUMN size int;"}
VERSION_2 = VERSION_1 | ADD | DROP | ADD_MORE
STOP = {"0003_stop_rename.sql": "ALTER TABLE app RENAME COLUMN name TO title;"}
BOUND = {"0002_pre_cost.sql": "ALTER TABLE work ADD CONSTRAINT work_cost CHECK (cost <= 100) NOT VALID;"}
VALIDATE = {
    "0003_post_cost.sql": """
        UPDATE work SET cost = 100 WHERE cost > 100;
        ALTER TABLE work VALIDATE CONSTRAINT work_cost;
    """
}
COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = 'app' ORDER BY ordinal_position"

Folder = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Write migrations to a folder of their own."""

    def written(texts: Mapping[str, str]) -> Path:
        made = tmp_path / str(len(list(tmp_path.iterdir())))
        made.mkdir()
        for name, text in texts.items():
            (made / name).write_text(text, encoding="utf-8")
        return made

    return written


async def columns(dsn: str) -> list[str]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row["column_name"] for row in await connection.fetch(COLUMNS)]
    finally:
        await connection.close()


async def runs(dsn: str, folder: Path) -> None:
    """Raise SchemaVersionError unless code with these migrations runs on the database."""
    connection = await asyncpg.connect(dsn)
    try:
        await check_version(connection, folder)
    finally:
        await connection.close()


async def test_a_new_database_gets_every_migration() -> None:
    async with empty_database() as dsn:
        assert await migrate(dsn, now=NOW) == [migration.name for migration in migrations()]
        store = await open_store(dsn, min_size=1, max_size=1)
        await store.close()


@pytest.mark.skipif("MUSTER_TEST_DATABASE_URL" in os.environ, reason="other versions of pg_dump write other text")
async def test_schema_sql_of_the_reference_is_current(dsn: str) -> None:
    written = (ROOT / "docs" / "reference" / "schema.sql").read_text(encoding="utf-8")

    assert written == await asyncio.to_thread(schema_sql, dsn), "make reference"


async def test_migrating_twice_changes_nothing(dsn: str) -> None:
    assert await migrate(dsn, now=NOW) == []


async def test_old_nodes_run_until_the_post_step(folder: Folder) -> None:
    """A rolling upgrade: the `pre` migrations, new nodes, the `post` migrations."""
    old, new = folder(VERSION_1), folder(VERSION_2)
    async with empty_database() as dsn:
        await migrate(dsn, now=NOW, folder=old)
        with pytest.raises(SchemaVersionError, match=r"lacks 0002_pre_title.sql, 0004_pre_size.sql: .* --pre-only"):
            await runs(dsn, new)

        assert await migrate(dsn, now=NOW, pre_only=True, folder=new) == [*ADD, *ADD_MORE]
        await runs(dsn, old)
        await runs(dsn, new)
        assert await columns(dsn) == ["app_id", "name", "title", "size"]

        assert await migrate(dsn, now=NOW, folder=new) == [*DROP]
        await runs(dsn, new)
        with pytest.raises(SchemaVersionError, match=r"version 4, .* cannot run with 0003_post_no_name.sql"):
            await runs(dsn, old)
        assert await columns(dsn) == ["app_id", "title", "size"]
        assert await migrate(dsn, now=NOW, folder=new) == []


async def test_running_nodes_read_forecasts_after_the_drop() -> None:
    """Their statements were prepared while the table had the column."""
    [drop] = [one for one in migrations() if one.version == 16]
    async with database() as dsn:
        connection = await asyncpg.connect(dsn)
        await connection.execute("ALTER TABLE forecast ADD COLUMN at_risk text")
        store = await open_store(dsn, min_size=1, max_size=1)
        batch = await a_submitted_batch(store, jobs=1)
        await store.forecasts.publish(a_record(batch))
        before = [
            await store.forecasts.series(batch.batch_id, limit=9),
            await store.forecasts.last([batch.batch_id]),
        ]

        await connection.execute(drop.sql())

        after = [await store.forecasts.series(batch.batch_id, limit=9), await store.forecasts.last([batch.batch_id])]
        assert after == before
        assert len(before[0]) == 1
        await store.close()
        await connection.close()


async def test_pre_only_installs_a_new_database_whole(folder: Folder) -> None:
    """No old node can use an empty database; a connected new node waits for the schema."""
    stop = {"0003_stop_swap.sql": "ALTER TABLE app DROP COLUMN name;"}
    async with empty_database() as dsn:
        node = await connect(dsn)
        applied = await migrate(dsn, now=NOW, pre_only=True, folder=folder(VERSION_1 | ADD | stop))
        await node.close()

    assert applied == [*VERSION_1, *ADD, *stop]


async def test_stop_is_refused_while_nodes_run(folder: Folder) -> None:
    old, new = folder(VERSION_1), folder(VERSION_1 | {"0002_pre_size.sql": "ALTER TABLE app ADD size int;"} | STOP)
    async with empty_database() as dsn:
        await migrate(dsn, now=NOW, folder=old)
        with states(NodesRunningError, "0003_stop_rename.sql", "while nodes run"):
            await migrate(dsn, now=NOW, pre_only=True, folder=new)
        node = await connect(dsn)
        with states(NodesRunningError, "1 of their connections", "stop every node"):
            await migrate(dsn, now=NOW, folder=new)
        assert await columns(dsn) == ["app_id", "name"]
        with states(SchemaVersionError, "stop every node", "`muster migrate`"):
            await runs(dsn, new)
        await node.close()

        assert await migrate(dsn, now=NOW, folder=new) == ["0002_pre_size.sql", *STOP]
        assert await columns(dsn) == ["app_id", "title", "size"]


async def test_a_failed_migration_leaves_nothing(folder: Folder) -> None:
    """The migrations before it stay; the next run continues there."""
    broken = VERSION_1 | ADD | {"0003_post_two.sql": "ALTER TABLE app DROP COLUMN name; SELECT 1 / 0;"}
    async with empty_database() as dsn:
        with pytest.raises(asyncpg.DivisionByZeroError):
            await migrate(dsn, now=NOW, folder=folder(broken))
        assert await columns(dsn) == ["app_id", "name", "title"]

        assert await migrate(dsn, now=NOW, folder=folder(VERSION_2)) == [*DROP, *ADD_MORE]


async def test_a_long_reader_does_not_block_others(folder: Folder) -> None:
    """During a backup: the migration waits 2 s, leaves the queue, and is applied when the reader has ended."""
    new = folder(VERSION_1 | ADD)
    async with empty_database() as dsn:
        await migrate(dsn, now=NOW, folder=folder(VERSION_1))
        reader, other = [await asyncpg.connect(dsn, server_settings={"application_name": "backup"}) for _ in range(2)]
        reading = reader.transaction()
        await reading.start()
        await reader.fetch("SELECT count(*) FROM app")
        reasons = []

        async def busy(why: str) -> None:
            reasons.append(why)
            await other.execute("SET statement_timeout = '1s'")
            await other.fetch("SELECT count(*) FROM app")
            await reading.rollback()

        start = asyncio.get_running_loop().time()
        assert await migrate(dsn, now=NOW, busy=busy, folder=new) == [*ADD]
        took_s = asyncio.get_running_loop().time() - start
        await reader.close()
        await other.close()

    assert took_s > 1.9
    [line] = reasons
    assert not missing(line, "0002_pre_title.sql", "in use")
    assert re.search(r" backup \(process \d+\), since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$", line)


async def test_a_table_in_use_is_reported_without_waiting(folder: Folder) -> None:
    async with empty_database() as dsn:
        await migrate(dsn, now=NOW, folder=folder(VERSION_1))
        reader = await asyncpg.connect(dsn)
        async with reader.transaction():
            await reader.fetch("SELECT count(*) FROM app")
            with states(InUseError, "0002_pre_title.sql has to wait:", "`muster migrate`"):
                await migrate(dsn, now=NOW, folder=folder(VERSION_1 | ADD))
        await reader.close()


async def test_a_bound_is_added_to_a_busy_table(folder: Folder) -> None:
    """The `pre` step bounds new rows, after an open transaction; the `post` step changes old rows during another."""
    insert = "INSERT INTO work VALUES ($1, 1, $2)"
    async with empty_database() as dsn:
        await migrate(dsn, now=NOW, folder=folder(VERSION_1))
        writer, other = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
        await writer.executemany(insert, [(number, float(number)) for number in range(200)])

        writing = writer.transaction()
        await writing.start()
        await writer.execute(insert, 1000, 1e300)
        reasons = []

        async def busy(why: str) -> None:
            reasons.append(why)
            await writing.commit()

        assert await migrate(dsn, now=NOW, pre_only=True, busy=busy, folder=folder(VERSION_1 | BOUND)) == [*BOUND]
        assert len(reasons) == 1
        with pytest.raises(asyncpg.CheckViolationError):
            await writer.execute(insert, 1001, 1e300)
        assert await writer.fetchval("SELECT count(*) FROM work WHERE cost > 100") == 100

        writing = writer.transaction()
        await writing.start()
        await writer.execute("UPDATE work SET cost = cost WHERE work_id = 1")  # a row within the bound
        done = await migrate(dsn, now=NOW, folder=folder(VERSION_1 | BOUND | VALIDATE))
        await writing.commit()

        assert done == [*VALIDATE]
        assert await other.fetchval("SELECT convalidated FROM pg_constraint WHERE conname = 'work_cost'")
        assert await other.fetchval("SELECT max(cost) FROM work") == 100
        await writer.close()
        await other.close()


async def test_old_code_starts_on_a_prepared_database(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("INSERT INTO schema_version VALUES (9999, '9999_pre_from_the_future.sql', 0)")
    await connection.close()

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


async def test_an_unreleased_database_is_refused(folder: Folder) -> None:
    """Unreleased versions had other migrations with the same numbers."""
    async with empty_database() as dsn:
        await migrate(dsn, now=NOW, folder=folder(VERSION_1))
        with states(SchemaVersionError, "0001_pre_initial.sql", "`muster init`"):
            await open_store(dsn)
        with states(SchemaVersionError, "0001_pre_initial.sql", "`muster init`"):
            await migrate(dsn, now=NOW)
        assert await columns(dsn) == ["app_id", "name"]


async def test_two_installations_at_once_do_not_collide() -> None:
    async with empty_database() as dsn, database() as installed:
        applied = await asyncio.gather(*(migrate(dsn, now=NOW) for _ in range(2)))
        assert sorted(map(len, applied)) == [0, len(migrations())]
        assert await columns(dsn) == await columns(installed)
