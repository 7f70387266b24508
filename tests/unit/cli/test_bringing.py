"""Tests that input files are uploaded once each, and that the batch then names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from cli.bringing import brought
from domain.clock import SystemClock
from domain.errors import InvalidInputError
from jobs.spec import parse_batch, with_rows
from muster_client import Client


class Receiver:
    """The server's side of the uploads."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.calls = 0

    async def put_file(self, path: Path, *, name: str) -> None:
        self.files[name] = path.read_bytes()
        self.calls += 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    for name in "abc":
        (tmp_path / f"data/{name}.csv").write_text(name)
    for number in range(3):
        (tmp_path / f"part_{number}").write_text(str(number))
    (tmp_path / "table.csv").write_text("sample,n\na,1\nb,2\na,3\n")
    return tmp_path


async def bring(folder: Path, values: dict[str, Any]) -> tuple[Receiver, dict[str, Any]]:
    receiver = Receiver()
    return receiver, dict(await brought(cast(Client, receiver), values, folder, SystemClock()))


def rows_in(receiver: Receiver, values: dict[str, Any]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in receiver.files[values["jobs_csv"]].splitlines()]


async def test_paths_become_names_and_keep_their_open_names(folder: Path) -> None:
    batch = {"jobs": {"inputs": [{"path": "data/a.csv"}, {"name": "known"}]}, "job": [{"inputs": [{"path": "part_1"}]}]}
    receiver, made = await bring(folder, batch)

    [first, second] = made["jobs"]["inputs"]
    assert (first["open_name"], receiver.files[first["name"]], second) == ("a.csv", b"a", {"name": "known"})
    assert receiver.files[made["job"][0]["inputs"][0]["name"]] == b"1"


async def test_plain_table_is_uploaded_as_it_is(folder: Path) -> None:
    receiver, made = await bring(folder, {"jobs_csv": "table.csv", "jobs": {"command_line": "{n}"}})

    assert receiver.files[made["jobs_csv"]] == (folder / "table.csv").read_bytes()


async def test_files_of_rows_are_uploaded_once_each(folder: Path) -> None:
    shared = [{"path": "data/{sample}.csv", "open_name": "in", "sticky": True}, {"path": "part_0"}]
    batch = {"app": "pi", "qos": "afap", "submitter": "ada", "jobs_csv": "table.csv"}
    receiver, made = await bring(folder, {**batch, "jobs": {"fpops_est": 1e9, "inputs": shared, "command_line": "{n}"}})

    rows = rows_in(receiver, made)
    assert [receiver.files[row["inputs"][0]["name"]] for row in rows] == [b"a", b"b", b"a"]
    assert receiver.calls == 4  # a.csv, b.csv, part_0 and the table
    jobs = list(with_rows(parse_batch(made), lambda: rows).jobs)
    assert [job.command_line for job in jobs] == ["1", "2", "3"]
    assert {(job.own_inputs[0].open_name, job.own_inputs[0].sticky) for job in jobs} == {("in", True)}
    assert {job.shared_inputs[0].open_name for job in jobs} == {"part_0"}


async def test_columns_of_paths_are_uploaded(folder: Path) -> None:
    (folder / "jobs.csv").write_text("input.in.txt,command_line\ndata/a.csv,x {i}\npart_{i},y\n")
    receiver, made = await bring(folder, {"jobs_csv": "jobs.csv"})

    rows = rows_in(receiver, made)
    assert [receiver.files[row["inputs"][0]["name"]] for row in rows] == [b"a", b"1"]
    assert [(row["inputs"][0]["open_name"], row["command_line"]) for row in rows] == [
        ("in.txt", "x {i}"),
        ("in.txt", "y"),
    ]


async def test_json_lines_bring_the_files_they_name(folder: Path) -> None:
    lines = [{"inputs": [{"path": "data/b.csv"}], "fpops_est": 1e9}, {"fpops_est": 2e9}]
    (folder / "jobs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    receiver, made = await bring(folder, {"jobs_csv": "jobs.jsonl"})

    [first, second] = rows_in(receiver, made)
    assert (receiver.files[first["inputs"][0]["name"]], first["inputs"][0]["open_name"]) == (b"b", "b.csv")
    assert (second["inputs"], second["fpops_est"]) == ([], 2e9)


async def test_numbered_files_of_all_jobs_are_uploaded(folder: Path) -> None:
    batch = {"jobs": {"count": 3, "command_line": "{i}", "inputs": [{"path": "part_{i}", "open_name": "in"}]}}
    receiver, made = await bring(folder, batch)

    assert [receiver.files[row["inputs"][0]["name"]] for row in rows_in(receiver, made)] == [b"0", b"1", b"2"]
    assert made["jobs"] == {"command_line": "{i}", "inputs": []}


async def test_missing_file_of_a_row_is_named(folder: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        await bring(folder, {"jobs": {"count": 4, "inputs": [{"path": "part_{i}"}]}})
    assert caught.value.field == "inputs.path" and "part_3" in str(caught.value)
