"""`muster account` and `muster submitter`: who submits, and who shares what."""

from __future__ import annotations

import click

from operations.cli.context import Run, command
from operations.names import checked_name
from operations.shares import checked_shares
from operations.show import account_as_json, submitter_as_json

SHARES = click.option("--shares", type=float, default=1.0, show_default=True, help="Share among siblings; 0 or more.")


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
@command
async def list_accounts(run: Run) -> None:
    """List accounts."""
    async with run.store() as store:
        accounts = await store.people.accounts()
    names = {int(a.account_id): a.name for a in accounts}
    run.show_table([account_as_json(a, names) for a in accounts], ["account_id", "name", "parent", "shares"], "")


@account.command("set")
@click.argument("name")
@SHARES
@command
async def set_account(run: Run, name: str, shares: float) -> None:
    """Change an account's shares."""
    async with run.store() as store:
        changed = await store.people.set_account(name, shares=checked_shares(shares))
    run.show({"account_id": changed.account_id, "shares": changed.shares}, f"account {name}: shares {changed.shares:g}")


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
@SHARES
@command
async def set_submitter(run: Run, name: str, shares: float) -> None:
    """Change a submitter's shares."""
    async with run.store() as store:
        changed = await store.people.set_submitter(name, shares=checked_shares(shares))
    run.show({"submitter_id": changed.submitter_id, "shares": changed.shares}, f"submitter {name}: {changed.shares:g}")
