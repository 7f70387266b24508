"""What is asked of `muster` on a scenario, and how a figure that misses it is told. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.metrics import Figure

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


def ratio(value: Figure, base: Figure) -> Figure:
    """None where either is not known, or nothing is to be divided by.

    >>> ratio(3.0, 2.0), ratio(None, 2.0), ratio(3.0, 0.0)
    (1.5, None, None)
    """
    return value / base if value is not None and base else None


def told(value: Figure, spoken: Callable[[float], str], most: float | None = None) -> str:
    """In bold where it is above its limit.

    >>> told(1.5, str), told(1.5, str, 1.25), told(None, str)
    ('1.5', '**1.5**', '')
    """
    if value is None:
        return ""
    return f"**{spoken(value)}**" if most is not None and value > most else spoken(value)
