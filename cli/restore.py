"""`muster restore`: make a restored database and the upload folder agree."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from administration.restoring import restore as restore_project
from cli.context import Run, local_command
from domain.errors import MusterError


class StillServingError(MusterError):
    """A process of the project runs."""


@click.command()
@local_command("it moves files of the upload folder; run it on the project's own machine")
async def restore(run: Run) -> None:
    """After a backup was restored, and before `muster up`: make the database and the upload folder agree.

    Moves every id sequence forward, gives unsent instances new ids, records whole files of instances in progress, and
    sets other files without a row aside, below DATA_DIR/files/set-aside.
    """
    upload_dir = run.project().upload_dir
    now = run.clock.now()
    aside = upload_dir.parent / "set-aside" / datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    async with run.store() as store:
        serving = await store.restoring.serving()
        if serving:
            raise StillServingError(
                f"nothing was changed: {serving} sessions of serving processes use the database, expected 0; "
                "stop every node first"
            )
        made = await restore_project(store.restoring, store.uploads, upload_dir, aside, run.clock)
    run.show(made.as_json(), made.text())
