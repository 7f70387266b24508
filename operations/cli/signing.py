"""`muster sign`: the signatures clients check app files by."""

from __future__ import annotations

import click

from operations.cli.context import Run, local_command
from operations.signing import sign_app_files


@click.command()
@click.option("--new-key", is_flag=True, help="Make a new signing key first; clients follow to it by the old one.")
@local_command("it uses the private signing key; run it where that key is kept")
async def sign(run: Run, new_key: bool) -> None:
    """Sign every app file anew. Stop `muster up` first: it serves the key it started with."""
    async with run.store() as store:
        count = await sign_app_files(store.applications, run.project(), new_key=new_key)
    run.show(
        {"signed": count, "new_key": new_key},
        f"{count} app files signed with the {'new' if new_key else 'present'} key",
    )
