"""Drawings have their values at the right places, as well-formed SVG that the content security policy allows."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import Element, fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.charts import Chart
from console.drawing import (
    CHARACTER,
    NARROW,
    TICKS,
    Axis,
    Band,
    BarSeries,
    Bins,
    ColumnPlot,
    Drawing,
    Line,
    MarkLine,
    Plot,
    RowPlot,
    instants,
    nice_step,
    scale,
)

HOSTILE = "<b>\"'&amp;</b>"
LINES = Plot(Axis(), Axis(high=10.0), [Line("a", [0.0, 5.0, 10.0], [0.0, None, 10.0])], height=100)


def parsed(drawing: Drawing) -> Element:
    return fromstring(f"<all>{drawing.markup()}</all>")


def of_class(drawing: Drawing, name: str) -> list[Element]:
    return [one for one in parsed(drawing).iter() if name in (one.get("class") or "").split()]


def percents(elements: list[Element], name: str) -> list[float]:
    return [float((one.get(name) or "").rstrip("%")) for one in elements]


def test_line_is_interrupted_where_values_are_missing() -> None:
    line = replace(LINES.lines[0], x=[0.0, 1.0, 2.0, 3.0], y=[1.0, 2.0, None, 1.0])
    [drawn, dots] = of_class(replace(LINES, lines=[line]), "line")

    assert (drawn.get("d") or "").count("M") == 1 and (drawn.get("d") or "").count("L") == 1
    assert (dots.get("d"), dots.get("class")) == ("M1000.0,90.0h0", "line dot c1")


def test_samples_too_close_together_are_drawn_as_a_dot() -> None:
    close = Line("a", [0.0, 1000.0, 1001.0], [None, 1.0, 2.0])

    [drawn, dot] = of_class(replace(LINES, lines=[close]), "line")

    assert "L" in (drawn.get("d") or "") and (dot.get("d") or "").startswith("M834.2,")


def test_points_have_positions_labels_and_values() -> None:
    points = LINES.points()

    assert points["at"] == [0.0, 0.5, 1.0]
    assert points["lines"] == [["a", "c1", ["0", "", "10"]]]
    assert "from_at" not in points


def test_zoomed_plot_names_its_ends_and_scales_what_it_shows() -> None:
    line = Line("a", [0.0, 100.0, 200.0], [5000.0, 4.0, 2.0])
    plot = Plot(Axis(kind="time", low=50.0, high=250.0), Axis(), [line], zoom=True)

    points = plot.points()

    assert (points["from_at"], points["to_at"], points["at"]) == (50.0, 250.0, [0.25, 0.75])
    assert [label.text for label in parsed(plot).iter("text")][:5] == ["0", "1", "2", "3", "4"]


def test_marks_outside_the_axis_are_left_out() -> None:
    plot = Plot(Axis(low=0.0, high=10.0), Axis(), marks=[MarkLine(5.0, "in", "c1"), MarkLine(50.0, "out", "bad")])

    assert [one.text for one in of_class(plot, "named")] == ["in"]
    assert percents(of_class(plot, "mark"), "x1") == [50.0]


def test_bins_cover_a_logarithmic_axis() -> None:
    plot = Plot(Axis("x", "log", 1.0, 100.0), Axis(high=10.0), bins=Bins("hosts", [1.0, 10.0, 100.0], [10.0, 5.0]))
    bars = of_class(plot, "bar")

    assert percents(bars, "x") == [0.0, 50.0]
    assert [float(one.get("height") or 0) for one in bars] == [plot.height, plot.height / 2]


def test_columns_stand_in_groups_and_cut_ones_are_hatched() -> None:
    chart = ColumnPlot(
        ["x", "y"], [BarSeries("a", [1.0, 2.0]), BarSeries("b", [4.0, None], "c2", [True, False])], Axis(), "k"
    )
    bars = of_class(chart, "bar")

    assert percents(bars, "x") == [5.0, 55.0, 25.0]
    assert [float(one.get("height") or 0) / chart.height for one in bars] == pytest.approx([0.25, 0.5, 1.0])
    assert [one.get("fill") for one in of_class(chart, "hatched")] == ["url(#hatch-k)"]
    assert [one.get("id") for one in parsed(chart).iter("pattern")] == ["hatch-k"]


def test_rows_are_stacked_away_from_zero() -> None:
    rows = RowPlot(
        ["x"], [BarSeries("a", [2.0]), BarSeries("b", [1.0]), BarSeries("c", [-1.0])], Axis(low=-2.0, high=3.0)
    )
    bars = of_class(rows, "bar")

    assert percents(bars, "x") == [40.0, 80.0, 20.0]
    assert percents(bars, "width") == [40.0, 20.0, 20.0]


def test_grouped_rows_start_at_zero() -> None:
    rows = RowPlot(["x", "y"], [BarSeries("a", [2.0, 4.0]), BarSeries("b", [1.0, None])], Axis(), stacked=False)

    assert percents(of_class(rows, "bar"), "x") == [0.0, 0.0, 0.0]
    assert percents(of_class(rows, "bar"), "width") == [50.0, 25.0, 100.0]


@pytest.mark.parametrize(
    "drawing",
    [
        Plot(
            Axis(HOSTILE, unit=HOSTILE),
            Axis(HOSTILE, unit=HOSTILE),
            [Line(HOSTILE, [0.0, 1.0], [0.0, 1.0]), Line("b", [0.0], [None])],
            [Band([0.0, 1.0])],
            Bins(HOSTILE, [0.0, 1.0], [1.0]),
            [MarkLine(0.5, HOSTILE, "c1")],
        ),
        ColumnPlot([HOSTILE], [BarSeries(HOSTILE, [1.0]), BarSeries("b", [2.0])], Axis(HOSTILE, unit=HOSTILE)),
        RowPlot([HOSTILE * 3], [BarSeries(HOSTILE, [1.0]), BarSeries("b", [2.0])], Axis(HOSTILE, unit=HOSTILE)),
    ],
)
def test_text_is_escaped_once_and_styles_are_classes(drawing: Drawing) -> None:
    root = parsed(drawing)  # raises if the markup is not well formed

    assert not list(root.iter("b"))
    assert HOSTILE in "".join(root.itertext()) and "&lt;" not in "".join(root.itertext())
    assert all("style" not in one.attrib for one in root.iter())


def test_only_plots_of_lines_have_points_for_scripts() -> None:
    def points(drawing: Drawing) -> str:
        return Chart("k", "t", "s", (), (), drawing).points

    assert points(LINES).startswith('{"at":[')
    assert points(ColumnPlot(["x"], [BarSeries("a", [1.0])], Axis())) == points(Plot(Axis(), Axis())) == ""


@given(st.floats(1e-9, 1e15))
def test_a_step_makes_few_ticks(span: float) -> None:
    step = nice_step(span)

    assert 1.0 <= span / step <= TICKS * (1 + 1e-6)


@given(st.floats(-1e12, 1e12, allow_subnormal=False), st.floats(0.0, 1e12, allow_subnormal=False))
def test_a_scale_contains_its_values_and_zero(low: float, more: float) -> None:
    made = scale(Axis(), [low, low + more])

    assert made.low <= min(low, 0.0) + 1e-6 * abs(low)
    assert made.high >= max(low + more, 0.0) * (1 - 1e-9) and made.high > made.low
    assert 1 < len(made.ticks) <= 2 * TICKS + 2


@given(st.floats(0.0, 1e6))
def test_ticks_of_counts_are_whole_numbers(high: float) -> None:
    made = scale(Axis(kind="count", high=high), [0.0])

    assert all(at == int(at) and label.replace("\u202f", "").rstrip(" kM").isdigit() for at, label in made.ticks)


@given(st.floats(1.0, 4e9), st.floats(1.0, 1e10))
def test_instants_are_few_and_inside(low: float, span: float) -> None:
    ticks = instants(low, low + span)

    assert len(ticks) <= TICKS + 1
    assert all(low <= at <= low + span for at, _ in ticks)


def test_marks_at_the_same_place_share_a_line() -> None:
    marks = [MarkLine(5.0, "p_afap 0.5", "c4"), MarkLine(5.0, "p_late 0.5", "c2"), MarkLine(7.0, "p_tight 0.9", "c5")]
    plot = Plot(Axis(low=0.0, high=10.0), Axis(), marks=marks)

    assert [one.text for one in of_class(plot, "named")] == ["p_afap 0.5", "p_late 0.5", "p_tight 0.9"]
    assert len(of_class(plot, "mark")) == 2


def test_labels_of_marks_cross_no_other_line() -> None:
    """The values of a preview in which labels ran across other lines, and read as their labels."""
    names = (1.8, "p_tight 0.85"), (4.8, "p_late 0.5"), (4.8, "p_retry 0.5"), (5.0, "p_afap now 0.45")
    marks = [MarkLine(at, name, "c1") for at, name in (*names, (6.3, "p_afap after 0.3"))]
    plot = Plot(Axis(low=0.0, high=10.0), Axis(), marks=marks)
    tops = {one.get("x1"): float(one.get("y1") or 0) for one in of_class(plot, "mark")}

    for label in of_class(plot, "named"):
        wide = 100.0 * CHARACTER * len(label.text or "") / NARROW
        [at], y = percents([label], "x"), float(label.get("y") or 0)
        low, high = (at - wide, at) if label.get("text-anchor") == "end" else (at, at + wide)
        crossed = [
            x for x, top in tops.items() if x and x != label.get("x") and low <= float(x[:-1]) <= high and top < y
        ]
        assert (label.text, crossed) == (label.text, []) and low >= 0.0 and high <= 100.0
