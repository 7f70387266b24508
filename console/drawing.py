"""Draws plots and bars as SVG, which scripts, style attributes and fixed widths do not need. Pure.

Positions across are percentages, or lines in a stretched inner picture, so that text keeps its size on every screen.
Colours are CSS classes: `c1` to `c8`, and `bad`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import markupsafe

from console.mark_labels import LabelledLine, rows_of
from domain.units import DAY_S, utc
from web.moments import number

TOP, LINE, BESIDE = 8, 16, 6  # pixels: above the plot, of a line of text, between a label and the plot
NARROW = 300  # pixels across the plot on a phone; labels of marks are placed for it
CHARACTER = 7.3  # pixels, of an average character
HEIGHT = 220  # pixels, of a plot
EDGE = 2  # pixels above and below the stretched picture
WIDE = 1000  # units across the stretched picture
SHORT = 5.0  # of these: a line shorter than this also gets a dot
TICKS, LABEL = 6, 26  # most ticks of an axis, most characters of the label of a row
STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200)
COARSE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # values of ticks per power of ten
FINE = (1.0, 1.1, 1.2, 1.3, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)
FEWEST_TICKS = 4
Tick = tuple[float, str]  # position, label


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of numbers, from zero; of counts, with whole numbers; of instants (UTC); or logarithmic. `unit` follows
    each number.
    """

    title: str = ""
    kind: str = "number"  # or count, time, log
    low: float | None = None
    high: float | None = None
    unit: str = ""


TIME = Axis(kind="time")


@dataclass(frozen=True, slots=True)
class Line:
    """A line with gaps at None. `look` is a CSS class: dashed or thin."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    hue: str = "c1"
    look: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded area between two lines; from the bottom to the top of the plot if they are omitted."""

    x: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    hue: str = "c1"


@dataclass(frozen=True, slots=True)
class Bins:
    """A histogram. There is one edge more than values of `y`."""

    name: str
    edges: Sequence[float]
    y: Sequence[float]
    hue: str = "c1"


@dataclass(frozen=True, slots=True)
class MarkLine:
    """A labelled vertical line."""

    x: float
    name: str
    hue: str


@dataclass(frozen=True, slots=True)
class BarSeries:
    """One value per category. `cut`: the true value is larger; these bars are hatched."""

    name: str
    values: Sequence[float | None]
    hue: str = "c1"
    cut: Sequence[bool] = ()


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with its range and ticks."""

    low: float
    high: float
    ticks: Sequence[Tick]
    is_log: bool = False

    def at(self, value: float) -> float:
        """Return the position from 0 to 1, outside if the value is out of range.

        >>> Scale(1.0, 100.0, (), is_log=True).at(10.0), Scale(0.0, 4.0, ()).at(5.0)
        (0.5, 1.25)
        """
        if self.is_log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def scale(axis: Axis, values: Iterable[float]) -> Scale:
    """Return the scale for these values; a limit of the axis replaces theirs."""
    found = list(values) or [0.0]
    low, high = (limit if limit is not None else of(found) for limit, of in ((axis.low, min), (axis.high, max)))
    if axis.kind == "log":
        return Scale(low, high, logarithms(low, high), is_log=True)
    if axis.kind == "time":
        high = max(high, low + 1.0)
        return Scale(low, high, instants(low, high))
    span = max(high, 0.0) - min(low, 0.0)
    step = nice_step(max(span, 1e-9) if span else 1.0)
    if axis.kind == "count":
        step = max(1.0, step)
    if axis.low is None:
        low = math.floor(min(low, 0.0) / step) * step
    if axis.high is None:
        high = max(math.ceil(max(high, 0.0) / step), low / step + 1) * step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Scale(low, high, [(at * step, short(at * step, step) + axis.unit) for at in range(first, last + 1)])


def nice_step(span: float) -> float:
    """Return 1, 2 or 5 times a power of ten: the distance of at most TICKS ticks.

    >>> nice_step(6.0), nice_step(37.0), nice_step(0.1)
    (1.0, 10.0, 0.02)
    """
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    return next(round(part * power, 12) for part in (1, 2, 5, 10) if part * power * TICKS >= span * (1 - 1e-9))


def short(value: float, step: float) -> str:
    """Return the label of a tick.

    >>> short(1500.0, 500.0), short(0.30000001, 0.1), short(2e6, 1e6), short(20000.0, 5000.0)
    ('1\\u202f500', '0.3', '2 M', '20 k')
    """
    for of, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if step >= of:
            return f"{value / of:g} {unit}" if value else "0"
    return number(value, max(0, -math.floor(math.log10(step) + 1e-9)))


def instants(low: float, high: float) -> list[Tick]:
    """Return round instants, at most TICKS + 1: dates at midnight, times of day otherwise.

    >>> [label for _, label in instants(1_800_000_000.0, 1_800_000_000.0 + 3600.0)]
    ['08:00', '08:10', '08:20', '08:30', '08:40', '08:50', '09:00']
    >>> [label for _, label in instants(1_800_000_000.0, 1_800_000_000.0 + 86400.0)]
    ['12:00', '18:00', '16 Jan', '06:00']
    """
    span = high - low
    days = math.ceil(span / TICKS / DAY_S)
    step = next((float(one) for one in STEPS_S if one * TICKS >= span), days * DAY_S)
    return [(at * step, _clock(at * step, step)) for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _clock(at: float, step: float) -> str:
    if at % DAY_S == 0.0:
        moment = utc(at)
        return f"{moment.day} {moment:%b}"
    return f"{utc(at):%H:%M}" if step >= 60.0 else f"{utc(at):%H:%M:%S}"


def logarithms(low: float, high: float) -> list[Tick]:
    """Return round values on a logarithmic axis, also slightly outside.

    >>> [label for _, label in logarithms(1.0, 7.4)], [label for _, label in logarithms(0.6, 1.1)]
    (['1', '1.5', '2', '3', '5', '7'], ['0.6', '0.7', '0.8', '0.9', '1', '1.1'])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    shown: list[float] = []
    for parts in (COARSE, FINE):
        if len(shown) < FEWEST_TICKS:
            every = [part * 10.0**power for power in range(first, last + 1) for part in parts]
            shown = [round(value, 6) for value in every if low * 0.98 <= value <= high * 1.02]
    return [(value, f"{value:g}") for value in shown]


def escape(value: object) -> str:
    """Return text as markup, of type str: adding to markupsafe's own type would escape the other part too."""
    return str(markupsafe.escape(value))


def tag(name: str, body: str = "", /, **attributes: object) -> str:
    """Return an element. Attribute values are escaped; `body` is markup."""
    said = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{said}>{body}</{name}>"


def _across(fraction: float) -> str:
    return f"{100.0 * fraction:.2f}%"


def _anchor(fraction: float) -> str:
    return "start" if fraction < 0.04 else "end" if fraction > 0.96 else "middle"


def _legend(names: Sequence[tuple[str, str]]) -> str:
    keys = (tag("span", escape(name), class_=f"key {hue}") for name, hue in names)
    return tag("div", "".join(keys), class_="legend") if len(names) > 1 else ""


def _framed(left: str, area: str, *, width: float, height: int, legend: str, y_title: str = "") -> str:
    title = tag("div", escape(y_title), class_="axis") if y_title else ""
    beside = tag("svg", left, class_="scale", width=round(width), height=height)
    return f"{legend}{title}" + tag(
        "div", beside + tag("svg", area, class_="area", width="100%", height=height), class_="canvas"
    )


def _x_axis(scaled: Scale, y: float, title: str, *, grid_from: float | None = None) -> str:
    drawn = []
    for place, (value, label) in enumerate(scaled.ticks):
        at = scaled.at(value)
        if not -0.001 <= at <= 1.001:
            continue
        if grid_from is not None:
            drawn.append(tag("line", x1=_across(at), x2=_across(at), y1=grid_from, y2=y, class_="grid"))
        kind = "odd" if place % 2 else "even"
        drawn.append(tag("text", escape(label), x=_across(at), y=y + LINE, text_anchor=_anchor(at), class_=kind))
    said = tag("text", escape(title), x="50%", y=y + 2 * LINE, text_anchor="middle") if title else ""
    return "".join(drawn) + said


def labelled_fraction(marks: int) -> float:
    """Return the share of a plot of the usual height, from the top, that labels of this many marks cover.

    >>> labelled_fraction(1), labelled_fraction(20)
    (0.1, 0.6)
    """
    return min(0.6, (LINE * marks + BESIDE) / HEIGHT)


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines, bands, a histogram and marks over two axes. `zoom`: scripts let users select a part of the x-axis."""

    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    bands: Sequence[Band] = ()
    bins: Bins | None = None
    marks: Sequence[MarkLine] = ()
    height: int = HEIGHT
    zoom: bool = False

    def markup(self) -> str:
        x, y = self._scales()
        below = LINE * (2 if self.x.title else 1) + 6
        bottom = TOP + self.height
        labels = [label for _, label in y.ticks]
        width = BESIDE + CHARACTER * max(map(len, labels), default=0)
        left = [
            tag("text", escape(label), x=round(width - BESIDE), y=self._down(y, value) + 4.0, text_anchor="end")
            for value, label in y.ticks
        ]
        grid = [
            tag("line", x1=0, x2="100%", y1=at, y2=at, class_="grid") for at in (self._down(y, t) for t, _ in y.ticks)
        ]
        return _framed(
            "".join(left),
            "".join(grid)
            + self._bins(x, y)
            + self._stretched(x, y)
            + self._marks(x)
            + _x_axis(x, bottom, self.x.title),
            width=width,
            height=bottom + below,
            legend=_legend([(line.name, line.hue) for line in self.lines]),
            y_title=self.y.title,
        )

    def points(self) -> Mapping[str, object]:
        """Return what scripts show beside the pointer: positions, labels, and the values of each line."""
        if not self.lines:
            return {}
        x, _ = self._scales()
        every = sorted({at for line in self.lines for at in line.x if 0.0 <= x.at(at) <= 1.0})
        known = [dict(zip(line.x, line.y, strict=True)) for line in self.lines]
        return {
            "at": [round(x.at(at), 4) for at in every],
            "labels": [_read(self.x, at) for at in every],
            "lines": [
                [line.name, line.hue, ["" if (value := of.get(at)) is None else _read(self.y, value) for at in every]]
                for line, of in zip(self.lines, known, strict=True)
            ],
            **({"from_at": x.low, "to_at": x.high} if self.zoom else {}),
        }

    def _scales(self) -> tuple[Scale, Scale]:
        across = [at for line in self.lines for at in line.x] + [at for band in self.bands for at in band.x]
        across += [mark.x for mark in self.marks] + (list(self.bins.edges) if self.bins else [])
        x = scale(self.x, across)
        pairs = [pair for line in self.lines for pair in zip(line.x, line.y, strict=True)]
        pairs += [
            pair for band in self.bands for ends in (band.low, band.high) for pair in zip(band.x, ends, strict=False)
        ]
        inside = [value for at, value in pairs if value is not None and x.low <= at <= x.high]
        up = inside or [value for _, value in pairs if value is not None]
        return x, scale(self.y, [*up, *self.bins.y] if self.bins else up)

    def _down(self, y: Scale, value: float) -> float:
        return round(TOP + self.height * (1.0 - y.at(value)), 1)

    def _stretched(self, x: Scale, y: Scale) -> str:
        """Return bands and lines in a picture that is stretched to the width of the plot."""

        def place(at: float, value: float) -> str:
            return f"{WIDE * x.at(at):.1f},{self.height * (1.0 - y.at(value)):.1f}"

        drawn = []
        for band in self.bands:
            low, high = band.low or [y.low] * len(band.x), band.high or [y.high] * len(band.x)
            there = [place(*one) for one in zip(band.x, low, strict=True)]
            back = [place(*one) for one in zip(band.x, high, strict=True)]
            drawn.append(tag("polygon", points=" ".join([*there, *back[::-1]]), class_=f"band {band.hue}"))
        for line in self.lines:
            runs: list[list[str]] = [[]]
            for at, value in zip(line.x, line.y, strict=True):
                if value is None:
                    runs.append([])
                else:
                    runs[-1].append(place(at, value))
            path = "".join(f"M{'L'.join(run)}" for run in runs if len(run) > 1)
            drawn.append(tag("path", d=path, class_=f"line {line.hue} {line.look}".rstrip()) if path else "")
            dots = "".join(f"M{run[-1]}h0" for run in runs if run and _is_short(run))
            drawn.append(tag("path", d=dots, class_=f"line dot {line.hue}") if dots else "")
        tall = self.height + 2 * EDGE  # lines at the edges have their whole width
        box = {"viewBox": f"0 {-EDGE} {WIDE} {tall}", "preserveAspectRatio": "none"}
        return tag("svg", "".join(drawn), y=TOP - EDGE, width="100%", height=tall, **box)

    def _bins(self, x: Scale, y: Scale) -> str:
        if self.bins is None:
            return ""
        drawn = []
        for left, right, value in zip(self.bins.edges, self.bins.edges[1:], self.bins.y, strict=False):
            top, begin, width = self._down(y, value), x.at(left), x.at(right) - x.at(left)
            said = f"{number(value)} {self.bins.name}, {left:.2f} to {right:.2f} {self.x.unit}".rstrip()
            box = {"x": _across(begin), "width": _across(width * 0.94), "y": top, "height": self._down(y, y.low) - top}
            drawn.append(tag("rect", tag("title", escape(said)), class_=f"bar {self.bins.hue}", **box))
        return "".join(drawn)

    def _marks(self, x: Scale) -> str:
        """Return vertical lines, each from its label down. Marks at the same place share a line; their labels are in
        successive rows.
        """
        shared: dict[str, list[MarkLine]] = {}
        for one in sorted(self.marks, key=lambda mark: mark.x):
            if -0.001 <= x.at(one.x) <= 1.001:
                shared.setdefault(_across(x.at(one.x)), []).append(one)
        every = list(shared.items())
        labelled = [
            LabelledLine(x.at(marks[0].x), (CHARACTER * max(len(one.name) for one in marks) + BESIDE) / NARROW)
            for _, marks in every
        ]
        lines, names, y = [], [], TOP - 4
        for place, is_left in rows_of(labelled):
            at, marks = every[place]
            lines.append(tag("line", x1=at, x2=at, y1=y + 6, y2=TOP + self.height, class_=f"mark {marks[0].hue}"))
            side = {"text_anchor": "end", "dx": -4} if is_left else {"text_anchor": "start", "dx": 4}
            for one in marks:
                y += LINE
                names.append(tag("text", escape(one.name), x=at, y=y, class_=f"named {one.hue}", **side))
        return "".join((*lines, *names))


def _is_short(run: Sequence[str]) -> bool:
    """Return whether a line without gaps, given by its points, is too short to be seen."""
    first, last = (float(point.partition(",")[0]) for point in (run[0], run[-1]))
    return last - first < SHORT


def _read(axis: Axis, value: float) -> str:
    if axis.kind == "time":
        return f"{utc(value):%Y-%m-%d %H:%M:%S}"
    digits = 0 if abs(value) >= 100 or value == round(value) else 1 if abs(value) >= 10 else 2
    return f"{number(value, digits)}{axis.unit}"


def _hatch(key: str) -> str:
    stripe = tag("path", d="M-1,7L7,-1M5,13L13,5M-1,13L13,-1", class_="stripe")
    return tag("defs", tag("pattern", stripe, id=f"hatch-{key}", width=6, height=6, patternUnits="userSpaceOnUse"))


@dataclass(frozen=True, slots=True)
class Blank:
    """Draws nothing; the summary of the chart says why."""

    def markup(self) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class ColumnPlot:
    """Vertical bars in groups, one group per category."""

    labels: Sequence[str]
    series: Sequence[BarSeries]
    y: Axis
    key: str = ""  # unique on the page if a bar is hatched
    height: int = HEIGHT

    def markup(self) -> str:
        y = scale(self.y, [value for bars in self.series for value in bars.values if value is not None])
        bottom, groups = TOP + self.height, len(self.labels)
        width = BESIDE + CHARACTER * max(len(label) for _, label in y.ticks)
        wrapped = [textwrap.wrap(label, max(8, 46 // groups)) or [""] for label in self.labels]
        left, area = [], [_hatch(self.key)]
        for value, label in y.ticks:
            at = round(bottom - self.height * y.at(value), 1)
            left.append(tag("text", escape(label), x=round(width - BESIDE), y=at + 4, text_anchor="end"))
            area.append(tag("line", x1=0, x2="100%", y1=at, y2=at, class_="grid"))
        for place, lines in enumerate(wrapped):
            area += [
                tag(
                    "text",
                    escape(line),
                    x=_across((place + 0.5) / groups),
                    y=bottom + LINE * (row + 1),
                    text_anchor="middle",
                )
                for row, line in enumerate(lines)
            ]
        thick = 0.8 / groups / max(1, len(self.series))
        for row, bars in enumerate(self.series):
            for place, known in enumerate(bars.values):
                if known is None:
                    continue
                tall = round(self.height * y.at(known), 1)
                begin = (place + 0.1) / groups + row * thick
                box = {
                    "x": _across(begin),
                    "width": _across(thick * 0.94),
                    "y": round(bottom - tall, 1),
                    "height": tall,
                }
                said = f"{bars.name}, {self.labels[place]}: {_read(self.y, known)}"
                area.append(tag("rect", tag("title", escape(said)), class_=f"bar {bars.hue}", **box))
                if any(bars.cut[place : place + 1]):
                    area.append(tag("rect", fill=f"url(#hatch-{self.key})", class_="hatched", **box))
        return _framed(
            "".join(left),
            "".join(area),
            width=width,
            height=bottom + 6 + LINE * max(map(len, wrapped), default=1),
            legend=_legend([(bars.name, bars.hue) for bars in self.series]),
            y_title=self.y.title,
        )


@dataclass(frozen=True, slots=True)
class RowPlot:
    """Horizontal bars, one row per category from the top: stacked away from zero, or in groups."""

    labels: Sequence[str]
    series: Sequence[BarSeries]
    x: Axis
    stacked: bool = True

    def markup(self) -> str:
        x = scale(self.x, self._reach())
        thick = 16 if self.stacked else max(8, 22 // max(1, len(self.series)))
        tall = 26 if self.stacked else thick * len(self.series) + 10
        width = BESIDE + CHARACTER * min(LABEL, max(map(len, self.labels), default=0))
        left, area = [], []
        for place, label in enumerate(self.labels):
            top = TOP + tall * place
            said = label if len(label) <= LABEL else f"{label[: LABEL - 1]}…"
            text = tag("title", escape(label)) + escape(said)
            left.append(tag("text", text, x=round(width - BESIDE), y=top + tall / 2 + 4, text_anchor="end"))
            ends = [0.0, 0.0]  # of the stacks of negative and positive values
            for row, bars in enumerate(self.series):
                value = bars.values[place] or 0.0
                begin = ends[value > 0] if self.stacked else 0.0
                ends[value > 0] = begin + value
                low, high = sorted((x.at(begin), x.at(begin + value)))
                y = (
                    top
                    + (tall - thick * (1 if self.stacked else len(self.series))) / 2
                    + (0 if self.stacked else row * thick)
                )
                box = {
                    "x": _across(low),
                    "width": _across(high - low),
                    "y": y,
                    "height": thick - (0 if self.stacked else 1),
                }
                told = f"{label}, {bars.name}: {_read(self.x, value)}"
                area.append(tag("rect", tag("title", escape(told)), class_=f"bar {bars.hue}", **box) if value else "")
        bottom = TOP + tall * len(self.labels)
        zero = tag("line", x1=_across(x.at(0.0)), x2=_across(x.at(0.0)), y1=TOP, y2=bottom, class_="zero")
        return _framed(
            "".join(left),
            _x_axis(x, bottom, self.x.title, grid_from=TOP) + "".join(area) + zero,
            width=width,
            height=bottom + 6 + LINE * (2 if self.x.title else 1),
            legend=_legend([(bars.name, bars.hue) for bars in self.series]),
        )

    def _reach(self) -> list[float]:
        if not self.stacked:
            return [value for bars in self.series for value in bars.values if value is not None]
        rows = [[bars.values[place] or 0.0 for bars in self.series] for place in range(len(self.labels))]
        return [sum(value for value in row if (value > 0) == up) for row in rows for up in (False, True)]


Drawing = Blank | Plot | ColumnPlot | RowPlot
