"""The demo ends by itself with every batch complete, and prints one JSON object."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.e2e.server import MUSTER


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_demo_completes_every_batch() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}

    done = subprocess.run(
        [*MUSTER, "demo", "--volunteers", "12", "--json"],
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
        env=environment,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert {"batches", "jobs_total", "jobs_validated", "retries", "deadlines_missed", "stock_client"} <= outcome.keys()
    assert (outcome["batches"], outcome["batches_complete"]) == (4, 4)
    assert outcome["jobs_validated"] == outcome["jobs_total"] > 0
    assert outcome["retries"] >= 0 and outcome["deadlines_missed"] >= 0
    assert done.stderr == ""
