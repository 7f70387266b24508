"""Forecasts in sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from administration.forecasts.service import forecasts_as_json
from administration.forecasts.words import FAN, MEDIAN, Fan, Mark, Point, chart, forecasts_in_words, over_at
from domain.batches import BatchCounts, BatchState, QoS
from domain.forecasts import (
    Accuracy,
    AppAccuracy,
    Change,
    ForecastHold,
    ForecastRecord,
    HoldKind,
    Method,
    Terms,
    Trigger,
)
from domain.units import HOUR_S, AppId, BatchId, HostId, Instant, Seconds, later
from tests.builders import NOW, a_batch

TERMS = Terms(30, 4, Seconds(5400.0), 0.02, 0.03, 0.5, Seconds(7200.0), 0.6931)
HOLDS = (
    ForecastHold(HoldKind.OVERDUE, 2, 0.75, (HostId(7),), "2 instances on 1 host are overdue; mostly host 7"),
    ForecastHold(HoldKind.RETRIES, 1, 0.25, (), "1 retry is not sent yet"),
)
RECORD = ForecastRecord(
    BatchId(1),
    NOW,
    Trigger.VALIDATION,
    later(NOW, HOUR_S),
    later(NOW, 2 * HOUR_S),
    later(NOW, 6 * HOUR_S),
    Method.WARM,
    "from the record",
    1.0,
    later(NOW, 6 * HOUR_S),
    Change.MOVED,
    "0.20 days earlier, more than the tolerance of 0.10 days",
    40,
    9,
    1,
    terms=TERMS,
    holds=HOLDS,
)
ACCURACY = AppAccuracy(
    AppId(1), NOW, Accuracy(34, 0.1, 0.52, 0.91, 0.08, 0.21, -0.02, 0.05), 1.0, "91% lay below q90: kept"
)


def words(*records: ForecastRecord, accuracy: AppAccuracy | None = ACCURACY, **changes: Any) -> str:
    values: dict[str, Any] = {
        "created_at": later(NOW, -5 * HOUR_S),
        "counts": BatchCounts(jobs_total=40, jobs_validated=9, jobs_failed=1),
        "completion_at": RECORD.completion_at,
        "completion_q50_at": RECORD.q50_at,
        "completion_q90_at": RECORD.q90_at,
    }
    batch = a_batch(**(values | changes))
    return forecasts_in_words(forecasts_as_json(batch, records, accuracy, app="pi", now=NOW))


def test_people_are_told_about_when_and_at_latest() -> None:
    told = words(RECORD)

    assert "10 of 40 jobs over (1 failed)" in told
    assert "done about 2027-01-15 10:00 UTC (in 2 h)\nat latest  2027-01-15 14:00 UTC (in 6 h)" in told


def test_what_holds_it_is_told_with_its_part_of_the_doubt() -> None:
    told = words(RECORD)

    assert "75% of the doubt: 2 instances on 1 host are overdue; mostly host 7" in told
    assert "25% of the doubt: 1 retry is not sent yet" in told
    assert "30 jobs are open; 4 of them have a result and lack another for the quorum" in told
    assert "sending what was never sent takes 1 h 30 min at the present rate" in told
    assert "take 2.00 times as long as the app's others" in told
    assert "retry chains: 0.50 of the instances out now are expected to need one" in told


def test_the_last_forecasts_come_with_trigger_method_and_the_reason_of_their_change() -> None:
    first = replace(RECORD, made_at=later(NOW, -HOUR_S), trigger=Trigger.SUBMISSION, change=Change.FIRST, because="why")

    told = words(first, RECORD)

    assert "Last forecasts (2 of 2 kept):\n  2027-01-15 08:00 UTC  10/40 over, by validation, warm: about 2 h" in told
    assert "C(B) moved: 0.20 days earlier, more than the tolerance of 0.10 days" in told
    assert "C(B) first: why" in told


def test_a_risk_and_a_flag_are_told_with_their_reasons() -> None:
    risky = replace(RECORD, at_risk="complete about 1.0 days after the deadline", flag="11.0 delay bounds")

    told = words(risky, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, HOUR_S))

    assert "deadline   2027-01-15 09:00 UTC (in 1 h)\nAT RISK: complete about 1.0 days after" in told
    assert "LOOK AT IT: 11.0 delay bounds" in told


def test_an_apps_scores_are_told_beside_what_they_should_be() -> None:
    told = words(RECORD)

    assert 'over the last 34 batches: 91% ended before "at latest" (90 % should), 52% before "about"' in told
    assert "off by 8% of the whole time (median), by 21% of what was left, too early by 2%" in told
    assert "nothing is known of how good" in words(RECORD, accuracy=None)


def test_an_ended_batch_has_an_end_and_neither_risk_nor_reasons() -> None:
    risky = replace(RECORD, at_risk="complete about 1.0 days after the deadline", terms=None, holds=())

    told = words(risky, state=BatchState.COMPLETE, ended_at=later(NOW, -30.0))

    assert "ended 2027-01-15 07:59 UTC (30 s ago), 5 h in all" in told and "E end" in told
    assert "RISK" not in told and "What holds it" not in told


def test_a_batch_without_a_forecast_says_how_to_get_one() -> None:
    told = words(completion_at=None, completion_q50_at=None, completion_q90_at=None)

    assert "It was never forecast: muster estimate run" in told
    assert "done about" not in told


def test_a_forecast_made_as_the_batch_ended_is_not_on_the_chart() -> None:
    late = replace(RECORD, made_at=Instant(NOW + 40.0))

    assert "100% |" in words(late, state=BatchState.COMPLETE, ended_at=later(NOW, 30.0))


HALF = [Point(Instant(0.0), 0.0), Point(Instant(40.0), 0.5)]
AHEAD = Fan(HALF[-1], Instant(50.0), Instant(60.0), Instant(80.0))


def cells(lines: list[str], height: int) -> list[str]:
    """The rows of jobs without their labels, all of one width."""
    return [line[7:] for line in lines[:height]]


def test_every_line_is_as_wide_as_asked() -> None:
    lines = chart(HALF, AHEAD, [Mark("n", Instant(40.0))], width=41, height=6)

    assert len(lines) == 8
    assert {len(row) for row in cells(lines, 6)} == {41}
    assert all(len(line) == 48 for line in lines)


def test_jobs_done_fill_half_the_height_when_half_are_over() -> None:
    top, bottom = cells(chart(HALF, None, [], width=5, height=2), 2)

    assert top == "     "
    assert bottom == " ▂▄▆█"


def test_the_fan_is_drawn_from_the_last_forecast_to_its_quantiles() -> None:
    rows = cells(chart(HALF, AHEAD, [], width=81, height=4), 4)

    assert all(set(row[:40]) <= set(" ▁▂▃▄▅▆▇█") for row in rows)
    assert rows[0].index(FAN) == 46  # on the line to q10 more than three quarters are over after 46 s
    assert rows[0].rindex(FAN) == 79  # and on that to q90 all after 80 s
    assert (rows[0].index(MEDIAN), rows[0].rindex(MEDIAN)) == (50, 60)
    assert (rows[1].index(MEDIAN), rows[1].rindex(MEDIAN)) == (41, 49)
    assert FAN not in rows[2] + rows[3]


def test_marks_stand_where_their_instants_are_and_the_last_hides_others() -> None:
    marks = [Mark("D", Instant(80.0)), Mark("9", Instant(80.0)), Mark("n", Instant(40.0))]

    line = chart(HALF, AHEAD, marks, width=81, height=4)[-1]

    assert line[7:] == " " * 40 + "n" + " " * 39 + "9"


def test_a_deadline_behind_the_fan_widens_the_chart() -> None:
    line = chart(HALF, AHEAD, [Mark("D", Instant(160.0))], width=81, height=4)[-1]

    assert line[7:] == " " * 80 + "D"


def test_a_batch_that_was_submitted_this_moment_has_a_chart() -> None:
    now = [Point(Instant(5.0), 0.0), Point(Instant(5.0), 0.0)]

    assert len(chart(now, Fan(now[-1], Instant(5.0), Instant(5.0), Instant(5.0)), [], width=20, height=3)) == 5


def test_between_points_jobs_are_done_evenly_and_none_before_the_first() -> None:
    assert [over_at(Instant(at), HALF) for at in (-1.0, 0.0, 20.0, 40.0, 99.0)] == [0.0, 0.0, 0.25, 0.5, 0.5]
