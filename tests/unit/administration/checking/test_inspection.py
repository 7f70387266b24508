"""Nodes that keep outputs for themselves are found by what their workers say of their folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from administration.checking.inspection import unshared
from domain.units import Instant
from domain.views import ProcessReport
from transfer.files import NAME, identity_of, mark_of


def said(nodes: Mapping[str, str], workers: int = 2) -> list[ProcessReport]:
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
def test_those_that_have_another_folder_than_most_are_named(
    nodes: dict[str, str], own: str | None, wrong: list[str]
) -> None:
    assert [one.thing for one in unshared(said(nodes), own)] == wrong


def test_processes_that_say_nothing_of_a_folder_are_no_nodes() -> None:
    background = ProcessReport("a: background", "background", Instant(1.0), {"duties": []})

    assert unshared([background, *said({"b": "x"})], "x") == ()


def test_a_check_reads_the_mark_of_a_folder_and_draws_none(tmp_path: Path) -> None:
    assert mark_of(tmp_path) is None
    assert not (tmp_path / NAME).exists()

    drawn = identity_of(tmp_path)
    assert mark_of(tmp_path) == drawn
