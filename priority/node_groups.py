"""Chooses a job's class for homogeneous redundancy. Pure.

All replicas of such a job run on hosts of one class. The class is chosen before the first replica is sent, as the one
where the job should complete soonest, and chosen again in each cycle until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from domain.units import Flop, FlopPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class HostClass:
    """A class of equivalent hosts: its queued work, its total speed, and the turnaround of a job."""

    name: str
    queued_flop: Flop
    speed: FlopPerSecond
    turnaround_s: Seconds
    hosts: int = 1


def expected_s(host_class: HostClass) -> float | None:
    """Return queue / speed of active hosts + expected turnaround, or None if the speed is 0.

    >>> expected_s(HostClass("linux", Flop(1e15), FlopPerSecond(1e12), Seconds(500.0)))
    1500.0
    """
    if host_class.speed <= 0.0:
        return None
    return host_class.queued_flop / host_class.speed + host_class.turnaround_s


def shares(classes: Iterable[HostClass], work_flop: Flop, *, replicas: int = 1) -> dict[str, float]:
    """Return each class's share of the work if each job goes to the class that completes it soonest.

    All classes that get work finish it at the same time T: sum of max(0, (T - turnaround) * speed - queue) = work. A
    small amount goes to the fastest class alone. Classes with too few hosts get no work.

    >>> slow = HostClass("arm", Flop(0.0), FlopPerSecond(1e12), Seconds(900.0))
    >>> fast = HostClass("x86", Flop(0.0), FlopPerSecond(3e12), Seconds(500.0))
    >>> for work_flop in (Flop(1e12), Flop(5.2e15)):
    ...     {name: round(share, 3) for name, share in shares([fast, slow], work_flop).items()}
    {'x86': 1.0}
    {'x86': 0.808, 'arm': 0.192}
    """
    timed = sorted(
        ((s, one.name, one) for one in classes if one.hosts >= replicas and (s := expected_s(one)) is not None),
        key=lambda one: one[:2],
    )
    if not timed:
        return {}
    work = max(work_flop, 1.0)
    speed = filled = 0.0  # sums over the classes below the level, and the work needed to fill them up to it
    level = timed[0][0]
    for number, (_, _, one) in enumerate(timed):
        speed += one.speed
        following = timed[number + 1][0] if number + 1 < len(timed) else math.inf
        if filled + speed * (following - level) >= work:
            level += (work - filled) / speed
            break
        filled += speed * (following - level)
        level = following
    return {name: (level - s) * one.speed / work for s, name, one in timed if s < level}


def drawn_class(of: Mapping[str, float], drawn: float) -> str | None:
    """Return the class of a job with random number `drawn` in [0, 1), or None if there is no class.

    >>> drawn_class({"x86": 0.75, "arm": 0.25}, 0.7), drawn_class({"x86": 0.75, "arm": 0.25}, 0.8), drawn_class({}, 0.5)
    ('x86', 'arm', None)
    """
    upto = 0.0
    name = None
    for name, share in of.items():
        upto += share
        if drawn < upto:
            return name
    return name
