"""Tests that a restored backup is the same project."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from domain.clock import SystemClock
from runtime.project import install
from store.postgres import open_store
from tests.pg import database, empty_database
from tests.worlds import a_submitted_batch

DEPLOY = Path(__file__).parents[2] / "deploy"


def script(name: str, dsn: str, *arguments: Path) -> str:
    environment = {**os.environ, "MUSTER_DATABASE_URL": dsn, "MUSTER_PYTHON": sys.executable}
    command = ["bash", str(DEPLOY / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_what_was_backed_up_comes_back(tmp_path: Path) -> None:
    async with database() as dsn, empty_database() as new_dsn:
        url = {"project.url": "http://127.0.0.1:8080/"}
        project = await install(tmp_path / "data", dsn, url, who="test", clock=SystemClock())
        (project.download_dir / "in.txt").write_text("input\n")
        store = await open_store(dsn, min_size=1, max_size=2)
        batch = await a_submitted_batch(store, jobs=5)
        began_at = SystemClock().now()

        dump = (await asyncio.to_thread(script, "backup.sh", dsn, project.data_dir, tmp_path / "backup")).strip()
        backup_at = (await store.attention.upkeep(attempts=2)).backup_at
        await store.close()
        assert backup_at is not None and backup_at >= began_at - 1.0  # of the shell's clock, in whole seconds
        await asyncio.to_thread(script, "restore.sh", new_dsn, tmp_path / "backup", tmp_path / "new")

        restored = await open_store(new_dsn, min_size=1, max_size=2)
        assert (await restored.views.batch(batch.batch_id)).counts == batch.counts
        assert await restored.views.check_counters() == []
        await restored.close()
    assert Path(dump).stat().st_mode & 0o077 == 0
    keys = [path.relative_to(project.keys_dir) for path in project.keys_dir.rglob("*") if path.is_file()]
    assert all((tmp_path / "new/keys" / key).read_bytes() == (project.keys_dir / key).read_bytes() for key in keys)
    assert (tmp_path / "new/files/download/in.txt").read_text() == "input\n"
