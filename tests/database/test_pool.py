"""Tests how callers see a lost database, and which errors are something else."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import asyncpg
import pytest

from domain.errors import UnavailableError
from store.pool import Connection, Database, connect
from store.postgres import PostgresStore, open_store
from tests.facts import states
from tests.pg import with_database
from tests.stores import batches_of
from tests.worlds import a_new_batch, a_registered_app

END_OTHERS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


async def test_a_database_that_is_not_there_is_unavailable(dsn: str) -> None:
    with pytest.raises(UnavailableError, match="no_such_database"):
        await open_store(with_database(dsn, "no_such_database"))


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(UnavailableError):
        await open_store("postgresql://postgres@127.0.0.1:1/muster")


async def test_lost_connection_is_unavailable_and_next_works(dsn: str) -> None:
    database = await Database.open(dsn, min_size=1, max_size=1)
    other = await asyncpg.connect(dsn)

    async def cut_off(connection: Connection) -> None:
        await other.execute(END_OTHERS)
        await connection.execute("SELECT 1")

    with pytest.raises(UnavailableError):
        await database.in_transaction(cut_off)
    assert await database.fetch("list_settings") == []
    await other.close()
    await database.close()


async def test_a_transaction_that_meets_another_one_is_done_again(dsn: str) -> None:
    database = await Database.open(dsn, min_size=1, max_size=1)
    tries = []

    async def unlucky_once(connection: Connection) -> str:
        tries.append(await connection.fetchval("SELECT pg_backend_pid()"))
        if len(tries) == 1:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        return "done"

    assert await database.in_transaction(unlucky_once) == "done"
    assert len(tries) == 2
    await database.close()


async def test_missing_file_is_no_lost_database_and_writes_nothing(store: PostgresStore) -> None:
    app = await a_registered_app(store)
    with pytest.raises(FileNotFoundError, match="inputs"):
        async with store.submissions.submission() as writer:
            await writer.add_batch(a_new_batch(app_id=app.app_id))
            raise FileNotFoundError("inputs.json")
    assert await batches_of(store, limit=9) == []


async def test_servers_none_of_which_takes_writes_are_unavailable(dsn: str) -> None:
    other = await asyncpg.connect(dsn)
    name = await other.fetchval("SELECT current_database()")
    await other.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await other.close()
    folder, port = (parse_qs(urlsplit(dsn).query).get(key, [usual])[0] for key, usual in (("host", ""), ("port", "")))
    twice = f"postgresql://postgres@/{name}?host={folder},{folder}" + (f"&port={port}" if port else "")

    with pytest.raises(UnavailableError, match="read-write"):
        await connect(twice)


async def test_slow_command_in_transaction_is_unavailable(dsn: str) -> None:
    """For example when a migration holds the table, or the server is silent; a missing file of the caller's is not."""
    database = await Database.open(dsn, min_size=1, max_size=1)

    with states(UnavailableError, "time limit"):
        async with database.transaction() as connection:
            await connection.execute("SELECT pg_sleep(30)", timeout=0.05)

    await database.close()


async def test_statement_on_altered_table_is_retried(dsn: str) -> None:
    database = await Database.open(dsn, min_size=1, max_size=1)
    other = await asyncpg.connect(dsn)
    await other.execute("CREATE TABLE altered (number int); INSERT INTO altered VALUES (7)")
    tries = 0

    async def read(connection: Connection) -> object:
        nonlocal tries
        tries += 1
        return await connection.fetchval("SELECT * FROM altered")

    assert await database.in_transaction(read) == 7
    await other.execute("ALTER TABLE altered ALTER number TYPE text")

    assert await database.in_transaction(read) == "7"
    assert tries == 3
    await other.close()
    await database.close()


async def test_stricter_default_isolation_is_overridden(dsn: str) -> None:
    """Marks of waiting batches are removed after a lock: the statement must see what was committed before it."""
    other = await asyncpg.connect(dsn)
    name = await other.fetchval("SELECT current_database()")
    await other.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = 'repeatable read'")
    await other.close()
    session = await connect(dsn)

    assert await session.fetchval("SHOW transaction_isolation") == "read committed"
    await session.close()
