"""Combinations of settings as a picture: AFAP makespans against each price, those on the frontier numbered.

Drawn by matplotlib, an extra like that of the other pictures (simulator/charts.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from domain.batches import QoS
from domain.units import HOUR_S, Seconds
from simulator.charts import COLOURS, PRICES, pictures, saved, value_of
from simulator.frontier import Swept, frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture


@dataclass(frozen=True, slots=True)
class Limits:
    """Lines in the picture: AFAP makespans by what they are the limit of, and prices by the name of their figure."""

    makespans_s: Mapping[str, Seconds] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)


NO_LIMITS = Limits()


def write_frontier_charts(swept: Swept, folder: Path, limits: Limits = NO_LIMITS) -> list[Path]:
    """A PNG file for each rule that goes by settings, in `folder`, which is made. Raises NoChartsError."""
    new_picture = pictures()
    folder.mkdir(parents=True, exist_ok=True)
    return [
        saved(
            _drawn(new_picture(figsize=(12, 4), layout="constrained"), swept, rule, limits),
            folder / f"{swept.scenario}-frontier{'' if rule == swept.rules[0] else f'-{rule}'}.png",
        )
        for rule in swept.rules
    ]


def _drawn(picture: Picture, swept: Swept, rule: str, limits: Limits) -> Picture:
    every = picture.subplots(1, len(PRICES), sharey=True)
    for axes, (title, name) in zip(every, PRICES, strict=True):
        _points(axes, swept, rule, name)
        if name in limits.prices:
            axes.axvline(limits.prices[name], color="black", linestyle="--", linewidth=1)
        for style, (told, limit_s) in zip(("--", ":", "-."), limits.makespans_s.items(), strict=False):
            axes.axhline(limit_s / HOUR_S, color="black", linestyle=style, linewidth=1, label=told)
        axes.set_xlabel(title, fontsize=9)
    every[0].set_ylabel("AFAP makespan, hours")
    every[0].set_ylim(bottom=0.0)
    if limits.makespans_s:
        every[0].legend(fontsize=8)
    picture.suptitle(f"{swept.scenario}, {rule}: combinations of settings, medians over {swept.seeds}")
    return picture


def _points(axes: Axes, swept: Swept, rule: str, price: str) -> None:
    """Full and with their number in the table where nothing beats them, hollow elsewhere; a triangle points up to where
    a batch is that was not over."""
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
