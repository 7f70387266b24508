"""Which homogeneous-redundancy class is a job committed to? Pure.

Replicas of such a job run on hosts alike. The class is chosen before the first replica is sent, where the job is
expected to be complete soonest, and looked at anew in each cycle until then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from domain.units import Flop, FlopPerSecond, Seconds


@dataclass(frozen=True, slots=True)
class HostClass:
    """Hosts alike: what waits for them, how fast they are together, how long a job is with one of them."""

    name: str
    queued_flop: Flop
    speed: FlopPerSecond
    turnaround_s: Seconds
    hosts: int = 1


def expected_s(host_class: HostClass) -> float | None:
    """Queue ahead in the class / speed of its active hosts + expected turnaround; None without any speed.

    >>> expected_s(HostClass("linux", Flop(1e15), FlopPerSecond(1e12), Seconds(500.0)))
    1500.0
    """
    if host_class.speed <= 0.0:
        return None
    return host_class.queued_flop / host_class.speed + host_class.turnaround_s


def soonest(classes: Iterable[HostClass], *, replicas: int = 1) -> tuple[HostClass, str] | None:
    """The class where a job is expected complete first, and why; the first by name among equals.

    Classes with fewer hosts than the job has replicas are left out. None when there is none.

    >>> slow = HostClass("arm", Flop(0.0), FlopPerSecond(1e12), Seconds(900.0), hosts=9)
    >>> busy = HostClass("x86", Flop(1e15), FlopPerSecond(1e12), Seconds(500.0), hosts=9)
    >>> soonest([busy, slow])[1]
    'arm: expected complete in 900 s, 0 s of it in the queue'
    """
    timed = [
        (seconds, one.name, one)
        for one in classes
        if one.hosts >= replicas and (seconds := expected_s(one)) is not None
    ]
    if not timed:
        return None
    seconds, name, best = min(timed, key=lambda one: one[:2])
    queue_s = seconds - best.turnaround_s
    return best, f"{name}: expected complete in {seconds:.0f} s, {queue_s:.0f} s of it in the queue"
