"""All available worked figures hold, and a wrong one is detected."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from tests.cases.kinds import KINDS
from tests.cases.runner import cases, judged, main

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_passes(file: Path) -> None:
    verdict = judged(json.loads(file.read_text()), file.stem)

    assert verdict.line() == f"pass {file.stem}"


def test_every_kind_has_a_case() -> None:
    assert {json.loads(file.read_text())["kind"] for file in FILES} == set(KINDS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_case_with_another_figure_fails_and_says_both(file: Path) -> None:
    case = json.loads(file.read_text())
    for key in case["expected"]:
        changed = copy.deepcopy(case)
        if key in {"accept_also", "historical_after_each_step"} or not _disturbed(changed["expected"], key):
            continue
        verdict = judged(changed, file.stem)
        assert verdict.word == "fail", key
        assert "expected" in verdict.why and "computed" in verdict.why, key


def _disturbed(values: dict, key: str | int) -> bool:  # type: ignore[type-arg]  # JSON
    """Change the first figure found below a key."""
    value = values[key]
    if isinstance(value, bool):
        values[key] = not value
        return True
    if isinstance(value, (int, float)):
        values[key] = value * 2 + 17
        return True
    if isinstance(value, dict):
        return any(_disturbed(value, one) for one in value)
    if isinstance(value, list) and value and isinstance(value[0], str):
        values[key] = [*value, "no_one"]
        return True
    if isinstance(value, list):
        return any(_disturbed(value, place) for place in range(len(value)))  # type: ignore[arg-type]
    return False


def test_unknown_kind_is_unsupported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.json").write_text(
        json.dumps({"id": "odd", "kind": "tea_leaves", "inputs": {}, "expected": {"a": 1}})
    )

    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == "unsupported odd: kind 'tea_leaves'\n"


def test_all_cases_passing_is_success(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(FILES[0]), str(FILES[1])]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["pass", "pass"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"kind": "pe", "expected": {"pe": {"a": 1}}}', '{"kind": "pe"}'])
def test_a_file_that_is_no_case_fails_without_a_traceback(tmp_path: Path, text: str) -> None:
    (tmp_path / "broken.json").write_text(text)

    assert [judged(case, name).word for name, case in cases([tmp_path])] == ["fail"]


def test_no_cases_is_no_success(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1


def test_unlimited_depth_promises_every_job_a_start() -> None:
    case = json.loads((DATA / "flux-easy-backfill-16-cores.json").read_text())
    case["inputs"]["reservation_depth"] = None
    # 6 would conflict with the promise of 3 from minute 120 on, 12 + 6 > 16; 7 ends a minute before that of 4.
    case["expected"] = {"started_first": [1, 7, 11], "reserved": [2, 3, 4, 5, 6, 8, 9, 10]}

    assert judged(case, "conservative").line() == "pass flux-easy-backfill-16-cores"


def test_a_tree_of_a_set_may_expect_an_order_alone() -> None:
    case = json.loads((DATA / "flux-fairshare-degenerate.json").read_text())
    case["expected"] = {"order": {"identical_weights": ["user.c", "user.a", "user.b"]}}
    assert judged(case, "order").word == "pass"

    case["expected"] = {"order": {"identical_weights": ["user.c", "no_one"]}}
    assert judged(case, "order").word == "fail"
