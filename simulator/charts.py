"""Draws a comparison as PNG charts: makespans by kind of batch, their price, and the progress of AFAP batches.

Needs matplotlib (extra `charts`); the rest of the simulator works without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domain.batches import QoS
from domain.errors import MusterError
from domain.units import HOUR_S
from simulator.frontier import Swept, frontier
from simulator.metrics import Figures
from simulator.report import RuleComparison, kinds_of
from simulator.text_charts import curve_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
PRICES = (
    ("instances per job", "instances_per_job"),
    ("tight due dates", "tight_fraction"),
    ("run in deadline mode", "deadline_mode_fraction"),
    ("late instances", "deadline_miss_fraction"),
)


class NoChartsError(MusterError):
    """Charts need matplotlib, which is not installed: pip install "muster[charts]"."""


def write_charts(comparison: RuleComparison, folder: Path) -> list[Path]:
    """Write makespans, tails, prices and the progress of any AFAP batches as PNG files named after the scenario.

    Creates `folder` if necessary. Raises NoChartsError.
    """
    new_picture = pictures()
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        "makespan": _makespans(new_picture(figsize=(9, 4), layout="constrained"), comparison),
        "price": _prices(new_picture(figsize=(9, 3), layout="constrained"), comparison),
    }
    if any(one.ends_s for one in comparison.ends.values()):
        drawn["end"] = _ends(new_picture(figsize=(7, 4), layout="constrained"), comparison)
    return [saved(picture, folder / f"{comparison.scenario}-{name}.png") for name, picture in drawn.items()]


def saved(picture: Picture, path: Path) -> Path:
    """Save the picture without matplotlib's version, so that equal figures give identical files."""
    picture.savefig(path, dpi=110, metadata={"Software": None})
    return path


def pictures() -> Any:
    """Return matplotlib's Figure class. Any: matplotlib's types may not be installed."""
    try:
        from matplotlib.figure import Figure as Picture  # noqa: PLC0415  an extra that may be missing
    except ImportError as error:
        raise NoChartsError from error
    return Picture


def _makespans(picture: Picture, comparison: RuleComparison) -> Picture:
    """Draw makespans on the left and their tails on the right."""
    left, right = picture.subplots(1, 2)
    _by_kind(left, {rule: figures.makespan_s or {} for rule, figures in comparison.rules.items()})
    if any(figures.cut_short for figures in comparison.rules.values()):
        _hatch(left, comparison)
        left.set_xlabel("hatched: unfinished when the simulation ended, takes longer", fontsize=8)
    left.set_ylabel("hours")
    left.set_title("makespan", fontsize=10)
    left.legend()
    _by_kind(right, {rule: figures.tail_s or {} for rule, figures in comparison.rules.items()})
    right.set_title("tail, from 90 % of the jobs to all", fontsize=10)
    picture.suptitle(f"{comparison.scenario}: by kind of batch, medians over {comparison.seeds}")
    return picture


def _by_kind(axes: Axes, values: Mapping[str, Mapping[str, float | None]]) -> None:
    """Draw bars in hours, one group per kind of batch and one colour per rule."""
    kinds = sorted({kind for table in values.values() for kind in table})
    width = 0.8 / max(1, len(values))
    for place, (rule, table) in enumerate(values.items()):
        heights = [(table.get(kind) or 0.0) / HOUR_S for kind in kinds]
        at = [i + (place - (len(values) - 1) / 2) * width for i in range(len(kinds))]
        axes.bar(at, heights, width, label=rule, color=COLOURS[place % len(COLOURS)])
    axes.set_ylim(bottom=0.0)
    axes.set_xticks(range(len(kinds)), [kind.replace("_", "\n") for kind in kinds])


def _hatch(axes: Axes, comparison: RuleComparison) -> None:
    """Hatch the bars that an unfinished batch makes too short."""
    kinds = kinds_of(list(comparison.rules.values()))
    for bars, figures in zip(axes.containers, comparison.rules.values(), strict=True):
        for kind, bar in zip(kinds, bars, strict=True):
            if kind in figures.cut_short:
                bar.set(hatch="///", edgecolor="white")


def _prices(picture: Picture, comparison: RuleComparison) -> Picture:
    for axes, (title, name) in zip(picture.subplots(1, len(PRICES)), PRICES, strict=True):
        values = {rule: value_of(figures, name) for rule, figures in comparison.rules.items()}
        for place, (rule, value) in enumerate(values.items()):
            axes.barh(rule, value or 0.0, color=COLOURS[place % len(COLOURS)])
        axes.set_title(title, fontsize=9)
        axes.invert_yaxis()
        if axes is not picture.axes[0]:
            axes.set_yticks([])
    return picture


def value_of(figures: Figures, name: str) -> float | None:
    value = getattr(figures, name)
    return float(value) if isinstance(value, (int, float)) else None


def _ends(picture: Picture, comparison: RuleComparison) -> Picture:
    axes = picture.subplots()
    for place, rule in enumerate(comparison.rules):  # a rule has the same colour in all charts
        if rule in comparison.ends:
            at, share = curve_points(comparison.ends[rule])
            axes.step(at, share, where="post", label=rule, color=COLOURS[place % len(COLOURS)])
    axes.set_xscale("symlog", linthresh=1.0)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("hours since submission")
    axes.set_ylabel("share of jobs finished")
    axes.set_title(f"{comparison.scenario}: progress of AFAP batches, {comparison.seeds} seeds together")
    axes.legend()
    return picture


def write_frontier_charts(swept: Swept, folder: Path) -> list[Path]:
    """Write one PNG file per rule with settings, creating `folder` if necessary. Raises NoChartsError."""
    new_picture = pictures()
    folder.mkdir(parents=True, exist_ok=True)
    return [
        saved(
            _drawn(new_picture(figsize=(12, 4), layout="constrained"), swept, rule),
            folder / f"{swept.scenario}-frontier{'' if rule == swept.rules[0] else f'-{rule}'}.png",
        )
        for rule in swept.rules
    ]


def _drawn(picture: Picture, swept: Swept, rule: str) -> Picture:
    every = picture.subplots(1, len(PRICES), sharey=True)
    for axes, (title, name) in zip(every, PRICES, strict=True):
        _points(axes, swept, rule, name)
        axes.set_xlabel(title, fontsize=9)
    every[0].set_ylabel("AFAP makespan, hours")
    every[0].set_ylim(bottom=0.0)
    picture.suptitle(f"{swept.scenario}, {rule}: combinations of settings, medians over {swept.seeds}")
    return picture


def _points(axes: Axes, swept: Swept, rule: str, price: str) -> None:
    """Draw frontier points filled and numbered as in the table, and all other points hollow.

    A triangle pointing up marks an unfinished batch.
    """
    figures = swept.figures(rule)
    marked = frontier(figures)
    for place, one in enumerate(figures):
        at, makespan_s = value_of(one, price), one.afap_makespan_s
        if at is None or makespan_s is None:
            continue
        colour = COLOURS[0]
        hours, inside = makespan_s / HOUR_S, colour if place in marked else "none"
        mark = "^" if QoS.AFAP in one.cut_short else "o"
        axes.scatter([at], [hours], s=25, marker=mark, facecolors=inside, edgecolors=colour)
        if place in marked:
            axes.annotate(str(place + 1), (at, hours), xytext=(4, 3), textcoords="offset points", fontsize=8)
