"""Texts and charts of forecasts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from administration.forecasts.service import end_of, forecasts_as_json
from administration.forecasts.words import (
    FAN,
    MEDIAN,
    Fan,
    Mark,
    Point,
    cause_in_words,
    chart,
    flag_of,
    forecasts_in_words,
    next_forecast,
    not_shown,
    over_at,
    preview_in_words,
    terms_in_words,
)
from administration.show import forecast_as_json
from administration.stopped import NOTHING_STOPPED, Stopped
from administration.unschedulable import RefusedByAll
from domain.batches import BatchCounts, BatchState, QoS
from domain.forecasting import MOVED_S
from domain.forecasts import (
    Accuracy,
    AppAccuracy,
    Change,
    ForecastAge,
    ForecastHold,
    ForecastRecord,
    ForecastState,
    HoldKind,
    Method,
    Terms,
    Trigger,
)
from domain.formatting import percent
from domain.settings import EstimatorSettings
from domain.units import HOUR_S, AppId, BatchId, HostId, Instant, Seconds, later
from tests.builders import NOW, a_batch
from tests.facts import missing

TERMS = Terms(30, 4, Seconds(540.0), 0.02, 0.03, 0.5, Seconds(7200.0), 0.6931)
HOLDS = (
    ForecastHold(HoldKind.OVERDUE, 2, 0.75, (HostId(7),), "2 instances on 1 host take longer than usual there"),
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
    "4 h earlier, more than the tolerance of 2 h",
    40,
    9,
    1,
    terms=TERMS,
    holds=HOLDS,
)
ACCURACY = AppAccuracy(
    AppId(1), NOW, Accuracy(34, 0.1, 0.52, 0.91, 0.08, 0.21, -0.02, 0.05), 1.0, "91 % lay below q90: kept"
)


def words(
    *records: ForecastRecord,
    accuracy: AppAccuracy | None = ACCURACY,
    stopped: Stopped = NOTHING_STOPPED,
    **changes: Any,
) -> str:
    values: dict[str, Any] = {
        "created_at": later(NOW, -5 * HOUR_S),
        "counts": BatchCounts(jobs_total=40, jobs_validated=9, jobs_failed=1),
        "completion_at": RECORD.completion_at,
        "completion_q50_at": RECORD.q50_at,
        "completion_q90_at": RECORD.q90_at,
    }
    batch = a_batch(**(values | changes))
    return forecasts_in_words(
        forecasts_as_json(
            batch, records, records[-1] if records else None, accuracy, app="pi", now=NOW, stopped=stopped
        )
    )


def test_text_has_progress_and_both_dates() -> None:
    text = words(RECORD)

    assert "10 of 40 jobs ended (1 failed)" in text
    assert not missing(text, "about 2027-01-15 10:00 UTC (in 2 h)", "latest  2027-01-15 14:00 UTC (in 6 h)")


def test_delays_and_model_inputs_are_listed() -> None:
    text = words(RECORD)

    assert not missing(text, *(f"{percent(hold.doubt_fraction)} of the uncertainty: {hold.because}" for hold in HOLDS))
    assert not missing(text, "30 jobs were open", "4 of them", "takes 9 min", "2.00 times as long")


def test_expected_failures_are_rounded_by_their_number() -> None:
    many = replace(RECORD, terms=replace(TERMS, retries_expected=42.4))

    assert not missing(words(RECORD), "0.5 instances")
    assert not missing(words(many), "42 instances")


def test_last_forecasts_have_trigger_method_and_change() -> None:
    first = replace(RECORD, made_at=later(NOW, -HOUR_S), trigger=Trigger.SUBMISSION, change=Change.FIRST, because="why")

    text = words(first, RECORD)

    [heading, last] = text[text.index("Last forecasts") :].splitlines()[:2]
    assert "2 of 2" in heading
    assert not missing(last, "2027-01-15 08:00 UTC", "10/40", "validation", "warm:", "done in about 2 h")
    assert f"C(B) moved: {RECORD.because}" in text
    assert "C(B) first: why" in text


def test_risk_and_flag_are_shown_with_reasons() -> None:
    risky = replace(RECORD, flag="11 delay bounds")

    text = words(risky, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, HOUR_S))

    assert not missing(text, "deadline   2027-01-15 09:00 UTC (in 1 h)\nAT RISK: 90 %", "5 h after it")
    assert "Note: 11 delay bounds" in text


NEVER = RefusedByAll(BatchId(1), 1, False, 5, 3, (("disk", 3),), NOW, rotated_out=False, active_hosts=3)
UNSCHEDULABLE, PAUSED = Stopped({BatchId(1): NEVER}), Stopped(down=True)


@pytest.mark.parametrize(
    ("stopped", "state"),
    [
        (UNSCHEDULABLE, ForecastState.UNSCHEDULABLE),
        (replace(UNSCHEDULABLE, down=True), ForecastState.UNSCHEDULABLE),
        (PAUSED, ForecastState.PAUSED),
    ],
)
def test_stopped_batch_has_no_end_anywhere(stopped: Stopped, state: ForecastState) -> None:
    """Neither the dates, nor the check, nor the risk contradict that none of its jobs is sent."""
    risky = replace(RECORD, flag="11 delay bounds")
    batch = a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, HOUR_S), completion_q50_at=RECORD.q50_at)
    end = end_of(batch, risky, stopped, NOW)

    text = words(risky, stopped=stopped, qos=QoS.SHORT_DEADLINE, deadline_at=batch.deadline_at, counts=batch.counts)

    assert (end.completion_q50_at, end.completion_q90_at) == (None, None)
    assert end.forecast_state is state and end.at_risk is not None
    assert "11 delay bounds" not in text and "done about" not in text and "at the latest 5 h" not in text
    assert "AT RISK" in text


def test_pause_does_not_hide_the_end_once_all_is_sent() -> None:
    """The instances in progress continue."""
    batch = a_batch(counts=BatchCounts(jobs_total=40, in_progress=5, jobs_failed=1), completion_q50_at=RECORD.q50_at)

    end = end_of(batch, RECORD, PAUSED, NOW)

    assert (end.forecast_state, end.completion_q50_at) == (ForecastState.SHOWN, RECORD.q50_at)


@pytest.mark.parametrize("unsent", [0, 12])
def test_end_before_a_move_is_not_the_present_one(unsent: int) -> None:
    """Until a forecast counts the move. If nothing was unsent, a move changes nothing."""
    counts = BatchCounts(jobs_total=40, in_progress=5, unsent=unsent)
    ends: dict[str, Any] = {"completion_q50_at": RECORD.q50_at, "completion_q90_at": RECORD.q90_at}
    ends |= {"completion_at": RECORD.completion_at}
    batch = a_batch(counts=counts, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, HOUR_S), **ends)
    terms = replace(TERMS, sending_s=Seconds(540.0 if unsent else 0.0))
    before = replace(RECORD, moved_at=RECORD.made_at, jobs_failed=0, flag="11 delay bounds", terms=terms)
    counted = replace(before, moved_at=later(RECORD.made_at, -MOVED_S))

    end, present = (end_of(batch, one, NOTHING_STOPPED, NOW) for one in (before, counted))

    assert present.forecast_state is ForecastState.SHOWN
    assert end.forecast_state is (ForecastState.MOVED if unsent else ForecastState.SHOWN)
    assert (end.completion_q50_at, end.completion_q90_at, end.provisional) == (
        (None, None, False) if unsent else (RECORD.q50_at, RECORD.q90_at, False)
    )
    assert end.at_risk is not None
    shown = forecasts_as_json(batch, [before], before, None, app="pi", now=NOW, stopped=NOTHING_STOPPED)
    assert (flag_of(shown) == "", "done about" in forecasts_in_words(shown)) == (unsent > 0, unsent == 0)


@pytest.mark.parametrize(
    ("sending_s", "moved_s", "unsent", "is_shown"),
    [
        (HOUR_S, MOVED_S, 0, False),  # all was sent sooner than that forecast counted
        (HOUR_S, MOVED_S, 1, True),
        (60.0, MOVED_S, 0, True),
        (60.0, 0.0, 0, False),  # moved, and all was sent before the next forecast
        (0.0, 0.0, 0, True),
    ],
)
def test_end_that_counts_sending_is_not_shown_after_it(
    sending_s: float, moved_s: float, unsent: int, is_shown: bool
) -> None:
    batch = a_batch(counts=BatchCounts(jobs_total=40, in_progress=5, unsent=unsent), completion_q50_at=RECORD.q50_at)
    terms = replace(TERMS, sending_s=Seconds(sending_s))
    last = replace(RECORD, jobs_failed=0, terms=terms, moved_at=later(RECORD.made_at, -moved_s))

    found = end_of(batch, last, NOTHING_STOPPED, NOW).forecast_state

    assert found is (ForecastState.SHOWN if is_shown else ForecastState.MOVED)


@pytest.mark.parametrize(("failed", "is_shown"), [(3, True), (2, False)])
def test_forecast_before_a_retry_is_not_shown(failed: int, is_shown: bool) -> None:
    """A retry opens failed jobs again, so fewer have failed than at the forecast."""
    ends = {"completion_q50_at": RECORD.q50_at, "completion_q90_at": RECORD.q90_at}
    batch = a_batch(counts=BatchCounts(jobs_total=40, jobs_failed=failed, jobs_validated=9), **ends)
    flagged = replace(RECORD, jobs_failed=3, flag="no retries left")

    shown = forecasts_as_json(batch, [flagged], flagged, None, app="pi", now=NOW, stopped=NOTHING_STOPPED)

    assert bool(flag_of(shown)) == is_shown == (shown["completion_q50_at"] is not None)
    assert shown["forecast_state"] == (ForecastState.SHOWN if is_shown else ForecastState.MOVED)


@pytest.mark.parametrize("unsent", [0, 12])
def test_provisional_end_is_called_so_while_work_is_unsent(unsent: int) -> None:
    counts = BatchCounts(jobs_total=40, in_progress=5, unsent=unsent, jobs_failed=1)
    batch = a_batch(counts=counts, completion_q50_at=RECORD.q50_at, completion_q90_at=RECORD.q90_at)
    moved = replace(RECORD, terms=replace(TERMS, provisional=True))

    found = [end_of(batch, last, NOTHING_STOPPED, NOW).provisional for last in (moved, RECORD, None)]

    assert found == [unsent > 0, False, False]
    assert ("provisional" in words(moved, counts=counts, completion_q50_at=RECORD.q50_at)) == (unsent > 0)


@pytest.mark.parametrize(
    ("jobs_over", "after_s", "facts"),
    [
        (5, 480.0, ["after a job ends", "7 min"]),  # nothing new: by the timer of 15 min
        (6, 20.0, ["in 40 s"]),
        (6, 90.0, ["due now"]),
        (6, 480.0, ["7 min late"]),
    ],
)
def test_next_forecast_is_due_or_late(jobs_over: int, after_s: float, facts: list[str]) -> None:
    age = ForecastAge(BatchId(1), NOW, None, jobs_over_then=5, jobs_over=jobs_over, jobs_total=100)

    assert not missing(next_forecast(age, later(NOW, after_s), EstimatorSettings()), *facts)


def test_next_forecast_comes_sooner_with_more_ended_jobs() -> None:
    age = ForecastAge(BatchId(1), NOW, later(NOW, 60_000.0), jobs_over_then=100, jobs_over=120, jobs_total=9000)

    assert not missing(next_forecast(age, later(NOW, 480.0), EstimatorSettings()), "70 more jobs", "in 2 min")
    enough = next_forecast(replace(age, jobs_over=190), later(NOW, 20.0), EstimatorSettings())
    assert ("more job" in enough, "in 40 s" in enough) == (False, True)


def test_next_forecast_of_a_moved_batch_waits_for_the_move() -> None:
    moved_at = later(NOW, 60.0)
    age = ForecastAge(BatchId(1), NOW, later(NOW, 60_000.0), 100, 120, 9000, moved_at)

    said = next_forecast(age, later(NOW, 60.0), EstimatorSettings())
    assert ("in 30 s" in said, "more jobs" in said) == (True, False)


def test_missed_deadline_is_missed_without_a_forecast_too() -> None:
    text = words(qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, -840.0))

    assert "MISSED" in text and "14 min" in text and "RISK" not in text


def test_accuracy_is_shown_beside_its_targets() -> None:
    text = words(RECORD)

    assert not missing(text, "last 34 batches", "91 % ended", "target 90 %", '52 % by "about"')
    assert not missing(text, "8 % of the total time", "21 % of the time left", "bias: too early by 2 %")
    assert "accuracy of pi is unknown" in words(RECORD, accuracy=None)


def test_ended_batch_has_an_end_but_no_risk_or_reasons() -> None:
    risky = replace(RECORD, terms=None, holds=())
    late: dict[str, Any] = {"qos": QoS.SHORT_DEADLINE, "deadline_at": later(NOW, -60.0)}

    text = words(risky, state=BatchState.COMPLETE, ended_at=later(NOW, -30.0), **late)

    assert not missing(text, "ended 2027-01-15 07:59 UTC (30 s ago)", "5 h after submission", "E end")
    assert "RISK" not in text and "MISSED" not in text and "What delays it" not in text


def test_batch_without_forecast_names_the_command() -> None:
    text = words(completion_at=None, completion_q50_at=None, completion_q90_at=None)

    assert not missing(text, "no forecast", "muster estimate run")
    assert "done about" not in text


def test_forecast_made_at_the_end_is_not_on_the_chart() -> None:
    late = replace(RECORD, made_at=Instant(NOW + 40.0))

    assert "100 % |" in words(late, state=BatchState.COMPLETE, ended_at=later(NOW, 30.0))


HALF = [Point(Instant(0.0), 0.0), Point(Instant(40.0), 0.5)]
AHEAD = Fan(HALF[-1], Instant(50.0), Instant(60.0), Instant(80.0))


def cells(lines: list[str], height: int) -> list[str]:
    """Return the rows of jobs without their labels, all of the same width."""
    return [line[7:] for line in lines[:height]]


def test_every_line_has_the_requested_width() -> None:
    lines = chart(HALF, AHEAD, [Mark("n", Instant(40.0))], width=41, height=6)

    assert len(lines) == 8
    assert {len(row) for row in cells(lines, 6)} == {41}
    assert all(len(line) == 48 for line in lines)


def test_half_ended_fills_half_the_height() -> None:
    top, bottom = cells(chart(HALF, None, [], width=5, height=2), 2)

    assert top == "     "
    assert bottom == " ▂▄▆█"


def test_fan_runs_from_last_forecast_to_its_quantiles() -> None:
    rows = cells(chart(HALF, AHEAD, [], width=81, height=4), 4)

    assert all(set(row[:40]) <= set(" ▁▂▃▄▅▆▇█") for row in rows)
    assert rows[0].index(FAN) == 46  # the line to q10 passes three quarters after 46 s
    assert rows[0].rindex(FAN) == 79  # the line to q90 reaches the top after 80 s
    assert (rows[0].index(MEDIAN), rows[0].rindex(MEDIAN)) == (50, 60)
    assert (rows[1].index(MEDIAN), rows[1].rindex(MEDIAN)) == (41, 49)
    assert FAN not in rows[2] + rows[3]


def test_marks_stand_at_their_times_and_the_last_wins() -> None:
    marks = [Mark("D", Instant(80.0)), Mark("9", Instant(80.0)), Mark("n", Instant(40.0))]

    line = chart(HALF, AHEAD, marks, width=81, height=4)[-1]

    assert line[7:] == " " * 40 + "n" + " " * 39 + "9"


def test_deadline_after_the_fan_widens_the_chart() -> None:
    line = chart(HALF, AHEAD, [Mark("D", Instant(160.0))], width=81, height=4)[-1]

    assert line[7:] == " " * 80 + "D"


def test_batch_submitted_just_now_has_a_chart() -> None:
    now = [Point(Instant(5.0), 0.0), Point(Instant(5.0), 0.0)]

    assert len(chart(now, Fan(now[-1], Instant(5.0), Instant(5.0), Instant(5.0)), [], width=20, height=3)) == 5


def test_interpolation_is_linear_and_0_before_first() -> None:
    assert [over_at(Instant(at), HALF) for at in (-1.0, 0.0, 20.0, 40.0, 99.0)] == [0.0, 0.0, 0.25, 0.5, 0.5]


def cause(*holds: ForecastHold, left_s: float = HOUR_S, **terms: Any) -> str:
    last = replace(RECORD, jobs_validated=0, jobs_failed=0, terms=replace(TERMS, **terms), holds=holds)
    return cause_in_words(forecast_as_json(last), left_s=left_s)


UNSENT = ForecastHold(HoldKind.NOT_SENT, 24, 0.9, (), "24 first instances are not sent yet")


def test_slow_sending_is_no_cause_of_slow_results() -> None:
    assert not cause(UNSENT, sending_s=Seconds(3 * HOUR_S)) and not cause(
        *HOLDS, left_s=HOUR_S, sending_s=Seconds(5400.0)
    )
    slow = cause(UNSENT, sending_s=Seconds(30.0), slow_turnaround_s=Seconds(30 * HOUR_S))
    assert not missing(slow, "first instances", "more than 2 h", "more than 1 d 6 h") and "24" not in slow


def test_terms_tell_how_long_slow_results_and_errors_take() -> None:
    terms = replace(TERMS, slow_turnaround_s=Seconds(30 * HOUR_S), error_turnaround_s=Seconds(4 * HOUR_S))
    lines = "".join(terms_in_words(forecast_as_json(replace(RECORD, terms=terms))))
    unknown = "".join(terms_in_words(forecast_as_json(replace(RECORD, terms=TERMS))))

    assert not missing(lines, "1 % more than 1 d 6 h", "errors, reported after 4 h")
    assert "1 %" not in unknown and "reported after" not in unknown


def test_overdue_hosts_delay_a_batch_most() -> None:
    assert not missing(cause(*HOLDS, left_s=2 * HOUR_S), "2 instances on 1 host", "longer", "host 7")
    assert cause() == cause_in_words(forecast_as_json(replace(RECORD, terms=None)), left_s=0.0) == ""


def test_rate_before_the_first_dispatch_is_assumed() -> None:
    assumed, seen = (
        "".join(terms_in_words(forecast_as_json(replace(RECORD, terms=replace(TERMS, assumed_rate=one)))))
        for one in (True, False)
    )

    assert not missing(assumed, "assumed", "wait") and "were sent" in seen


def test_preview_of_jobs_for_no_host_begins_with_that() -> None:
    late = {"late_by_s": HOUR_S, "probability": 0.9, "missed": False}
    ends = {"q50_at": later(NOW, HOUR_S), "q90_at": later(NOW, 2 * HOUR_S)}
    said = {"method_because": "by the app's batches", "start": "at once", "unable": "None of 20 hosts can"}
    preview = {"computed_at": NOW, "forecast_state": ForecastState.SHOWN, "at_risk": late, **ends, **said}

    first, end, *rest = preview_in_words(preview).splitlines()

    assert "None of 20 hosts" in first and end.startswith("if hosts") and "AT RISK" not in " ".join(rest)
    assert "AT RISK" in preview_in_words({**preview, "unable": ""})


@pytest.mark.parametrize(
    ("method", "state"),
    [(None, ForecastState.NOT_YET), (Method.APRIORI, ForecastState.FIRST_RESULTS), (Method.WARM, ForecastState.SHOWN)],
)
def test_missing_forecast_is_due_to_a_limit_or_failed_jobs(method: Method | None, state: ForecastState) -> None:
    """A forecast that rests on results stays shown."""
    last = None if method is None else replace(RECORD, method=method, jobs_failed=0)
    counts = BatchCounts(jobs_total=80, in_progress=2)
    batch = a_batch(counts=counts, completion_q50_at=RECORD.q50_at)
    failed = replace(batch, counts=replace(counts, jobs_failed=78))
    some_valid = replace(batch, counts=replace(counts, jobs_failed=77, jobs_validated=1))
    blocked = replace(failed, hold="at most 2 in progress", counts=replace(failed.counts, unsent=2))

    found = [end_of(one, last, NOTHING_STOPPED, NOW) for one in (batch, failed, some_valid, blocked)]

    is_shown = state is ForecastState.SHOWN
    states = [state, *([state] * 3 if is_shown else [ForecastState.JOBS_FAILED, state, ForecastState.BLOCKED])]
    assert [one.forecast_state for one in found] == states
    assert [one.completion_q50_at is not None for one in found] == [is_shown] * 4


def test_method_without_results_is_not_given_for_failed_jobs() -> None:
    """It would say that there is no result yet."""
    first = replace(RECORD, method=Method.APRIORI, method_because="from the size", jobs_validated=0)
    counts = BatchCounts(jobs_total=80, jobs_failed=78, in_progress=2)

    assert first.method_because in words(first, counts=replace(counts, jobs_failed=0))
    assert not_shown(ForecastState.JOBS_FAILED) in words(first, counts=counts)
    assert first.method_because not in words(first, counts=counts)
