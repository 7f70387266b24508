"""The command that emulates other systems' fair-share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.main import main
from tests.facts import missing

TREE = {"name": "root", "children": [{"name": "ann", "usage": 3}, {"name": "bob", "usage": 1}]}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str, int]:
    code = 0
    try:
        main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return printed.out, printed.err, code


def test_tree_is_printed_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(TREE))

    out, err, code = run(capsys, "fairshare", "emulate", "--system", "flux", str(file))

    assert out.splitlines() == ["user  fairshare    weight", "bob           1         2", "ann         0.5  0.666667"]
    assert (err, code) == ("", 0)


def test_json_has_one_object_per_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tree.json"
    file.write_text(json.dumps(TREE))

    out, _, _ = run(capsys, "fairshare", "emulate", "--system", "flux", "--json", str(file))

    assert json.loads(out)[0] == {"user": "bob", "fairshare": "1", "weight": "2"}


@pytest.mark.parametrize(
    ("content", "facts"),
    [
        (b"{", ("JSON",)),
        (b"\xff\xfe", ("JSON",)),
        (b"[" * 100_000, ("JSON", "nested")),
        (b'{"name": "root", "children": [{"name": "ann", "usage": -3}]}', ("ann.usage:", "0")),
        (b"[]", ("document:", "object")),
    ],
)
def test_bad_file_is_reported_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, facts: tuple[str, ...]
) -> None:
    file = tmp_path / "tree.json"
    file.write_bytes(content)

    out, err, code = run(capsys, "fairshare", "emulate", "--system", "flux", str(file))

    assert (out, code) == ("", 1)
    assert not missing(err, *facts)
    assert len(err.splitlines()) == 1


def test_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, err, code = run(capsys, "fairshare", "emulate", "--system", "pbs", str(tmp_path / "none.json"))

    assert code == 1
    assert "none.json" in err
