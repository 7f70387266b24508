"""`muster stats`: export the credit statistics that statistics sites download."""

from __future__ import annotations

import click

from cli.context import Run, lines_of, local_command


@click.group()
def stats() -> None:
    """Export the credit of volunteers, teams and hosts."""


@stats.command("export")
@local_command("`muster up` exports the statistics daily; run this on the project's own machine")
async def export(run: Run) -> None:
    """Write the statistics files now; `muster up` writes them daily, and serves them at stats/ of the project's URL.

    Contains volunteers who consented, with their hosts, and all teams. Contains no e-mail address.
    """
    from administration.statistics import StatisticsExport

    async with run.store() as store:
        folder = run.project().statistics_dir
        made = await StatisticsExport(store.participation, store.applications, folder, run.clock).export()
    run.show({"folder": str(folder), "took_s": made.took_s, "files": made.files}, f"{folder}\n{lines_of(made.files)}")
