"""Maui's and Moab's components, weights and percentages as their guides print them. Pure.

Facts: the Maui administrator's guide, and the vendor's text on `mdiag -p`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.errors import InvalidInputError
from domain.units import Seconds
from priority.measures import absolute_percent, capped
from priority.standings import Target, delta, window_weights


def weighted_points(value: float, *, weight: float, component_weight: float = 1.0, cap: float | None = None) -> float:
    """Return component weight * weight * min(value, cap).

    >>> weighted_points(40.0, weight=10.0, cap=10000.0)
    400.0
    """
    return component_weight * weight * capped(value, cap)


def outstanding_proc_s(jobs: Iterable[tuple[float, Seconds]]) -> float:
    """MAXPS: remaining processor seconds, the sum of processors * remaining seconds.

    >>> outstanding_proc_s([(4, Seconds(3600.0)), (2, Seconds(21600.0))])
    57600.0
    """
    return sum(procs * max(0.0, remaining) for procs, remaining in jobs)


def alike(speeds: Sequence[float], tolerance: float) -> bool:
    """Return whether nodes may form a set: (fastest - slowest) / slowest is at most the tolerance.

    >>> alike([500, 750], 0.5), alike([500, 900], 0.5)
    (True, False)
    """
    if not speeds:
        return True
    slowest, fastest = min(speeds), max(speeds)
    return fastest - slowest <= tolerance * slowest + 1e-12


def window_percents(decay: float, windows: int) -> list[float]:
    """Return the decay factors in percent, as in the guide's table.

    >>> window_percents(0.5, 3)
    [100.0, 50.0, 25.0]
    """
    return [100.0 * weight for weight in window_weights(decay, windows)]


@dataclass(frozen=True, slots=True)
class FairShareTerm:
    """One credential's term of the fair-share component: usage in percent, the sub-component's weight."""

    name: str
    weight: float
    usage: float
    target: Target | None


def fair_share_points(terms: Sequence[FairShareTerm], *, weight: float, relative: bool = False) -> float:
    """Return FSWEIGHT * sum of weight * (target - usage).

    >>> fair_share_points([FairShareTerm("user", 10.0, 45.0, Target(50.0))], weight=100.0)
    5000.0
    """
    return sum(
        weighted_points(delta(one.target, one.usage, relative=relative), weight=one.weight, component_weight=weight)
        for one in terms
    )


def effective_weight(weight: float, *extra: float) -> float:
    """Return a service level's weights added to the global one.

    >>> effective_weight(100.0, 1000.0)
    1100.0
    """
    return weight + sum(extra)


@dataclass(frozen=True, slots=True)
class PriorityRow:
    """A row of `mdiag -p`: the total priority and each component's percentage of the absolute sum."""

    priority: int
    percent: tuple[float, ...]


def priority_row(weights: Mapping[str, float], parts: Mapping[str, Sequence[float]]) -> PriorityRow:
    """Return a row from its printed parts: weighted sub-component values, by component, in order.

    >>> priority_row({"Cred": 2, "FS": 1, "Serv": 3}, {"Cred": [0, 0], "FS": [-10.0, 4.0], "Serv": [8.0]})
    PriorityRow(priority=18, percent=(0.0, 20.0, 80.0))
    """
    points = [weighted_points(sum(values), weight=weights.get(name, 1.0)) for name, values in parts.items()]
    percent = tuple(round(one, 1) for one in absolute_percent(points))
    return PriorityRow(round(sum(points)), percent)


def resource_percent(*, priority: float, procs: float, resource_weight: float, proc_weight: float) -> float:
    """Return the resource component of `diagnose -p`: percent of the priority, to two decimals.

    >>> resource_percent(priority=555, procs=4, resource_weight=50, proc_weight=2)
    72.07
    """
    points = weighted_points(procs, weight=proc_weight, component_weight=resource_weight)
    return round(100.0 * points / priority, 2) if priority else 0.0


def file_total(classes: Mapping[str, Mapping[str, float]]) -> float:
    """Return TOTAL of a window's file: the sum of each class of credentials. Raises InvalidInputError if they differ.

    >>> file_total({"User": {"a": 1.0, "b": 2.0}, "Group": {"g": 3.0}})
    3.0
    """
    sums = {name: sum(usage.values()) for name, usage in classes.items()}
    if not sums:
        return 0.0
    name, total = next(iter(sums.items()))
    for other, number in sums.items():
        if abs(number - total) > 1e-9 * max(abs(total), 1.0):
            raise InvalidInputError(f"window.{other}", f"the same sum as {name} ({total:g})", number)
    return total
