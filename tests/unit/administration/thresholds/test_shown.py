"""The verdict on a simulated change."""

from __future__ import annotations

from typing import Any

import pytest

from administration.thresholds.shown import conclusion_of

NOW: dict[str, Any] = {
    "makespan_s": {"afap": 7200.0, "throughput": 36_000.0},
    "deadline_miss_fraction": 0.02,
    "instances_per_job": 1.2,
    "batches_unfinished": 0.0,
}


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "same"),
        ({"makespan_s": {"afap": 7100.0, "throughput": 36_100.0}}, "same"),
        ({"makespan_s": {"afap": 5000.0, "throughput": 36_000.0}}, "better"),
        ({"makespan_s": {"afap": 9000.0, "throughput": 36_000.0}}, "worse"),
        ({"makespan_s": {"afap": 5000.0, "throughput": 36_000.0}, "deadline_miss_fraction": 0.04}, "mixed"),
        ({"instances_per_job": 1.3}, "worse"),
        ({"batches_unfinished": 1.0}, "worse"),
        ({"makespan_s": {}, "deadline_miss_fraction": None}, "same"),
    ],
)
def test_verdict_follows_the_figures(changed: dict[str, Any], verdict: str) -> None:
    assert conclusion_of(NOW, NOW | changed).verdict == verdict


WORSE = NOW | {"instances_per_job": 1.3}


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([(NOW, WORSE), (NOW, WORSE)], "worse"),
        ([(NOW, WORSE), (NOW, NOW)], "same"),  # not in every run
        ([(NOW, WORSE), (WORSE, NOW)], "same"),
        ([(NOW, WORSE)], "same"),  # a single run
        ([], "worse"),  # a result stored without its runs
    ],
)
def test_difference_that_may_be_chance_is_none(runs: list[tuple[dict[str, Any], dict[str, Any]]], verdict: str) -> None:
    found = conclusion_of(NOW, WORSE, runs)

    assert found.verdict == verdict
    assert [one.gain for one in found.findings if one.key == "instances"] == [-1 if verdict == "worse" else 0]


def test_unfinished_kinds_are_left_out_of_the_mean() -> None:
    after = NOW | {"makespan_s": {"afap": 3600.0, "throughput": 36_000.0}, "cut_short": ["throughput"]}

    found = conclusion_of(NOW, after).findings

    assert [one.gain for one in found] == [1, 0, 0, 0]  # no mean of a single kind
