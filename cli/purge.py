"""`muster purge`: old months of the history are forgotten."""

from __future__ import annotations

import click

from administration.purge import Purged, months_before, purge_months
from cli.context import Run, local_command, to_json
from domain.errors import MusterError
from domain.history import checked_month
from transfer.upload_folder import UploadFolder

COLUMNS = ["month", "jobs", "instances", "files", "file_bytes", "table_bytes"]


class NotConfirmedError(MusterError):
    """Nothing was purged."""


@click.command()
@click.option("--before", required=True, metavar="YYYY-MM", help="Months before this one go.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Really purge: it cannot be taken back.")
@local_command("it deletes files of the upload folder; run it on the project's own machine")
async def purge(run: Run, before: str, dry_run: bool, yes: bool) -> None:
    """Forget the jobs of batches that ended before a month, and the output files hosts uploaded for them.

    Batches and their counters stay.
    """
    checked_month("--before", before)
    upload_dir = run.project().upload_dir
    async with run.store() as store:
        found = Purged(tuple(await months_before(store.history, before)))
        if found.months and not yes and not dry_run:
            raise NotConfirmedError(
                f"nothing was purged: {len(found.months)} months would go, and the files of their outputs in "
                f"{upload_dir}; see them with --dry-run, purge them with --yes"
            )
        if not dry_run:
            await purge_months(
                store.history,
                UploadFolder(upload_dir),
                found.months,
                clock=run.clock,
                progress=lambda month: click.echo(f"{month.month} is gone", err=True),
            )
    if run.as_json:
        shown = {"before": before, "purged": not dry_run, "upload_dir": str(upload_dir), **found.as_json()}
        click.echo(to_json(shown))
        return
    run.show_table(found.rows(), COLUMNS, f"the history holds nothing from before {before}")
