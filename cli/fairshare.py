"""`muster fairshare` and `usage`: show shares, report usage, and emulate other systems' fair-share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import click
import msgspec

from cli.context import Run, aligned, command, only_here, to_json
from domain.errors import InvalidInputError
from priority.displays import figure
from priority.emulate import SYSTEMS, EmulatedTable, emulate

if TYPE_CHECKING:
    from muster_client import shapes

Kind = Literal["account", "submitter"]
KINDS = list(get_args(Kind))
LARGEST_BYTES = 64 * 1024 * 1024


@click.group()
def fairshare() -> None:
    """Show and change fair-share among accounts and submitters."""


@fairshare.command("emulate")
@only_here("it needs no project and runs on this machine")
@click.option("--system", type=click.Choice(list(SYSTEMS)), required=True, help="System to emulate.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object per row, with the numbers of the table.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
def emulate_system(system: str, as_json: bool, file: Path) -> None:
    """Emulate another system's fair-share for the tree in a JSON FILE (- = standard input); needs no project.

    flux: {name, kind, shares, usage, children}. slurm: the same for classic fair-share; for Fair Tree {associations:
    [{id, parent, account, user, shares, usage_own}]}. pbs: {min_usage, root_children: [{name, shares, usage,
    children}]}. maui: {decay, total_per_window, rows: [{section, name, target, mode, windows}]}, newest window first.
    nci: {jobs: [{id, owner, cpus, tier, bypassed}], held: {OWNER: CPUS}}.
    """
    table = emulate(system, document_in(file))
    click.echo(to_json(rows_of(table)) if as_json else aligned([table.columns, *table.rows]))


def document_in(file: Path) -> object:
    """Return the JSON value in the file. Raises InvalidInputError."""
    where = "standard input" if str(file) == "-" else str(file)
    try:
        with click.open_file(str(file), "rb") as content:
            raw = content.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(where, "a readable file", error.strerror or str(error)) from None
    if len(raw) > LARGEST_BYTES:
        raise InvalidInputError(where, f"at most {LARGEST_BYTES // 1024**2} MiB", "more")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(where, "JSON", str(error)) from None
    except RecursionError:
        raise InvalidInputError(where, "JSON with fewer nested levels", "too many levels") from None


def rows_of(table: EmulatedTable) -> list[dict[str, str]]:
    """Convert the table to one object per row.

    >>> rows_of(EmulatedTable(("user", "fairshare"), (("ann", "0.5"),)))
    [{'user': 'ann', 'fairshare': '0.5'}]
    """
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


@fairshare.command("show")
@command
async def show(run: Run) -> None:
    """Show the tree: shares, decayed usage, and which accounts are under- or over-served.

    fairshare_ratio is 0.5 on target, closer to 1 if under-served and closer to 0 if over-served. level_weight compares
    siblings: fraction of shares / fraction of usage. fairshare_rank is the position in the tree's order.
    """
    rows = await run.ask(lambda client: client.fairshare())
    run.show(rows, tree_as_text(rows))


@fairshare.command("windows")
@command
async def show_windows(run: Run) -> None:
    """Show usage against target (ordering.targets) for users, groups, accounts and levels, like Moab's `diagnose -f`.

    Percentages are relative to the usage delivered: first over all weighted windows, then in each window, newest (0)
    first. A star marks usage more than 5 percentage points off its target.
    """
    found = await run.ask(lambda client: client.usage_windows())
    run.show(found, windows_as_text(found))


@fairshare.command("reset")
@click.option("--submitter", default=None, help="Reset only this submitter's usage.")
@click.option("--account", default=None, help="Reset only usage in this account.")
@click.option("--all", "of_all", is_flag=True, help="Reset the usage of all submitters.")
@click.option("--why", required=True, help="Reason, for the audit trail.")
@command
async def reset(run: Run, submitter: str | None, account: str | None, of_all: bool, why: str) -> None:
    """Reset recorded usage to 0 and discard the usage windows behind targets. Grants stay unchanged."""
    if of_all == (submitter is not None or account is not None):
        raise InvalidInputError("reset", "--submitter, --account, or --all alone", "none, or --all with another")
    records = await run.ask(lambda client: client.reset_usage(why=why, submitter=submitter, account=account))
    run.show({"records": records}, f"{records} records of usage are 0")


@fairshare.command("set")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.argument("shares", type=float)
@click.option("--account", default=None, help="For submitters: also allow this account; SHARES applies in it.")
@command
async def set_shares(run: Run, kind: Kind, name: str, shares: float, account: str | None) -> None:
    """Change the shares of an account or a submitter. Takes effect at the next ordering pass."""
    if kind == "account" and account is not None:
        raise InvalidInputError("--account", "only with a submitter", account)

    await run.ask(lambda client: client.set_shares(kind, name, shares, account=account))
    where = "" if account is None else f" in {account}"
    run.show({kind: name, "account": account, "shares": shares}, f"{kind} {name}: shares {shares:g}{where}")


def windows_as_text(found: shapes.WindowsShown) -> str:
    """Format usage by window as a table in the layout of `diagnose -f`."""
    count = max((number + 1 for number, flop in enumerate(found["delivered_flop"]) if flop > 0.0), default=0)
    if not count:
        return "No usage in the last windows."
    heading = ["section", "name", "percent", "target", *map(str, range(count))]
    delivered = ["TOTAL", "FLOP", "", "", *(f"{flop:.3g}" for flop in found["delivered_flop"][:count])]
    rows = [
        [one["section"].upper(), one["name"] + "*" * one["off_target"], f"{one['percent']:.2f}", one["target"] or "-"]
        + [f"{percent:.2f}" for percent in one["windows"][:count]]
        for one in found["usage"]
    ]
    return aligned([heading, delivered, *rows])


def tree_as_text(rows: Sequence[shapes.ShareShown]) -> str:
    """Format the tree as a table with names indented by depth."""
    heading = ["account or submitter", "shares", "share", "usage", "used", "effective", "ratio", "level weight", "rank"]
    cells = [
        [
            "  " * one["depth"] + (one["submitter"] or f"{one['account']}/"),
            figure(one["shares"]),
            f"{one['share_fraction']:.4f}",
            figure(one["usage"]),
            f"{one['usage_fraction']:.4f}",
            f"{one['effective_fraction']:.4f}",
            f"{one['fairshare_ratio']:.4f}",
            "inf" if one["level_weight"] is None else figure(one["level_weight"]),
            "" if one["fairshare_rank"] is None else f"{one['fairshare_rank']:.4f}",
        ]
        for one in rows
    ]
    return aligned([heading, *cells]) if cells else "No submitters yet: muster submitter add NAME"


@click.group()
def usage() -> None:
    """Report the history of usage by account, submitter and time."""


@usage.command("report")
@click.option("--from", "first_day", metavar="DAY", help="First day, like 2026-03-01, UTC; default: of this month.")
@click.option("--to", "last_day", metavar="DAY", help="Last day, included; default: today.")
@click.option(
    "--by",
    default="account",
    show_default=True,
    help="Comma-separated grouping: account, submitter, and one of day, week and month.",
)
@click.option("--account", help="Only this account and the accounts below it.")
@click.option("--submitter", help="Only this submitter.")
@click.option("--csv", "as_comma", is_flag=True, help="Print CSV.")
@command
async def report(
    run: Run,
    by: str,
    first_day: str | None,
    last_day: str | None,
    account: str | None,
    submitter: str | None,
    as_comma: bool,
) -> None:
    """Report the usage of returned work, like Slurm's `sreport`: CPU and GPU hours, memory, FLOP and service units.

    Work is attributed to the day of the first ordering pass after it is reported. CPU hours are hours on the reference
    host's CPU. Days older than ordering.keep_usage_s are combined into months.
    """
    from administration.ordering.history import as_csv, columns_of

    if as_comma and run.as_json:
        raise InvalidInputError("--csv", "only one of --csv and --json", "both")
    found = await run.ask(
        lambda client: client.usage_report(
            by=by, first_day=first_day, last_day=last_day, account=account, submitter=submitter
        )
    )
    if as_comma:
        click.echo(as_csv(found), nl=False)
        return
    rows = [columns_of(row, found["by"]) for row in found["usage"]]
    table = aligned([list(rows[0]), *(list(row.values()) for row in rows)]) if rows else "No usage in these days."
    run.show(found, table)
