"""Shows the tree of accounts with shares, usage, grants and limits together; dumps and loads it as rows of a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from administration.names import checked_name, checked_shares, chosen
from administration.ordering.priorities import grant_as_json, limit_as_json
from administration.ordering.rules import Rules
from administration.ordering.sharing import Sharing
from domain.batches import TreeKind, TreeRow
from domain.clock import Clock
from domain.errors import InvalidInputError, NotFoundError
from domain.limits import Scope
from domain.ordered_work import Permission
from domain.units import Instant
from muster_client import shapes
from store.people import PostgresPeople
from store.postgres import PostgresStore

MOST_ROWS = 20_000


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


async def load_tree(
    people: PostgresPeople, rows: Sequence[TreeRow], *, dry_run: bool, now: Instant
) -> Sequence[TreeRow]:
    """Add and change what the rows describe, all rows or none; delete nothing. Return the rows that differed.

    Raises InvalidInputError naming the row.
    """
    if len(rows) > MOST_ROWS:
        raise InvalidInputError("rows", f"at most {MOST_ROWS} rows", len(rows))
    plan = tree_changes(await people.tree(), rows)
    return plan if dry_run else await people.load_tree(lambda current: tree_changes(current, rows), now=now)


def tree_changes(current: Iterable[TreeRow], wanted: Sequence[TreeRow]) -> list[TreeRow]:
    """Return the wanted rows that are new or changed, in an order in which they can be written. Pure.

    Raises InvalidInputError for an invalid value, a repeated row, an unknown account, or an account below itself.

    >>> lab = TreeRow(TreeKind.ACCOUNT, "lab", "", 1.0)
    >>> ada = TreeRow(TreeKind.SUBMITTER, "ada", "lab", 2.0)
    >>> [row.name for row in tree_changes([lab], [ada, lab])]
    ['ada']
    """
    known = {row.key: row for row in current}
    after = dict(known)
    for number, row in enumerate(wanted):
        _check(row, f"rows[{number}]")
        if row.key in after and after[row.key] is not known.get(row.key):
            raise InvalidInputError(f"rows[{number}]", "each account, submitter and further account once", row.name)
        after[row.key] = row
    for number, row in enumerate(wanted):
        _check_place(row, after, f"rows[{number}]")
    accounts = [row for row in wanted if row.kind is TreeKind.ACCOUNT]
    accounts.sort(key=lambda row: len(_above(row, after)))
    others = sorted((row for row in wanted if row.kind is not TreeKind.ACCOUNT), key=lambda row: row.key)
    return [row for row in (*accounts, *others) if known.get(row.key) != row]


Known = Mapping[tuple[str, str, str], TreeRow]


def _check(row: TreeRow, where: str) -> None:
    checked_name(row.name, f"{where}.name")
    if row.kind is not TreeKind.ACCOUNT or row.parent:
        checked_name(row.parent, f"{where}.parent")
    checked_shares(row.shares)
    for one in row.permissions:
        chosen(Permission, one, f"{where}.permissions")
    if row.permissions and row.kind is TreeKind.MEMBERSHIP:
        raise InvalidInputError(f"{where}.permissions", "none for a further account", row.permissions)


def _check_place(row: TreeRow, after: Known, where: str) -> None:
    if row.parent and (TreeKind.ACCOUNT, row.parent, "") not in after:
        raise InvalidInputError(f"{where}.parent", "an account", row.parent)
    if row.kind is TreeKind.MEMBERSHIP and (TreeKind.SUBMITTER, row.name, "") not in after:
        raise InvalidInputError(f"{where}.name", "a submitter", row.name)
    if row.kind is TreeKind.ACCOUNT and row.name in _above(row, after):
        raise InvalidInputError(f"{where}.parent", "an account that is not below this one", row.parent)


def _above(row: TreeRow, after: Known) -> list[str]:
    """Return the accounts above an account, nearest first; stops at a cycle."""
    above = list[str]()
    while row.parent and row.parent not in above and (found := after.get((TreeKind.ACCOUNT, row.parent, ""))):
        above.append(row.parent)
        row = found
    return above
