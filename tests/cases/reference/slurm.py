"""Slurm's partition priorities and billed resources. Pure. Facts: slurm 284c3b9 (priority_multifactor.c)."""

from __future__ import annotations

from collections.abc import Mapping


def partition_points(priorities: Mapping[str, float], weight: float, *, normalise: bool = True) -> dict[str, float]:
    """Return a partition's part of a job's priority: weight * p / the largest p, or weight * p.

    >>> partition_points({"gold": 8.0, "iron": 2.0}, 300.0)
    {'gold': 300.0, 'iron': 75.0}
    """
    largest = max(priorities.values(), default=0.0)
    if not normalise:
        return {name: weight * number for name, number in priorities.items()}
    return {name: weight * number / largest if largest else 0.0 for name, number in priorities.items()}


def billed(amounts: Mapping[str, float], weights: Mapping[str, float], *, largest_only: bool = False) -> float:
    """Return billed trackable resources: the sum of amount * weight, or the largest product (MAX_TRES).

    >>> billed({"cpu": 2, "mem_gib": 6}, {"cpu": 2.0, "mem_gib": 0.5})
    7.0
    """
    products = [amount * weights.get(name, 0.0) for name, amount in amounts.items()]
    return max(products, default=0.0) if largest_only else sum(products)
