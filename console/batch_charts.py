"""How far a batch is, and how its forecasts went meanwhile, as charts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.charts import Chart, Trace, at_ms, band, line, time_axis, upright
from domain.forecasts import ForecastPoint, ForecastState, Method, state_of
from domain.units import Seconds
from web.moments import length, percent, relative, stamp

Document = Mapping[str, Any]  # Any: a JSON document
SHARES = (0, 20, 40, 60, 80, 100)
ROWS = 20  # of the tables
LOOKS, LEAST_S = 2, 60.0  # so many looks, and at least so long, after its submission a batch is forecast


def progress_chart(shown: Document, told: Sequence[ForecastPoint], now: float) -> Chart:
    """The share of jobs that are over, and when the batch ended or, shaded from q50 to q90, is forecast to.

    `shown` is the document of the batch with its last forecasts (administration/forecasts); `told` is what people were
    told of all of them, in order of time.
    """
    ended_at = shown["ended_at"]
    seen_at = now if ended_at is None else ended_at
    over = [(shown["created_at"], 0.0), *((one.made_at, one.over_fraction) for one in told if one.made_at < seen_at)]
    over.append((seen_at, _over(shown)))
    standing = told[-1] if told and shown["completion_q50_at"] is not None else None
    marks, shaded = _marks(shown, standing)
    drawn = [upright(at_ms(at), hue, name, level=1.0 - 0.08 * place) for place, (name, at, hue) in enumerate(marks)]
    x, y = [at_ms(at) for at, _ in over], [round(100.0 * share, 2) for _, share in over]
    return Chart(
        "progress",
        "Progress",
        _summary(shown, standing, now),
        ("when", "jobs over"),
        [(stamp(at), percent(share, 1)) for at, share in reversed(over[-ROWS:])],
        (line("jobs over", x, y, "--c3", mode="lines+markers", marker={"size": 4, "color": "--c3"}),),
        {
            "xaxis": time_axis(),
            "yaxis": {
                "range": [0, 122],  # the marks' labels stand above the lines
                "tickvals": SHARES,
                "ticktext": [f"{share} %" for share in SHARES],
                "title": {"text": "jobs over"},
            },
            "shapes": [*shaded, *(shape for shape, _ in drawn)],
            "annotations": [label for _, label in drawn],
            "showlegend": False,
        },
        height=300,
    )


def forecasts_chart(
    shown: Document, told: Sequence[ForecastPoint], now: float, *, delay_bound_s: Seconds
) -> Chart | None:
    """When the end was forecast to be, from q50 to q90, at each time; None before there is a forecast to tell.

    The last forecast stands until now, or the end. The table has the last ones of those that people are told as well.
    """
    seen_at = now if shown["ended_at"] is None else shown["ended_at"]
    points = [one for one in told if one.made_at <= seen_at]
    if not points:
        return None
    last, total = points[-1], max(1, shown["jobs_total"])
    listed = [one for one in shown["forecasts"] if _is_shown(one, delay_bound_s)]
    x = [*(at_ms(one.made_at) for one in points), at_ms(seen_at)]
    about = [*(at_ms(one.q50_at) for one in points), at_ms(last.q50_at)]
    latest = [*(at_ms(one.q90_at) for one in points), at_ms(last.q90_at)]
    over = [*(percent(one.over_fraction) for one in points), percent(_over(shown))]
    told_with = {"customdata": over, "hovertemplate": "%{y|%Y-%m-%d %H:%M} with %{customdata} of the jobs over"}
    levels = [("deadline", shown["deadline_at"], "--bad"), ("ended", shown["ended_at"], "--c3")]
    return Chart(
        "forecasts",
        "How the forecast went",
        "The end as it was forecast at each time, from about (q50) to at latest (q90), against the jobs that were over "
        "then. An area that stays where it is was right; one that climbs with time was too early.",
        ("when", "jobs over", "about (q50)", "at latest (q90)", "C(B)"),
        [_row(one, total) for one in reversed(listed[-ROWS:])],
        (
            *band("in between", x, about, latest, "--c1"),
            line("about (q50)", x, about, "--c1", **told_with),
            line("at latest (q90)", x, latest, "--c4", line={"color": "--c4", "width": 1.5}, **told_with),
            *(_level(name, x, at, hue) for name, at, hue in levels if at is not None),
        ),
        {"xaxis": time_axis(), "yaxis": {"type": "date"}},
        height=300,
    )


def until_forecast(shown: Document, now: float, *, look_s: Seconds, timer_s: Seconds) -> str:
    """When a batch of which people are told no forecast yet can be expected to have one.

    >>> fresh = {"ended_at": None, "created_at": 100.0, "forecasts": []}
    >>> until_forecast(fresh, 103.0, look_s=300.0, timer_s=900.0).partition(": ")[2]
    'expect the first forecast within 10 min of the submission.'
    """
    if shown["ended_at"] is not None:
        return "It was over before it was forecast."
    if shown["forecasts"]:
        because = shown["forecasts"][-1]["method_because"]
        return (
            f"No forecast that could be told yet: the last one is {because}. Expect the next when jobs come back, and "
            f"within {length(timer_s)} in any case."
        )
    looks = f"The estimator looks for new batches every {length(look_s)}"
    waited_s, most_s = now - shown["created_at"], max(LEAST_S, LOOKS * look_s)
    if waited_s <= most_s:
        return f"Not forecast yet. {looks}: expect the first forecast within {length(most_s)} of the submission."
    return (
        f"Not forecast in the {length(waited_s)} since its submission. {looks}; the overview says whether it does, "
        "under In the background."
    )


def _over(counts: Document) -> float:
    return float((counts["jobs_validated"] + counts["jobs_failed"]) / max(1, counts["jobs_total"]))


def _level(name: str, x: Sequence[float], at: float, hue: str) -> Trace:
    """An instant that does not change, all along."""
    return line(name, [x[0], x[-1]], [at_ms(at)] * 2, hue, line={"color": hue, "width": 1.5, "dash": "dash"})


def _marks(shown: Document, last: ForecastPoint | None) -> tuple[list[tuple[str, float, str]], list[Trace]]:
    """What stands upright in the progress: the end, or when it is forecast to be, shaded between q50 and q90."""
    marks: list[tuple[str, float, str]] = []
    shaded: list[Trace] = []
    if shown["ended_at"] is not None:
        marks.append(("ended", shown["ended_at"], "--c3"))
    elif last is not None:
        marks += [("about", last.q50_at, "--c1"), ("at latest", last.q90_at, "--c4")]
        area = {"type": "rect", "x0": at_ms(last.q50_at), "x1": at_ms(last.q90_at), "y0": 0, "y1": 1}
        shaded.append({**area, "yref": "paper", "line": {"width": 0}, "fillcolor": "--c1/0.14", "layer": "below"})
    if shown["deadline_at"] is not None:
        marks.append(("deadline", shown["deadline_at"], "--bad"))
    return marks, shaded


def _summary(shown: Document, last: ForecastPoint | None, now: float) -> str:
    over = percent(_over(shown))
    if shown["ended_at"] is not None:
        return f"The batch ended {relative(shown['ended_at'], now)}; {over} of its jobs were over."
    if last is None:
        return f"{over} of the jobs are over, {length(now - shown['created_at'])} after the submission."
    about, latest = relative(last.q50_at, now), relative(last.q90_at, now)
    return f"{over} of the jobs are over; done about {about}, at latest {latest}, which is shaded."


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
