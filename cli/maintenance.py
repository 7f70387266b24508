"""`muster check`, `purge`, `restore`, `files`, `sign`, `stats`: check, restore, sign and export a project's files."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from cli.context import Run, bar_of, lines_of, local_command, to_json
from domain.errors import InvalidInputError, MusterError
from domain.history import checked_month
from domain.units import later


@click.command()
@click.option("--no-files", is_flag=True, help="Skip the upload directory, if this machine does not have it.")
@click.option("--contents", is_flag=True, help="Read every output file and compare its MD5.")
@click.option(
    "--limit",
    type=click.IntRange(1, 100_000),
    default=100,
    show_default=True,
    help="Maximum number of findings listed per check.",
)
@local_command("it reads the upload directory; run it on the project's own machine")
async def check(run: Run, no_files: bool, contents: bool, limit: int) -> None:
    """Check database, upload directory and buckets: all acknowledged results are present, none is duplicated.

    Changes nothing, and may run while the project is serving. Exit code 1 if there are findings.
    """
    from administration.checking.files import DELETED_WITHIN_S
    from administration.checking.inspection import inspect, unshared
    from administration.heartbeats import SILENT_S
    from transfer.files import mark_of

    folder = None if no_files else run.project().upload_dir
    mark = None if folder is None else await asyncio.to_thread(mark_of, folder.parent)

    def progress(question: str, found: int) -> None:
        click.echo(f"{question}: {found or 'nothing'} wrong", err=True)

    async with run.store() as store, store.checking.session() as session:
        buckets = (await run.files(store)).buckets
        storage = (await store.settings.in_force()).storage
        made = await inspect(
            session,
            folder,
            limit=limit,
            contents=contents,
            progress=progress,
            deleted_before=later(run.clock.now(), -storage.keep_parts_s - DELETED_WITHIN_S),
            nodes=None
            if storage.url  # then a node's folder has only its own unfinished uploads
            else unshared(await store.process_reports.since(later(run.clock.now(), -SILENT_S)), mark),
            buckets=buckets,
        )
    run.show(made.as_json(), made.text())
    if made.found:
        sys.exit(1)


class NotConfirmedError(MusterError):
    """Nothing was purged."""


@click.command()
@click.option("--before", required=True, metavar="YYYY-MM", help="Delete the months before this month.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--yes", is_flag=True, help="Confirm the deletion, which cannot be undone.")
@local_command("it deletes files in the upload directory; run it on the project's own machine")
async def purge(run: Run, before: str, dry_run: bool, yes: bool) -> None:
    """Delete the jobs of batches that ended before a given month, and their output files.

    Batches and their job counts are kept.
    """
    from administration.purge import COUNTED, Purged, months_before, purge_months

    checked_month("--before", before)
    upload_dir = run.project().upload_dir
    async with run.store() as store:
        found = Purged(tuple(await months_before(store.history, before)))
        if found.months and not yes and not dry_run:
            raise NotConfirmedError(
                f"nothing was purged: {len(found.months)} months match, with output files in "
                f"{upload_dir}; list them with --dry-run, delete them with --yes"
            )
        if not dry_run:
            await purge_months(
                store.history,
                await run.files(store),
                found.months,
                clock=run.clock,
                progress=lambda month: click.echo(f"{month.month} is gone", err=True),
            )
    if run.as_json:
        shown = {"before": before, "purged": not dry_run, "upload_dir": str(upload_dir), **found.as_json()}
        click.echo(to_json(shown))
        return
    run.show_table(found.rows(), ["month", *COUNTED], f"the history contains nothing before {before}")


class StillServingError(MusterError):
    """A process of the project is running."""


@click.command()
@local_command("it moves files in the upload directory; run it on the project's own machine")
async def restore(run: Run) -> None:
    """Reconcile database and upload directory after a restore, before `muster up`.

    Advances every id sequence, gives unsent instances new ids, records complete files of instances in progress, and
    moves other files without a database row to DATA_DIR/files/set-aside.
    """
    from administration.restoring import restore as restore_project

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
        buckets = (await run.files(store)).buckets
        made = await restore_project(store.restoring, store.uploads, upload_dir, aside, run.clock, buckets)
    run.show(made.as_json(), made.text())


@click.group()
def files() -> None:
    """Move the project's files between the folder and buckets."""


@files.command("copy")
@click.option(
    "--delete",
    is_flag=True,
    help="Delete files from the old store that the new store had before this command started.",
)
@local_command("it reads the project's files; run it on a machine that has all of them")
async def copy_files(run: Run, delete: bool) -> None:
    """Copy all files from the other stores in use to the store for new files.

    You can run it while the project serves, and repeat it after an interruption. Every copied output is compared with
    its record. Exit code 1 if a file is missing or differs.
    """
    from administration.copying import copy_all

    async with run.store() as store, store.checking.session() as session:
        with bar_of("files") as progress:
            done = await copy_all(session, await run.files(store), delete=delete, progress=progress)
    run.show(done.as_json(), done.text())
    if done.wrong:
        sys.exit(1)


READABLE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("files", type=READABLE, nargs=-1)
@click.option("--key", type=READABLE, default=None, help="Sign FILES with this private key; needs no project.")
@click.option(
    "--output", type=click.Path(path_type=Path, dir_okay=False), default=None, help="File to write the signatures to."
)
@click.option("--new-key", is_flag=True, help="Create a new signing key first, signed by the old one.")
@local_command("it uses the private signing key; run it where that key is kept")
async def sign(run: Run, files: tuple[Path, ...], key: Path | None, output: Path | None, new_key: bool) -> None:
    """Sign all app files again, or sign FILES on a machine that has only the key.

    Stop `muster up` before signing all app files, because it keeps serving the key it started with. To add files signed
    with --key, use `muster app version add --signatures`.
    """
    from administration.signing import sign_app_files

    if files or key is not None or output is not None:
        _sign_here(run, files, key, output, new_key=new_key)
        return
    async with run.store() as store:
        count = await sign_app_files(store.applications, run.project(), new_key=new_key)
    run.show(
        {"signed": count, "new_key": new_key},
        f"{count} app files signed with the {'new' if new_key else 'current'} key",
    )


def _sign_here(run: Run, files: tuple[Path, ...], key: Path | None, output: Path | None, *, new_key: bool) -> None:
    from transfer.keys import load_key_file, signed_document

    if new_key:
        raise InvalidInputError("--new-key", "neither FILES nor --key", "both")
    if key is None or not files:
        raise InvalidInputError("sign", "both FILES and --key", "only one of them")
    document = signed_document(load_key_file(key), files)
    if output is None:
        click.echo(document, nl=False)
        return
    output.write_text(document, encoding="utf-8")
    run.show({"signed": len(files), "output": str(output)}, f"{len(files)} files signed: {output}")


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
