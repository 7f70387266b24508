"""Formats the JSON of forecasts as text: charts, sentences and times (UTC). Pure.

The fan of a chart consists of straight lines from the last forecast to q10, q50 and q90; only these are forecast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any

from domain.batches import kind_in_words
from domain.forecasting import MOVED_S, is_moving
from domain.forecasts import FAR_BOUNDS, WITHOUT_FORECAST, ForecastAge, ForecastState, HoldKind
from domain.formatting import in_words, percent, roughly
from domain.hosts import host_in_words
from domain.settings import EstimatorSettings
from domain.units import HostId, Instant, Seconds, later, utc


def instant_of(at: Instant) -> str:
    """Format an instant as date and time of day.

    >>> instant_of(Instant(1_800_000_000.0))
    '2027-01-15 08:00 UTC'
    """
    return f"{utc(at):%Y-%m-%d %H:%M} UTC"


def seen_from(at: Instant, now: Instant) -> str:
    """Format an instant with its distance from `now`.

    >>> seen_from(Instant(1_800_000_000.0), Instant(1_799_992_800.0))
    '2027-01-15 08:00 UTC (in 2 h)'
    >>> seen_from(Instant(1_800_000_000.0), Instant(1_800_000_030.0))
    '2027-01-15 08:00 UTC (30 s ago)'
    """
    away = in_words(abs(at - now))
    return f"{instant_of(at)} ({f'in {away}' if at >= now else f'{away} ago'})"


BLOCKS = " ▁▂▃▄▅▆▇█"  # eighths of a character cell
FAN, MEDIAN = "░", "▒"
LABEL = 6  # width of the labels left of the axis, in columns


@dataclass(frozen=True, slots=True)
class Point:
    """The fraction of jobs that had ended by an instant."""

    at: Instant
    over_fraction: float


@dataclass(frozen=True, slots=True)
class Fan:
    """A forecast, with the batch's progress when it was made."""

    origin: Point
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant


@dataclass(frozen=True, slots=True)
class Mark:
    """A letter below the axis. If two marks share a column, the one later in the list is drawn."""

    letter: str
    at: Instant


def chart(
    points: Sequence[Point], fan: Fan | None, marks: Sequence[Mark], *, width: int = 66, height: int = 8
) -> list[str]:
    """Return the lines of the chart, with `height` lines for jobs. `points` are chronological, at least one.

    Half of the jobs end within half an hour, the batch ends half an hour later:

    >>> for line in chart([Point(Instant(0.0), 0.0), Point(Instant(1800.0), 0.5)], None,
    ...                   [Mark("E", Instant(3600.0))], width=9, height=2):
    ...     print(line.rstrip())
    100 % |
      0 % | ▂▄▆█
          +---------
                   E
    """
    begin_at = min(points[0].at, *(mark.at for mark in marks), points[0].at)
    end_at = max(points[-1].at, *(mark.at for mark in marks), fan.q90_at if fan else points[-1].at)
    step_s = max(end_at - begin_at, 1.0) / (width - 1)
    columns = [_column(Instant(begin_at + step_s * column), points, fan, height) for column in range(width)]
    lines = []
    for row in range(height):
        label = "100 %" if row == 0 else ("0 %" if row == height - 1 else "")
        lines.append(f"{label:>{LABEL - 1}} |" + "".join(column[row] for column in columns))
    letters = [" "] * width
    for mark in marks:
        letters[round((mark.at - begin_at) / step_s)] = mark.letter
    return [*lines, " " * LABEL + "+" + "-" * width, " " * (LABEL + 1) + "".join(letters)]


def _column(at: Instant, points: Sequence[Point], fan: Fan | None, height: int) -> list[str]:
    """Return the cells of one column, from top to bottom."""
    if at <= points[-1].at:
        return _bar(over_at(at, points), height)
    if fan is None or at < fan.origin.at:
        return [" "] * height
    return _slice(at, fan, height)


def over_at(at: Instant, points: Sequence[Point]) -> float:
    """Return the fraction ended at `at`, interpolated linearly; 0 before the first point, constant after the last.

    >>> over_at(Instant(5.0), [Point(Instant(0.0), 0.0), Point(Instant(10.0), 0.5)])
    0.25
    """
    before = points[0]
    if at < before.at:
        return 0.0
    for point in points:
        if point.at > at:
            part = (at - before.at) / (point.at - before.at)
            return before.over_fraction + part * (point.over_fraction - before.over_fraction)
        before = point
    return before.over_fraction


def _bar(over_fraction: float, height: int) -> list[str]:
    eighths = round(over_fraction * height * 8)
    return [BLOCKS[min(max(eighths - 8 * (height - 1 - row), 0), 8)] for row in range(height)]


def _slice(at: Instant, fan: Fan, height: int) -> list[str]:
    """Return the cells covered by the fan, from the q10 line to the q90 line. The q50 line is drawn darker."""
    low, median, high = (_on_line(at, fan, end_at) for end_at in (fan.q90_at, fan.q50_at, fan.q10_at))
    cells = []
    for row in range(height):
        bottom, top = (height - 1 - row) / height, (height - row) / height
        if bottom <= median < top or (row == 0 and median == 1.0 and low < 1.0 and at <= fan.q50_at):
            cells.append(MEDIAN)
        else:
            cells.append(FAN if low < top and high > bottom and low < 1.0 else " ")
    return cells


def _on_line(at: Instant, fan: Fan, end_at: Instant) -> float:
    """Return the fraction of ended jobs, assuming a constant rate from the forecast until `end_at`."""
    left_s = end_at - fan.origin.at
    part = 1.0 if left_s <= 0.0 else min(1.0, (at - fan.origin.at) / left_s)
    return fan.origin.over_fraction + part * (1.0 - fan.origin.over_fraction)


Document = Mapping[str, Any]  # Any: a JSON document

MOST_LISTED = 8  # number of forecasts shown, latest first; the JSON has all of them
LITTLE_SHIFT = 0.1  # in ln; smaller differences in job duration are not shown
LEAST_RETRIES, ENOUGH_RETRIES = 0.05, 10.0  # below, 0.0 would be shown; from here on, whole numbers are
MOST_SAID = 0.99  # of a probability


NOT_SHOWN_WORDS: Mapping[ForecastState, str] = {
    ForecastState.NOT_YET: "no forecast yet",
    ForecastState.FIRST_RESULTS: "first estimate after the first valid results",
    ForecastState.FAR: f"more than {FAR_BOUNDS:.0f} delay bounds away at the current rate",
    ForecastState.FAILED: "no forecast: the model gave no answer",
    ForecastState.UNSCHEDULABLE: "no end: no host can run its jobs",
    ForecastState.PAUSED: "no end while unsent instances are paused",
    ForecastState.BLOCKED: "no end while blocked by a limit",
    ForecastState.JOBS_FAILED: "no estimate: all jobs that ended failed",
    ForecastState.MOVED: "a new forecast follows",
}


def not_shown(state: ForecastState) -> str:
    """Return why no forecast is shown; empty if one is shown or the batch has ended."""
    return NOT_SHOWN_WORDS.get(state, "")


def likelihood(probability: float) -> str:
    """Return a probability in per cent. A forecast cannot tell more than 99 % from certainty.

    >>> likelihood(0.305), likelihood(0.9948)
    ('30 %', '> 99 %')
    """
    return "> 99 %" if probability > MOST_SAID else f"{100 * probability:.0f} %"


def risk_in_words(risk: Document, state: str = ForecastState.SHOWN) -> str:
    """Return the risk of a deadline (`RiskShown`) in words. `state` is that of the batch's forecast.

    >>> risk_in_words({"late_by_s": 840.0, "probability": 1.0, "missed": True})
    'missed its deadline by 14 min'
    >>> risk_in_words({"late_by_s": 9000.0, "probability": 0.3, "missed": False})
    '30 % likely to miss its deadline; ends at the latest 2 h 30 min after it'
    """
    return "; ".join(risk_parts(risk, state))


def risk_parts(risk: Document, state: str) -> Sequence[str]:
    """Return the risk of a deadline in one or two parts of a sentence: how likely, and how late at the latest."""
    late = in_words(risk["late_by_s"])
    if risk["missed"]:
        return (f"missed its deadline by {late}",)
    if state == ForecastState.UNSCHEDULABLE:
        return ("misses its deadline unless a host can run its jobs",)
    likely = f"{likelihood(risk['probability'])} likely to miss its deadline"
    if state == ForecastState.PAUSED:
        return (f"{likely} even without the pause",)
    if state == ForecastState.MOVED:
        return (f"{likely} by the forecast before the change",)
    return likely, f"ends at the latest {late} after it"


SEVERE = 0.5  # probability


def is_severe(risk: Document) -> bool:
    """Return whether a deadline (`RiskShown`) is missed, or is rather missed than met.

    >>> [is_severe({"probability": chance, "missed": False}) for chance in (0.46, 0.5)]
    [False, True]
    """
    return bool(risk["missed"] or risk["probability"] >= SEVERE)


def risk_tag(risk: Document) -> str:
    """Return the risk of a deadline (`RiskShown`) in two or three words.

    >>> risk_tag({"late_by_s": 840.0, "probability": 1.0, "missed": True})
    'missed by 14 min'
    >>> risk_tag({"late_by_s": 9000.0, "probability": 0.3, "missed": False})
    'at risk, 30 %'
    """
    return (
        f"missed by {in_words(risk['late_by_s'])}" if risk["missed"] else f"at risk, {likelihood(risk['probability'])}"
    )


def warning_of(risk: Document, state: str = ForecastState.SHOWN) -> str:
    """Return the line with which commands warn of a deadline."""
    return f"{'MISSED' if risk['missed'] else 'AT RISK'}: {risk_in_words(risk, state)}"


def end_in_words(about_at: Instant, now: Instant, *, provisional: bool) -> str:
    """Return when the latest forecast expects a batch's end, the same on every page.

    >>> at = Instant(3600.0)
    >>> end_in_words(at, at, provisional=False), end_in_words(at, Instant(0.0), provisional=True)
    ('at any moment', 'in 1 h (provisional)')
    """
    when = f"in {in_words(about_at - now)}" if about_at > now else "at any moment"
    return f"{when} (provisional)" if provisional else when


LOOKS, LEAST_S = 2, 60.0  # a forecast is late after LOOKS estimator intervals, at least LEAST_S


def patience_s(look_s: Seconds) -> float:
    """Return how long after it is due a forecast counts as late."""
    return max(LEAST_S, LOOKS * look_s)


def next_forecast(age: ForecastAge, now: Instant, settings: EstimatorSettings, name: str = "the next one") -> str:
    """Return when an active batch gets its next forecast, or that it is late. A retry, after which fewer jobs have
    ended, may make it due at an instant that has passed; it is late after `timer_s`. `name`: how it is called.

    >>> at, settings = Instant(0.0), EstimatorSettings()
    >>> quiet = ForecastAge(7, at, None, jobs_over_then=5, jobs_over=5, jobs_total=9)
    >>> next_forecast(quiet, Instant(480.0), settings), next_forecast(quiet, Instant(1380.0), settings)
    ('the next one after a job ends, at the latest in 7 min', 'the next one is 8 min late: see Periodic tasks')
    >>> next_forecast(ForecastAge(7, at, None, jobs_over_then=5, jobs_over=2, jobs_total=9), Instant(480.0), settings)
    'the next one is due now'
    >>> next_forecast(ForecastAge(7, at, Instant(60000.0), 100, 120, 9000), Instant(480.0), settings)
    'the next one after 70 more jobs end, at the latest in 2 min'
    """
    if age.moved_at is not None and is_moving(age.moved_at, now):  # one before that is not shown
        return f"{name} in {roughly(max(1.0, later(age.moved_at, MOVED_S) - now))}"
    left_s = age.due_at(now, settings) - now
    is_retried = age.jobs_over < age.jobs_over_then
    late_s = now - age.made_at - settings.timer_s if is_retried and age.made_at is not None else -left_s
    if late_s > patience_s(settings.look_s):
        return f"{name} is {roughly(late_s)} late: see Periodic tasks"
    if left_s <= 0.0:
        return f"{name} is due now"
    if not age.dirty:
        return f"{name} after a job ends, at the latest in {roughly(max(1.0, left_s))}"
    jobs, pauses_s = age.jobs_to_come, 0.0 if age.made_at is None else age.made_at + settings.pause_s - now
    sooner = (
        f"after {jobs} more job{'s end' if jobs > 1 else ' ends'}, at the latest "
        if jobs > 0 and left_s > pauses_s
        else ""
    )
    return f"{name} {sooner}in {roughly(max(1.0, left_s))}"


def forecasts_in_words(shown: Document) -> str:
    """Describe when a batch will probably end, why, and how the forecast changed."""
    return "\n".join(_forecasts(shown))


def _forecasts(shown: Document) -> Iterator[str]:
    over = shown["jobs_validated"] + shown["jobs_failed"]
    failed = f" ({shown['jobs_failed']} failed)" if shown["jobs_failed"] else ""
    name = f" {shown['name']}" if shown["name"] else ""
    yield (
        f"batch {shown['batch_id']}{name} ({shown['app']}, {kind_in_words(shown['qos'])}) is {shown['state']}: "
        f"{over} of {shown['jobs_total']} jobs ended{failed}"
    )
    records: Sequence[Document] = shown["forecasts"]
    yield from _promise(shown)
    if not records:
        yield "no forecast has been made yet: run muster estimate run, or wait for the estimator of muster up"
        return
    yield ""
    yield from _chart(shown, records[-1])
    if shown["ended_at"] is None and shown["forecast_state"] not in WITHOUT_FORECAST:
        yield from _reasons(records[-1], flag_of(shown))
    yield ""
    yield from _last(records)
    yield ""
    yield from accuracy_in_words(shown["app"], shown["accuracy"])


def _promise(shown: Document) -> Iterator[str]:
    now = shown["computed_at"]
    if shown["ended_at"] is not None:
        lasted = in_words(shown["ended_at"] - shown["created_at"])
        yield f"ended {seen_from(shown['ended_at'], now)}, {lasted} after submission"
    elif shown["completion_q50_at"] is not None:
        yield f"done about {seen_from(shown['completion_q50_at'], now)}{' (provisional)' * shown['provisional']}"
        yield f"at the latest  {seen_from(shown['completion_q90_at'], now)}"
        yield f"C(B)       {seen_from(shown['completion_at'], now)}, used for scheduling"
    else:
        yield not_shown(ForecastState(shown["forecast_state"]))
    if shown["deadline_at"] is not None:
        yield f"deadline   {seen_from(shown['deadline_at'], now)}"
    if shown["at_risk"] is not None:
        yield warning_of(shown["at_risk"], shown["forecast_state"])


def _chart(shown: Document, last: Document) -> Iterator[str]:
    total = max(shown["jobs_total"], 1)

    def point(at: Instant, counts: Document) -> Point:
        return Point(at, (counts["jobs_validated"] + counts["jobs_failed"]) / total)

    ended_at = shown["ended_at"]
    seen_at = shown["computed_at"] if ended_at is None else ended_at
    made = [point(one["made_at"], one) for one in shown["forecasts"] if one["made_at"] < seen_at]
    points = [Point(shown["created_at"], 0.0), *made, point(seen_at, shown)]
    fan = None
    has_quantiles = ended_at is None and last["q50_at"] is not None
    if has_quantiles:
        fan = Fan(point(last["made_at"], last), last["q10_at"], last["q50_at"], last["q90_at"])
    marks = [] if shown["deadline_at"] is None else [("D", "deadline", shown["deadline_at"])]
    if ended_at is None:
        marks += [("n", "now", seen_at), ("C", "C(B)", shown["completion_at"])]
    if has_quantiles:
        marks += [
            ("1", "q10", last["q10_at"]),
            ("9", "at the latest (q90)", last["q90_at"]),
            ("5", "about (q50)", last["q50_at"]),
        ]
    if ended_at is not None:
        marks += [("C", "last C(B)", shown["completion_at"]), ("E", "end", ended_at)]
    yield from (line.rstrip() for line in chart(points, fan, [Mark(letter, at) for letter, _, at in marks]))
    yield f"       from {instant_of(shown['created_at'])}; " + ", ".join(
        f"{letter} {what}" for letter, what, _ in marks
    )


def flag_of(shown: Document) -> str:
    """Return why not to rely on the last forecast of an active batch; empty if it says nothing, if none of its jobs is
    sent for another reason, or if a new one follows.
    """
    unused = {ForecastState.PAUSED, ForecastState.MOVED, ForecastState.FIRST_RESULTS, *WITHOUT_FORECAST}
    if shown["ended_at"] is not None or shown["forecast_state"] in unused or not shown["forecasts"]:
        return ""
    return shown["forecasts"][-1]["flag"] or ""


def _reasons(last: Document, flag: str) -> Iterator[str]:
    yield ""
    yield f"Method of the last forecast: {last['method_because']}."
    if flag:
        yield f"Note: {flag}."
    yield from holds_in_words(last["holds"])
    yield from terms_in_words(last)


def holds_in_words(holds: Sequence[Document]) -> Iterator[str]:
    """List the causes that delay the batch, largest share first."""
    if holds:
        yield "What delays it:"
    for hold in holds:
        yield f"  {percent(hold['doubt_fraction']):>5} of the uncertainty: {_hold(hold)}"


def _hold(hold: Document, names: Mapping[HostId, str] | None = None) -> str:
    hosts = ", ".join(host_in_words(one, (names or {}).get(one, "")) for one in hold["host_ids"])
    mostly = f"; mostly on host{'s' * (len(hold['host_ids']) > 1)} {hosts}" if hosts else ""
    return f"{hold['because']}{mostly}"


def cause_in_words(last: Document, names: Mapping[HostId, str] | None = None, *, left_s: float) -> str:
    """Return what delays a batch's results most by its latest forecast, "" if that does not say, or if sending its
    instances delays it more. `names`: of hosts. `left_s`: until its deadline.
    """
    terms, holds = last["terms"], last["holds"]
    if terms is None or not holds:
        return ""
    first, sending_s = holds[0], terms["sending_s"]
    if max(0.0, left_s) < sending_s and (left_s > 0.0 or sending_s >= terms["median_turnaround_s"]):
        return ""
    if first["kind"] != HoldKind.NOT_SENT:
        return _hold(first, names)
    if sending_s >= terms["median_turnaround_s"]:
        return ""
    return f"first instances are not sent yet, and of the results, {_turnarounds(terms)}"  # the page has their number


def _turnarounds(terms: Document) -> str:
    """Say how long results take. Jobs of slow hosts are the last of a batch."""
    half = f"half take more than {in_words(terms['median_turnaround_s'])}"
    slow_s = terms["slow_turnaround_s"]
    return f"{half}, 1 % more than {in_words(slow_s)}" if slow_s else half


def _sending(last: Document) -> str:
    """Say how long sending takes. Before the first dispatch at the batch's place, the forecast assumes a rate."""
    takes = f"sending the unsent first instances takes {in_words(last['terms']['sending_s'])}"
    if last["terms"]["assumed_rate"]:
        return (
            f"{takes} by the latest forecast; no job was sent at its place then, so its wait and its rate are assumed"
        )
    return f"{takes} by the latest forecast, as they were sent in the last hours, or since a move or pause"


def terms_in_words(last: Document) -> Iterator[str]:
    """List the fitted parameters of a forecast that are worth showing."""
    terms = last["terms"]
    if terms is None:
        return
    yield "Model inputs:"
    lacking = terms["jobs_with_success"]
    quorum = f"; {lacking} of them had a result but no quorum" if lacking else ""
    yield f"  {terms['jobs_open']} jobs were open at the forecast{quorum}"
    if terms["sending_s"] > 0:
        yield f"  {_sending(last)}"
    yield f"  of the results, {_turnarounds(terms)}"
    if abs(terms["shift"]) >= LITTLE_SHIFT:
        yield f"  this batch's jobs take {exp(terms['shift']):.2f} times as long as the app's usual jobs"
    lost, errors = terms["loss_fraction"], terms["error_fraction"]
    after = (
        f", reported after {in_words(terms['error_turnaround_s'])} on average" if terms["error_turnaround_s"] else ""
    )
    yield f"  {percent(lost, 1)} of instances are lost, {percent(errors, 1)} of reported results are errors{after}"
    if (retries := terms["retries_expected"]) >= LEAST_RETRIES:
        expected = f"{retries:.{1 if retries < ENOUGH_RETRIES else 0}f}"
        yield (
            f"  {expected} instances in progress are expected to fail or time out, more likely the longer they take; "
            "jobs with another instance in progress are not counted"
        )


def _last(records: Sequence[Document]) -> Iterator[str]:
    yield f"Last forecasts ({min(len(records), MOST_LISTED)} of {len(records)} kept):"
    for one in reversed(records[-MOST_LISTED:]):
        over = one["jobs_validated"] + one["jobs_failed"]
        yield (
            f"  {instant_of(one['made_at'])}  {over}/{one['jobs_total']} ended, by {one['trigger']}, {one['method']}: "
            f"{_in_short(one)}; C(B) {one['change']}: {one['because']}"
        )


def _in_short(one: Document) -> str:
    if one["q50_at"] is None:
        return "no end: it rests on too few results"
    about, latest = in_words(one["q50_at"] - one["made_at"]), in_words(one["q90_at"] - one["made_at"])
    return f"done in about {about}, at the latest in {latest}"


def accuracy_in_words(app: str, accuracy: Document | None) -> Iterator[str]:
    """Describe how accurate the app's forecasts have been."""
    if accuracy is None:
        yield f"Forecast accuracy of {app} is unknown: no batch with a forecast has completed yet."
        return
    about, latest = percent(accuracy["coverage_q50"]), percent(accuracy["coverage_q90"])
    yield (
        f"Forecasts of {app}, over the last {accuracy['batches']} batches: {latest} ended by "
        f'"at the latest" (target 90 %), {about} by "about" (target 50 %);'
    )
    yield (
        f'  median error of "about": {percent(accuracy["median_error_fraction"])} of the total time, '
        f"{percent(accuracy['median_remaining_error_fraction'])} of the time left; bias: "
        f"too {'late' if accuracy['bias_fraction'] > 0 else 'early'} by {percent(abs(accuracy['bias_fraction']))}"
    )
    yield f"  spread {accuracy['spread']:.2f}: {accuracy['spread_because']}"


def health_in_words(apps: Sequence[Document]) -> Iterator[str]:
    """Describe the health of forecasts, app by app."""
    if not apps:
        yield "no apps yet: add the first with muster app add NAME"
    for one in apps:
        never = f"{one['never_forecast']} without a forecast"
        yield f"{one['app']}: {one['active_batches']} active batches, {never}{_ages(one)}"
        for line in accuracy_in_words(one["app"], one["accuracy"]):
            yield f"  {line}"


def _ages(one: Document) -> str:
    if one["oldest_age_s"] is None:
        return ""
    oldest, latest = (in_words(max(one[key], 0.0)) for key in ("oldest_age_s", "latest_age_s"))
    return f"; last forecasts are {latest} to {oldest} old"


def preview_in_words(preview: Document) -> str:
    """Describe when a batch would end if it were submitted now."""
    return "\n".join(_preview(preview))


def _preview(preview: Document) -> Iterator[str]:
    now, said, unable = preview["computed_at"], preview_parts(preview), preview["unable"]
    if unable:
        yield f"warning: {unable}"
    if said["not_shown"]:
        yield f"{said['not_shown']}; {said['basis']}"
    else:
        about, latest = (seen_from(preview[name], now) for name in ("q50_at", "q90_at"))
        yield f"{'if hosts could run them: ' if unable else 'would be '}done about {about}, at the latest {latest}"
        if said["risk"]:
            yield warning_of(preview["at_risk"])
        yield said["basis"]


def preview_parts(preview: Document) -> Mapping[str, str]:
    """Return the texts of a preview: why no end is shown, what it rests on, and the risk of the deadline; or empty.

    No risk is shown for jobs that none of the latest hosts can run: the forecast supposes that hosts can.
    """
    risk, start = None if preview["unable"] else preview["at_risk"], preview["start"]
    begin = f"{start[:1].upper()}{start[1:]}"
    return {
        "not_shown": not_shown(ForecastState(preview["forecast_state"])),
        "basis": f"{preview['method_because']}. {begin}",
        "risk": "" if risk is None else risk_in_words(risk, preview["forecast_state"]),
    }
