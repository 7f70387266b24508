"""`muster sign`: the signatures clients check app files by."""

from __future__ import annotations

from pathlib import Path

import click

from administration.signing import sign_app_files
from cli.context import Run, local_command
from domain.errors import InvalidInputError
from transfer.keys import load_key_file, signed_document

READABLE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command()
@click.argument("files", type=READABLE, nargs=-1)
@click.option("--key", type=READABLE, default=None, help="Sign FILES with this private key; no project is needed.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), default=None, help="Where to write that.")
@click.option("--new-key", is_flag=True, help="Make a new signing key first; clients follow to it by the old one.")
@local_command("it uses the private signing key; run it where that key is kept")
async def sign(run: Run, files: tuple[Path, ...], key: Path | None, output: Path | None, new_key: bool) -> None:
    """Sign every app file anew, or FILES on a machine that has the key and nothing else.

    Stop `muster up` before signing every app file: it serves the key it started with. What was signed with --key is
    added by `muster app version add --signatures`.
    """
    if files or key is not None or output is not None:
        _sign_here(run, files, key, output, new_key=new_key)
        return
    async with run.store() as store:
        count = await sign_app_files(store.applications, run.project(), new_key=new_key)
    run.show(
        {"signed": count, "new_key": new_key},
        f"{count} app files signed with the {'new' if new_key else 'present'} key",
    )


def _sign_here(run: Run, files: tuple[Path, ...], key: Path | None, output: Path | None, *, new_key: bool) -> None:
    if new_key:
        raise InvalidInputError("--new-key", "neither files nor --key with it", "both")
    if key is None or not files:
        raise InvalidInputError("sign", "FILES and the private --key they are signed with", "one of them alone")
    document = signed_document(load_key_file(key), files)
    if output is None:
        click.echo(document, nl=False)
        return
    output.write_text(document, encoding="utf-8")
    run.show({"signed": len(files), "output": str(output)}, f"{len(files)} files signed: {output}")
