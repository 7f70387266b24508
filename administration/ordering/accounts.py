"""Shows the tree of accounts with shares, usage, grants and limits together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from administration.ordering.priorities import grant_as_json, limit_as_json
from administration.ordering.rules import Rules
from administration.ordering.sharing import Sharing
from domain.batches import TreeKind, TreeRow
from domain.clock import Clock
from domain.errors import NotFoundError
from domain.limits import Scope
from muster_client import shapes
from store.postgres import PostgresStore


@dataclass(frozen=True, slots=True)
class AccountNode:
    """An account in the tree. `share` is None without submitters at or below it."""

    row: TreeRow
    depth: int
    above: tuple[str, ...]  # the accounts above it, from the top
    share: shapes.ShareShown | None
    grant: shapes.GrantShown | None
    members: tuple[SubmitterNode, ...]  # submitters that belong to it or may use it


@dataclass(frozen=True, slots=True)
class SubmitterNode:
    """A submitter in one account: its own, or a further one (a membership), with the shares there."""

    row: TreeRow
    share: shapes.ShareShown | None

    @property
    def is_further(self) -> bool:
        return self.row.kind is TreeKind.MEMBERSHIP


@dataclass(frozen=True, slots=True)
class ShownTree:
    """The accounts by name, parents before children; and all limits."""

    accounts: Mapping[str, AccountNode]
    limits: Sequence[shapes.LimitShown]

    def account(self, name: str) -> AccountNode:
        """Return an account. Raises NotFoundError."""
        if name not in self.accounts:
            raise NotFoundError("account", name)
        return self.accounts[name]

    def submitter(self, name: str) -> Sequence[tuple[str, SubmitterNode]]:
        """Return a submitter in each account, its own one first. Raises NotFoundError."""
        found = [
            (account, one) for account, node in self.accounts.items() for one in node.members if one.row.name == name
        ]
        if not found:
            raise NotFoundError("submitter", name)
        return sorted(found, key=lambda one: one[1].is_further)

    def limits_of(self, scope: Scope, name: str) -> tuple[shapes.LimitShown, ...]:
        return tuple(one for one in self.limits if (one["scope"], one["name"]) == (scope, name))


async def account_tree(store: PostgresStore, clock: Clock) -> ShownTree:
    """Return the tree, with usage decayed to the current time."""
    rules, now = Rules(store, clock), clock.now()
    grants = {name: grant_as_json(name, one, now) for name, one in (await rules.grants()).items()}
    limits = [limit_as_json(one) for one in await rules.limits()]
    shares = {(one["account"], one["submitter"]): one for one in await Sharing(store, clock).show()}
    nodes = nodes_of(await store.people.tree(), shares, grants)
    return ShownTree({one.row.name: one for one in nodes}, limits)


def nodes_of(
    rows: Sequence[TreeRow],
    shares: Mapping[tuple[str, str | None], shapes.ShareShown],
    grants: Mapping[str, shapes.GrantShown],
) -> Iterator[AccountNode]:
    """Yield accounts with their submitters, each account followed by those below it. Pure.

    >>> rows = [TreeRow(TreeKind.ACCOUNT, name, parent, 1.0) for name, parent in (("a", ""), ("b", ""), ("c", "a"))]
    >>> [(one.row.name, one.depth, one.above) for one in nodes_of(rows, {}, {})]
    [('a', 0, ()), ('c', 1, ('a',)), ('b', 0, ())]
    """
    below, members = defaultdict[str, list[TreeRow]](list), defaultdict[str, list[TreeRow]](list)
    for row in rows:
        (below if row.kind is TreeKind.ACCOUNT else members)[row.parent].append(row)
    waiting: list[tuple[TreeRow, tuple[str, ...]]] = [(row, ()) for row in reversed(below[""])]
    while waiting:
        row, above = waiting.pop()
        name = row.name
        yield AccountNode(
            row,
            len(above),
            above,
            shares.get((name, None)),
            grants.get(name),
            tuple(SubmitterNode(one, shares.get((name, one.name))) for one in members[name]),
        )
        waiting += [(one, (*above, name)) for one in reversed(below[name])]
