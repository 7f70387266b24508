"""Divides executions among the targets, and lists the packages whose coverage guides each.

Imports nothing of the project: measuring has to be set up first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """`share` of all executions; `packages` guide the fuzzer."""

    share: float
    packages: tuple[str, ...]


MOST_BYTES = 16 * 1024  # longer ones have tests of their own (test_giants); slow inputs are tried rarely
ROUND = 1_000_000  # executions in which every target has one turn
GUIDED = 0.1  # fraction of a turn guided by coverage; the rest mutates its finds, four times as fast

PLAN = {
    "decode": Part(0.5, ("wire",)),
    "answer": Part(0.05, ("wire", "scheduler")),
    "upload": Part(0.2, ("wire", "transfer")),
    "api": Part(0.25, ("api", "administration.ordering", "jobs", "priority")),
}


def runs_of(runs: int, names: list[str]) -> dict[str, int]:
    """Return each target's share of these executions.

    >>> runs_of(1000, ["decode", "upload"])
    {'decode': 715, 'upload': 286}
    """
    total = sum(PLAN[name].share for name in names)
    return {name: int(runs * PLAN[name].share / total) + 1 for name in names}
