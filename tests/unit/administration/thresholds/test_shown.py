"""The verdict on a simulated change."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import ttest_1samp

from administration.thresholds.shown import chance_of, conclusion_of
from tests.facts import missing

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
        ([(NOW, WORSE), (NOW, NOW)], "unsure"),  # not in every run
        ([(NOW, WORSE), (WORSE, NOW)], "unsure"),
        ([(NOW, WORSE)], "unclear"),  # a single run
        ([], "worse"),  # a result stored without its runs
    ],
)
def test_difference_that_may_be_chance_is_none(runs: list[tuple[dict[str, Any], dict[str, Any]]], verdict: str) -> None:
    found = conclusion_of(NOW, WORSE, runs)

    assert found.verdict == verdict
    assert [one.gain for one in found.findings if one.key == "instances"] == [-1 if verdict == "worse" else 0]


def test_each_kind_of_batch_has_its_own_verdict() -> None:
    after = NOW | {"makespan_s": {"afap": 3600.0, "throughput": 36_000.0}, "cut_short": ["throughput"]}

    found = conclusion_of(NOW, after).findings

    assert [(one.key, one.verdict) for one in found][:2] == [
        ("makespan_s afap", "better"),
        ("makespan_s throughput", "same"),
    ]
    assert [(one.before[0], one.after[0]) for one in found][:2] == [("2", "1"), ("1", ">")]


def spans(afap: float, tail: float = 600.0) -> dict[str, Any]:
    return NOW | {"makespan_s": {"afap": afap}, "tail_s": {"afap": tail}}


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ((6000.0, 6100.0, 6200.0), "better"),
        ((6000.0, 7000.0, 7900.0), "same"),  # the spread is larger than the mean change
        ((6000.0, 6100.0), "unsure"),  # of five figures, one may differ as much by chance
        ((6000.0, 6001.0), "better"),
        ((6000.0, 7000.0), "same"),
    ],
)
def test_difference_must_exceed_the_spread_of_the_runs(ends: tuple[float, ...], verdict: str) -> None:
    runs = [(spans(7200.0), spans(end)) for end in ends]

    assert conclusion_of(spans(7200.0), spans(ends[1]), runs).verdict == verdict


@pytest.mark.parametrize(
    ("kind", "verdict"), [("afap", "unclear"), ("short_deadline", "unclear"), ("throughput", "better")]
)
def test_change_is_not_better_if_urgent_batches_are_unclear(kind: str, verdict: str) -> None:
    """Not even if other figures are better."""

    def run(end: float) -> tuple[dict[str, Any], dict[str, Any]]:
        before = {"makespan_s": {kind: 7200.0}, "instances_per_job": 1.3}
        return before, {"makespan_s": {kind: end}, "instances_per_job": 1.2}

    runs = [run(end) for end in (9400.0, 8400.0, 6500.0)]
    found = conclusion_of(*run(8400.0), runs)

    assert {one.key: one.verdict for one in found.findings} == {
        f"makespan_s {kind}": "may be chance",
        "instances": "better",
    }
    assert (found.verdict, found.brief.count("1 better")) == (verdict, 1)


def test_longer_tails_count_against_a_change() -> None:
    assert conclusion_of(spans(7200.0), spans(6000.0, tail=900.0)).verdict == "mixed"


def test_equal_figures_are_no_difference() -> None:
    found = conclusion_of(NOW, NOW, [(NOW, NOW)] * 3)

    assert (found.verdict, found.words.partition(":")[0]) == ("same", "No difference")


@pytest.mark.parametrize(
    "changes", [(0.1, 0.3), (0.1, 0.2, 0.4), (0.3, -0.1, 0.2, 0.1), (0.1, 0.2, 0.1, 0.4, -0.1, 0.3)]
)
def test_chance_is_that_of_a_t_test(changes: tuple[float, ...]) -> None:
    assert chance_of(changes) == pytest.approx(ttest_1samp(changes, 0.0).pvalue)


def test_difference_that_more_runs_may_show_is_counted() -> None:
    found = conclusion_of(NOW, WORSE, [(NOW, WORSE), (NOW, NOW)])

    assert found.verdict == "unsure" and not missing(found.words, f"1 of {len(found.findings)}")
    assert {one.key: one.verdict for one in found.findings if one.verdict != "same"} == {"instances": "may be chance"}
