"""`muster priority`: whose batch goes first, why, and what other settings would make of it."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence

import click

from domain.errors import InvalidInputError
from domain.ordering import Breakdown
from domain.units import BatchId
from operations.cli.context import Run, as_text, command
from operations.cli.rows import aligned
from operations.cli.settings import parsed
from operations.ordering.knobs import Changes, ordering_changes, weights_in_force
from operations.ordering.priorities import OrderPreview, Priorities
from operations.ordering.shown import preview_as_json
from priority.displays import Format, shown, sprio, sprio_weights, verbose

CHANGES = click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
LIMIT = click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Most batches.")


@click.group()
def priority() -> None:
    """Whose batch goes first, and why: look, preview, change."""


@priority.command("show")
@click.option("--batch", "batch_id", type=click.IntRange(1, 2**62), default=None, help="One batch alone.")
@click.option("--verbose", "in_words", is_flag=True, help="As formula, numbers, products and result.")
@click.option(
    "--format", "layout", type=click.Choice([one.value for one in Format]), default="table", show_default=True
)
@click.option("--normalised", is_flag=True, help="With --format sprio: values before their weights (sprio -n).")
@click.option("--weights", is_flag=True, help="With --format sprio: the weights (sprio -w).")
@LIMIT
@command
async def show(
    run: Run, batch_id: int | None, in_words: bool, layout: str, normalised: bool, weights: bool, limit: int
) -> None:
    """Show the order of batches: signed contributions that sum to the total, as they were at the last ordering."""
    async with run.store() as store:
        found = await Priorities(store, run.clock).show(None if batch_id is None else BatchId(batch_id), limit=limit)
    rows = _layout(Format(layout), normalised=normalised, weights=weights)(found.breakdowns)
    text = "\n\n".join(map(verbose, found.breakdowns)) if in_words else aligned(rows)
    if not found.breakdowns:
        text = "No batch has been ordered yet."
    if found.unordered:
        text += "\nnot ordered yet: " + ", ".join(str(one) for one in found.unordered)
    run.show({"batches": found.records, "unordered": found.unordered}, text)


def _layout(layout: Format, *, normalised: bool, weights: bool) -> Callable[[Sequence[Breakdown]], list[list[str]]]:
    if (normalised or weights) and layout is not Format.SPRIO:
        raise InvalidInputError("--format", "sprio, with --normalised or --weights", layout.value)
    if weights:
        return sprio_weights
    if normalised:
        return lambda breakdowns: sprio(breakdowns, normalised=True)
    return lambda breakdowns: shown(breakdowns, layout)


@priority.command("weights")
@command
async def show_weights(run: Run) -> None:
    """Show the terms of the chosen policy with their weights and caps, per service level."""
    async with run.store() as store:
        settings = await Priorities(store, run.clock).settings()
    rows = weights_in_force(settings)
    run.show_table(rows, ["level", "term", "component", "unit", "weight", "cap"], "no term weighs anything")


@priority.command("preview")
@CHANGES
@LIMIT
@command
async def preview(run: Run, values: tuple[str, ...], limit: int) -> None:
    """Show where batches would stand with other ordering settings; change nothing."""
    changes = changes_given(values)
    async with run.store() as store:
        found = await Priorities(store, run.clock).preview(changes, limit=limit)
    run.show(preview_as_json(found), preview_as_text(found))


@priority.command("set")
@CHANGES
@click.option("--why", required=True, help="Kept in the audit trail: muster setting history.")
@click.option("--by", "who", default=None, help="Who changes it; by default the user of this machine.")
@command
async def set_settings(run: Run, values: tuple[str, ...], why: str, who: str | None) -> None:
    """Choose and weigh the policy; the next ordering follows. All of the changes, or none."""
    changes = changes_given(values)
    async with run.store() as store:
        done = await Priorities(store, run.clock).set(changes, who=who or getpass.getuser(), why=why)
    run.show(done, "\n".join(f"{one['key']}: {as_text(one['from'])} -> {as_text(one['to'])}" for one in done))


def changes_given(values: Sequence[str]) -> Changes:
    """The changes of a command line. Raises InvalidInputError.

    >>> changes_given(["policy=fifo", "components=XFACTORWEIGHT=10"])
    {'ordering.policy': 'fifo', 'ordering.components': 'XFACTORWEIGHT=10'}
    """
    pairs = []
    for value in values:
        key, equals, new = value.partition("=")
        if not equals:
            raise InvalidInputError("ordering setting", "KEY=VALUE", value)
        pairs.append((key, parsed(new)))
    return ordering_changes(pairs)


def preview_as_text(found: OrderPreview) -> str:
    lines = [f"{key}: {as_text(old)} -> {as_text(new)} (nothing is changed)" for key, old, new in found.changes]
    rows = [["batch", "place", "would be", "held"]]
    for move in found.moves:
        held = move.would_be_held or ("" if move.held is None else "no longer")
        rows.append([str(move.batch_id), str(move.place), str(move.would_be), held])
    return "\n".join([*lines, aligned(rows) if found.moves else "No batch is active."])
