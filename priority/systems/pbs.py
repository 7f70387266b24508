"""Fair-share as PBS computes it. Pure.

Facts: openpbs cd7ab5e (fairshare.cpp and its functional tests).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from priority.fair_share import ratio_factor, shown_names

MIN_USAGE = 1.0  # of every vertex, the root too


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
