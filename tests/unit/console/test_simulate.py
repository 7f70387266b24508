"""Charts of a simulation: makespans and tails by kind of batch, completion of urgent batches, and costs."""

from __future__ import annotations

from typing import Any

from administration.thresholds.replay import LeftOut
from console.charts import Chart
from console.drawing import ColumnPlot
from console.simulate import (
    LEFT_OUT_WORDS,
    charts_of,
    decisive_first,
    delays_chart,
    ends_chart,
    makespan_chart,
    price_chart,
    tail_chart,
)
from domain.deadline_rules import CLAIRVOYANT
from simulator.metrics import Figures
from simulator.report import RuleComparison, rows_of
from web.moments import length

RESULT: dict[str, Any] = {
    "rules": {
        "muster": {
            "makespan_s": {"afap": 3600.0},
            "tail_s": {"afap": 600.0},
            "instances_per_job": 1.25,
            "never_returned_fraction": 0.05,
            "tight_fraction": 0.125,
            "preempted_s_per_job": 90.0,
            "validation_delay_s": 30.0,
            "validation_delay_p90_s": 120.0,
        },
        "fixed": {"makespan_s": {"afap": 9000.0}, "cut_short": ["afap"], "instances_per_job": 1.0},
        "clairvoyant": {"makespan_s": {"afap": 1800.0}},
    },
    "curves": {"muster": [(0.0, 0.0), (1.0, 1.0)], "fixed": [(0.0, 0.0), (1.0, 0.9), (2.5, 1.0)]},
}


def drawn(chart: Chart | None) -> ColumnPlot:
    assert chart is not None and isinstance(chart.drawing, ColumnPlot)
    return chart.drawing


def test_every_visible_figure_is_drawn() -> None:
    assert [chart.key for chart in charts_of(RESULT)] == ["makespan", "tail", "ends", "price", "delays"]


def test_rules_are_compared_in_charts_with_their_numbers() -> None:
    makespan, tail, ends = makespan_chart(RESULT), tail_chart(RESULT), ends_chart(RESULT)

    assert makespan is not None
    assert makespan.rows == [("AFAP", length(3600.0), f"> {length(9000.0)}", length(1800.0))]
    assert tail is not None
    assert tail.rows == [("AFAP", length(600.0), "–", "–")]
    assert ends is not None
    assert [row[2:] for row in ends.rows] == [(length(3600.0), length(3600.0)), (length(3600.0), length(9000.0))]


def test_times_of_a_simulated_project_count_from_its_start() -> None:
    for result, start in ((RESULT, "submission"), ({**RESULT, "replayed": {"runs": ()}}, "start of the simulation")):
        makespan = makespan_chart(result)
        assert makespan is not None and start in makespan.summary


def test_simulated_project_has_no_chart_of_some_urgent_batches() -> None:
    """Its page lists the end of each urgent batch, also of those with a deadline."""
    assert ends_chart(RESULT) is not None
    assert ends_chart({**RESULT, "replayed": {"runs": ()}}) is None


def test_what_was_not_over_is_hatched_and_said() -> None:
    chart = makespan_chart(RESULT)

    assert [bars.cut for bars in drawn(chart).series] == [[False], [True], [False]]
    assert chart is not None
    assert "Hatched" in chart.summary
    whole = makespan_chart({"rules": {"muster": RESULT["rules"]["muster"]}})
    assert whole is not None
    assert "Hatched" not in whole.summary


def test_cost_chart_shows_instances_and_due_dates() -> None:
    chart = price_chart(RESULT)

    assert chart is not None
    assert chart.columns == ("rule", "extra instances", "never returned", "tight due dates")
    assert chart.rows == [
        ("muster", "25.0 %", "5.0 %", "12.5 %"),
        ("fixed", "0.0 %", "–", "–"),
        ("clairvoyant", "–", "–", "–"),
    ]


def test_delays_of_seconds_are_not_drawn() -> None:
    short = {"preempted_s_per_job": 0.0, "validation_delay_s": 0.6, "validation_delay_p90_s": 0.6}
    chart = delays_chart({"rules": {"present values": short, "changed values": short}})
    assert chart is not None
    assert (chart.svg, len(chart.rows)) == ("", 2)


def test_delays_for_volunteers_are_in_minutes() -> None:
    chart = delays_chart(RESULT)

    assert chart is not None
    assert chart.rows[0] == ("muster", "1.5 min", "0.5 min", "2.0 min")
    assert drawn(chart).series[0].values == [1.5, 0.5, 2.0]


def test_without_figures_there_is_nothing_to_draw() -> None:
    assert charts_of({"rules": {"muster": {}}, "curves": {}}) == []


def test_figures_that_are_compared_come_before_others() -> None:
    kinds = {"throughput": 60.0}
    figures = Figures(
        afap_makespan_s=60.0,
        other_makespan_s=60.0,
        makespan_s=kinds,
        tail_s=kinds,
        batches_unfinished=1.0,
        jobs_per_day=7.0,
        use_fraction=0.5,
    )

    rows = rows_of(RuleComparison("small", 1, {"muster": figures, CLAIRVOYANT: figures}))
    first, more = decisive_first({"rows": rows})

    compared = ["afap_makespan_s", "afap_makespan_s", "other_makespan_s", "makespan_s", "batches_unfinished", "tail_s"]
    assert [row.key for row in first] == compared
    assert [row.key for row in more] == ["jobs_per_day", "use_fraction"]
    alone = ["tail, AFAP", ["10 min", ""], "tail_s"]  # no batch of the other side has ended
    assert decisive_first({"rows": [alone], "replayed": {"runs": ()}}) == ([], [alone])
    judged, others = decisive_first({"rows": rows, "replayed": {"runs": ()}})
    assert (judged, [row.key for row in others]) == ([], ["other_makespan_s", "jobs_per_day", "use_fraction"])


def test_each_reason_for_leaving_out_a_batch_has_words() -> None:
    assert LEFT_OUT_WORDS.keys() == {*LeftOut}
