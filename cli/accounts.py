"""`muster account` and `muster submitter`: who submits, and who shares what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from administration.names import checked_name, checked_shares
from administration.ordering.sharing import Members
from administration.show import account_as_json, submitter_as_json
from cli.context import Run, as_text, command
from domain.errors import InvalidInputError
from domain.ordered_work import Permission
from store.postgres import PostgresStore

SHARES = click.option("--shares", type=float, default=1.0, show_default=True, help="Share among siblings; 0 or more.")
NEW_SHARES = click.option("--shares", type=float, default=None, help="Share among siblings; 0 or more.")
PERMIT = click.option(
    "--permit",
    "permissions",
    multiple=True,
    type=click.Choice([one.value for one in Permission]),
    help="expedite: the service level; raise: a user priority above 0. These alone, instead of what was permitted.",
)
NO_PERMISSIONS = click.option("--no-permissions", is_flag=True, help="Permit nothing in particular.")


@click.group()
def account() -> None:
    """The tree of accounts that shares are divided in."""


@account.command("add")
@click.argument("name")
@click.option("--parent", default=None, help="The account above; none = the top.")
@SHARES
@command
async def add_account(run: Run, name: str, parent: str | None, shares: float) -> None:
    """Add an account."""

    async def here(store: PostgresStore) -> object:
        made = await store.people.add_account(checked_name(name), parent=parent, shares=checked_shares(shares))
        return {"account_id": made.account_id, "name": made.name}

    added = await run.ask(here, lambda client: client.add_account(name, parent=parent, shares=shares))
    run.show(added, f"account {added['account_id']} {name}")


@account.command("list")
@command
async def list_accounts(run: Run) -> None:
    """List accounts."""

    async def here(store: PostgresStore) -> object:
        accounts = await store.people.accounts()
        names = {int(a.account_id): a.name for a in accounts}
        return [account_as_json(a, names) for a in accounts]

    rows = await run.ask(here, lambda client: client.accounts(limit=None))
    run.show_table(rows, ["account_id", "name", "parent", "shares"], "No accounts yet: muster account add NAME")


@account.command("set")
@click.argument("name")
@NEW_SHARES
@PERMIT
@NO_PERMISSIONS
@command
async def set_account(
    run: Run, name: str, shares: float | None, permissions: tuple[str, ...], no_permissions: bool
) -> None:
    """Change an account's shares, or what all who submit in it or below it may do."""
    asked = _something_of(shares, permissions, no_permissions)
    shown = await run.ask(
        lambda store: Members(store, run.clock).set_account(name, shares=shares, permissions=asked),
        lambda client: client.set_account(name, shares=shares, permissions=asked),
    )
    run.show(shown, f"account {name}: {_in_words(shown)}")


@click.group()
def submitter() -> None:
    """Submitters of batches."""


@submitter.command("add")
@click.argument("name")
@click.option("--account", "account_name", default="default", show_default=True)
@SHARES
@command
async def add_submitter(run: Run, name: str, account_name: str, shares: float) -> None:
    """Add a submitter to an account."""

    async def here(store: PostgresStore) -> object:
        made = await store.people.add_submitter(
            checked_name(name), account=account_name, shares=checked_shares(shares), now=run.clock.now()
        )
        return {"submitter_id": made.submitter_id, "name": made.name}

    added = await run.ask(here, lambda client: client.add_submitter(name, account=account_name, shares=shares))
    run.show(added, f"submitter {added['submitter_id']} {name}")


@submitter.command("list")
@command
async def list_submitters(run: Run) -> None:
    """List submitters."""

    async def here(store: PostgresStore) -> object:
        accounts = {int(a.account_id): a.name for a in await store.people.accounts()}
        return [submitter_as_json(s, accounts) for s in await store.people.submitters()]

    rows = await run.ask(here, lambda client: client.submitters(limit=None))
    columns = ["submitter_id", "name", "account", "shares", "logical_at"]
    run.show_table(rows, columns, "No submitters yet: muster submitter add NAME")


@submitter.command("set")
@click.argument("name")
@NEW_SHARES
@click.option("--account", "account_name", default=None, help="Its shares in this account, where it may submit too.")
@PERMIT
@NO_PERMISSIONS
@command
async def set_submitter(
    run: Run,
    name: str,
    shares: float | None,
    account_name: str | None,
    permissions: tuple[str, ...],
    no_permissions: bool,
) -> None:
    """Change a submitter's shares, the accounts it may submit in, or what it may do."""
    if account_name is not None and shares is None:
        shares = 1.0
    asked = _something_of(shares, permissions, no_permissions)
    shown = await run.ask(
        lambda store: Members(store, run.clock).set_submitter(
            name, shares=shares, account=account_name, permissions=asked
        ),
        lambda client: client.set_submitter(name, shares=shares, account=account_name, permissions=asked),
    )
    also = "".join(f", {part:g} in {where}" for where, part in shown["further_accounts"].items())
    run.show(shown, f"submitter {name}: {_in_words(shown, also)}")


def _something_of(shares: float | None, permissions: Sequence[str], no_permissions: bool) -> list[str] | None:
    """The permissions asked for; None leaves them as they are. Raises InvalidInputError when nothing is asked for."""
    if permissions and no_permissions:
        raise InvalidInputError("--no-permissions", "not with --permit", "both")
    if shares is None and not permissions and not no_permissions:
        raise InvalidInputError("set", "--shares, --permit or --no-permissions", "none of them")
    return list(permissions) if permissions or no_permissions else None


def _in_words(shown: Mapping[str, Any], also: str = "") -> str:
    permitted = ", ".join(shown["permissions"]) or "nothing in particular"
    return f"shares {as_text(shown['shares'])}{also}; permitted: {permitted}"
