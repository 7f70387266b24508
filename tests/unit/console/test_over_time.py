"""Tests of the charts of the project over time."""

from __future__ import annotations

from administration.samples import Sampled
from console.drawing import Plot
from console.over_time import CODES, ROWS, charts_of
from domain.refusals import RefusalCode
from domain.samples import Sample, Window
from domain.units import Instant


def test_table_of_a_chart_says_that_it_lists_every_nth_value() -> None:
    """Three times as many samples as rows: one value in three."""
    window = Window(Instant(0.0), Instant(20.0 * 3 * ROWS))
    many = [Sample(Instant(20.0 * place), {"requests": 1.0, "busy": 0.208}) for place in range(3 * ROWS)]

    thin, whole = ({one.key: one for one in charts_of(Sampled(20, samples), window)} for samples in (many, many[:ROWS]))

    assert (len(thin["rates"].rows), len(whole["rates"].rows)) == (ROWS, ROWS)
    assert "1 value in 3" in thin["rates"].summary and "1 value in" not in whole["rates"].summary
    assert "Peak: 208." in whole["took"].summary


def test_other_refusals_have_the_gap_of_an_outage() -> None:
    window = Window(Instant(0.0), Instant(60.0))
    codes = [f"refused.{one.value}" for one in list(RefusalCode)[: CODES + 2]]
    busy = {"requests": 1.0, "busy": 0.2} | dict.fromkeys(codes, 1.0)
    samples = [Sample(Instant(0.0), busy), Sample(Instant(20.0), {}), Sample(Instant(40.0), busy)]

    [chart] = [one for one in charts_of(Sampled(20, samples), window) if one.key == "refusals"]

    assert isinstance(chart.drawing, Plot)
    assert {line.name: line.y[1] for line in chart.drawing.lines} == dict.fromkeys(chart.columns[1:])


def test_named_range_begins_with_the_first_sample() -> None:
    """A range of a new project is not mostly empty; a part that the user selected is shown as selected."""
    samples = [Sample(Instant(9000.0 + 20.0 * place), {"requests": 1.0}) for place in range(50)]
    starts = []
    for name in ("day", ""):
        [rates, *_] = charts_of(Sampled(20, samples), Window(Instant(0.0), Instant(10_000.0), name))
        assert isinstance(rates.drawing, Plot)
        starts.append(rates.drawing.x.low)

    assert starts == [8980.0, 0.0]
