"""`muster fairshare`: who is owed what, and what another system would say of the same tree."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from domain.errors import InvalidInputError
from operations.cli.context import to_json
from operations.cli.rows import aligned
from priority.emulate import SYSTEMS, Table, emulate

LARGEST_BYTES = 64 * 1024 * 1024


@click.group()
def fairshare() -> None:
    """Fair-share among accounts and submitters."""


@fairshare.command("emulate")
@click.option("--system", type=click.Choice(list(SYSTEMS)), required=True, help="Whose rules to follow.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object per row, figures as printed.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
def emulate_system(system: str, as_json: bool, file: Path) -> None:
    """Say what another system makes of the tree in a JSON FILE (- = standard input). A dry run; no project is needed.

    flux: {name, kind, shares, usage, children}. slurm: the same for classic fair-share; for Fair Tree {associations:
    [{id, parent, account, user, shares, usage_own}]}. pbs: {min_usage, root_children: [{name, shares, usage,
    children}]}. maui: {decay, total_per_window, rows: [{section, name, target, mode, windows}]}, newest window first.
    nci: {jobs: [{id, owner, cpus, tier, bypassed}], held: {OWNER: CPUS}}.
    """
    table = emulate(system, document_in(file))
    click.echo(to_json(rows_of(table)) if as_json else aligned([table.columns, *table.rows]))


def document_in(file: Path) -> object:
    """The JSON a file holds. Raises InvalidInputError."""
    where = "standard input" if str(file) == "-" else str(file)
    try:
        with click.open_file(str(file), "rb") as content:
            raw = content.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise InvalidInputError(where, "a file that can be read", error.strerror or str(error)) from None
    if len(raw) > LARGEST_BYTES:
        raise InvalidInputError(where, f"at most {LARGEST_BYTES // 1024**2} MiB", "more")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidInputError(where, "JSON", str(error)) from None
    except RecursionError:
        raise InvalidInputError(where, "JSON of fewer levels", "too many levels") from None


def rows_of(table: Table) -> list[dict[str, str]]:
    """An object per row.

    >>> rows_of(Table(("user", "fairshare"), (("ann", "0.5"),)))
    [{'user': 'ann', 'fairshare': '0.5'}]
    """
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
