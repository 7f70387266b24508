"""Tables of results: text that a spreadsheet would run as a formula gets an apostrophe, numbers stay numbers."""

from __future__ import annotations

import csv
from pathlib import Path

from administration.collecting import new_index
from administration.result_table import row_of

JOB = {
    "job_id": 7,
    "because": "@SUM(A1)",
    "command_line": "=cmd|' /C calc'!A0",
    "inputs": ["+1", "b"],
    "outputs": [{"name": "out", "state": "here"}],
    "exit_status": -5,
    "elapsed_s": None,
}


def test_table_of_results_has_no_formulas(tmp_path: Path) -> None:
    path = tmp_path / "index.csv"
    with new_index(path) as index:
        index.writerow(row_of(JOB, "07"))
        index.writerow(row_of({**JOB, "command_line": "\t=1", "because": "\r=1"}, "=08"))
    with path.open(newline="") as file:
        first, second = csv.DictReader(file)
    assert [first[name] for name in ("because", "command_line", "inputs")] == [
        "'@SUM(A1)",
        "'=cmd|' /C calc'!A0",
        "'+1 b",
    ]
    assert [first[name] for name in ("i", "job_id", "exit_status", "elapsed_s")] == ["07", "7", "-5", ""]
    assert [second[name] for name in ("command_line", "because", "files")] == ["'\t=1", "'\r=1", "'=08/out"]
