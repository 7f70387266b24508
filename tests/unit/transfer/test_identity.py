"""Nodes that share a folder agree on what it is called; those that do not, do not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from transfer.identity import NAME, identity_of


def test_all_who_ask_first_at_once_are_told_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        told = set(threads.map(lambda _: identity_of(tmp_path / "files"), range(32)))

    assert len(told) == 1
    assert [path.name for path in (tmp_path / "files").iterdir()] == [NAME]


def test_a_folder_that_cannot_be_marked_is_the_nodes_own(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("no folder")

    assert identity_of(tmp_path / "files").endswith(f":{tmp_path}/files")


def test_a_mark_that_is_none_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff\xfe")

    assert identity_of(tmp_path).endswith(f":{tmp_path}")
