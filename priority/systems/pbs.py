"""What would PBS make of the same tree and job formula? Pure.

Facts: openpbs cd7ab5e (fairshare.cpp and its functional tests).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from priority.fair_share import ratio_factor
from priority.systems.naming import shown_names

MIN_USAGE = 1.0  # of every vertex, the root too
DECAY_FACTOR = 0.5  # every 24 hours


@dataclass(frozen=True, slots=True)
class PbsNode:
    """A group, or a user when it has no children. `usage` None: never set."""

    name: str
    shares: float = 1.0
    usage: float | None = None
    children: tuple[PbsNode, ...] = ()

    def set_below(self) -> float:
        """Sum of the usages set at and below this vertex: what is added above it."""
        return (self.usage or 0.0) + sum(child.set_below() for child in self.children)

    def used(self, least: float) -> float:
        """A set usage replaces the least one; what is set below is added."""
        return (least if self.usage is None else self.usage) + sum(child.set_below() for child in self.children)


@dataclass(frozen=True, slots=True)
class PbsShare:
    fairshare_perc: float
    fairshare_tree_usage: float
    fairshare_factor: float


def fair_shares(top: Sequence[PbsNode], *, min_usage: float = MIN_USAGE) -> Mapping[str, PbsShare]:
    """Every vertex below the root by name.

    perc = product of share fractions; tree usage = u at the top, below it u + (tree usage of the parent - u) *
    own share fraction, u = usage / usage of the root; factor = 2^-(tree usage / perc), 0 without shares.

    >>> shares = fair_shares([PbsNode("ann", 1, 3.0), PbsNode("bob", 1, 6.0)])
    >>> shares["ann"].fairshare_tree_usage, round(shares["ann"].fairshare_factor, 6)
    (0.3, 0.659754)
    """
    whole = PbsNode("root", children=tuple(top)).used(min_usage)
    names = shown_names(top)
    found: dict[str, PbsShare] = {}
    waiting: list[tuple[Sequence[PbsNode], PbsShare | None]] = [(top, None)]
    while waiting:
        siblings, above = waiting.pop()
        shares = sum(node.shares for node in siblings)
        for node in siblings:
            fraction = node.shares / shares if shares > 0 else 0.0
            used = node.used(min_usage) / whole if whole > 0 else 0.0
            perc = fraction if above is None else above.fairshare_perc * fraction
            tree = used if above is None else used + (above.fairshare_tree_usage - used) * fraction
            found[names[id(node)]] = share = PbsShare(perc, tree, ratio_factor(tree, perc))
            waiting.append((node.children, share))
    return found


def in_order(numbers: Iterable[tuple[str, float]]) -> list[str]:
    """Names by their number, highest first; equal ones (to 12 decimals) as they were given.

    >>> in_order([("dan", 0.1), ("bea", 0.4), ("ann", 0.4)])
    ['bea', 'ann', 'dan']
    """
    return [name for name, _ in sorted(numbers, key=lambda one: -round(one[1], 12))]


def decayed(usage: float, *, factor: float = DECAY_FACTOR, min_usage: float = MIN_USAGE) -> float:
    """One decay of a usage: times the factor, never below the least usage.

    >>> decayed(1.5)
    1.0
    """
    return max(min_usage, usage * factor)


def users(top: Sequence[PbsNode]) -> list[str]:
    """Names of the vertices without children, depth first."""
    names = shown_names(top)

    def below(siblings: Iterable[PbsNode]) -> list[str]:
        own = ([names[id(node)]] if not node.children else below(node.children) for node in siblings)
        return list(chain.from_iterable(own))

    return below(top)
