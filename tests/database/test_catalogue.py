"""Tests that app versions are read again after a change, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import asyncpg
import pytest

from domain.apps import DEFAULT_PLAN_CLASS, VersionState
from domain.units import AppVersionId
from store.postgres import PostgresStore, open_store
from tests.builders import NOW
from tests.database.blocking import until_blocked
from tests.pg import database
from tests.worlds import the_version

ADD_VERSION = """
    INSERT INTO app_version (app_id, platform, version_num, plan_class, created_at)
    SELECT app_id, platform, version_num + 1, plan_class, created_at FROM app_version WHERE app_version_id = $1
    RETURNING app_version_id
"""
ADD_FILES = """
    INSERT INTO app_version_file SELECT $1, position, file_id, main_program, open_name, copy_file, executable
    FROM app_version_file WHERE app_version_id = $2
"""
Change = Callable[[PostgresStore], Awaitable[object]]


async def _another_version(store: PostgresStore) -> object:
    version = await the_version(store)
    return await store.applications.add_app_version(
        replace(version, app_version_id=AppVersionId(0), version_num=version.version_num + 1)
    )


async def _another_plan_class(store: PostgresStore) -> None:
    await store.applications.put_plan_class(replace(DEFAULT_PLAN_CLASS, ncpus=3.0))


async def _another_signature(store: PostgresStore) -> None:
    [file, *_] = await store.applications.app_files()
    await store.applications.sign_file(file.name, "another")


async def test_versions_that_have_not_changed_are_not_read_again(store: PostgresStore) -> None:
    await the_version(store)
    first = await store.applications.load_catalogue()

    await store.applications.add_file("input", nbytes=1, md5="0" * 32, signature="", now=NOW)
    second = await store.applications.load_catalogue()

    assert second.versions
    assert second.versions is first.versions
    assert second.current is first.current


@pytest.mark.parametrize("change", [_another_version, _another_plan_class, _another_signature])
async def test_what_changes_of_them_is_read_at_once(store: PostgresStore, change: Change) -> None:
    await the_version(store)
    first = await store.applications.load_catalogue()

    await change(store)
    second = await store.applications.load_catalogue()

    assert second.versions != first.versions


async def test_a_version_added_meanwhile_has_its_files_or_is_absent() -> None:
    """Its files were read before it was added and it was read after that: clients got a version without files."""
    async with database() as dsn:
        store = await open_store(dsn, min_size=1, max_size=1)
        other, look = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
        first = (await the_version(store)).app_version_id
        await _another_plan_class(store)
        async with other.transaction():
            await other.execute("LOCK TABLE app_version")
            reading = asyncio.create_task(store.applications.load_catalogue())
            await until_blocked(look, 1, reading)
            added = await other.fetchval(ADD_VERSION, first)
            await other.execute(ADD_FILES, added, first)

        during, after = await reading, await store.applications.load_catalogue()

        assert {number: len(one.files) for number, one in during.versions.items()} == {first: 1}
        assert {number: len(one.files) for number, one in after.versions.items()} == {first: 1, added: 1}

        await look.close()
        await other.close()
        await store.close()


async def test_change_is_read_after_fail_over_undid_previous_one() -> None:
    """The standby lacks the last change; its own next change must not be mistaken for that one."""
    async with database() as dsn:
        store = await open_store(dsn, min_size=1, max_size=1)
        version = await the_version(store)
        other = await asyncpg.connect(dsn)
        before = await other.fetchval("SELECT to_json(app_changes)::text FROM app_changes")
        await other.execute("UPDATE app_version SET deprecated = true")
        await store.applications.load_catalogue()

        await other.execute("SET session_replication_role = replica")
        await other.execute("DELETE FROM app_changes")
        await other.execute(
            "INSERT INTO app_changes SELECT * FROM json_populate_record(NULL::app_changes, $1::json)", before
        )
        await other.execute("UPDATE app_version SET deprecated = false")
        await other.execute("SET session_replication_role = origin")
        await other.execute("UPDATE app_version SET api_version = '9.9.9'")
        found = (await store.applications.load_catalogue()).versions[version.app_version_id]

        assert (found.state, found.api_version) == (VersionState.OFFERED, "9.9.9")
        await other.close()
        await store.close()


async def test_unknown_last_change_reloads_everything() -> None:
    async with database() as dsn:
        store = await open_store(dsn, min_size=1, max_size=1)
        version = await the_version(store)
        other = await asyncpg.connect(dsn)
        await other.execute("DELETE FROM app_changes")
        await store.applications.load_catalogue()

        await other.execute("SET session_replication_role = replica; UPDATE app_version SET deprecated = true")
        found = (await store.applications.load_catalogue()).versions[version.app_version_id]

        assert found.state is VersionState.DEPRECATED
        await other.close()
        await store.close()


async def test_a_table_that_is_altered_meanwhile_is_read_as_it_is_now() -> None:
    """For example by a migration while nodes serve."""
    async with database() as dsn:
        store = await open_store(dsn, min_size=1, max_size=1)
        version = await the_version(store)
        await store.applications.load_catalogue()
        other = await asyncpg.connect(dsn)
        await other.execute(
            "UPDATE app_version SET deprecated = true; ALTER TABLE app ALTER adaptive_copies TYPE bigint"
        )

        found = (await store.applications.load_catalogue()).versions

        assert found[version.app_version_id].state is VersionState.DEPRECATED
        await other.close()
        await store.close()


async def test_a_change_that_is_not_committed_is_read_when_it_is() -> None:
    async with database() as dsn:
        store = await open_store(dsn, min_size=1, max_size=1)
        other = await asyncpg.connect(dsn)
        version = await the_version(store)
        async with other.transaction():
            await other.execute("UPDATE app_version SET deprecated = true")
            before = (await store.applications.load_catalogue()).versions
        after = (await store.applications.load_catalogue()).versions
        await other.close()
        await store.close()

    assert [found[version.app_version_id].state for found in (before, after)] == ["offered", "deprecated"]
