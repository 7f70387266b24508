"""`muster usage`: reports of the history of usage."""

from __future__ import annotations

import click

from cli.context import Run, aligned, command
from domain.errors import InvalidInputError


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
