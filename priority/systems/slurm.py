"""Fair-share as Slurm computes it, classic and Fair Tree. Pure.

Facts: slurm 284c3b9 (priority_multifactor.c, fair_tree.c) and its documentation of both forms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from domain.errors import InvalidInputError
from priority.fair_share import Weighed, Weight, ratio_factor, shown_names, user_ranks


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


# ---- Fair Tree. Fractions are exact, so that equal ones tie.

PARENT = "parent"


@dataclass(frozen=True, slots=True)
class Association:
    """A row of sacctmgr: an account (`user` None) or a user in one. `shares` is a number or "parent"."""

    association_id: str
    parent_id: str | None
    account: str
    user: str | None = None
    shares: float | str = 1
    usage: float = 0.0  # a user's own


@dataclass(frozen=True, slots=True)
class FairTreeRow:
    """A row of `sshare -l`, as printed; None where nothing is printed."""

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
    """Every association's row, in the order given. Raises InvalidInputError for what is no tree.

    Level FS = S / U among siblings: 0 for no shares, else infinite for no usage. An account with
    shares "parent" vanishes (its children compete one level up), such a user ranks with infinite level FS.
    Fairshare = rank / N.

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
            raise InvalidInputError("associations", "an id of its own for each", len(associations))
        self._children: dict[str, list[Association]] = {one: [] for one in self._all}
        for one in associations:
            if one.parent_id is not None and one.parent_id not in self._all:
                raise InvalidInputError("associations.parent", "the id of an association", one.parent_id)
            if one.parent_id is not None:
                self._children[one.parent_id].append(one)
        roots = [one for one in associations if one.parent_id is None]
        if len(roots) != 1:
            raise InvalidInputError("associations", "exactly one without a parent", len(roots))
        self._root = roots[0]
        self._usage: dict[str, Fraction] = {}
        self._add_up()
        self._above: dict[str, Association] = {}  # the account a member competes under
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
            raise InvalidInputError("associations", "a tree, all below the root", len(self._all) - len(order))
        for one in reversed(order):
            below = (self._usage[child.association_id] for child in self._children[one.association_id])
            own = Fraction(one.usage) if one.user is not None else Fraction(0)
            self._usage[one.association_id] = sum(below, own)

    def _group(self, account: Association) -> Iterator[Association]:
        """Who competes below an account: its children, and those of children that vanish."""
        for child in self._children[account.association_id]:
            if child.user is None and child.shares == PARENT:
                yield from self._group(child)
            else:
                yield child

    def _weigh(self, account: Association) -> None:
        """S, U and level FS of the group below an account, then of the groups below its accounts."""
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
        above = self._parent(one)  # a vanished account: where its children compete
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
