"""Nodes that do not share `files/` are found from their workers' reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from administration.checking.inspection import unshared
from domain.units import Instant
from domain.views import ProcessReport
from transfer.files import NAME, identity_of, mark_of


def reports(nodes: Mapping[str, str], workers: int = 2) -> list[ProcessReport]:
    return [
        ProcessReport(f"{node}: worker {number}", "worker", Instant(1.0), {"files": mark})
        for node, mark in nodes.items()
        for number in range(workers)
    ]


@pytest.mark.parametrize(
    ("nodes", "own", "wrong"),
    [
        ({}, None, []),
        ({}, "x", []),
        ({"a": "x", "b": "x"}, "x", []),
        ({"a": "x", "b": "x"}, None, []),
        ({"a": "x", "b": "y"}, "x", ["node b"]),
        ({"a": "x", "b": "y"}, "y", ["node a"]),
        ({"a": "x", "b": "x"}, "y", ["node this machine"]),
        ({"a": "x", "b": "y", "c": "z"}, "z", ["node a", "node b"]),
        ({"a": "x", "b": "y"}, None, ["node b"]),
    ],
)
def test_nodes_with_a_minority_folder_are_named(nodes: dict[str, str], own: str | None, wrong: list[str]) -> None:
    assert [one.thing for one in unshared(reports(nodes), own)] == wrong


def test_processes_without_a_folder_are_ignored() -> None:
    background = ProcessReport("a: background", "background", Instant(1.0), {"duties": []})

    assert unshared([background, *reports({"b": "x"})], "x") == ()


def test_check_reads_the_mark_but_creates_none(tmp_path: Path) -> None:
    assert mark_of(tmp_path) is None
    assert not (tmp_path / NAME).exists()

    drawn = identity_of(tmp_path)
    assert mark_of(tmp_path) == drawn
