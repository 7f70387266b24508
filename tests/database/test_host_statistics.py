"""Tests runs on PostgreSQL: overtaken, killed, read meanwhile, and used by the request handler."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
import pytest

from administration.catalogue import CatalogueCache
from administration.project import create_project
from domain.apps import CPU
from domain.errors import UnavailableError
from domain.ranking import CutPoints, HostStatisticsRun, Since
from domain.units import AppId, Instant, Seconds, later
from scheduler.gates import percentile_of
from store.percentiles import RUN_LOCK, PostgresGenerations, PostgresHavTables
from store.pool import Database
from store.postgres import PostgresStore, open_store
from tests.builders import NOW
from tests.conformance.test_host_statistics import one_sample_is_enough, p_of, ranked, some_hosts, statistics
from tests.faults.waiting import until
from tests.unit.administration.clocks import StillClock
from tests.worlds import a_registered_app, a_registered_host, a_registered_version, read

TABLES = """
    SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'host_percentile_%' ORDER BY relname
"""
LOCK = "SELECT pg_try_advisory_lock(1297437780, hashtext($1))"
HOLDERS = """
    SELECT pid FROM pg_locks
    WHERE locktype = 'advisory' AND classid = 1297437780 AND objid = (hashtext($1)::bigint & 4294967295)::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
END_LOCK_HOLDER = """
    SELECT pg_terminate_backend(pid, 5000) FROM pg_locks
    WHERE locktype = 'advisory' AND objid = (hashtext($1)::bigint & 4294967295)::oid
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


async def fetched(dsn: str, query: str, *arguments: object) -> Sequence[object]:
    connection = await asyncpg.connect(dsn)
    try:
        return [row[0] for row in await connection.fetch(query, *arguments)]
    finally:
        await connection.close()


async def test_catalogue_follows_to_new_generation(store: PostgresStore) -> None:
    await one_sample_is_enough(store)
    version = await a_registered_version(store)
    hosts = await some_hosts(store, 20, version)
    cache = CatalogueCache(store.applications, StillClock(), await store.applications.load_catalogue())
    view = await read(store, hosts[0])
    assert percentile_of(version, view.havs, cache.catalogue(), now=NOW).p == 0.5  # bootstrap

    await ranked(store)
    await cache.refresh_once()

    assert percentile_of(version, view.havs, cache.catalogue(), now=NOW).p == pytest.approx(
        (await p_of(store, hosts[0]))[version.app_version_id], abs=1e-6
    )


async def test_two_processes_do_not_run_at_once(dsn: str) -> None:
    """The second one begins while the first one has its generation open, and again after its end."""
    one, other = await open_store(dsn, max_size=2), await open_store(dsn, max_size=2)

    async with one.generations.new(now=NOW, full=True) as under_way:
        assert under_way is not None
        assert await statistics(other).run() is None
        await under_way.publish([], HostStatisticsRun(under_way.number, True, NOW, Seconds(0.0)))

    assert await statistics(other).run() is not None
    await one.close()
    await other.close()


async def test_what_a_killed_run_left_is_removed_by_the_next(dsn: str) -> None:
    """SIGKILL closes the connections without notice, as does this test."""
    store = await open_store(dsn, max_size=3)
    await one_sample_is_enough(store)
    hosts = await some_hosts(store, 20, await a_registered_version(store))
    first = await ranked(store)
    standing = await p_of(store, hosts[0])
    with pytest.raises(UnavailableError):
        async with store.generations.new(now=NOW, full=True) as killed:
            assert killed is not None
            await fetched(dsn, END_LOCK_HOLDER, RUN_LOCK)
            await killed.publish([], HostStatisticsRun(killed.number, True, NOW, Seconds(0.0)))
    assert await fetched(dsn, "SELECT generation FROM percentile_pointer") == [first.generation]
    assert killed is not None
    assert f"host_percentile_{killed.number}" in await fetched(dsn, TABLES)
    assert await p_of(store, hosts[0]) == standing

    last = await ranked(store)

    assert await fetched(dsn, TABLES) == [f"host_percentile_{one.generation}" for one in (first, last)]
    assert await fetched(dsn, "SELECT generation FROM percentile_generation WHERE NOT complete") == []
    await store.close()


async def test_killed_run_leaves_old_percentiles_and_no_lock(dsn: str, tmp_path: Path) -> None:
    store = await open_store(dsn, max_size=3)
    await some_hosts(store, 2, await a_registered_version(store))
    first = await ranked(store)
    project = create_project(tmp_path, dsn)
    command = [sys.executable, "-m", "cli.run", "hoststats", "run", "--data-dir", str(project.data_dir)]
    holder = await asyncpg.connect(dsn)
    async with holder.transaction():
        await holder.execute("LOCK TABLE host_app_version IN ACCESS EXCLUSIVE MODE")
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
        async with asyncio.timeout(60):
            while not await fetched(dsn, "SELECT generation FROM percentile_generation WHERE NOT complete"):
                pass
        process.kill()
        await process.wait()
    await holder.close()

    assert await fetched(dsn, "SELECT generation FROM percentile_pointer") == [first.generation]
    async with asyncio.timeout(60):
        while (last := await statistics(store).run()) is None:
            pass  # the server has not noticed yet
    assert await fetched(dsn, TABLES) == [f"host_percentile_{one.generation}" for one in (first, last)]
    await store.close()


async def test_a_run_that_was_overtaken_switches_nothing(dsn: str) -> None:
    """Its lock was lost for a moment, and the run that took it removed the unfinished generation."""
    store = await open_store(dsn, max_size=3)
    cut = CutPoints(AppId(1), CPU, NOW, 0, (), (0,) * 11)
    with pytest.raises((UnavailableError, asyncpg.PostgresError)):
        async with store.generations.new(now=NOW, full=False) as overtaken:
            assert overtaken is not None
            await fetched(dsn, "SELECT remove_generation($1)", overtaken.number)
            await overtaken.publish([cut], HostStatisticsRun(overtaken.number, False, NOW, Seconds(0.0)))

    assert await fetched(dsn, "SELECT generation FROM percentile_pointer") == []
    await store.close()


async def test_run_that_lost_its_lock_removes_nothing(dsn: str) -> None:
    """A process stalls before it removes the remains of broken runs; meanwhile another process begins a run."""
    slow, store = await Database.open(dsn, min_size=1, max_size=1), await open_store(dsn, max_size=2)
    over = asyncio.Event()

    async def run_slowly() -> None:
        async with PostgresGenerations(slow).new(now=NOW, full=True):
            await over.wait()

    async def has_lock() -> bool:
        return bool(await fetched(dsn, HOLDERS, RUN_LOCK))

    async with AsyncExitStack() as stack:
        async with slow.transaction():  # its pool has no free connection
            running = asyncio.create_task(run_slowly())
            await until(has_lock, 10.0, "the slow run has the lock")
            await fetched(dsn, END_LOCK_HOLDER, RUN_LOCK)
            under_way = await stack.enter_async_context(store.generations.new(now=NOW, full=True))
        over.set()
        await asyncio.gather(running, return_exceptions=True)
        assert under_way is not None
        await under_way.publish([], HostStatisticsRun(under_way.number, True, NOW, Seconds(0.0)))

    assert await fetched(dsn, "SELECT generation FROM percentile_pointer") == [under_way.number]
    await store.close()
    await slow.close()


async def test_old_generations_go_and_the_last_full_one_stays(dsn: str) -> None:
    store = await open_store(dsn, max_size=3)
    await some_hosts(store, 2, await a_registered_version(store))
    runs = [await ranked(store, later(NOW, hour * 3600.0), full=hour % 3 == 0) for hour in range(8)]

    assert await fetched(dsn, TABLES) == [f"host_percentile_{runs[hour].generation}" for hour in (3, 6)]
    kept = [runs[hour].generation for hour in (3, 6, 7)]
    assert await fetched(dsn, "SELECT generation FROM percentile_generation ORDER BY 1") == kept
    assert await fetched(dsn, "SELECT DISTINCT generation FROM cut_points ORDER BY 1") == kept
    await store.close()


async def test_generation_being_read_is_removed_later(dsn: str) -> None:
    store = await open_store(dsn, max_size=3)
    await some_hosts(store, 2, await a_registered_version(store))
    for _ in range(2):
        await ranked(store)
    reader = await asyncpg.connect(dsn)
    reading = reader.transaction()
    await reading.start()
    await reader.fetch("SELECT * FROM host_percentile")

    await ranked(store)
    assert len(await fetched(dsn, TABLES)) == 3
    await reading.rollback()
    await reader.close()

    await ranked(store)
    assert len(await fetched(dsn, TABLES)) == 2
    await store.close()


async def test_run_does_not_wait_for_row_locks(dsn: str) -> None:
    """Requests do not wait for the run either: neither takes a lock that the other needs."""
    store = await open_store(dsn, max_size=3)
    await some_hosts(store, 2, await a_registered_version(store))
    busy = await asyncpg.connect(dsn)
    changing = busy.transaction()
    await changing.start()
    await busy.execute("UPDATE host_app_version SET consecutive_valid = 7")
    await busy.execute("UPDATE host SET last_rpc_at = last_rpc_at + 1")

    run = await ranked(store)

    assert run.rows == 2
    await changing.rollback()
    await busy.close()
    await store.close()


async def test_the_lock_of_a_run_is_free_when_it_ends(dsn: str) -> None:
    store = await open_store(dsn, max_size=2)
    await ranked(store, Instant(NOW))

    assert await fetched(dsn, LOCK, RUN_LOCK) == [True]

    await store.close()


@pytest.mark.parametrize("most_rows", [1, 150, 10**6])
async def test_apps_are_the_same_however_many_are_read_together(store: PostgresStore, dsn: str, most_rows: int) -> None:
    store = await open_store(dsn, max_size=2)
    apps = [await a_registered_app(store, name) for name in ("one", "two", "three")]
    versions = [await a_registered_version(store, app.app_id) for app in apps]
    for count, version in enumerate(versions, start=1):
        await some_hosts(store, count, version)
    database = await Database.open(dsn, min_size=1, max_size=2)
    tables = PostgresHavTables(database, most_rows=most_rows)
    current = {version.app_id: [version] for version in versions}

    found = [one async for one in tables.of_apps(current, Since(NOW, Instant(0.0), Instant(0.0)))]
    await database.close()
    await store.close()

    assert [(app_id, table.size) for app_id, table in found] == [
        (version.app_id, count) for count, version in enumerate(versions, start=1)
    ]
    assert all(set(table["app_version_id"].tolist()) == {current[app_id][0].app_version_id} for app_id, table in found)


async def test_samples_of_hosts_have_their_part_of_all(store: PostgresStore) -> None:
    version = await a_registered_version(store)
    for _ in range(60):
        await a_registered_host(store, platforms=(version.platform,), last_rpc_at=NOW)

    [(_, every)] = await store.insight.standings([[version]], active_since=NOW, now=NOW)
    [(_, part)] = await store.insight.standings([[version]], active_since=NOW, now=NOW, one_in=3)

    assert every.hosts == 60 and 8 <= part.hosts <= 32
