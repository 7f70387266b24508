"""`muster account` and `muster submitter`: who submits, and who shares what."""

from __future__ import annotations

from collections.abc import Sequence

import click

from domain.batches import Account, Submitter
from domain.errors import InvalidInputError
from domain.ordered_work import Permission
from operations.cli.context import Run, command
from operations.cli.remote import or_remote
from operations.names import checked_name
from operations.ordering.rules import Rules
from operations.ordering.sharing import Sharing
from operations.shares import checked_shares
from operations.show import account_as_json, submitter_as_json

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
    async with run.store() as store:
        added = await store.people.add_account(checked_name(name), parent=parent, shares=checked_shares(shares))
    run.show({"account_id": added.account_id, "name": name}, f"account {added.account_id} {name}")


@account.command("list")
@or_remote(lambda client: client.accounts())
@command
async def list_accounts(run: Run) -> None:
    """List accounts."""
    async with run.store() as store:
        accounts = await store.people.accounts()
    names = {int(a.account_id): a.name for a in accounts}
    run.show_table([account_as_json(a, names) for a in accounts], ["account_id", "name", "parent", "shares"], "")


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
    async with run.store() as store:
        if shares is not None:
            await store.people.set_account(name, shares=checked_shares(shares))
        if asked is not None:
            await Rules(store, run.clock).permit(asked, account=name)
        [changed] = [one for one in await store.people.accounts() if one.name == name]
    shown = {"account_id": changed.account_id, "shares": changed.shares, "permissions": list(changed.permissions)}
    run.show(shown, f"account {name}: {_in_words(changed)}")


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
    async with run.store() as store:
        added = await store.people.add_submitter(
            checked_name(name), account=account_name, shares=checked_shares(shares), now=run.clock.now()
        )
    run.show({"submitter_id": added.submitter_id, "name": name}, f"submitter {added.submitter_id} {name}")


@submitter.command("list")
@or_remote(lambda client: client.submitters())
@command
async def list_submitters(run: Run) -> None:
    """List submitters."""
    async with run.store() as store:
        accounts = {int(a.account_id): a.name for a in await store.people.accounts()}
        submitters = await store.people.submitters()
    rows = [submitter_as_json(s, accounts) for s in submitters]
    run.show_table(rows, ["submitter_id", "name", "account", "shares", "logical_at"], "")


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
    async with run.store() as store:
        if shares is not None:
            await Sharing(store, run.clock).set_submitter(name, shares, account_name)
        if asked is not None:
            await Rules(store, run.clock).permit(asked, submitter=name)
        changed = await store.people.submitter(name)
        names = {one.account_id: one.name for one in await store.people.accounts()}
        further = {names[one]: part for one, part in (await store.people.memberships(changed.submitter_id)).items()}
    shown = {
        "submitter_id": changed.submitter_id,
        "shares": changed.shares,
        "further_accounts": further,
        "permissions": list(changed.permissions),
    }
    also = "".join(f", {part:g} in {where}" for where, part in further.items())
    run.show(shown, f"submitter {name}: {_in_words(changed, also)}")


def _something_of(shares: float | None, permissions: Sequence[str], no_permissions: bool) -> list[str] | None:
    """The permissions asked for; None leaves them as they are. Raises InvalidInputError when nothing is asked for."""
    if permissions and no_permissions:
        raise InvalidInputError("--no-permissions", "not with --permit", "both")
    if shares is None and not permissions and not no_permissions:
        raise InvalidInputError("set", "--shares, --permit or --no-permissions", "none of them")
    return list(permissions) if permissions or no_permissions else None


def _in_words(changed: Account | Submitter, also: str = "") -> str:
    permitted = ", ".join(changed.permissions) or "nothing in particular"
    return f"shares {changed.shares:g}{also}; permitted: {permitted}"
