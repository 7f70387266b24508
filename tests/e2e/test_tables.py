"""A table of jobs with their own inputs, in folders, goes through the stock client and comes back by row."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.server import Server
from tests.e2e.stock_client import StockClient, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SCRIPT = """#!/bin/sh
cat common.txt data/in.csv > out/deep/model.nc
echo "$1" > log
echo "seen $1" >&2
touch boinc_finish_called
"""
BATCH = """
app = "testapp"
qos = "throughput"
jobs_csv = "jobs.csv"

[jobs]
fpops_est = 1e9
delay_bound_s = 86400
command_line = "{site}-{i}"
inputs = [{ path = "common.txt" }, { path = "sites/{site}.csv", open_name = "data/in.csv" }]
outputs = [{ name = "out/deep/model.nc", max_bytes = 1000 }, { name = "log", max_bytes = 1000 }]
"""


def test_rows_come_back_by_number(server: Server, client: Callable[..., StockClient], tmp_path: Path) -> None:
    script = tmp_path / "cat.sh"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    server.init()
    server.start()
    server.add_app("testapp", script)
    (server.data_dir / "common.txt").write_text("common\n")
    (server.data_dir / "sites").mkdir()
    for site in "ab":
        (server.data_dir / f"sites/{site}.csv").write_text(f"site {site}\n")
    (server.data_dir / "jobs.csv").write_text("site,fpops_est\na,\nb,2e9\na,\n")
    batch_id = server.submit(BATCH)
    client()
    wait_for(lambda: server.batch(batch_id)["state"] == "complete", 90, "the batch")

    server.muster("batch", "results", str(batch_id), "--to", str(tmp_path / "results"))

    found = {
        str(one.relative_to(tmp_path / "results")): one.read_text() for one in (tmp_path / "results").glob("?/**/*.*")
    }
    assert found == {f"{i}/out/deep/model.nc": f"common\nsite {site}\n" for i, site in enumerate("aba")}
    assert [(tmp_path / f"results/{i}/log").read_text() for i in range(3)] == ["a-0\n", "b-1\n", "a-2\n"]
    with (tmp_path / "results/index.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["i"], row["command_line"], row["state"]) for row in rows] == [
        ("0", "a-0", "valid"),
        ("1", "b-1", "valid"),
        ("2", "a-2", "valid"),
    ]
    assert "seen b-1" in server.instances(batch_id)[1]["stderr"]
