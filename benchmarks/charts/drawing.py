"""Draws each chart as an SVG file with its own background, readable on light and dark pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_never

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from benchmarks.charts.charts import Bars, Chart, Curves

SIZE_INCHES = (6.4, 3.2)
HEADROOM = 1.1  # end of the y axis relative to the highest value
PAPER, INK, LINES = "#fcfcf9", "#26262b", "#d9d9d4"
# Also distinguishable by brightness, for red-green colour blindness and greyscale prints.
COLOURS = ("#0b5cad", "#d1690e", "#5b8c2a", "#8a4fa3")
MARKERS = ("o", "s", "^", "D")
STYLE: dict[Any, object] = {  # Any: the library types each key as a literal
    "svg.hashsalt": "muster",  # keeps the ids in the file the same every time
    "svg.fonttype": "none",  # keeps text as text, which is small and searchable
    "font.family": "DejaVu Sans",  # shipped with the library, for the same layout on every machine
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": LINES,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
}


def save(chart: Chart, path: Path) -> None:
    """Draw a chart to an SVG file. The same chart gives an identical file."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        axes = figure.add_subplot()
        match chart:
            case Curves():
                _curves(axes, chart)
            case Bars():
                _bars(axes, chart)
            case _:
                assert_never(chart)
        axes.set_title(chart.title, loc="left")
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _curves(axes: Axes, chart: Curves) -> None:
    for series, colour, marker in zip(chart.series, COLOURS, MARKERS, strict=False):
        axes.plot(series.x, series.y, color=colour, marker=marker, markersize=4.5, label=series.name)
    if chart.logarithmic:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0.0)
    axes.set_ylim(0.0, HEADROOM * max(max(series.y, default=0.0) for series in chart.series))
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    axes.xaxis.set_major_formatter(FuncFormatter(_number))
    axes.yaxis.set_major_formatter(FuncFormatter(_number))
    axes.grid(axis="y")
    if len(chart.series) > 1:
        axes.legend()


def _bars(axes: Axes, chart: Bars) -> None:
    ends = [0.0] * len(chart.rows)
    for (part, widths), colour in zip(chart.parts.items(), COLOURS, strict=False):
        axes.barh(chart.rows, widths, left=ends, color=colour, edgecolor=PAPER, label=part, height=0.62)
        ends = [end + width for end, width in zip(ends, widths, strict=True)]
    for row, end in enumerate(ends):
        axes.text(end, row, f" {end:,.0f}", va="center")
    axes.invert_yaxis()
    axes.set_xlim(0.0, HEADROOM * max(ends))
    axes.set_xlabel(chart.x_label)
    axes.xaxis.set_major_formatter(FuncFormatter(_number))
    axes.grid(axis="x")
    axes.legend(ncols=len(chart.parts), loc="upper center", bbox_to_anchor=(0.5, -0.2))


def _number(value: float, _position: int | None = None) -> str:
    """Format a number for an axis.

    >>> _number(400_000.0), _number(0.25)
    ('400,000', '0.25')
    """
    return f"{value:,.10g}"
