"""A comparison of rules as charts: how long batches and their last jobs take, and what that costs whom. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from console.charts import Chart, Trace, bars, colour, line
from domain.units import HOUR_S
from web.moments import length, number, percent

Document = Mapping[str, Any]  # Any: a JSON document
Said = tuple[str, str, str]  # a chart's key, title and summary

SHARES: Sequence[tuple[str, str, Callable[[float], float]]] = (
    ("extra instances", "instances_per_job", lambda value: max(0.0, 100.0 * (value - 1.0))),
    ("deadlines missed", "deadline_miss_fraction", lambda value: 100.0 * value),
    ("never returned", "never_returned_fraction", lambda value: 100.0 * value),
    ("tight due dates", "tight_fraction", lambda value: 100.0 * value),
    ("deadline mode", "deadline_mode_fraction", lambda value: 100.0 * value),
)
DELAYS: Sequence[tuple[str, str, Callable[[float], float]]] = (
    ("other work kept waiting, per job", "preempted_s_per_job", lambda value: value / 60.0),
    ("report to validation, median", "validation_delay_s", lambda value: value / 60.0),
    ("report to validation, 90 %", "validation_delay_p90_s", lambda value: value / 60.0),
)


def charts_of(result: Document) -> list[Chart]:
    """Those that there is something to draw for."""
    drawn = (makespan_chart(result), tail_chart(result), ends_chart(result), price_chart(result), delays_chart(result))
    return [chart for chart in drawn if chart is not None]


def makespan_chart(result: Document) -> Chart | None:
    """How long batches of each kind take, by rule."""
    about = "Hours from submission to the last job's end, medians; less is better."
    return _by_kind(result, "makespan_s", ("makespan", "How long batches take", about))


def tail_chart(result: Document) -> Chart | None:
    """How much of that goes by for the last tenth of a batch's jobs."""
    about = "Hours from the end of 90 % of a batch's jobs to the end of the last, medians; less is better."
    return _by_kind(result, "tail_s", ("tail", "How long the last jobs take", about))


def _by_kind(result: Document, figure: str, said: Said) -> Chart | None:
    """Bars for each kind of batch; hatched ones would be longer, had the simulation gone on."""
    rules: Document = result["rules"]
    kinds = sorted({kind for one in rules.values() for kind in one.get(figure) or {}})
    if not kinds:
        return None

    def is_cut(rule: str, kind: str) -> bool:
        return figure == "makespan_s" and kind in rules[rule].get("cut_short", ())

    def cell(rule: str, kind: str) -> str:
        return f"{'> ' if is_cut(rule, kind) else ''}{length(_value(rules[rule], figure, kind))}"

    def drawn(place: int, rule: str) -> Trace:
        hours = [_hours(_value(rules[rule], figure, kind)) for kind in kinds]
        pattern = {"shape": ["/" if is_cut(rule, kind) else "" for kind in kinds]}
        return bars(rule, words, hours, colour(place), marker={"color": colour(place), "pattern": pattern})

    words = [kind.replace("_", " ") for kind in kinds]
    cut = any(is_cut(rule, kind) for rule in rules for kind in kinds)
    key, title, about = said
    return Chart(
        key,
        title,
        about + (" Hatched: not over when the simulation ended, so it takes longer." if cut else ""),
        ("promise", *rules),
        [(kind.replace("_", " "), *(cell(rule, kind) for rule in rules)) for kind in kinds],
        [drawn(place, rule) for place, rule in enumerate(rules)],
        {"barmode": "group", "yaxis": {"title": {"text": "hours"}, "rangemode": "tozero"}, "bargroupgap": 0.08},
        height=300,
    )


def _value(figures: Document, figure: str, kind: str) -> float | None:
    value: float | None = (figures.get(figure) or {}).get(kind)
    return value


def _hours(value: float | None) -> float | None:
    return None if value is None else round(value / HOUR_S, 2)


def ends_chart(result: Document) -> Chart | None:
    """How urgent batches come to their end, by rule."""
    curves: Document = result.get("curves") or {}
    if not curves:
        return None
    shares = (0.5, 0.9, 1.0)

    def reached(rule: str, share: float) -> float | None:
        return next((at * HOUR_S for at, over in curves[rule] if over >= share - 1e-9), None)

    return Chart(
        "ends",
        "How urgent batches end",
        "The share of jobs that are over, by hours since submission: the last few take longest.",
        ("rule", *(f"{percent(share)} over" for share in shares)),
        [(rule, *(length(reached(rule, share)) for share in shares)) for rule in curves],
        [
            line(
                rule,
                [round(at, 3) for at, _ in curves[rule]],
                [round(100.0 * over, 2) for _, over in curves[rule]],
                colour(place),
            )
            for place, rule in enumerate(curves)
        ],
        {
            "xaxis": {"title": {"text": "hours since submission"}, "rangemode": "tozero"},
            "yaxis": {"title": {"text": "jobs over"}, "ticksuffix": " %", "range": [0, 103]},
        },
        height=300,
    )


def price_chart(result: Document) -> Chart | None:
    """What the rules cost: more instances than jobs, due dates, and whose clients run them out of turn."""
    said = ("price", "What it costs", "Per cent of a batch's jobs or instances; less is better.")
    return _by_rule(result, SHARES, said, unit=" %", axis={"ticksuffix": " %", "title": {"text": "share"}})


def delays_chart(result: Document) -> Chart | None:
    """What volunteers wait for: other work, and credit."""
    about = "Minutes that other work was put off for jobs in danger, and that results waited for validation."
    said = ("delays", "Who is kept waiting", about)
    return _by_rule(result, DELAYS, said, unit=" min", axis={"title": {"text": "minutes"}})


def _by_rule(
    result: Document,
    figures: Sequence[tuple[str, str, Callable[[float], float]]],
    said: Said,
    *,
    unit: str,
    axis: Document,
) -> Chart | None:
    """Bars for each figure that any rule has."""
    rules: Document = result["rules"]
    known = [one for one in figures if any(of.get(one[1]) is not None for of in rules.values())]
    if not known:
        return None

    def value(rule: str, key: str, drawn: Callable[[float], float]) -> float | None:
        found = rules[rule].get(key)
        return None if found is None else round(drawn(found), 2)

    names = [name for name, _, _ in known]
    values = {rule: [value(rule, key, drawn) for _, key, drawn in known] for rule in rules}
    return Chart(
        *said,
        ("rule", *names),
        [(rule, *(_with_unit(one, unit) for one in values[rule])) for rule in rules],
        [bars(rule, names, values[rule], colour(place)) for place, rule in enumerate(rules)],
        {"barmode": "group", "yaxis": {"rangemode": "tozero", **axis}},
        height=300,
    )


def _with_unit(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{number(value, 1)}{unit}"
