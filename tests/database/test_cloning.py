"""Concurrent clones leave connections of the pool for the jobs that they read."""

from __future__ import annotations

import asyncio
from pathlib import Path

from administration.batches import CLONES_AT_ONCE, Batches
from domain.clock import SystemClock
from domain.units import BatchId
from store.postgres import open_store
from tests.worlds import a_registered_version, a_submitted_batch
from transfer.project_files import ProjectFiles

CLONES = 8


async def test_more_clones_than_connections_all_end(dsn: str, tmp_path: Path) -> None:
    store = await open_store(dsn, min_size=1, max_size=CLONES_AT_ONCE + 1)
    try:
        await a_registered_version(store)
        batch_id = (await a_submitted_batch(store, jobs=3)).batch_id
        batches = Batches(store, ProjectFiles(tmp_path), SystemClock())
        values = await batches.values_of(batch_id, {})
        submitted = (batches.submit_and_preview(values, copy_of=batch_id) for _ in range(CLONES))
        done = await asyncio.wait_for(asyncio.gather(*submitted), 20.0)
        ids = {answer["batch_id"] for answer, _ in done}
        totals = [(await store.views.batch(BatchId(one))).counts.jobs_total for one in ids]
    finally:
        await store.close()
    assert (len(ids), set(totals)) == (CLONES, {3})
