"""What would Flux make of the same tree and usage? Pure.

Facts: flux-accounting 9546e25 (weighted_tree.cpp, weighted_walk.cpp).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from domain.errors import InvalidInputError
from priority.fair_share import Weighed, shown_names, user_ranks

LARGEST_WEIGHT = 2.0**64  # of whoever used nothing
LEAST_USAGE = 1e-9  # less counts as nothing


@dataclass(frozen=True, slots=True)
class FluxNode:
    """An account or a user. `usage` of an account is its own figure; None: the sum of its children."""

    name: str
    shares: float = 1.0
    usage: float | None = None
    children: tuple[FluxNode, ...] = ()
    is_user: bool = True

    def used(self) -> Fraction:
        if self.usage is not None:
            return Fraction(self.usage)
        return sum((child.used() for child in self.children), Fraction(0))


@dataclass(frozen=True, slots=True)
class FluxShares:
    """`fairshare` of every user, best first; weights among the siblings of users and of accounts."""

    fairshare: Mapping[str, float] = field(default_factory=dict)
    user_weight: Mapping[str, float] = field(default_factory=dict)
    account_weight: Mapping[str, float] = field(default_factory=dict)


def fair_shares(root: FluxNode) -> FluxShares:
    """Rank / N of every user. Raises InvalidInputError for a tree without users.

    A user of two accounts is two users, named by their paths.
    weight = (shares / shares of the siblings) / (usage / usage of the siblings); 0 shares weigh 0, else no
    usage weighs 2^64. Weights within the machine's epsilon times max(|a|, |b|, 1) are equal.

    >>> tree = FluxNode("root", is_user=False, children=(FluxNode("ann", 1, 30.0), FluxNode("bob", 1, 10.0)))
    >>> dict(fair_shares(tree).fairshare)
    {'bob': 1.0, 'ann': 0.5}
    """
    weights = _made_equal(dict(_weights_below(root)))
    names = shown_names(root.children, lambda node: node.is_user)
    ranks = user_ranks(_weighed(child, weights, names) for child in root.children)
    if not ranks:
        raise InvalidInputError("tree", "at least one user (no users found in input)", root.name)
    shown = {names[id(node)]: float(weights[id(node)]) for node in _below(root) if node.is_user}
    accounts = {names[id(node)]: float(weights[id(node)]) for node in _below(root) if not node.is_user}
    return FluxShares({str(name): rank / len(ranks) for name, rank in ranks.items()}, shown, accounts)


def _below(node: FluxNode) -> Iterator[FluxNode]:
    for child in node.children:
        yield child
        yield from _below(child)


def _weights_below(node: FluxNode) -> Iterator[tuple[int, Fraction]]:
    """Weight of every vertex among its siblings, by identity."""
    shares = sum((Fraction(child.shares) for child in node.children), Fraction(0))
    usage = sum((child.used() for child in node.children), Fraction(0))
    for child in node.children:
        yield id(child), _weight(Fraction(child.shares), shares, child.used(), usage)
        yield from _weights_below(child)


def _weight(shares: Fraction, all_shares: Fraction, usage: Fraction, all_usage: Fraction) -> Fraction:
    if shares == 0 or all_shares == 0:
        return Fraction(0)
    if abs(usage) < LEAST_USAGE or all_usage == 0:
        return Fraction(LARGEST_WEIGHT)
    return (shares / all_shares) / (usage / all_usage)


def _made_equal(weights: Mapping[int, Fraction]) -> Mapping[int, Fraction]:
    """The same weights, with those that count as equal made equal."""
    made: dict[int, Fraction] = {}
    standing = Fraction(-1)
    for vertex, weight in sorted(weights.items(), key=lambda item: item[1]):
        if weight - standing > sys.float_info.epsilon * max(weight, Fraction(1)):
            standing = weight
        made[vertex] = standing
    return made


def _weighed(node: FluxNode, weights: Mapping[int, Fraction], names: Mapping[int, str]) -> Weighed:
    children = tuple(_weighed(child, weights, names) for child in node.children)
    return Weighed(names[id(node)], weights[id(node)], node.is_user, children)
