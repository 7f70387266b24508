"""Draws the faults of a round, their times and durations, from a seed. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass

LOAD_S = 7.0  # of load with and without faults, before calm
FIRST_S = 0.5  # of load before the first fault, at least

# kind -> minimum and maximum duration in seconds
KINDS: dict[str, tuple[float, float]] = {
    "kill worker": (0.0, 0.0),
    "kill all workers": (0.0, 0.0),
    "kill background": (0.0, 0.0),
    "kill node": (0.2, 1.5),
    "kill database": (0.0, 1.5),
    "kill database session": (0.0, 0.0),
    "stop worker": (0.5, 4.0),
    "stop background": (0.5, 4.0),
    "stop database": (0.5, 4.0),
    "uploads full": (0.5, 3.0),
    "sync slow": (1.0, 4.0),
    "sync deadly": (0.1, 1.0),
    "database full": (0.3, 2.0),
    "clients cut": (0.0, 1.5),
    "clients slow": (1.0, 4.0),
    "clients doubled": (2.0, 5.0),
    "database cut": (0.0, 1.5),
    "database slow": (1.0, 4.0),
    "database silent": (0.5, 4.0),
    "fail-over": (0.0, 1.0),
    "clock forward": (1.0, 5.0),
    "clock backward": (1.0, 5.0),
    "upgrade": (0.0, 0.0),
    "freeze worker": (31.0, 36.0),  # longer than the 30 s without a heartbeat after which it is restarted
    "freeze background": (31.0, 36.0),
    "freeze node": (31.0, 36.0),  # longer than the server keeps the locks of a silent session
}
NEEDS_ROOT = frozenset({"uploads full", "database full"})  # they mount a small file system
NEEDS_COMPILER = frozenset({"sync slow", "sync deadly"})  # they load a library of their own into the node
LONG = frozenset({"freeze worker", "freeze background", "freeze node"})  # at most one of them per schedule
RARE = frozenset({"fail-over", "upgrade", "kill node"}) | LONG  # they take longer
CLOCK_STEPS_S = (3.0, 60.0, 3600.0, 2 * 86400.0)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: start and duration in seconds of load, and its strength (a draw in [0, 1))."""

    kind: str
    at_s: float
    lasts_s: float
    draw: float

    def __str__(self) -> str:
        return f"{self.kind} at {self.at_s:.1f} s for {self.lasts_s:.1f} s"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The faults of one round; volunteers use the seed too."""

    seed: int
    faults: tuple[Fault, ...]

    @property
    def fails_over(self) -> bool:
        return any(fault.kind == "fail-over" for fault in self.faults)

    def __str__(self) -> str:
        return f"seed {self.seed}: {'; '.join(map(str, self.faults))}"


def draw_schedule(seed: int, *, kinds: Collection[str] = frozenset(KINDS)) -> Schedule:
    """Draw two to five faults of these kinds, at most one rare and one long one; rare ones a third as often.

    >>> draw_schedule(7) == draw_schedule(7), len(draw_schedule(7).faults) in (2, 3, 4, 5)
    (True, True)
    """
    draw = random.Random(seed)
    some = sorted(kinds)
    weights = [1.0 if kind in RARE else 3.0 for kind in some]
    faults: list[Fault] = []
    for kind in draw.choices(some, weights, k=draw.randint(2, 5)):
        at_s, amount = draw.uniform(FIRST_S, LOAD_S), draw.random()
        lasts_s = draw.uniform(*KINDS[kind])
        alike = LONG if kind in LONG else {kind}
        if kind not in RARE or all(fault.kind not in alike for fault in faults):
            faults.append(Fault(kind, round(at_s, 3), round(lasts_s, 3), amount))
    return Schedule(seed, tuple(sorted(faults, key=lambda fault: fault.at_s)))
