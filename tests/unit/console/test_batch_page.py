"""A batch's charts: progress, and the history of its forecasts."""

from __future__ import annotations

from typing import Any

import pytest

from administration.ordering.importance import FieldEffect
from console.batch_charts import forecasts_chart, progress_chart, until_forecast
from console.batch_page import deadline_help, holds_left, quorums_of
from console.charts import Chart
from console.drawing import Line, Plot
from console.places import PlaceShown
from domain.batches import BatchCounts
from domain.forecasts import ForecastPoint, Method
from domain.ordering import PlaceInOrder
from domain.units import Seconds, later
from tests.builders import NOW, a_job_class
from tests.facts import missing
from web.moments import length


def a_document(**changes: Any) -> dict[str, Any]:
    """A batch of 100 jobs: a quarter finished at its last forecast, half now, 100 s later."""
    counts = {"jobs_total": 100, "jobs_validated": 25, "jobs_failed": 0}
    made = {"method": "warm", "made_at": NOW, "q10_at": NOW + 300.0, "q50_at": NOW + 500.0, "q90_at": NOW + 1000.0}
    record = {**counts, **made, "completion_at": NOW + 1000.0, "change": "first", "method_because": "from the record"}
    return {
        **counts,
        "jobs_validated": 50,
        "created_at": NOW - 100.0,
        "ended_at": None,
        "deadline_at": NOW + 700.0,
        "completion_q50_at": NOW + 500.0,
        "forecast_state": "shown",
        "forecasts": [record],
        **changes,
    }


def a_point(at_s: float, about_s: float, latest_s: float, over: float) -> ForecastPoint:
    return ForecastPoint(later(NOW, at_s), later(NOW, about_s), later(NOW, latest_s), Method.WARM, over)


DAY = Seconds(86400.0)
CURVE = [a_point(-50.0, 200.0, 2000.0, 0.0), a_point(0.0, 500.0, 1000.0, 0.25)]


def plot(chart: Chart | None) -> Plot:
    assert chart is not None and isinstance(chart.drawing, Plot)
    return chart.drawing


def lines(chart: Chart | None) -> dict[str, Line]:
    return {one.name: one for one in plot(chart).lines}


def at(*seconds: float) -> list[float]:
    """Return instants at these seconds from NOW."""
    return [NOW + one for one in seconds]


def test_forecast_band_lies_between_q50_and_q90() -> None:
    chart = forecasts_chart(a_document(), CURVE, NOW + 100.0, delay_bound_s=DAY)

    assert chart is not None
    drawn, [area] = lines(chart), plot(chart).bands
    assert (area.x, area.high) == (at(-50.0, 0.0, 100.0), at(2000.0, 1000.0, 1000.0))
    assert area.low == drawn["expected (q50)"].y == at(200.0, 500.0, 500.0)
    assert drawn["deadline"].y == at(700.0, 700.0)
    assert [row[1] for row in chart.rows] == ["25.0 %"]


@pytest.mark.parametrize(("moved_s", "marked"), [(50.0, [50.0]), (200.0, []), (-90.0, []), (None, [])])
def test_last_move_marks_the_forecast_history(moved_s: float | None, marked: list[float]) -> None:
    """A move to come, or before the first forecast, is outside the chart."""
    moved_at = None if moved_s is None else later(NOW, moved_s)

    chart = forecasts_chart(a_document(), CURVE, NOW + 100.0, delay_bound_s=DAY, moved_at=moved_at)

    assert chart is not None and [mark.x for mark in plot(chart).marks] == at(*marked)
    high, latest = plot(chart).y.high, max(one.q90_at for one in CURVE)
    assert (high is not None and high > latest) if marked else high is None  # the label is above the curve


@pytest.mark.parametrize(("unsent", "kinds"), [(1, ["not_sent", "retries", "overdue"]), (0, ["overdue"])])
def test_sent_instances_are_no_source_of_uncertainty(unsent: int, kinds: list[str]) -> None:
    """The forecast counted them before they were sent."""
    last = {"holds": [{"kind": one, "doubt_fraction": 0.3} for one in ("not_sent", "retries", "overdue")]}

    assert [one["kind"] for one in holds_left(last, BatchCounts(unsent=unsent))] == kinds


def test_quorums_are_shown_if_a_job_needs_several_results() -> None:
    found = [quorums_of([a_job_class(quorum=one) for one in quorums]) for quorums in ((1, 1), (2, 2), (1, 3))]

    assert found == ["", "2", "1 to 3"]


def test_the_table_has_those_forecasts_alone_that_are_drawn() -> None:
    [record] = a_document()["forecasts"]
    fallback, far = {**record, "method": Method.FALLBACK.value}, {**record, "q90_at": NOW + 1e9}

    chart = forecasts_chart(a_document(forecasts=[fallback, record, far]), CURVE, NOW + 100.0, delay_bound_s=DAY)

    assert chart is not None and len(chart.rows) == 1


def test_the_progress_goes_by_what_was_over_with_each_forecast() -> None:
    chart = progress_chart(a_document(), CURVE, NOW + 100.0)

    assert lines(chart)["jobs finished"].x == at(-100.0, -50.0, 0.0, 100.0)
    assert lines(chart)["jobs finished"].y == [0.0, 0.0, 25.0, 50.0]
    assert [row[1] for row in chart.rows] == ["50.0 %", "25.0 %", "0.0 %", "0.0 %"]


def test_the_forecast_that_stands_is_shaded_in_the_progress() -> None:
    chart = progress_chart(a_document(), CURVE, NOW + 100.0, last=CURVE[-1])

    [shaded] = plot(chart).bands
    assert shaded.x == at(500.0, 1000.0)
    assert [one.x for one in plot(chart).marks] == at(500.0, 1000.0, 700.0)
    assert not missing(chart.summary, "latest end in 15 min")


def test_before_the_first_forecast_there_is_the_progress_alone() -> None:
    fresh = a_document(forecasts=[], completion_q50_at=None)

    chart = progress_chart(fresh, [], NOW + 100.0)

    assert forecasts_chart(fresh, [], NOW + 100.0, delay_bound_s=DAY) is None
    assert [one.x for one in plot(chart).marks] == at(700.0)
    assert lines(chart)["jobs finished"].y == [0.0, 50.0]
    assert chart.summary.startswith("50 of 100 jobs") and missing(chart.summary, "3 min 20 s")


def test_the_charts_of_an_ended_batch_stop_at_its_end() -> None:
    ended = a_document(ended_at=NOW + 60.0, jobs_validated=100)

    progress = progress_chart(ended, CURVE, NOW + 9e6)
    went = forecasts_chart(ended, CURVE, NOW + 9e6, delay_bound_s=DAY)

    assert went is not None
    [end] = at(60.0)
    assert lines(progress)["jobs finished"].x[-1] == lines(went)["expected (q50)"].x[-1] == end
    assert lines(went)["ended"].y == [end, end]


@pytest.mark.parametrize(("valid", "failed", "hue"), [(0, 100, "bad"), (99, 1, "c3"), (0, 0, "c3")])
def test_progress_is_red_if_every_finished_job_failed(valid: int, failed: int, hue: str) -> None:
    counted = a_document(jobs_validated=valid, jobs_failed=failed)
    assert lines(progress_chart(counted, CURVE, NOW))["jobs finished"].hue == hue


def test_progress_marks_the_last_retry() -> None:
    chart = progress_chart(a_document(jobs_validated=20, jobs_failed=0, deadline_at=None), CURVE, NOW + 100.0)

    assert lines(chart)["jobs finished"].y[-2:] == [25.0, 20.0]
    assert [one.x for one in plot(chart).marks] == at(100.0)


def test_ended_batch_draws_the_ends_of_its_jobs() -> None:
    """Three jobs ended in the first minute and one at the end; the only forecast was made at the submission."""
    ended = a_document(ended_at=NOW + 900.0, jobs_total=4, jobs_validated=3, jobs_failed=1)
    ends = [later(NOW, after_s) for after_s in (10.0, 20.0, 60.0, 900.0)]

    chart = progress_chart(ended, CURVE[:1], NOW + 9e6, ends=ends)

    drawn = lines(chart)["jobs finished"]
    assert drawn.x == at(-100.0, 10.0, 10.0, 20.0, 20.0, 60.0, 60.0, 900.0, 900.0)
    assert drawn.y == [0.0, 0.0, 25.0, 25.0, 50.0, 50.0, 75.0, 75.0, 100.0]
    assert [row[1] for row in chart.rows] == ["100.0 %", "75.0 %", "50.0 %", "25.0 %", "0.0 %"]


def test_it_is_said_when_the_next_forecast_can_be_expected() -> None:
    def said(at: float, look_s: float = 5.0, **changes: Any) -> str:
        document = a_document(**{"forecast_state": "not_yet", **changes})
        return until_forecast(document, at, look_s=Seconds(look_s), timer_s=Seconds(900.0))

    assert f"within {length(60.0)} of the submission" in said(NOW - 50.0, forecasts=[])
    assert f"within {length(600.0)} of the submission" in said(NOW + 499.0, look_s=300.0, forecasts=[])
    late = said(NOW + 501.0, look_s=300.0, forecasts=[])
    assert not missing(late, "10 min 1 s after")
    assert not missing(said(NOW + 500.0, forecasts=[]), "10 min after the submission")
    assert not missing(said(NOW, ended_at=NOW, forecasts=[]), "ended", "first forecast")
    assert "first" not in said(NOW, ended_at=NOW)
    assert not missing(said(NOW, forecast_state="far"), "from the record", "within 15 min")
    moved = said(NOW, forecast_state="moved")
    assert not missing(moved, f"within {length(60.0)}")
    assert "from the record" not in moved


def test_reopened_batch_waits_for_a_forecast_of_its_own() -> None:
    again = a_document(forecast_state="not_yet", created_at=NOW - 9000.0)

    words = until_forecast(again, NOW + 9000.0, look_s=Seconds(5.0), timer_s=Seconds(900.0))

    assert not missing(words, "reopened", f"within {length(60.0)}")


def test_deadline_that_decides_is_not_said_to_change_nothing() -> None:
    none, points = FieldEffect(False, "changes nothing"), FieldEffect(True, "changes the points")

    first, other = PlaceShown(because="sent first, as it is due", not_first=PlaceInOrder(8, 12)), PlaceShown()
    near, far = (deadline_help(one, 7200.0, none, is_gated=False) for one in (first, other))

    assert not missing(near, "is sent first, as it is due", "8 of 12")
    assert not missing(far, "less than 2 h remains")
    assert "hanges nothing" not in near + far
    assert not missing(deadline_help(other, 7200.0, points, is_gated=False), "2 h", "Changes the points")


def test_deadline_that_decides_nothing_says_so() -> None:
    nothing = FieldEffect(False, "changes nothing")

    open_to_all, gated = (deadline_help(PlaceShown(), 0.0, nothing, is_gated=one) for one in (False, True))

    assert not missing(open_to_all, "Changes nothing") and "gate" not in open_to_all
    assert not missing(gated, "well before the deadline", "no gate")
