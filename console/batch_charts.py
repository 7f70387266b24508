"""Draws one batch over time: its progress, and the history of its forecasts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from administration.forecasts.words import not_shown, patience_s
from console.charts import Chart
from console.drawing import TIME, Axis, Band, Line, MarkLine, Plot, labelled_fraction
from domain.forecasts import WITHOUT_FORECAST, ForecastPoint, ForecastState, Method, state_of
from domain.units import Instant, Seconds
from web.moments import length, number, percent, plural, relative, stamp

Document = Mapping[str, Any]  # Any: a JSON document
ROWS = 20  # rows per table
RETRIED = "failed jobs retried"


def progress_chart(
    shown: Document,
    made: Sequence[ForecastPoint],
    now: float,
    over_time: Axis = TIME,
    *,
    last: ForecastPoint | None = None,
    ends: Sequence[Instant] = (),
) -> Chart:
    """Return the chart of finished jobs, with the actual end, or the forecast end shaded from q50 to q90.

    `shown` is the batch's document with its latest forecasts (administration/forecasts); `made` has all forecasts in
    chronological order, and `last` is the latest one that is shown. `over_time` is the axis, which may have limits.
    `ends`: when a sample of the jobs of an ended batch ended, each of which is a step; without them, the finished jobs
    at each forecast are drawn.
    The line is red if all finished jobs failed. It falls only when failed jobs are retried; the last fall is marked.
    """
    ended_at = shown["ended_at"]
    seen_at = now if ended_at is None else ended_at
    at_forecasts = [(one.made_at, one.over_fraction) for one in made if one.made_at < seen_at]
    at_ends = [(at, _over(shown) * number / len(ends)) for number, at in enumerate(ends, start=1)]
    over = [(shown["created_at"], 0.0), *(at_ends or at_forecasts)]
    if over[-1][0] < seen_at:
        over.append((seen_at, _over(shown)))
    standing = last if shown["completion_q50_at"] is not None else None
    drawn = [one for before, after in pairwise(over) for one in ((after[0], before[1]), after)] if at_ends else over[1:]
    x, y = [at for at, _ in (over[0], *drawn)], [round(100.0 * share, 2) for _, share in (over[0], *drawn)]
    marks, shaded = _marks(shown, standing)
    marks += [MarkLine(after[0], RETRIED, "c3") for before, after in pairwise(over) if after[1] < before[1]][-1:]
    return Chart(
        "progress",
        "Progress",
        _summary(shown, standing, now),
        ("when", "jobs finished"),
        [(stamp(at), percent(share, 1)) for at, share in reversed(over[-ROWS:])],
        Plot(
            over_time,
            Axis("jobs finished", high=119.0, unit=" %"),  # leaves space for labels above the line
            [Line("jobs finished", x, y, "c3" if shown["jobs_validated"] or not shown["jobs_failed"] else "bad")],
            shaded,
            marks=marks,
            zoom=True,
        ),
    )


FORECAST_RESTARTED = "forecast restarted"  # by a move, a resumption or an outage; the record does not say which


def forecasts_chart(
    shown: Document,
    told: Sequence[ForecastPoint],
    now: float,
    over_time: Axis = TIME,
    *,
    delay_bound_s: Seconds,
    moved_at: Instant | None = None,
) -> Chart | None:
    """Return the chart of forecast ends over time, q50 to q90, or None without a displayable forecast.

    The batch's last move or resumption, at `moved_at`, is marked. The last forecast extends to now or to the end of the
    batch. The table lists the latest displayable forecasts.
    """
    seen_at = now if shown["ended_at"] is None else shown["ended_at"]
    points = [one for one in told if one.made_at <= seen_at]
    if not points:
        return None
    last, total = points[-1], max(1, shown["jobs_total"])
    listed = [one for one in shown["forecasts"] if _is_shown(one, delay_bound_s)]
    x = [*(one.made_at for one in points), seen_at]
    about = [*(one.q50_at for one in points), last.q50_at]
    latest = [*(one.q90_at for one in points), last.q90_at]
    levels = [("deadline", shown["deadline_at"], "bad"), ("ended", shown["ended_at"], "c3")]
    marks = [MarkLine(at, FORECAST_RESTARTED, "c3") for at in (moved_at,) if at is not None and x[0] < at <= seen_at]
    drawn = [*about, *latest, *(at for _, at, _ in levels if at is not None)]
    space_s = (max(drawn) - min(drawn)) * labelled_fraction(1) / (1.0 - labelled_fraction(1))  # for the label
    return Chart(
        "forecasts",
        "Forecast history",
        "Forecast end of the batch at each time, from expected (q50) to latest (q90). "
        "A level band means accurate forecasts; a rising band means that forecasts were too early.",
        ("when", "jobs finished", "expected (q50)", "latest (q90)", "C(B)"),
        [_row(one, total) for one in reversed(listed[-ROWS:])],
        Plot(
            over_time,
            replace(TIME, high=max(drawn) + space_s) if marks else TIME,
            [
                Line("expected (q50)", x, about, "c1"),
                Line("latest (q90)", x, latest, "c4"),
                *(Line(name, [x[0], x[-1]], [at, at], hue, "dashed") for name, at, hue in levels if at is not None),
            ],
            [Band(x, about, latest)],
            marks=marks,
            zoom=True,
        ),
    )


def until_forecast(shown: Document, now: float, *, look_s: Seconds, timer_s: Seconds) -> str:
    """Return, in words, when a batch without a displayable forecast can expect one.

    >>> fresh = {"ended_at": None, "created_at": 100.0, "forecasts": [], "forecast_state": "not_yet"}
    >>> until_forecast(fresh, 103.0, look_s=300.0, timer_s=900.0).partition(": ")[2]
    'expect the first forecast within 10\\xa0min of the submission.'
    """
    state, made = ForecastState(shown["forecast_state"]), shown["forecasts"]
    if shown["ended_at"] is not None:
        return f"The batch ended before {'a forecast that could be shown' if made else 'its first forecast'}."
    if state is not ForecastState.NOT_YET and (state in WITHOUT_FORECAST or state is ForecastState.PAUSED):
        return f"{not_shown(state).capitalize()}."
    looks, most_s = f"The estimator checks for new batches every {length(look_s)}", patience_s(look_s)
    if made and state is ForecastState.NOT_YET:
        return f"No forecast since the batch was reopened. {looks}: expect one within {length(most_s)}."
    if state is ForecastState.MOVED:
        return f"{not_shown(state).capitalize()}. Expect it within {length(most_s)}."
    if made:
        return (
            f"No end is shown: {not_shown(state)} ({made[-1]['method_because']}). Expect the next forecast when "
            f"results arrive, and within {length(timer_s)} at the latest."
        )
    waited_s = now - shown["created_at"]
    if waited_s <= most_s:
        return f"No forecast yet. {looks}: expect the first forecast within {length(most_s)} of the submission."
    return (
        f"No forecast {length(waited_s)} after the submission. {looks}; check the estimator on the overview, "
        "under Periodic tasks."
    )


def _over(counts: Document) -> float:
    return float((counts["jobs_validated"] + counts["jobs_failed"]) / max(1, counts["jobs_total"]))


def _marks(shown: Document, last: ForecastPoint | None) -> tuple[list[MarkLine], list[Band]]:
    """Return the vertical marks of the progress chart: the end, or the forecast end with q50 to q90 shaded."""
    marks: list[MarkLine] = []
    shaded: list[Band] = []
    if shown["ended_at"] is not None:
        marks.append(MarkLine(shown["ended_at"], "ended", "c3"))
    elif last is not None:
        marks += [MarkLine(last.q50_at, "expected", "c1"), MarkLine(last.q90_at, "latest", "c4")]
        shaded.append(Band([last.q50_at, last.q90_at]))
    if shown["deadline_at"] is not None:
        marks.append(MarkLine(shown["deadline_at"], "deadline", "bad"))
    return marks, shaded


def _summary(shown: Document, last: ForecastPoint | None, now: float) -> str:
    valid, failed, total = (shown[f"jobs_{name}"] for name in ("validated", "failed", "total"))
    if shown["ended_at"] is not None:
        counted = f"{number(valid)} of {number(total)} jobs are valid, {number(failed)} failed"
        return f"The batch ended {relative(shown['ended_at'], now)}; {counted}."
    over = (
        f"{number(valid + failed)} of {plural(total, 'job')} finished{f' ({number(failed)} failed)' if failed else ''}"
    )
    if last is None:
        return f"{over}."
    about, latest = relative(last.q50_at, now), relative(last.q90_at, now)
    return f"{over}; expected end {about}, latest end {latest} (shaded)."


def _is_shown(one: Document, delay_bound_s: Seconds) -> bool:
    return one["q50_at"] is not None and state_of(_point(one), delay_bound_s) is ForecastState.SHOWN


def _point(one: Document) -> ForecastPoint:
    return ForecastPoint(one["made_at"], one["q50_at"], one["q90_at"], Method(one["method"]), 0.0)


def _row(one: Document, total: int) -> tuple[str, ...]:
    return (
        stamp(one["made_at"]),
        percent((one["jobs_validated"] + one["jobs_failed"]) / total, 1),
        stamp(one["q50_at"]),
        stamp(one["q90_at"]),
        f"{stamp(one['completion_at'])}, {one['change']}",
    )
