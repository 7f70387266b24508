"""Fair-share of submitters in a tree of accounts, the ranking of users, and their display names. Pure.

The leaves of the account tree are submitters. Each leaf has two numbers: the *ratio* (0.5 on target, towards 1
under-served, towards 0 over-served) and the *rank* (position in the tree's order divided by the number of leaves),
which breaks ties. The formulas of other systems (priority/systems.py) use the same order and names.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple, Protocol, Self, TypeVar

from domain.batches import Account
from domain.errors import InvalidInputError
from domain.ordered_work import LeafId
from domain.units import AccountId, SubmitterId
from domain.usage import LEAST_USAGE

# ---- the order of users: siblings by weight, highest first, and depth-first below each account

Weight = float | Fraction


@dataclass(frozen=True, slots=True)
class Weighed:
    """A user or an account, compared with its siblings. `key` identifies a user; accounts have none.

    Weights are compared exactly: callers must make nearly equal weights equal if they are to tie.
    """

    key: Hashable
    weight: Weight
    is_user: bool = True
    children: tuple[Weighed, ...] = ()


class _Step(NamedTuple):
    member: Weighed | None  # None: several accounts merged into one
    tied: bool
    children: tuple[Weighed, ...] = ()


def user_ranks(top: Iterable[Weighed], *, tie_carries: bool = False) -> Mapping[Hashable, int]:
    """Return each user's rank in traversal order; the best of N users has rank N.

    Siblings are ordered by weight, highest first; of equal weights, users precede accounts. Tied sibling users share a
    rank, and the next user loses one rank per user passed. Tied sibling accounts are merged: their children compete in
    one list, each with its weight among its own siblings. With `tie_carries` (Slurm), the first user below an account
    that tied with a user shares that user's rank; without (Flux), the user ranks higher.

    >>> tree = [Weighed("a", 1.0), Weighed("", 2.0, False, (Weighed("b", 5.0), Weighed("c", 5.0)))]
    >>> dict(user_ranks(tree))
    {'b': 3, 'c': 3, 'a': 1}
    """
    members = tuple(top)
    left = rank = _users(members)
    ranks: dict[Hashable, int] = {}
    waiting = list(_steps(members, tied=False))[::-1]
    while waiting:
        step = waiting.pop()
        if step.member is None:
            waiting.extend(list(_steps(step.children, tied=step.tied and tie_carries))[::-1])
            continue
        if not step.tied:
            rank = left
        ranks[step.member.key] = rank
        left -= 1
    return ranks


def _steps(members: Iterable[Weighed], *, tied: bool) -> Iterator[_Step]:
    """Yield siblings in order of weight. `tied`: the first sibling shares the previous rank."""
    ordered = sorted(members, key=lambda member: (-member.weight, not member.is_user))
    for _, equals in groupby(ordered, key=lambda member: member.weight):
        accounts: list[Weighed] = []
        for member in equals:
            if not member.is_user:
                accounts.append(member)
                continue
            yield _Step(member, tied)
            tied = True
        if accounts:
            merged = tuple(child for account in accounts for child in account.children)
            yield _Step(None, tied, merged)
        tied = False


def _users(members: Iterable[Weighed]) -> int:
    waiting, users = list(members), 0
    while waiting:
        member = waiting.pop()
        users += member.is_user
        waiting.extend(member.children)
    return users


# ---- names of vertices in tables; a user may be in several accounts


class Vertex(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def children(self) -> tuple[Self, ...]: ...


V = TypeVar("V", bound=Vertex)


def one_kind(_vertex: object) -> bool:
    """Return True for every vertex, so that users and accounts share one set of names."""
    return True


def shown_names(top: Sequence[V], kind_of: Callable[[V], bool] = one_kind) -> Mapping[int, str]:
    """Return a display name for each vertex: its own name, or its path if another vertex of its kind has that name.

    Raises InvalidInputError for siblings of the same kind and name.

    >>> from priority.systems import Node
    >>> tree = Node("a", children=(Node("ann"),)), Node("b", children=(Node("ann"),))
    >>> list(shown_names(tree).values())
    ['a', 'a/ann', 'b', 'b/ann']
    """
    paths = list(_paths(top, ""))
    times = Counter((kind_of(vertex), vertex.name) for vertex, _ in paths)
    twice = [path for (_, path), n in Counter((kind_of(vertex), path) for vertex, path in paths).items() if n > 1]
    if twice:
        raise InvalidInputError("tree.name", "distinct names for an account's children", twice[0])
    return {id(vertex): path if times[kind_of(vertex), vertex.name] > 1 else vertex.name for vertex, path in paths}


def _paths(siblings: Sequence[V], above: str) -> Iterator[tuple[V, str]]:
    for vertex in siblings:
        yield vertex, above + vertex.name
        yield from _paths(vertex.children, f"{above}{vertex.name}/")


# ---- fair-share


@dataclass(frozen=True, slots=True)
class Leaf:
    """A submitter in one account, with its usage expressed as one number."""

    submitter_id: SubmitterId
    account_id: AccountId
    shares: float
    usage: float


@dataclass(frozen=True, slots=True)
class Share:
    """A vertex of the tree. S and U are fractions of the whole; UE also includes part of the account's usage.

    `level_weight` is (shares / siblings' shares) / (usage / siblings' usage): 0 without shares, otherwise infinite
    without usage.
    """

    shares: float
    usage: float
    share_fraction: float  # S
    usage_fraction: float  # U
    effective_fraction: float  # UE
    ratio: float
    level_weight: float
    rank: float | None = None  # leaves only: rank divided by the number of leaves


@dataclass(frozen=True, slots=True)
class FairShares:
    leaves: Mapping[LeafId, Share]
    accounts: Mapping[AccountId, Share]


def fair_shares(accounts: Iterable[Account], leaves: Iterable[Leaf], *, damping: float = 1.0) -> FairShares:
    """Return the fair-share of all submitters and accounts.

    S = product of share fractions down the tree; U = usage / all usage; UE = U at the top (and below an account with
    all shares), and below that UE = U + (UE of the account - U) * own share among siblings; ratio = 2^-(UE / S /
    damping), or 0 for S = 0. Accounts without leaves below them are omitted. Raises InvalidInputError if the accounts
    are not a forest, a leaf's account is unknown, or numbers are invalid.

    >>> accounts = [Account(AccountId(1), "lab")]
    >>> both = [Leaf(SubmitterId(1), AccountId(1), 1.0, 30.0), Leaf(SubmitterId(2), AccountId(1), 1.0, 10.0)]
    >>> shares = fair_shares(accounts, both).leaves
    >>> [(round(one.ratio, 4), one.rank) for one in shares.values()]
    [(0.3536, 0.5), (0.7071, 1.0)]
    """
    tree = _Tree({account.account_id: account for account in accounts}, tuple(leaves))
    return tree.shares(damping)


def ratio_factor(effective: float, share: float, damping: float = 1.0) -> float:
    """Return 2^-(UE / S / damping): 0.5 on target, towards 1 if under-served, 0 without shares.

    >>> ratio_factor(0.25, 0.25), ratio_factor(0.1, 0.0), ratio_factor(1.0, 1e-308)
    (0.5, 0.0, 0.0)
    """
    if share <= 0.0:
        return 0.0
    over = effective / share / (damping if damping > 0.0 else 1.0)
    return float(2.0**-over) if math.isfinite(over) else 0.0


def level_weight(shares: float, all_shares: float, usage: float, all_usage: float) -> float:
    """Return the weight by which siblings are compared: fraction of shares divided by fraction of usage.

    >>> level_weight(1.0, 4.0, 1.0, 2.0), level_weight(0.0, 4.0, 0.0, 2.0), level_weight(1.0, 4.0, 0.0, 2.0)
    (0.5, 0.0, inf)
    """
    if shares <= 0.0 or all_shares <= 0.0:
        return 0.0
    used = usage / all_usage if usage >= LEAST_USAGE else 0.0
    if used <= 0.0:
        return math.inf
    weight = (shares / all_shares) / used
    return float(f"{weight:.12g}")  # makes mathematically equal values equal


class _Tree:
    """Accounts and their leaves, parents before children."""

    def __init__(self, accounts: Mapping[AccountId, Account], leaves: tuple[Leaf, ...]) -> None:
        self._accounts = accounts
        self._leaves: dict[AccountId, list[Leaf]] = {account_id: [] for account_id in accounts}
        for leaf in leaves:
            self._add(leaf)
        self._children: dict[AccountId | None, list[Account]] = {None: []} | {one: [] for one in accounts}
        for account in accounts.values():
            _check("account.shares", account.shares)
            if account.parent_id is not None and account.parent_id not in accounts:
                raise InvalidInputError("account.parent_id", "an existing account", account.parent_id)
            self._children[account.parent_id].append(account)
        self._order = self._parents_first()
        self._usage = self._summed()

    def _add(self, leaf: Leaf) -> None:
        if leaf.account_id not in self._leaves:
            raise InvalidInputError("submitter.account_id", "an existing account", leaf.account_id)
        _check("submitter.shares", leaf.shares)
        _check("submitter.usage", leaf.usage)
        self._leaves[leaf.account_id].append(leaf)

    def _parents_first(self) -> list[Account]:
        order = list(self._children[None])
        for account in order:
            order.extend(self._children[account.account_id])
        if len(order) != len(self._accounts):
            raise InvalidInputError("account.parent_id", "accounts without a cycle", len(self._accounts) - len(order))
        return order

    def _summed(self) -> dict[AccountId, float]:
        """Return the usage at and below each account with leaves at or below it; other accounts are omitted."""
        usage: dict[AccountId, float] = {}
        for account in reversed(self._order):
            own = [leaf.usage for leaf in self._leaves[account.account_id]]
            below = [usage[one.account_id] for one in self._children[account.account_id] if one.account_id in usage]
            if own or below:
                usage[account.account_id] = sum(own) + sum(below)
        return usage

    def shares(self, damping: float) -> FairShares:
        whole = sum(self._usage.get(account.account_id, 0.0) for account in self._children[None])
        accounts: dict[AccountId, Share] = {}
        leaves: dict[LeafId, tuple[Leaf, _Level]] = {}
        weights: dict[LeafId, float] = {}
        for account in [None, *self._order]:
            above = None if account is None else accounts.get(account.account_id)
            if account is not None and above is None:
                continue
            children, own = self._with_leaves(account), self._own(account)
            all_shares = sum(one.shares for one in children) + sum(leaf.shares for leaf in own)
            all_usage = sum(self._usage[one.account_id] for one in children) + sum(leaf.usage for leaf in own)
            level = _Level(above, all_shares, all_usage, whole, damping)
            for one in children:
                usage = self._usage[one.account_id]
                accounts[one.account_id] = level.share(one.shares, usage, level.weight(one.shares, usage))
            for leaf in own:
                key = (leaf.submitter_id, leaf.account_id)
                leaves[key], weights[key] = (leaf, level), level.weight(leaf.shares, leaf.usage)
        ranks = user_ranks(self._members(None, accounts, weights))
        number = len(leaves) or 1
        shares = {
            key: level.share(leaf.shares, leaf.usage, weights[key], ranks[key] / number)
            for key, (leaf, level) in leaves.items()
        }
        return FairShares(shares, accounts)

    def _own(self, account: Account | None) -> list[Leaf]:
        return self._leaves[account.account_id] if account is not None else []

    def _with_leaves(self, account: Account | None) -> list[Account]:
        above = None if account is None else account.account_id
        return [child for child in self._children[above] if child.account_id in self._usage]

    def _members(
        self, account: Account | None, accounts: Mapping[AccountId, Share], weights: Mapping[LeafId, float]
    ) -> tuple[Weighed, ...]:
        keys = [(leaf.submitter_id, leaf.account_id) for leaf in self._own(account)]
        users = [Weighed(key, weights[key]) for key in keys]
        below = [
            Weighed(
                child.account_id,
                accounts[child.account_id].level_weight,
                False,
                self._members(child, accounts, weights),
            )
            for child in self._with_leaves(account)
        ]
        return (*users, *below)


@dataclass(frozen=True, slots=True)
class _Level:
    """The siblings below one account, and the sums they are compared with."""

    above: Share | None
    all_shares: float
    all_usage: float
    whole: float
    damping: float

    def weight(self, shares: float, usage: float) -> float:
        return level_weight(shares, self.all_shares, usage, self.all_usage)

    def share(self, shares: float, usage: float, weight: float, rank: float | None = None) -> Share:
        fraction = shares / self.all_shares if self.all_shares > 0.0 else 0.0
        used = usage / self.whole if self.whole > 0.0 else 0.0
        owned, effective = fraction, used
        if self.above is not None:
            owned *= self.above.share_fraction
            if self.above.share_fraction < 1.0:
                effective += (self.above.effective_fraction - used) * fraction
        return Share(shares, usage, owned, used, effective, ratio_factor(effective, owned, self.damping), weight, rank)


def _check(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0.0):
        raise InvalidInputError(name, "a number of at least 0", value)
