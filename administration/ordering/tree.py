"""Dumps and loads the tree of accounts and submitters, as rows that can be edited in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from administration.names import checked_name, checked_shares, chosen
from domain.batches import TreeKind, TreeRow
from domain.clock import Clock
from domain.errors import InvalidInputError
from domain.ordered_work import Permission
from store.postgres import PostgresStore

MOST_ROWS = 20_000


class AccountTree:
    """Reads and writes the tree for the command line and the API."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def dump(self) -> Sequence[TreeRow]:
        """Return all accounts, parents first, then submitters, then their memberships in further accounts."""
        return await self._store.people.tree()

    async def load(self, rows: Sequence[TreeRow], *, dry_run: bool) -> Sequence[TreeRow]:
        """Add and change what the rows describe, all rows or none; delete nothing. Return the rows that differed.

        Raises InvalidInputError naming the row.
        """
        if len(rows) > MOST_ROWS:
            raise InvalidInputError("rows", f"at most {MOST_ROWS} rows", len(rows))
        plan = tree_changes(await self.dump(), rows)
        if dry_run:
            return plan
        now = self._clock.now()
        return await self._store.people.load_tree(lambda current: tree_changes(current, rows), now=now)


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
