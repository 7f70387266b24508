"""`muster check`: an inspection of the whole project."""

from __future__ import annotations

import asyncio
import sys

import click

from administration.checking.files import DELETED_WITHIN_S
from administration.checking.inspection import inspect, unshared
from administration.heartbeats import SILENT_S
from cli.context import Run, local_command
from domain.settings import Settings
from domain.units import later
from transfer.files import mark_of


@click.command()
@click.option("--no-files", is_flag=True, help="Leave out the upload folder: this machine does not have it.")
@click.option("--contents", is_flag=True, help="Read every output and compare its MD5.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=100, show_default=True, help="List so many findings of a kind."
)
@local_command("it walks the upload folder; run it on the project's own machine")
async def check(run: Run, no_files: bool, contents: bool, limit: int) -> None:
    """Walk database and upload folder: is everything there that was acknowledged, and nothing twice?

    It changes nothing and may run beside a serving project. Exit code 1 when something is wrong.
    """
    folder = None if no_files else run.project().upload_dir
    mark = None if folder is None else await asyncio.to_thread(mark_of, folder.parent)

    def progress(question: str, found: int) -> None:
        click.echo(f"{question}: {found or 'nothing'} wrong", err=True)

    async with run.store() as store, store.checking.session() as session:
        storage = Settings.from_stored(await store.settings.settings())[0].storage
        made = await inspect(
            session,
            folder,
            limit=limit,
            contents=contents,
            progress=progress,
            deleted_before=later(run.clock.now(), -storage.keep_parts_s - DELETED_WITHIN_S),
            nodes=unshared(await store.process_reports.since(later(run.clock.now(), -SILENT_S)), mark),
        )
    run.show(made.as_json(), made.text())
    if made.found:
        sys.exit(1)
