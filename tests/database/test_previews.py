"""The preview of a batch equals its first forecast by another process, at the same time and from the same tables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from administration.batches import Batches
from domain.forecasts import ForecastRecord, ForecastState
from domain.units import BatchId
from muster_client import shapes
from store.forecasting import SENT_PAGES, per_cent
from store.postgres import PostgresStore, open_store
from tests.builders import NOW
from tests.database.test_estimator import an_estimator
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_registered_version, a_submitted_batch
from transfer.project_files import ProjectFiles

SENT = 30_000  # instances, in more pages of the table than are read
SMALL: dict[str, object] = {"app": "pi", "qos": "throughput", "jobs": {"count": 7, "fpops_est": 2e12}}
RETURNED = """
    UPDATE instance SET
        state = 'valid', host_id = 1 + job_id % 30, volunteer_id = 1 + job_id % 30, app_version_id = 1,
        sent_at = $1 - 40000 + job_id, due_at = $1, timeout_at = $1,
        reported_at = $1 - 40000 + job_id + 1000 * (1 + job_id % 7)
"""
KNOWN = """
    INSERT INTO host_app_version (host_id, app_version_id, log_n, log_sum, log_sum_sq)
    SELECT host_id, app_version_id, count(*), sum(ln(reported_at - sent_at)), sum(ln(reported_at - sent_at) ^ 2)
    FROM instance GROUP BY host_id, app_version_id
"""


@pytest.fixture
async def store(dsn: str) -> AsyncIterator[PostgresStore]:
    """Yield a store whose app has returned more results than a forecast reads, written without their counters."""
    opened = await open_store(dsn, min_size=1, max_size=4)
    await a_registered_version(opened)
    for _ in range(30):
        await a_registered_host(opened, last_rpc_at=NOW)
    await a_submitted_batch(opened, jobs=SENT)
    connection = await asyncpg.connect(dsn)
    await connection.execute("ALTER TABLE instance SET (autovacuum_enabled = false)")  # new rows take new pages
    await connection.execute(RETURNED, NOW)
    await connection.execute(KNOWN)
    await connection.execute("ANALYZE")
    pages = await connection.fetchval("SELECT relpages FROM pg_class WHERE relname = 'instance'")
    assert per_cent(pages, SENT_PAGES) < 100.0
    await connection.close()
    yield opened
    await opened.close()


async def both(
    store: PostgresStore, tmp_path: Path, values: dict[str, object], *, copy_of: BatchId | None = None
) -> tuple[shapes.PreviewShown, ForecastRecord]:
    """Return a batch's preview and, after its submission at the same time, its first forecast by a second process."""
    batches = Batches(store, ProjectFiles(tmp_path), HandClock())
    preview = await batches.preview(values, copy_of=copy_of)
    batch_id = await batches.submit(values, copy_of=copy_of)
    other = await open_store(store._database.dsn, min_size=1, max_size=2)
    [done] = (await an_estimator(other, HandClock()).run_one(batch_id)).done
    await other.close()
    assert done.record is not None and preview["forecast_state"] == ForecastState.SHOWN
    return preview, done.record


def is_alike(preview: shapes.PreviewShown, record: ForecastRecord) -> bool:
    ends = preview["q10_at"], preview["q50_at"], preview["q90_at"], preview["completion_at"]
    of_record = record.q10_at, record.q50_at, record.q90_at, record.completion_at
    return ends == pytest.approx(of_record, abs=1.0)


async def test_preview_is_first_forecast_of_a_sample(store: PostgresStore, tmp_path: Path) -> None:
    assert is_alike(*await both(store, tmp_path, SMALL))


async def test_preview_of_a_large_batch_is_its_forecast(store: PostgresStore, tmp_path: Path) -> None:
    """Its own rows are a large part of the table whose pages are sampled."""
    assert is_alike(*await both(store, tmp_path, {**SMALL, "jobs": {"count": 5_000, "fpops_est": 2e12}}))


async def test_preview_of_jobs_with_two_quorums(store: PostgresStore, tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("fpops_est,quorum\n" + 300 * "2e12,1\n" + 20 * "2e12,3\n")
    batches = Batches(store, ProjectFiles(tmp_path / "files"), HandClock())
    name = await batches.keep_file(table, "jobs.csv")

    preview, record = await both(store, tmp_path / "files", {**SMALL, "jobs": {}, "jobs_csv": name})

    assert is_alike(preview, record)
    assert [hold["slots"] for hold in preview["holds"]] == [hold.slots for hold in record.holds] == [300 + 3 * 20]


async def test_preview_of_a_clone_is_its_forecast(store: PostgresStore, tmp_path: Path) -> None:
    original = await a_submitted_batch(store, jobs=50)
    values = await Batches(store, ProjectFiles(tmp_path), HandClock()).values_of(
        original.batch_id, {"delay_bound_s": 14_400.0}
    )

    assert is_alike(*await both(store, tmp_path, values, copy_of=original.batch_id))
