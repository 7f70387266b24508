"""The manual's page about files in a bucket, followed literally while a stock client computes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from tests.e2e.conftest import app_binary, client, server
from tests.e2e.server import Server
from tests.e2e.stock_client import StockClient, wait_for
from tests.e2e.test_stock_client import ended, jobs
from tests.s3 import ENVIRONMENT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
__all__ = ["app_binary", "client", "server"]

PAGE = Path(__file__).parents[2] / "docs/how-to/files-in-a-bucket.md"
AT_MOST_S = 120.0


def blocks() -> list[str]:
    found = re.findall(r"^ *```sh\n(.*?)^ *```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(one) for one in found]


def files_in(server: Server) -> list[str]:
    folder = server.data_dir / "files"
    names = [
        path.name for path in folder.rglob("*") if path.is_file() and path.parents[1].name in {"download", "upload"}
    ]
    return [name for name in names if not name.endswith(".part")]


def test_files_move_to_a_bucket_and_back_without_a_stop(
    server: Server, client: Callable[..., StockClient], app_binary: Path, bucket_url: str
) -> None:
    server.environment = ENVIRONMENT
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    volunteer = client()
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MUSTER_DATA_DIR": str(server.data_dir),
        "BUCKET": bucket_url,
    }

    def follow(block: str) -> None:
        done = subprocess.run(
            ["bash", "-ec", block], env=environment, capture_output=True, text=True, check=False, timeout=AT_MOST_S
        )
        assert done.returncode == 0, f"{block}{done.stdout}{done.stderr}"

    def a_batch_is_done() -> None:
        """Let the client fetch a new program, and compute with it."""
        batch_id = server.submit(jobs(qos="afap", count=2, command="0 0 1 5", max_errors=3))
        updates = count()

        def is_done() -> bool:
            if next(updates) % 50 == 20:
                volunteer.update()  # else it may wait for minutes after it found no job
            return ended(server, batch_id)

        wait_for(is_done, AT_MOST_S, "the batch")
        assert server.batch(batch_id)["jobs_validated"] == 2

    read_both, write, copy, redirect, back, home = blocks()
    a_batch_is_done()
    follow(read_both)
    a_batch_is_done()
    follow(write)
    a_batch_is_done()
    assert files_in(server)
    follow(copy)
    assert files_in(server) == []
    follow(redirect)
    server.add_version("testapp", app_binary, version="101")
    a_batch_is_done()
    assert files_in(server) == []
    follow(back)
    a_batch_is_done()
    follow(home)

    a_batch_is_done()
    assert len(server.api("batches")["batches"]) == 6
    assert not re.findall(r"Traceback", server.log())
    assert len(files_in(server)) == 13  # one program, which two versions share, and the outputs of six batches
