"""A batch's progress with the fan of its last forecast, as a chart. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operations.console.charts import Chart, Trace, at_ms, band, line, time_axis, upright
from operations.console.moments import percent, relative, stamp

Document = Mapping[str, Any]  # Any: a JSON document
SHARES = (0, 20, 40, 60, 80, 100)


def fan_chart(shown: Document, now: float) -> Chart | None:
    """The share of jobs that are over, and from the last forecast on the fan between q10 and q90.

    `shown` is operations.forecasts' document of the batch. None before the first forecast.
    """
    records: Sequence[Document] = shown["forecasts"]
    if not records:
        return None
    total = max(1, shown["jobs_total"])
    ended_at = shown["ended_at"]
    seen_at = now if ended_at is None else ended_at
    made = [(one["made_at"], _over(one, total)) for one in records if one["made_at"] < seen_at]
    points = [(shown["created_at"], 0.0), *made, (seen_at, _over(shown, total))]
    x, y = [at_ms(at) for at, _ in points], [round(100.0 * share, 2) for _, share in points]
    traces: list[Trace] = []
    marks: list[tuple[str, float, str]] = []
    last = records[-1]
    if ended_at is None:
        traces += _fan(last, total)
        marks += [("about", last["q50_at"], "--c1"), ("at latest", last["q90_at"], "--c4")]
    else:
        marks.append(("ended", ended_at, "--c3"))
    traces.append(line("jobs over", x, y, "--c3", mode="lines+markers", marker={"size": 4, "color": "--c3"}))
    if shown["deadline_at"] is not None:
        marks.append(("deadline", shown["deadline_at"], "--bad"))
    drawn = [upright(at_ms(at), hue, name, level=1.0 - 0.07 * place) for place, (name, at, hue) in enumerate(marks)]
    return Chart(
        "fan",
        "Progress and forecast",
        _summary(shown, last, now),
        ("when", "jobs over", "about (q50)", "at latest (q90)", "C(B)"),
        [_row(one, total) for one in reversed(records[-20:])],
        traces,
        {
            "xaxis": time_axis(),
            "yaxis": {
                "range": [0, 122],  # the marks' labels stand above the lines
                "tickvals": SHARES,
                "ticktext": [f"{share} %" for share in SHARES],
                "title": {"text": "jobs over"},
            },
            "shapes": [shape for shape, _ in drawn],
            "annotations": [label for _, label in drawn],
        },
        height=340,
    )


def _over(counts: Document, total: int) -> float:
    return float((counts["jobs_validated"] + counts["jobs_failed"]) / total)


def _fan(last: Document, total: int) -> list[Trace]:
    """Straight lines from where the forecast was made to the end at q10, q50 and q90."""
    start_at, share = last["made_at"], 100.0 * _over(last, total)
    steps = 24
    late = [start_at + (last["q90_at"] - start_at) * step / steps for step in range(steps + 1)]

    def by(end_at: float) -> list[float]:
        left_s = max(end_at - start_at, 1e-9)
        return [round(share + (100.0 - share) * min(1.0, (at - start_at) / left_s), 2) for at in late]

    x = [at_ms(at) for at in late]
    fan = band("between q10 and q90", x, by(last["q90_at"]), by(last["q10_at"]), "--c1")
    return [*fan, line("q50", x, by(last["q50_at"]), "--c1", line={"color": "--c1", "width": 1.5, "dash": "dash"})]


def _summary(shown: Document, last: Document, now: float) -> str:
    over = _over(shown, max(1, shown["jobs_total"]))
    if shown["ended_at"] is not None:
        return f"The batch ended {relative(shown['ended_at'], now)}; {percent(over)} of its jobs were over."
    about, latest = relative(last["q50_at"], now), relative(last["q90_at"], now)
    return f"{percent(over)} of the jobs are over; done about {about}, at latest {latest}."


def _row(one: Document, total: int) -> tuple[str, ...]:
    return (
        stamp(one["made_at"]),
        percent(_over(one, total), 1),
        stamp(one["q50_at"]),
        stamp(one["q90_at"]),
        f"{stamp(one['completion_at'])}, {one['change']}",
    )
