"""Charts are drawn from the benchmarks' JSON objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.charts.__main__ import read
from benchmarks.charts.charts import Bars, Curves, Series, charts_of
from benchmarks.charts.drawing import save
from benchmarks.charts.results import Asked, RefillAnswered, RefillAsked, SubmitAnswered, SubmitAsked, along, results_of
from domain.errors import InvalidInputError
from tests.facts import states


def a_dispatch(**changes: Any) -> dict[str, object]:
    usual = {
        "echo_requests_per_s": 20000.0,
        "requests_per_s": 3000.0,
        "jobs_per_s": 3000.0,
        "p50_ms": 18.0,
        "p99_ms": 50.0,
        "python_cpu_us_per_request": 400.0,
        "background_cpu_us_per_request": 50.0,
        "postgres_cpu_us_per_request": 150.0,
        "workers": 2,
        "jobs_per_request": 1,
        "slots": 1000,
        "waiting_jobs": 400_000,
        "connections": 64,
        "load": 1.0,
    }
    return {**usual, **changes}


def a_refill(**changes: Any) -> dict[str, object]:
    steady = {
        "steady_s_1k_slots_10k": 0.004,
        "steady_placed_1k_slots_10k": 250.0,
        "steady_python_us_per_slot_1k_slots_10k": 10.0,
        "steady_postgres_us_per_slot_1k_slots_10k": 5.0,
        "steady_refill_ratio_10k_over_1k_slots": 1.0,
        "load_s_1k_slots_10k": 2.4,
    }
    return {**steady, **changes}


def test_runs_that_asked_for_the_same_are_one_point_their_median() -> None:
    results = results_of(
        {
            "a.json": a_dispatch(requests_per_s=3000.0, p99_ms=50.0),
            "b.json": a_dispatch(requests_per_s=3300.0, p99_ms=40.0),
            "c.json": a_dispatch(requests_per_s=2000.0, p99_ms=90.0),
        }
    )
    answer = results.dispatch[Asked()]

    assert len(results.dispatch) == 1
    assert (answer.requests_per_s, answer.p99_ms) == (3000.0, 50.0)
    assert answer.workers_cpu_us_per_request == 350.0


def test_the_cost_of_a_job_is_that_of_its_share_of_a_request() -> None:
    results = results_of({"eight.json": a_dispatch(jobs_per_request=8, requests_per_s=1000.0, jobs_per_s=8000.0)})
    assert results.dispatch[Asked(jobs_per_request=8)].cpu_us_per_job == 68.75


def test_a_load_of_one_may_be_a_whole_number() -> None:
    assert set(results_of({"a.json": a_dispatch(load=1)}).dispatch) == {Asked()}


def test_a_curve_holds_only_runs_that_differ_in_nothing_else() -> None:
    results = results_of(
        {
            "many.json": a_dispatch(slots=10_000, requests_per_s=2700.0),
            "few.json": a_dispatch(),
            "eight.json": a_dispatch(jobs_per_request=8),
            "many-eight.json": a_dispatch(slots=10_000, jobs_per_request=8),
            "half.json": a_dispatch(load=0.5, slots=10_000),
        }
    )
    slots, answers = along(results.dispatch, "slots")

    assert slots == [1000, 10_000]
    assert [answer.requests_per_s for answer in answers] == [3000.0, 2700.0]


def test_a_refill_is_read_by_step_slots_and_backlog() -> None:
    results = results_of({"refill.json": a_refill()})
    assert results.refill == {RefillAsked("steady", 1000, 10_000): RefillAnswered(16.0, 15.0)}


def test_a_refill_after_sends_is_a_step_of_its_own() -> None:
    renamed = {key.replace("steady_", "after_sends_full_", 1): value for key, value in a_refill().items()}
    assert set(results_of({"refill.json": renamed}).refill) == {RefillAsked("after_sends_full", 1000, 10_000)}


def test_a_refill_that_placed_nothing_is_not_divided_by_nothing() -> None:
    results = results_of({"refill.json": a_refill(steady_placed_1k_slots_10k=0.0)})
    assert results.refill[RefillAsked("steady", 1000, 10_000)].us_per_slot == 4000.0


def test_a_submission_is_read_with_its_way_in() -> None:
    submitted = {"jobs": 1_000_000, "through": "store", "seconds": 20.5, "copy_seconds": 5.0}
    assert results_of({"a.json": submitted}).submit == {SubmitAsked("store", 1_000_000): SubmitAnswered(20.5, 5.0)}


def test_results_of_other_benchmarks_are_named_and_left_out() -> None:
    results = results_of({"nodes.json": {"kills": 20}, "one.json": a_dispatch()})
    assert (results.ignored, len(results.dispatch)) == (("nodes.json",), 1)


def test_a_missing_figure_is_refused_by_file_and_name() -> None:
    broken = a_dispatch()
    del broken["p99_ms"]
    with states(InvalidInputError, "one.json:", "p99_ms:", "got no value"):
        results_of({"one.json": broken})


@pytest.mark.parametrize("wrong", [True, "1000", 1000.5])
def test_a_figure_of_another_kind_is_refused(wrong: object) -> None:
    with states(InvalidInputError, "one.json:", "slots:", "whole"):
        results_of({"one.json": a_dispatch(slots=wrong)})


def test_a_list_is_no_result() -> None:
    with states(InvalidInputError, "one.json:", "one JSON object", "'list'"):
        results_of({"one.json": [a_dispatch()]})


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "one-1.json").write_text(json.dumps(a_dispatch()), encoding="utf-8")
    (tmp_path / "one-1.err").write_text("  warm-up: 3,157 requests/s\n", encoding="utf-8")
    assert set(read(tmp_path).dispatch) == {Asked()}


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="RESULTS_DIR: expected a folder with"):
        read(tmp_path)


def test_half_a_result_is_refused_by_file(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text('{"slots": 1000,', encoding="utf-8")
    with states(InvalidInputError, "one.json:", "one JSON object"):
        read(tmp_path)


def test_a_chart_of_a_single_point_is_left_out() -> None:
    assert charts_of(results_of({"one.json": a_dispatch()})) == {}


def test_charts_are_those_there_are_points_for() -> None:
    charts = charts_of(
        results_of(
            {
                "one.json": a_dispatch(),
                "half.json": a_dispatch(load=0.5, requests_per_s=1500.0, p50_ms=4.0, p99_ms=9.0),
            }
        )
    )
    assert set(charts) == {"cost", "latency"}
    latency = charts["latency"]
    assert isinstance(latency, Curves)
    assert latency.series[0] == Series("99th percentile latency", [1500.0, 3000.0], [9.0, 50.0])


def test_what_connections_cost_is_shown_for_workers_and_database() -> None:
    few = a_dispatch(connections=16, postgres_cpu_us_per_request=440.0)
    chart = charts_of(results_of({"few.json": few, "usual.json": a_dispatch()}))["connections"]

    assert isinstance(chart, Curves)
    assert {series.name: (series.x, series.y) for series in chart.series} == {
        "request workers": ([16, 64], [350.0, 350.0]),
        "PostgreSQL": ([16, 64], [440.0, 150.0]),
    }


def test_cost_sums_workers_background_and_database() -> None:
    charts = charts_of(results_of({"one.json": a_dispatch(), "eight.json": a_dispatch(jobs_per_request=8)}))
    cost = charts["cost"]
    assert isinstance(cost, Bars)
    assert cost.rows == ["one job", "eight jobs"]
    assert {part: widths[0] for part, widths in cost.parts.items()} == {
        "request workers": 350.0,
        "background process": 50.0,
        "PostgreSQL": 150.0,
    }


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    curves = Curves("A title", "x", "y", [Series("one", [1.0, 10.0], [5.0, 6.0]), Series("two", [1.0], [2.0])])
    bars = Bars("Another", "x", ["a", "b"], {"one": [1.0, 2.0], "two": [3.0, 4.0]})
    for chart in (curves, bars):
        save(chart, tmp_path / "first.svg")
        save(chart, tmp_path / "second.svg")
        drawn = (tmp_path / "first.svg").read_bytes()

        assert drawn == (tmp_path / "second.svg").read_bytes()
        assert b"<dc:date>" not in drawn
        assert chart.title.encode() in drawn
