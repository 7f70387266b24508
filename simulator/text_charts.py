"""Draws a comparison as text charts: bars of makespans and tails, and the progress of AFAP batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Set

from rich.console import Group, RenderableType
from rich.text import Text

from domain.batches import QoS
from domain.units import HOUR_S
from simulator.metrics import Figure, Figures
from simulator.report import BatchEnds, RuleComparison, hours, shown

WIDTH = 40
EIGHTHS = " ▏▎▍▌▋▊▉█"  # eighths of a character, from the left
HEIGHTS = " ▁▂▃▄▅▆▇█"  # eighths of a character, from the bottom


def charts_of(comparison: RuleComparison) -> RenderableType:
    """Return bars of the makespans and tails of AFAP batches, and curves of their finished jobs over time."""
    rules = comparison.rules.items()
    return Group(
        *bars("AFAP makespan", {rule: f.afap_makespan_s for rule, f in rules}, cut_short=_cut_short(rules)),
        *bars("AFAP tail, from 90 % of the jobs to all", {rule: (f.tail_s or {}).get(QoS.AFAP) for rule, f in rules}),
        *_curves(comparison.ends),
    )


def _cut_short(rules: Iterable[tuple[str, Figures]]) -> set[str]:
    """Return the rules under which an AFAP batch was unfinished at the end of the run."""
    return {rule for rule, figures in rules if QoS.AFAP in figures.cut_short}


def bars(title: str, values: Mapping[str, Figure], *, cut_short: Set[str] = frozenset()) -> Iterator[Text]:
    """Yield a line per bar, the longest at full width; none without values. Values of `cut_short` labels get a `>`."""
    known = {rule: value for rule, value in values.items() if value is not None}
    longest = max(known.values(), default=0.0)
    if longest <= 0.0:
        return
    yield Text(title)
    for rule, value in known.items():
        yield Text(f"{_padded(rule, known)} {bar(value / longest)} {shown(value, hours, more=rule in cut_short)}")


def _curves(ends: Mapping[str, BatchEnds]) -> Iterator[Text]:
    until_s = max((end_s for one in ends.values() for end_s in one.ends_s), default=0.0)
    if until_s <= 0.0:
        return
    yield Text(f"AFAP jobs finished, from submission to {hours(until_s)} after it")
    for rule, one in ends.items():
        over = len(one.ends_s) / one.jobs
        yield Text(f"{_padded(rule, ends)} {curve(one, until_s)} {100.0 * over:.4g} %")


def _padded(rule: str, rules: Mapping[str, object]) -> str:
    return f"{rule:<{max(map(len, rules))}}"


def bar(fraction: float, width: int = WIDTH) -> str:
    """Return a bar of `fraction` of `width` characters, in eighths.

    >>> bar(0.5, 4), bar(0.3125, 2)
    ('██', '▋')
    """
    eighths = round(max(0.0, min(1.0, fraction)) * width * 8)
    return EIGHTHS[8] * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")


def curve(ends: BatchEnds, until_s: float, width: int = WIDTH) -> str:
    """Draw the share of finished jobs at the end of each of `width` equal intervals up to `until_s`, in eighths.

    A full character means that all jobs have finished.

    >>> curve(BatchEnds((1.0, 2.0, 3.0), 3), 4.0, width=4)
    '▂▅██'
    """
    ordered = sorted(ends.ends_s)
    counts = [bisect_right(ordered, until_s * (column + 1) / width) for column in range(width)]
    return "".join(HEIGHTS[8 * count // ends.jobs] for count in counts)


def curve_points(ends: BatchEnds) -> tuple[list[float], list[float]]:
    """Return hours since submission, and the share of jobs finished by then.

    >>> curve_points(BatchEnds((7200.0, 3600.0), 4))
    ([0.0, 1.0, 2.0], [0.0, 0.25, 0.5])
    """
    ordered = sorted(ends.ends_s)
    over = [(n + 1) / ends.jobs for n in range(len(ordered))]
    return [0.0, *(end_s / HOUR_S for end_s in ordered)], [0.0, *over]
