"""Summarizes the timed refills. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from benchmarks.running import rounded

Figures = dict[str, float]
STEPS = {"full": "refill", "steady": "steady_refill", "round": "round", "after_sends_full": "after_sends_refill"}


@dataclass(frozen=True, slots=True)
class Timed:
    """One refill: wall-clock seconds, CPU seconds of this process and of the database, and filled slots."""

    took_s: float
    python_s: float
    postgres_s: float
    placed: int


def medians(name: str, refills: Sequence[Timed]) -> Figures:
    """Return the median of each figure, with CPU in microseconds per filled slot.

    >>> medians("full", [Timed(0.1, 0.02, 0.03, 1000)])
    {'full_s': 0.1, 'full_placed': 1000.0, 'full_python_us_per_slot': 20.0, 'full_postgres_us_per_slot': 30.0}
    """
    return {
        f"{name}_s": rounded(median(one.took_s for one in refills)),
        f"{name}_placed": float(median(one.placed for one in refills)),
        f"{name}_python_us_per_slot": rounded(_us_per_slot([one.python_s for one in refills], refills)),
        f"{name}_postgres_us_per_slot": rounded(_us_per_slot([one.postgres_s for one in refills], refills)),
    }


def _us_per_slot(seconds: Sequence[float], refills: Sequence[Timed]) -> float:
    """Return the total CPU time of all refills divided by their slots."""
    return 1e6 * sum(seconds) / max(1, sum(one.placed for one in refills))


def ratios(by_backlog: Mapping[int, Mapping[int, Figures]]) -> Figures:
    """Return seconds and CPU time per filled slot, relative to the smallest backlog with as many slots, and to fewer
    slots.

    >>> few, many = medians("full", [Timed(0.1, 0.02, 0.03, 1000)]), medians("full", [Timed(0.2, 0.03, 0.03, 1000)])
    >>> ratios({10_000: {1000: few}, 1_000_000: {1000: many}})
    {'refill_ratio_1m_over_10k': 2.0, 'refill_cpu_ratio_1m_over_10k': 1.2}
    """
    sizes = sorted({slots for found in by_backlog.values() for slots in found})
    ratio: Figures = {}
    for slots in sizes:
        smallest, *others = sorted(backlog for backlog, found in by_backlog.items() if slots in found)
        at = "" if slots == sizes[0] else f"_{named(slots)}_slots"
        for backlog in others:
            for step, name in STEPS.items():
                before, after = by_backlog[smallest][slots], by_backlog[backlog][slots]
                if f"{step}_s" in before:
                    key = f"{name}_ratio_{named(backlog)}_over_{named(smallest)}{at}"
                    ratio[key] = rounded(_per_slot(after, step) / _per_slot(before, step))
                    ratio[key.replace("_ratio_", "_cpu_ratio_")] = rounded(_cpu_us(after, step) / _cpu_us(before, step))
    for fewer, more in pairwise(sizes):
        of_largest = by_backlog[max(by_backlog)]
        if "steady_s" in of_largest[more]:
            key = f"steady_refill_ratio_{named(more)}_over_{named(fewer)}_slots"
            ratio[key] = rounded(_per_slot(of_largest[more], "steady") / _per_slot(of_largest[fewer], "steady"))
    return ratio


def _per_slot(figures: Figures, step: str) -> float:
    return figures[f"{step}_s"] / max(1.0, figures[f"{step}_placed"])


def _cpu_us(figures: Figures, step: str) -> float:
    return figures[f"{step}_python_us_per_slot"] + figures[f"{step}_postgres_us_per_slot"]


def named(count: int) -> str:
    """Format a round number.

    >>> named(10_000), named(10_000_000), named(300)
    ('10k', '10m', '300')
    """
    if count >= 1_000_000:
        return f"{count // 1_000_000}m"
    return f"{count // 1000}k" if count >= 1000 else str(count)
