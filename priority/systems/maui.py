"""What do Maui's and Moab's displays say of the same figures? Pure.

Facts: the Maui administrator's guide, and the vendor's text on `mdiag -p` and `mdiag -f`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.errors import InvalidInputError
from priority.measures import absolute_percent, weighted_points
from priority.standings import Target, delta, starred, used_percent


@dataclass(frozen=True, slots=True)
class Credential:
    """A row of a fair-share table: a user, group or service level with its share of each window, newest first."""

    section: str
    name: str
    target: Target | None
    windows: tuple[float, ...]

    @property
    def key(self) -> str:
        return f"{self.section}/{self.name}"


@dataclass(frozen=True, slots=True)
class MauiStanding:
    """What `mdiag -f` prints of a credential: percent of what was delivered, and a star when off target."""

    percent: float
    starred: bool


def fair_share_table(
    rows: Sequence[Credential], total_per_window: Sequence[float], *, decay: float
) -> Mapping[str, MauiStanding]:
    """The rows of `mdiag -f` by "SECTION/name", in their order.

    >>> rows = [Credential("USER", "rosa", Target(20.0), (12.0, 6.0, 2.0))]
    >>> fair_share_table(rows, [20.0, 40.0, 160.0], decay=0.25)["USER/rosa"]
    MauiStanding(percent=8.0, starred=True)
    """
    found: dict[str, MauiStanding] = {}
    for row in rows:
        percent = used_percent(row.windows, total_per_window, decay=decay)
        found[row.key] = MauiStanding(percent, starred(row.target, percent))
    return found


@dataclass(frozen=True, slots=True)
class FairShareTerm:
    """One credential's term of the fair-share component: usage in percent, the sub-component's weight."""

    name: str
    weight: float
    usage: float
    target: Target | None


def fair_share_points(terms: Sequence[FairShareTerm], *, weight: float, relative: bool = False) -> float:
    """FSWEIGHT * sum of weight * (target - usage).

    >>> fair_share_points([FairShareTerm("user", 10.0, 45.0, Target(50.0))], weight=100.0)
    5000.0
    """
    return sum(
        weighted_points(delta(one.target, one.usage, relative=relative), weight=one.weight, component_weight=weight)
        for one in terms
    )


def effective_weight(weight: float, *extra: float) -> float:
    """A service level's weights add to the global one.

    >>> effective_weight(100.0, 1000.0)
    1100.0
    """
    return weight + sum(extra)


@dataclass(frozen=True, slots=True)
class PriorityRow:
    """A row of `mdiag -p`: the whole priority and each component's percentage of the absolute sum."""

    priority: int
    percent: tuple[float, ...]


def priority_row(weights: Mapping[str, float], parts: Mapping[str, Sequence[float]]) -> PriorityRow:
    """A row from its printed parts: sub-component values that are already weighted, by component, in order.

    >>> priority_row({"Cred": 2, "FS": 1, "Serv": 3}, {"Cred": [0, 0], "FS": [-10.0, 4.0], "Serv": [8.0]})
    PriorityRow(priority=18, percent=(0.0, 20.0, 80.0))
    """
    points = [weighted_points(sum(values), weight=weights.get(name, 1.0)) for name, values in parts.items()]
    percent = tuple(round(one, 1) for one in absolute_percent(points))
    return PriorityRow(round(sum(points)), percent)


def resource_percent(*, priority: float, procs: float, resource_weight: float, proc_weight: float) -> float:
    """What `diagnose -p` prints for the resource component: percent of the priority, to two decimals.

    >>> resource_percent(priority=555, procs=4, resource_weight=50, proc_weight=2)
    72.07
    """
    points = weighted_points(procs, weight=proc_weight, component_weight=resource_weight)
    return round(100.0 * points / priority, 2) if priority else 0.0


def file_total(classes: Mapping[str, Mapping[str, float]]) -> float:
    """TOTAL of a window's file: what every class of credentials sums to. Raises InvalidInputError if they differ.

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
