"""`muster account`, `submitter`, `grant` and `limit`: manage submitters, their shares, and limits on their usage."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from cli.context import Run, as_text, command
from domain.errors import InvalidInputError
from domain.limits import Quantity, Scope
from domain.ordered_work import Permission
from domain.units import DAY_S

SHARES = click.option("--shares", type=float, default=1.0, show_default=True, help="Share among siblings: 0 or more.")
NEW_SHARES = click.option("--shares", type=float, default=None, help="Share among siblings: 0 or more.")
PERMIT = click.option(
    "--permit",
    "permissions",
    multiple=True,
    type=click.Choice([one.value for one in Permission]),
    help="Permission: expedite (service level expedite) or raise (user priorities above 0); replaces all current "
    "permissions.",
)
NEW_NAME = click.option("--name", "new_name", default=None, help="New name; ordering.targets is not updated.")
NO_PERMISSIONS = click.option("--no-permissions", is_flag=True, help="Remove all permissions.")


@click.group()
def account() -> None:
    """Manage the tree of accounts, which share the project's capacity."""


@account.command("add")
@click.argument("name")
@click.option("--parent", default=None, help="Parent account; default: the top level.")
@SHARES
@command
async def add_account(run: Run, name: str, parent: str | None, shares: float) -> None:
    """Add an account."""
    added = await run.ask(lambda client: client.add_account(name, parent=parent, shares=shares))
    run.show(added, f"account {added['account_id']} {name}")


@account.command("list")
@command
async def list_accounts(run: Run) -> None:
    """List accounts."""
    rows = await run.ask(lambda client: client.accounts(limit=None))
    run.show_table(rows, ["account_id", "name", "parent", "shares"], "No accounts yet: muster account add NAME")


@account.command("set")
@click.argument("name")
@NEW_SHARES
@PERMIT
@NO_PERMISSIONS
@click.option(
    "--parent", default=None, help="Move the account, with everything in it, below this account; '' = to the top level."
)
@NEW_NAME
@command
async def set_account(
    run: Run,
    name: str,
    shares: float | None,
    permissions: tuple[str, ...],
    no_permissions: bool,
    parent: str | None,
    new_name: str | None,
) -> None:
    """Change an account's shares, parent or name, and the permissions of all submitters in or below it."""
    asked = _something_of(permissions, no_permissions, shares, parent, new_name)
    shown = await run.ask(
        lambda client: client.set_account(name, shares=shares, permissions=asked, parent=parent, new_name=new_name)
    )
    run.show(shown, f"account {new_name or name}: {_in_words(shown)}")


COLUMNS = ["kind", "name", "parent", "shares", "permissions"]
MOST_BYTES = 16 * 1024**2


@account.command("dump")
@command
async def dump(run: Run) -> None:
    """Print the tree of accounts and submitters as CSV (with --json: JSON) for `muster account load`."""
    rows = await run.ask(lambda client: client.account_tree())
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**one, "permissions": " ".join(one["permissions"])} for one in rows)
    run.show(rows, text.getvalue().rstrip("\n"))


@account.command("load")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@command
async def load_tree(run: Run, file: Path, dry_run: bool) -> None:
    """Add and change accounts and submitters from a CSV or JSON FILE (- = standard input), all rows or none.

    `muster account dump` writes such a file. Deletes nothing.
    """
    changed = await run.ask(lambda client: client.load_account_tree(rows_of(_text_of(file)), dry_run=dry_run))
    run.show_table(changed, COLUMNS, "Nothing differs.")


def _text_of(file: Path) -> str:
    try:
        with click.open_file(str(file), encoding="utf-8") as content:
            text: str = content.read(MOST_BYTES + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError("file", "a readable file in UTF-8", str(error)) from None
    return text


def rows_of(text: str) -> list[dict[str, Any]]:
    """Parse the rows of a dump. Raises InvalidInputError.

    >>> rows_of("kind,name,parent,shares,permissions\\naccount,lab,,2,expedite raise\\n")[0]["permissions"]
    ['expedite', 'raise']
    """
    if len(text) > MOST_BYTES:
        raise InvalidInputError("file", f"at most {MOST_BYTES} characters", "more")
    if text.lstrip().startswith("["):
        try:
            return list(msgspec.json.decode(text, type=list[dict[str, Any]]))
        except msgspec.MsgspecError as error:
            raise InvalidInputError("file", "a list of rows in JSON", str(error)) from None
    found = csv.DictReader(io.StringIO(text), strict=True)
    if found.fieldnames is None or not {"kind", "name"} <= set(found.fieldnames) <= set(COLUMNS):
        raise InvalidInputError("file", "a heading with " + ", ".join(COLUMNS), found.fieldnames)
    rows = []
    for row in found:
        if None in row or None in row.values():
            raise InvalidInputError(f"line {found.line_num}", f"{len(found.fieldnames)} fields", "another number")
        rows.append({**row, **_typed(row, found.line_num)})
    return rows


def _typed(row: Mapping[str, str], line: int) -> dict[str, object]:
    try:
        shares = float(row.get("shares") or 1.0)
    except ValueError:
        raise InvalidInputError(f"line {line}: shares", "a number", row["shares"]) from None
    return {"shares": shares, "permissions": (row.get("permissions") or "").split()}


@account.command("delete")
@click.argument("name")
@command
async def delete_account(run: Run, name: str) -> None:
    """Delete an account that contains no accounts, submitters or batches."""
    await run.ask(lambda client: client.delete_account(name))
    run.show({"deleted": name}, f"account {name} is deleted")


@click.group()
def submitter() -> None:
    """Manage submitters of batches."""


@submitter.command("add")
@click.argument("name")
@click.option("--account", "account_name", default="default", show_default=True)
@SHARES
@command
async def add_submitter(run: Run, name: str, account_name: str, shares: float) -> None:
    """Add a submitter to an account."""
    added = await run.ask(lambda client: client.add_submitter(name, account=account_name, shares=shares))
    run.show(added, f"submitter {added['submitter_id']} {name}")


@submitter.command("list")
@command
async def list_submitters(run: Run) -> None:
    """List submitters."""
    rows = await run.ask(lambda client: client.submitters(limit=None))
    columns = ["submitter_id", "name", "account", "shares", "logical_at"]
    run.show_table(rows, columns, "No submitters yet: muster submitter add NAME")


@submitter.command("set")
@click.argument("name")
@NEW_SHARES
@click.option(
    "--account", "account_name", default=None, help="Also allow this account; --shares sets the shares in it."
)
@PERMIT
@NO_PERMISSIONS
@NEW_NAME
@command
async def set_submitter(
    run: Run,
    name: str,
    shares: float | None,
    account_name: str | None,
    permissions: tuple[str, ...],
    no_permissions: bool,
    new_name: str | None,
) -> None:
    """Change a submitter's shares, accounts, permissions or name."""
    asked = _something_of(permissions, no_permissions, shares, account_name, new_name)
    shown = await run.ask(
        lambda client: client.set_submitter(
            name, shares=shares, account=account_name, permissions=asked, new_name=new_name
        )
    )
    also = "".join(f", {part:g} in {where}" for where, part in shown["further_accounts"].items())
    run.show(shown, f"submitter {new_name or name}: {_in_words(shown, also)}")


@submitter.command("delete")
@click.argument("name")
@command
async def delete_submitter(run: Run, name: str) -> None:
    """Delete a submitter that has no batches."""
    await run.ask(lambda client: client.delete_submitter(name))
    run.show({"deleted": name}, f"submitter {name} is deleted")


def _something_of(permissions: Sequence[str], no_permissions: bool, *others: object) -> list[str] | None:
    """Return the new permissions, None to keep the current ones. Raises InvalidInputError if nothing would change."""
    if permissions and no_permissions:
        raise InvalidInputError("--no-permissions", "not with --permit", "both")
    if not permissions and not no_permissions and all(one is None for one in others):
        raise InvalidInputError("set", "an option: see --help", "none")
    return list(permissions) if permissions or no_permissions else None


def _in_words(shown: Mapping[str, Any], also: str = "") -> str:
    permitted = ", ".join(shown["permissions"]) or "nothing in particular"
    return f"shares {as_text(shown['shares'])}{also}; permitted: {permitted}"


GRANT_COLUMNS = ["account", "granted_su", "used_su", "reserved_su", "left_su", "period_start_at", "period_s"]
UNITS = click.option(
    "--units", type=float, required=True, help="Service units per period; one unit is one PE-hour at rate 1."
)
PERIOD = click.option(
    "--period-days",
    type=float,
    default=90.0,
    show_default=True,
    help="Length of a period in days; units unused at its end expire.",
)
QUANTITIES = [one.name.lower() for one in Quantity if one is not Quantity.IDLE_JOBS]
KIND = (
    click.argument("scope", type=click.Choice([one.value for one in Scope])),
    click.argument("quantity", type=click.Choice(QUANTITIES)),
    click.argument("name", required=False, default=None),
)


@click.group()
def grant() -> None:
    """Manage grants of service units; accounts that have spent their grant continue in the last queue at no charge."""


@grant.command("add")
@click.argument("account")
@UNITS
@PERIOD
@command
async def add_grant(run: Run, account: str, units: float, period_days: float) -> None:
    """Grant an account service units per period, starting now."""
    await _put(run, account, units, period_days, new=True)


@grant.command("set")
@click.argument("account")
@UNITS
@PERIOD
@command
async def set_grant(run: Run, account: str, units: float, period_days: float) -> None:
    """Change an account's grant; units already used in this period stay used."""
    await _put(run, account, units, period_days, new=False)


async def _put(run: Run, account: str, units: float, period_days: float, *, new: bool) -> None:
    async with run.client() as client:
        if (account in [one["account"] for one in await client.grants(limit=None)]) is new:
            expected = (
                "an account without a grant (muster grant set)" if new else "an account with a grant (muster grant add)"
            )
            raise InvalidInputError("account", expected, account)
        made = await client.set_grant(account, granted_su=units, period_s=period_days * DAY_S)
    run.show(made, f"account {account}: {units:g} SU every {period_days:g} days, {as_text(made['left_su'])} left")


@grant.command("list")
@command
async def list_grants(run: Run) -> None:
    """List grants with the units used, reserved for jobs in progress, and left."""
    rows = await run.ask(lambda client: client.grants(limit=None))
    run.show_table(rows, GRANT_COLUMNS, "No grants: no account is limited by a grant.")


@grant.command("drop")
@click.argument("account")
@command
async def drop_grant(run: Run, account: str) -> None:
    """Remove an account's grant; its jobs are no longer charged."""
    await run.ask(lambda client: client.take_grant(account))
    run.show({"account": account, "granted_su": None}, f"account {account}: no grant")


@click.group()
def limit() -> None:
    """Manage limits of submitters, accounts, apps and queues: soft limits put batches last, hard limits block them."""


@limit.command("set")
@KIND[0]
@KIND[1]
@KIND[2]
@click.option("--soft", type=float, default=None, help="Soft limit: batches over it go after all other batches.")
@click.option("--hard", type=float, default=None, help="Hard limit: batches over it are blocked.")
@command
async def set_limit(
    run: Run, scope: str, quantity: str, name: str | None, soft: float | None, hard: float | None
) -> None:
    """Set the limit for NAME or, without NAME, the default for names without their own limit."""
    made = await run.ask(lambda client: client.set_limit(scope, quantity, name=name, soft=soft, hard=hard))
    bounds = f"soft {as_text(soft)}, hard {as_text(hard)}"
    run.show(made, f"{scope} {name or '(default)'}: {made['counts']}: {bounds}")


@limit.command("list")
@command
async def list_limits(run: Run) -> None:
    """List limits."""
    rows = await run.ask(lambda client: client.limits(limit=None))
    run.show_table(rows, ["scope", "name", "quantity", "soft", "hard", "counts"], "No limits.")


@limit.command("drop")
@KIND[0]
@KIND[1]
@KIND[2]
@command
async def drop_limit(run: Run, scope: str, quantity: str, name: str | None) -> None:
    """Remove a limit."""
    await run.ask(
        lambda client: client.lift_limit(scope, quantity, name=name),
    )
    dropped = {"scope": scope, "quantity": quantity, "name": name, "dropped": True}
    run.show(dropped, f"{scope} {name or '(default)'}: no limit of {quantity}")
