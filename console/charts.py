"""Charts and progress bars as values, for the chart library (with JavaScript) and for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

import msgspec

from domain.units import Instant
from web.moments import number, percent

Trace = Mapping[str, object]
TEMPLATE = "hovertemplate"  # set to constants in these modules, never to user input
PALETTE = ("--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. `summary` describes it in one sentence; `rows` has its numbers, formatted, under `columns`."""

    key: str  # unique on a page
    title: str
    summary: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    traces: Sequence[Trace] = ()
    layout: Mapping[str, object] = field(default_factory=dict)
    height: int = 320

    @property
    def document(self) -> str:
        """Return the chart as JSON for the library. Text is escaped, because the library renders tags in labels."""
        drawn = {"traces": as_text(self.traces), "layout": as_text(self.layout), "height": self.height}
        return msgspec.json.encode(drawn).decode()


def as_text(value: object) -> object:
    """Return a copy with all strings escaped, so that the library shows them literally.

    >>> as_text({"y": ["<a href='x'>3 & 4</a>", 7], "hovertemplate": "%{y}<extra></extra>"})
    {'y': ["&lt;a href='x'&gt;3 &amp; 4&lt;/a&gt;", 7], 'hovertemplate': '%{y}<extra></extra>'}
    """
    if isinstance(value, str):
        return escape(value, quote=False)
    if isinstance(value, Mapping):
        return {key: one if key == TEMPLATE else as_text(one) for key, one in value.items()}
    return [as_text(one) for one in value] if isinstance(value, Sequence) else value


def colour(place: int) -> str:
    """Return the colour for the series with this number.

    >>> colour(0), colour(8)
    ('--c1', '--c1')
    """
    return PALETTE[place % len(PALETTE)]


def at_ms(at: Instant | float) -> float:
    """Return an instant as a position on a date axis."""
    return round(at * 1000.0)


def time_axis() -> Trace:
    """Return a date axis, in UTC."""
    return {"type": "date", "title": {"text": "UTC"}}


def line(name: str, x: Sequence[object], y: Sequence[object], hue: str, **more: object) -> Trace:
    """Return a line series."""
    style: dict[str, object] = {"color": hue, "width": 2}
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": style, **more}


def band(name: str, x: Sequence[object], low: Sequence[object], high: Sequence[object], hue: str) -> tuple[Trace, ...]:
    """Return a shaded area between two lines."""
    none = {"width": 0, "color": hue}
    edge: dict[str, object] = {"type": "scatter", "mode": "lines", "line": none, "hoverinfo": "skip", "x": x}
    return (
        {**edge, "y": low, "showlegend": False},
        {**edge, "y": high, "name": name, "fill": "tonexty", "fillcolor": f"{hue}/0.18"},
    )


def bars(name: str, x: Sequence[object], y: Sequence[object], hue: str, **more: object) -> Trace:
    """Return vertical bars, or horizontal ones with `orientation="h"`."""
    return {"type": "bar", "name": name, "x": x, "y": y, "marker": {"color": hue}, **more}


def upright(x: object, hue: str, text: str, *, level: float = 1.0, label_x: object = None) -> tuple[Trace, Trace]:
    """Return a labelled vertical line across the plot: a shape and an annotation.

    `level` is the label's height, so that neighbouring labels do not overlap. `label_x` is its position on a
    logarithmic axis, where the library expects the logarithm for labels only.
    """
    shape: Trace = {
        "type": "line",
        "x0": x,
        "x1": x,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": hue, "width": 1.5, "dash": "dot"},
    }
    label: Trace = {
        "x": x if label_x is None else label_x,
        "y": level,
        "yref": "paper",
        "text": text,
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "font": {"color": hue, "size": 12},
        "bgcolor": "--panel/0.8",
    }
    return shape, label


@dataclass(frozen=True, slots=True)
class Bar:
    """The parts of a bar, out of 100. `out` are jobs in progress; `words` describe the bar."""

    valid: float
    failed: float
    out: float
    percent: str
    words: str


def bar_of(total: int, valid: int, failed: int, in_progress: int) -> Bar:
    """Return valid, failed and in-progress jobs as parts of the total.

    >>> bar_of(200, 50, 10, 30)
    Bar(valid=25.0, failed=5.0, out=15.0, percent='30 %', words='50 of 200 jobs valid, 10 failed, 30 with hosts')
    """
    whole = max(total, 1)
    left = max(0, total - valid - failed)
    words = f"{number(valid)} of {number(total)} jobs valid, {number(failed)} failed"
    words += f", {number(in_progress)} with hosts" if in_progress else ""
    over = (valid + failed) / whole
    shown = percent(min(over, 0.99)) if left and over > 0.99 else percent(over)  # the parts must not exceed 100
    return Bar(100.0 * valid / whole, 100.0 * failed / whole, 100.0 * min(in_progress, left) / whole, shown, words)
