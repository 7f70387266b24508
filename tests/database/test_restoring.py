"""Tests ids and files after a restore."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from administration.checking.files import shard_of
from administration.restoring import GREATEST_ID, ID_STEP, Restored, restore
from domain.clock import SystemClock
from store.checking import INT_STEP
from store.postgres import PostgresStore, open_store
from tests.builders import NOW
from tests.worlds import a_registered_host, a_sent_instance, a_submitted_batch

CONTENT = b"3.14159\n"
MD5 = hashlib.md5(CONTENT).hexdigest()
SEQUENCES = "SELECT sequencename, data_type::text, last_value FROM pg_sequences WHERE schemaname = current_schema()"


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[PostgresStore]:
    opened = await open_store(dsn, min_size=1, max_size=2)
    yield opened
    await opened.close()


def put(folder: Path, name: str) -> None:
    path = folder / shard_of(name.removesuffix(".part")) / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(CONTENT)


async def restored(store: PostgresStore, tmp_path: Path) -> Restored:
    return await restore(store.restoring, store.uploads, tmp_path / "upload", tmp_path / "aside", SystemClock())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def test_files_without_rows_are_set_aside(store: PostgresStore, tmp_path: Path) -> None:
    """Instances 1 and 2 are in progress, 3 is unsent, 99 is not in the database."""
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(2)]
    assert [one.instance_id for one in sent] == [1, 2]
    for name in ("pi_1_1_1_r0", "pi_1_1_1_r1", "pi_1_2_2_r0.part", "pi_1_3_3_r0", "pi_1_9_99_r0", "notes.txt"):
        put(tmp_path / "upload", name)
    await store.uploads.record_upload(
        sent[0].instance_id, name="pi_1_1_1_r0", nbytes=len(CONTENT), md5=MD5, completed_at=NOW
    )

    made = await restored(store, tmp_path)

    assert (made.kept, made.recorded, made.set_aside) == (2, 1, 3)
    assert names(tmp_path / "upload") == ["pi_1_1_1_r0", "pi_1_1_1_r1", "pi_1_2_2_r0.part"]
    assert names(tmp_path / "aside") == ["notes.txt", "pi_1_3_3_r0", "pi_1_9_99_r0"]
    expected = await store.uploads.expected(sent[0].instance_id, "pi_1_1_1_r1")
    assert expected is not None and expected.recorded is not None and expected.recorded.md5 == MD5


async def test_no_id_is_given_out_again(store: PostgresStore, tmp_path: Path, dsn: str) -> None:
    """Not even an id that only a file name contains. Invalid file names do not use up the ids."""
    batch = await a_submitted_batch(store, jobs=2)
    put(tmp_path / "upload", f"pi_1_1_{5 * ID_STEP}_r0")
    put(tmp_path / "upload", f"pi_1_1_{GREATEST_ID + 1}_r0")
    connection = await asyncpg.connect(dsn)
    before = {row["sequencename"]: row for row in await connection.fetch(SEQUENCES)}

    made = await restored(store, tmp_path)

    assert made.new_ids.instances == 2
    for row in await connection.fetch(SEQUENCES):
        least = 5 * ID_STEP if row["data_type"] == "bigint" else before[row["sequencename"]]["last_value"] or 0
        step = ID_STEP if row["data_type"] == "bigint" else INT_STEP
        assert least + step <= row["last_value"] < GREATEST_ID, row["sequencename"]
    ids = [row[0] for row in await connection.fetch("SELECT instance_id FROM instance ORDER BY 1")]
    assert min(ids) > 6 * ID_STEP
    host = await a_registered_host(store)
    assert (await a_sent_instance(store, batch.batch_id, host)).instance_id == ids[0]
    assert (await a_submitted_batch(store, jobs=1)).batch_id > 6 * ID_STEP
    await connection.close()


async def test_a_restore_may_be_repeated(store: PostgresStore, tmp_path: Path) -> None:
    await a_submitted_batch(store, jobs=2)
    put(tmp_path / "upload", "pi_1_9_99_r0")

    first, second = await restored(store, tmp_path), await restored(store, tmp_path)

    assert (first.set_aside, second.set_aside) == (1, 0)
    assert first.new_ids == second.new_ids
    assert await store.views.check_counters() == []


async def test_a_serving_process_is_noticed(store: PostgresStore, dsn: str) -> None:
    assert await store.restoring.serving() == 0
    other = await asyncpg.connect(dsn)
    await other.execute("SELECT pg_advisory_lock(1)")
    assert await store.restoring.serving() == 1
    await other.close()
