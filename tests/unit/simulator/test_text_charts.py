"""Text charts have lengths and heights in proportion to their values."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from simulator.metrics import Figures
from simulator.report import BatchEnds, RuleComparison
from simulator.text_charts import bar, charts_of, curve, curve_points
from tests.facts import missing

TWO = RuleComparison(
    "small",
    2,
    {
        "muster": Figures(afap_makespan_s=36_000.0, tail_s={"afap": 3600.0}),
        "fixed": Figures(afap_makespan_s=72_000.0, tail_s={"afap": 14_400.0, "throughput": 1e6}),
        "clairvoyant": Figures(afap_makespan_s=18_000.0),
    },
    {"muster": BatchEnds((18_000.0, 36_000.0), 2), "fixed": BatchEnds((36_000.0,), 2)},
)


def shown(comparison: RuleComparison) -> list[str]:
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(charts_of(comparison))
    return capture.get().splitlines()


def test_bars_are_as_long_as_makespans_and_tails() -> None:
    lines = shown(TWO)

    assert lines[0] == "AFAP makespan"
    assert [line.count("█") for line in lines[1:4]] == [20, 40, 10]
    assert not missing(lines[4], "AFAP tail", "90 % of the jobs")
    assert [line.count("█") for line in lines[5:7]] == [10, 40]
    assert [line.split()[0] for line in lines[1:4]] == ["muster", "fixed", "clairvoyant"]


def test_a_bar_of_what_was_not_over_says_that_it_takes_longer() -> None:
    rules = {**TWO.rules, "fixed": replace(TWO.rules["fixed"], cut_short=("afap",))}
    _, muster, fixed, *_ = shown(replace(TWO, rules=rules))

    assert (muster.split()[-2:], fixed.split()[-3:]) == (["10.0", "h"], [">", "20.0", "h"])


def test_curves_rise_with_the_jobs_that_are_over() -> None:
    heading, muster, fixed = shown(TWO)[7:]

    assert not missing(heading, "AFAP jobs finished", "10.0 h")
    assert muster == f"muster {19 * ' '}{20 * '▄'}█ 100 %"
    assert fixed == f"fixed  {39 * ' '}▄ 50 %"


def test_without_urgent_batches_there_is_nothing_to_draw() -> None:
    assert shown(RuleComparison("none", 1, {"muster": Figures(), "fixed": Figures()})) == []


def test_a_bar_is_drawn_in_eighths() -> None:
    assert [bar(fraction, 2) for fraction in (0.0, 1 / 16, 1.0, 7.0)] == ["", "▏", "██", "██"]


def test_a_curve_is_full_only_when_all_is_over() -> None:
    almost = BatchEnds(tuple(float(n) for n in range(999)), 1000)

    assert curve(almost, 1000.0, width=3)[-1] == "▇"
    assert curve(BatchEnds((1.0,), 1), 1.0, width=3) == "  █"


def test_a_curve_steps_with_every_job() -> None:
    assert curve_points(BatchEnds((), 3)) == ([0.0], [0.0])
    assert curve_points(BatchEnds((3600.0, 3600.0), 2)) == ([0.0, 1.0, 1.0], [0.0, 0.5, 1.0])
