"""In which order does a tree of accounts put its users? Pure.

Siblings are compared by weight, the best first, and the walk goes depth first: whoever is below a better
account goes before everybody below a worse one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

Weight = float | Fraction


@dataclass(frozen=True, slots=True)
class Weighed:
    """A user or an account among its siblings. `key` names a user; an account is passed through.

    Weights are compared exactly: whoever wants nearly equal ones to tie makes them equal before.
    """

    key: Hashable
    weight: Weight
    is_user: bool = True
    children: tuple[Weighed, ...] = ()


class _Step(NamedTuple):
    member: Weighed | None  # None: accounts that are walked as one
    tied: bool
    children: tuple[Weighed, ...] = ()


def user_ranks(top: Iterable[Weighed], *, tie_carries: bool = False) -> Mapping[Hashable, int]:
    """Rank of every user, N for the best of N, in the order of the walk.

    Siblings go by weight, highest first, a user before an account of the same weight. Tied sibling users
    share a rank; the next one loses one rank per user passed. Tied sibling accounts are walked as one: their
    children compete in one list, each with the weight it has among its own siblings. With `tie_carries`
    (Slurm) the first below an account that tied with a user shares that user's rank; without (Flux) the
    user is above.

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
    """One list of siblings in order; `tied`: its first member shares the rank of whoever came before."""
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
