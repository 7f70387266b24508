"""What is asked of `muster` on a scenario, and how a figure that misses it is told. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.metrics import Figure, Figures
from simulator.report import quotient

MOST_INSTANCES, MOST_DEADLINE_MODE, MOST_OVER_FIXED = 1.25, 0.10, 1.05


@dataclass(frozen=True, slots=True)
class Limits:
    """Of AFAP makespans: at most so many times that of the rule `accelerated`, and the clairvoyant bound."""

    over_accelerated: float
    over_the_bound: float


SMALL, LARGER = Limits(0.90, 2.5), Limits(0.50, 2.0)


def limits_of(scenario: str) -> Limits:
    """
    >>> limits_of("department").over_accelerated
    0.5
    """
    return SMALL if scenario == "small" else LARGER


def over(ours: Figures, theirs: Figures, most: float, makespan: str = "afap") -> str:
    """A makespan over another rule's, in bold where it is not known to be within its limit.

    >>> day, two = Figures(makespan_s={"afap": 86400.0}), Figures(makespan_s={"afap": 172800.0})
    >>> over(day, two, 0.9), over(two, day, 0.9), over(Figures(), day, 0.9)
    ('0.50', '**2.00**', '')
    >>> over(Figures(makespan_s={"afap": 86400.0}, cut_short=("afap",)), two, 0.9)
    '**> 0.50**'
    """
    said = quotient(ours, theirs, makespan)
    if not said:
        return ""
    span_s, base_s = ours.makespan(makespan), theirs.makespan(makespan)
    assert span_s is not None
    assert base_s is not None
    return said if makespan not in ours.cut_short and span_s <= most * base_s else f"**{said}**"


def told(value: Figure, spoken: Callable[[float], str], most: float | None = None) -> str:
    """In bold where it is above its limit.

    >>> told(1.5, str), told(1.5, str, 1.25), told(None, str)
    ('1.5', '**1.5**', '')
    """
    if value is None:
        return ""
    return f"**{spoken(value)}**" if most is not None and value > most else spoken(value)
