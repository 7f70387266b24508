"""Computes fair-share as other systems do, for sites that migrate to Muster. Pure.

The formulas differ from Muster's own: Flux, Slurm (classic and Fair Tree), PBS, Maui. Sources: flux-accounting 9546e25
(weighted_tree.cpp, weighted_walk.cpp), slurm 284c3b9 (priority_multifactor.c, fair_tree.c) and its documentation,
openpbs cd7ab5e (fairshare.cpp and its functional tests), the Maui administrator's guide, and the vendor's text on
`mdiag -p` and `mdiag -f`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from domain.errors import InvalidInputError
from priority.fair_share import Weighed, Weight, ratio_factor, shown_names, user_ranks
from priority.standings import Target, starred, used_percent


@dataclass(frozen=True, slots=True)
class Node:
    """An account (PBS: a group) or a user in a tree. `usage` None: not set."""

    name: str
    shares: float = 1.0
    usage: float | None = None
    children: tuple[Node, ...] = ()
    is_user: bool = True  # Slurm and PBS treat every vertex without children as a user

    def set_below(self) -> float:
        """Return the sum of the usages set at and below this vertex."""
        return (self.usage or 0.0) + sum(child.set_below() for child in self.children)


# ---- Flux

LARGEST_WEIGHT = 2.0**64  # weight of a user or account without usage
LEAST_USAGE = 1e-9  # smaller usage counts as 0


@dataclass(frozen=True, slots=True)
class FluxShares:
    """The `fairshare` of all users, best first, and the weights of users and accounts among their siblings."""

    fairshare: Mapping[str, float] = field(default_factory=dict)
    user_weight: Mapping[str, float] = field(default_factory=dict)
    account_weight: Mapping[str, float] = field(default_factory=dict)


def flux_shares(root: Node) -> FluxShares:
    """Return rank / N of each user. Raises InvalidInputError for a tree without users.

    A user in two accounts counts as two users, named by their paths. weight = (shares / siblings' shares) / (usage /
    siblings' usage); the weight is 0 without shares, otherwise 2^64 without usage. Weights within the machine's epsilon
    times max(|a|, |b|, 1) are equal.

    >>> tree = Node("root", is_user=False, children=(Node("ann", 1, 30.0), Node("bob", 1, 10.0)))
    >>> dict(flux_shares(tree).fairshare)
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


def _below(node: Node) -> Iterator[Node]:
    for child in node.children:
        yield child
        yield from _below(child)


def _weights_below(node: Node) -> Iterator[tuple[int, Fraction]]:
    """Yield (id, weight) for every vertex below `node`. A weight is relative to the siblings of its vertex."""
    shares = sum((Fraction(child.shares) for child in node.children), Fraction(0))
    usage = sum((_flux_used(child) for child in node.children), Fraction(0))
    for child in node.children:
        yield id(child), _weight(Fraction(child.shares), shares, _flux_used(child), usage)
        yield from _weights_below(child)


def _flux_used(node: Node) -> Fraction:
    """Return an account's own usage if it is set, otherwise the sum over its children."""
    if node.usage is not None:
        return Fraction(node.usage)
    return sum((_flux_used(child) for child in node.children), Fraction(0))


def _weight(shares: Fraction, all_shares: Fraction, usage: Fraction, all_usage: Fraction) -> Fraction:
    if shares == 0 or all_shares == 0:
        return Fraction(0)
    if abs(usage) < LEAST_USAGE or all_usage == 0:
        return Fraction(LARGEST_WEIGHT)
    return (shares / all_shares) / (usage / all_usage)


def _made_equal(weights: Mapping[int, Fraction]) -> Mapping[int, Fraction]:
    """Return the weights after making nearly equal weights equal."""
    made: dict[int, Fraction] = {}
    standing = Fraction(-1)
    for vertex, weight in sorted(weights.items(), key=lambda item: item[1]):
        if weight - standing > sys.float_info.epsilon * max(weight, Fraction(1)):
            standing = weight
        made[vertex] = standing
    return made


def _weighed(node: Node, weights: Mapping[int, Fraction], names: Mapping[int, str]) -> Weighed:
    children = tuple(_weighed(child, weights, names) for child in node.children)
    return Weighed(names[id(node)], weights[id(node)], node.is_user, children)


# ---- Slurm's classic algorithm, and PBS


@dataclass(frozen=True, slots=True)
class PathShare:
    """A vertex with its path, in Slurm's terms. PBS calls the values fairshare_perc, fairshare_tree_usage and
    fairshare_factor, and does not print `norm_usage`.
    """

    norm_shares: float
    norm_usage: float
    effective_usage: float
    fairshare: float


def classic(root: Node, *, damping: float = 1.0) -> Mapping[str, PathShare]:
    """Return all vertices below the root by name, as Slurm computes them: an account's usage includes its children's.

    S = product of share fractions down the path; U = usage / all usage; UE = U at the top, and below it U + (UE of the
    parent - U) * shares / siblings' shares; F = 2^-(UE / S / damping), or 0 without shares.

    >>> classic(Node("root", children=(Node("ann", 1, 20.0), Node("bob", 3, 60.0))))["ann"].fairshare
    0.5
    """
    return _down(root.children, Node.set_below, root.set_below(), damping)


MIN_USAGE = 1.0  # for each vertex in PBS, including the root


def pbs_shares(top: Sequence[Node], *, min_usage: float = MIN_USAGE) -> Mapping[str, PathShare]:
    """Return all vertices below the root by name, as computed by PBS: an explicit usage replaces the minimum, and usage
    set below is added. The formulas are those of `classic`, without damping.

    >>> shares = pbs_shares([Node("ann", 1, 3.0), Node("bob", 1, 6.0)])
    >>> shares["ann"].effective_usage, round(shares["ann"].fairshare, 6)
    (0.3, 0.659754)
    """

    def used(node: Node) -> float:
        return (min_usage if node.usage is None else node.usage) + sum(child.set_below() for child in node.children)

    return _down(top, used, used(Node("root", children=tuple(top))), 1.0)


def _down(top: Sequence[Node], used: Callable[[Node], float], whole: float, damping: float) -> dict[str, PathShare]:
    names = shown_names(top)
    found: dict[str, PathShare] = {}
    waiting: list[tuple[Sequence[Node], PathShare | None]] = [(top, None)]
    while waiting:
        siblings, above = waiting.pop()
        shares = sum(node.shares for node in siblings)
        for node in siblings:
            owned = fraction = node.shares / shares if shares > 0 else 0.0
            effective = usage = used(node) / whole if whole > 0 else 0.0
            if above is not None:
                owned = above.norm_shares * fraction
                effective = usage + (above.effective_usage - usage) * fraction
            share = PathShare(owned, usage, effective, ratio_factor(effective, owned, damping))
            found[names[id(node)]] = share
            waiting.append((node.children, share))
    return found


# ---- Slurm's Fair Tree. Fractions are exact, so that equal values tie.

PARENT = "parent"


@dataclass(frozen=True, slots=True)
class Association:
    """A row from sacctmgr: an account (`user` None), or a user in an account. `shares` is a number or "parent"."""

    association_id: str
    parent_id: str | None
    account: str
    user: str | None = None
    shares: float | str = 1
    usage: float = 0.0  # the user's own usage


@dataclass(frozen=True, slots=True)
class FairTreeRow:
    """A row of `sshare -l` as printed; None is an empty cell."""

    account: str
    user: str | None
    raw_shares: str
    norm_shares: str
    raw_usage: str
    norm_usage: str
    effective_usage: str
    fairshare: str | None
    level_fs: str | None


def fair_tree(associations: Sequence[Association]) -> list[FairTreeRow]:
    """Return a row per association, in the given order. Raises InvalidInputError if they do not form a tree.

    Level FS = S / U among siblings: 0 without shares, otherwise infinite without usage. An account with shares "parent"
    is dissolved (its children compete one level up); a user with shares "parent" has infinite level FS. Fairshare =
    rank / N.

    >>> rows = fair_tree([Association("r", None, "root"), Association("a", "r", "root", "ann", 1, 3),
    ...                   Association("b", "r", "root", "bob", 1, 1)])
    >>> [(row.user, row.level_fs, row.fairshare) for row in rows[1:]]
    [('ann', '0.666667', '0.500000'), ('bob', '2.000000', '1.000000')]
    """
    return _FairTree(associations).rows()


class _FairTree:
    def __init__(self, associations: Sequence[Association]) -> None:
        self._all = {one.association_id: one for one in associations}
        if len(self._all) != len(associations):
            raise InvalidInputError("associations", "a unique id for each association", len(associations))
        self._children: dict[str, list[Association]] = {one: [] for one in self._all}
        for one in associations:
            if one.parent_id is not None and one.parent_id not in self._all:
                raise InvalidInputError("associations.parent", "the id of an association", one.parent_id)
            if one.parent_id is not None:
                self._children[one.parent_id].append(one)
        roots = [one for one in associations if one.parent_id is None]
        if len(roots) != 1:
            raise InvalidInputError("associations", "exactly one association without a parent", len(roots))
        self._root = roots[0]
        self._usage: dict[str, Fraction] = {}
        self._add_up()
        self._above: dict[str, Association] = {}  # the account under which each member competes
        self._norm: dict[str, Fraction] = {self._root.association_id: Fraction(0)}
        self._level: dict[str, Weight | None] = {}
        self._weigh(self._root)

    def rows(self) -> list[FairTreeRow]:
        ranks = user_ranks(self._members(self._root), tie_carries=True)
        return [self._row(one, ranks) for one in self._all.values()]

    def _add_up(self) -> None:
        order = [self._root]
        for one in order:
            order.extend(self._children[one.association_id])
        if len(order) != len(self._all):
            raise InvalidInputError("associations", "a tree without cycles", len(self._all) - len(order))
        for one in reversed(order):
            below = (self._usage[child.association_id] for child in self._children[one.association_id])
            own = Fraction(one.usage) if one.user is not None else Fraction(0)
            self._usage[one.association_id] = sum(below, own)

    def _group(self, account: Association) -> Iterator[Association]:
        """Yield the members that compete below an account: its children, and the children of dissolved accounts."""
        for child in self._children[account.association_id]:
            if child.user is None and child.shares == PARENT:
                yield from self._group(child)
            else:
                yield child

    def _weigh(self, account: Association) -> None:
        """Compute S, U and level FS for the group below an account, then for the groups below its accounts."""
        group = list(self._group(account))
        shares = sum((Fraction(one.shares) for one in group if one.shares != PARENT), Fraction(0))
        for one in group:
            self._above[one.association_id] = account
            if one.shares == PARENT:
                self._level[one.association_id] = None
                continue
            norm = Fraction(one.shares) / shares if shares else Fraction(0)
            self._norm[one.association_id] = norm
            used = self._used(one)
            self._level[one.association_id] = Fraction(0) if norm == 0 else norm / used if used else math.inf
            if one.user is None:
                self._weigh(one)

    def _used(self, one: Association) -> Fraction:
        above = self._usage[self._competes_under(one).association_id]
        return self._usage[one.association_id] / above if above else Fraction(0)

    def _competes_under(self, one: Association) -> Association:
        if one.association_id in self._above:
            return self._above[one.association_id]
        above = self._parent(one)  # for a dissolved account: where its children compete
        return self._competes_under(above) if above.user is None and above.shares == PARENT else above

    def _parent(self, one: Association) -> Association:
        return self._all[one.parent_id] if one.parent_id is not None else one

    def _members(self, account: Association) -> Iterable[Weighed]:
        for one in self._group(account):
            level = self._level[one.association_id]
            children = () if one.user is not None else tuple(self._members(one))
            weight = math.inf if level is None else level
            yield Weighed(one.association_id, weight, one.user is not None, children)

    def _norm_shares(self, one: Association) -> Fraction:
        while one.association_id not in self._norm:
            one = self._parent(one)
        return self._norm[one.association_id]

    def _row(self, one: Association, ranks: Mapping[object, int]) -> FairTreeRow:
        root = one is self._root
        whole = self._usage[self._root.association_id]
        usage = self._usage[one.association_id]
        rank = ranks.get(one.association_id)
        level = self._level.get(one.association_id)
        return FairTreeRow(
            one.account,
            one.user,
            raw_shares="" if root else str(one.shares),
            norm_shares=_six(self._norm_shares(one)),
            raw_usage=f"{float(usage):.0f}",
            norm_usage="" if root else _six(usage / whole if whole else Fraction(0)),
            effective_usage="1.000000" if root else _six(self._used(one)),
            fairshare=None if rank is None else _six(Fraction(rank, len(ranks))),
            level_fs=None if level is None else _six(level),
        )


def _six(value: Weight) -> str:
    return "inf" if value == math.inf else f"{float(value):.6f}"


# ---- Maui and Moab


@dataclass(frozen=True, slots=True)
class Credential:
    """A row of a fair-share table: a user, group or service level, and its share in each window, newest first."""

    section: str
    name: str
    target: Target | None
    windows: tuple[float, ...]

    @property
    def key(self) -> str:
        return f"{self.section}/{self.name}"


def fair_share_table(
    rows: Sequence[Credential], total_per_window: Sequence[float], *, decay: float
) -> Mapping[str, tuple[float, bool]]:
    """Return the rows of `mdiag -f` by "SECTION/name", in order: percentage of usage, and whether it is off target.

    >>> rows = [Credential("USER", "rosa", Target(20.0), (12.0, 6.0, 2.0))]
    >>> fair_share_table(rows, [20.0, 40.0, 160.0], decay=0.25)["USER/rosa"]
    (8.0, True)
    """
    found: dict[str, tuple[float, bool]] = {}
    for row in rows:
        percent = used_percent(row.windows, total_per_window, decay=decay)
        found[row.key] = percent, starred(row.target, percent)
    return found
