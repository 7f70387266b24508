"""New applications from the templates run on the stock client, or are refused with what the host lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.server import Server
from tests.e2e.stock_client import StockClient, wait_for
from tests.facts import missing

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def add(server: Server, folder: Path, name: str, template: str) -> int:
    """Follow what `muster app new` prints; return the batch."""
    server.muster("app", "new", name, "--template", template, "--to", str(folder))
    muster = folder / "muster"  # what a user has on the PATH
    muster.write_text(f'#!/bin/sh\nPYTHONPATH={Path.cwd()} exec {sys.executable} -m cli.run "$@"\n')
    muster.chmod(0o755)
    if template == "docker":
        (folder / "docker_wrapper").write_text("#!/bin/sh\ncat Dockerfile job.toml main.sh > out\n")
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "MUSTER_DATA_DIR": str(server.data_dir)}
    subprocess.run(["./add.sh"], cwd=folder, env=environment, check=True, timeout=120)
    return int(server.json("batch", "submit", str(folder / "batch.toml"))["batch_id"])


def test_script_runs_and_a_container_waits_for_docker(
    server: Server, client: Callable[..., StockClient], tmp_path: Path
) -> None:
    """Client 7.20 does not report Docker."""
    server.init()
    server.start()
    container = add(server, tmp_path / "boxed", "boxed", "docker")
    script = add(server, tmp_path / "doubled", "doubled", "script")
    asking = client()

    wait_for(lambda: server.batch(script)["state"] == "complete", 120, "the batch of the script")

    assert server.batch(container)["unsent"] == 10
    explained = server.muster("explain", "host", str(server.instances(script)[0]["host_id"]))
    assert not missing(explained, "'docker'", "Docker or Podman", "neither"), asking.log()
