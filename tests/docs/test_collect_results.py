"""The commands that collect a batch's results, typed as they stand, with a project that consists of its answers."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/how-to/collect-results.md"
JOBS = [
    {"job_id": 7, "canonical_instance_id": 12},
    {"job_id": 8, "canonical_instance_id": None},
    {"job_id": 70, "canonical_instance_id": 15},
]
BROUGHT = {"pi_1_7_12_r0": "right", "pi_1_7_11_r0": "wrong", "pi_1_8_13_r0": "open", "pi_1_70_15_r0": "also right"}


def test_each_valid_job_has_the_output_of_its_canonical_instance(tmp_path: Path) -> None:
    [script] = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for name, text in BROUGHT.items():
        folder = tmp_path / "project/files/upload" / name[-5:-3]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "jobs.json").write_text(json.dumps(JOBS))
    muster = tmp_path / "muster"
    muster.write_text(f'#!/bin/sh\n[ "$*" = "job list 1 --limit 10000 --json" ] && cat {tmp_path}/jobs.json\n')
    muster.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "MUSTER_DATA_DIR": str(tmp_path / "project")}

    subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=tmp_path, env=environment, check=True, timeout=60
    )

    assert {path.name: path.read_text() for path in (tmp_path / "results").iterdir()} == {
        "7": "right",
        "70": "also right",
    }
