"""What would Slurm's classic fair-share, partitions and billing make of the same figures? Pure.

Facts: slurm 284c3b9 (priority_multifactor.c) and its documentation of classic fair-share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from priority.fair_share import ratio_factor
from priority.systems.naming import shown_names


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """An account, or a user when it has no children. An account's usage is its own and its children's."""

    name: str
    shares: float = 1.0
    usage: float = 0.0
    children: tuple[SlurmNode, ...] = ()

    def used(self) -> float:
        return self.usage + sum(child.used() for child in self.children)


@dataclass(frozen=True, slots=True)
class ClassicRow:
    norm_shares: float
    norm_usage: float
    effective_usage: float
    fairshare: float


def classic(root: SlurmNode, *, damping: float = 1.0) -> Mapping[str, ClassicRow]:
    """Every vertex below the root by name.

    S = product of share fractions down the path; U = usage / all usage; UE = U at the top, below it
    U + (UE of the parent - U) * shares / siblings' shares; F = 2^-(UE / S / damping), 0 without shares.

    >>> tree = SlurmNode("root", children=(SlurmNode("ann", 1, 20.0), SlurmNode("bob", 3, 60.0)))
    >>> classic(tree)["ann"].fairshare
    0.5
    """
    rows: dict[str, ClassicRow] = {}
    whole = root.used()
    names = shown_names(root.children)
    waiting: list[tuple[SlurmNode, ClassicRow | None]] = [(root, None)]
    while waiting:
        node, above = waiting.pop()
        siblings = sum(child.shares for child in node.children)
        for child in node.children:
            fraction = child.shares / siblings if siblings > 0 else 0.0
            row = _row(fraction, child.used() / whole if whole > 0 else 0.0, above, damping)
            rows[names[id(child)]] = row
            waiting.append((child, row))
    return rows


def _row(fraction: float, used: float, above: ClassicRow | None, damping: float) -> ClassicRow:
    shares = fraction if above is None else above.norm_shares * fraction
    effective = used if above is None else used + (above.effective_usage - used) * fraction
    return ClassicRow(shares, used, effective, ratio_factor(effective, shares, damping))


def partition_points(priorities: Mapping[str, float], weight: float, *, normalise: bool = True) -> dict[str, float]:
    """A partition's part of a job's priority: weight * p / the largest p, or weight * p as it is.

    >>> partition_points({"gold": 8.0, "iron": 2.0}, 300.0)
    {'gold': 300.0, 'iron': 75.0}
    """
    largest = max(priorities.values(), default=0.0)
    if not normalise:
        return {name: weight * number for name, number in priorities.items()}
    return {name: weight * number / largest if largest else 0.0 for name, number in priorities.items()}


def billed(amounts: Mapping[str, float], weights: Mapping[str, float], *, largest_only: bool = False) -> float:
    """Billed trackable resources: the sum of amount * weight, or the largest product (MAX_TRES).

    >>> billed({"cpu": 2, "mem_gib": 6}, {"cpu": 2.0, "mem_gib": 0.5})
    7.0
    """
    products = [amount * weights.get(name, 0.0) for name, amount in amounts.items()]
    return max(products, default=0.0) if largest_only else sum(products)
