"""`muster thresholds`: who may have urgent jobs; seen before it is changed."""

from __future__ import annotations

import getpass
from collections.abc import Sequence

import click

from domain.errors import InvalidInputError
from operations.cli.context import Run, as_text, command, to_json
from operations.cli.settings import parsed
from operations.thresholds.keys import FORESEEN, THRESHOLDS, Changes, changes_of
from operations.thresholds.service import Thresholds
from operations.thresholds.shown import preview_as_json, preview_as_text, thresholds_as_text

CHANGES = click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")


@click.group()
def thresholds() -> None:
    """Who may have urgent jobs, how tight due dates are, and which last jobs are copied: look, preview, change."""


@thresholds.command("show")
@command
async def show(run: Run) -> None:
    """Show every threshold, what it is for and what changing it does, and who changed it last and why."""
    async with run.store() as store:
        rows = await Thresholds(store, run.clock).show()
    run.show(rows, thresholds_as_text(rows))


@thresholds.command("preview")
@CHANGES
@command
async def preview(run: Run, values: tuple[str, ...]) -> None:
    """Show what a change would do, by the hosts and the work of this moment; change nothing."""
    async with run.store() as store:
        found = await Thresholds(store, run.clock).preview(changes_given(values, FORESEEN))
    click.echo(to_json(preview_as_json(found)) if run.as_json else preview_as_text(found))


@thresholds.command("set")
@CHANGES
@click.option("--why", required=True, help="Kept in the audit trail: muster setting history.")
@click.option("--by", "who", default=None, help="Who changes it; by default the user of this machine.")
@command
async def set_thresholds(run: Run, values: tuple[str, ...], why: str, who: str | None) -> None:
    """Change thresholds; running services follow within seconds."""
    changes = changes_given(values)
    async with run.store() as store:
        done = await Thresholds(store, run.clock).set(changes, who=who or getpass.getuser(), why=why)
    run.show(done, "\n".join(f"{one['key']}: {as_text(one['from'])} -> {as_text(one['to'])}" for one in done))


def changes_given(values: tuple[str, ...], keys: Sequence[str] = THRESHOLDS) -> Changes:
    """The changes of a command line. Raises InvalidInputError.

    >>> changes_given(("p_tight=0.85",))
    {'deadline.p_tight': 0.85}
    """
    pairs = []
    for value in values:
        key, equals, new = value.partition("=")
        if not equals:
            raise InvalidInputError("threshold", "KEY=VALUE", value)
        pairs.append((key, parsed(new)))
    return changes_of(pairs, keys)
