"""`muster priority`: show, preview and change the order of batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from cli.context import Run, aligned, as_text, command, user
from cli.settings import changed_in_words, pairs_of
from domain.errors import InvalidInputError
from domain.formatting import in_words
from domain.ordering import Breakdown
from priority.displays import Format, sprio, sprio_weights, verbose
from priority.displays import shown as laid_out_as

if TYPE_CHECKING:
    from administration.changes import Changes


CHANGES = click.argument("values", nargs=-1, required=True, metavar="KEY=VALUE...")
LIMIT = click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Maximum number of batches."
)


@click.group()
def priority() -> None:
    """Show, preview and change the order of batches."""


@priority.command("show")
@click.option("--batch", "batch_id", type=click.IntRange(1, 2**62), default=None, help="Only this batch.")
@click.option("--verbose", "explained", is_flag=True, help="Show formula, numbers, products and result.")
@click.option(
    "--format", "layout", type=click.Choice([one.value for one in Format]), default="table", show_default=True
)
@click.option("--normalised", is_flag=True, help="With --format sprio: values before weighting (sprio -n).")
@click.option("--weights", is_flag=True, help="With --format sprio: the weights (sprio -w).")
@LIMIT
@command
async def show(
    run: Run, batch_id: int | None, explained: bool, layout: str, normalised: bool, weights: bool, limit: int
) -> None:
    """Show waiting batches in the order of the last ordering pass, with signed contributions that add up to the total.

    Instants are shown in seconds relative to the pass in which the place was explained; the age is the time since then.
    """
    from administration.ordering.priorities import breakdown_of

    laid_out = _layout(Format(layout), normalised=normalised, weights=weights)

    async with run.client() as client:
        if batch_id is None:
            shown = await client.order(limit=limit)
        else:
            shown = {"batches": [await client.priority(batch_id)], "unordered": []}
    breakdowns = [breakdown_of(one) for one in shown["batches"]]
    if explained:
        ages = [f"  computed {in_words(one['age_s'])} ago" for one in shown["batches"]]
        text = "\n\n".join(f"{verbose(one)}\n{age}" for one, age in zip(breakdowns, ages, strict=True))
    elif layout == Format.TABLE:
        heading, *rows = laid_out(breakdowns)
        owners = [[one["submitter"], str(one["waiting"]), in_words(one["age_s"])] for one in shown["batches"]]
        cells = [[row[0], *owner, *row[1:]] for row, owner in zip(rows, owners, strict=True)]
        text = aligned([[heading[0], "submitter", "waiting", "age", *heading[1:]], *cells])
    else:
        text = aligned(laid_out(breakdowns))
    if not breakdowns:
        text = "No batch has been ordered yet."
    if shown["unordered"]:
        text += "\nnot ordered yet: " + ", ".join(str(one) for one in shown["unordered"])
    run.show(shown, text)


def _layout(layout: Format, *, normalised: bool, weights: bool) -> Callable[[Sequence[Breakdown]], list[list[str]]]:
    if (normalised or weights) and layout is not Format.SPRIO:
        raise InvalidInputError("--format", "sprio, with --normalised or --weights", layout.value)
    if weights:
        return sprio_weights
    if normalised:
        return lambda breakdowns: sprio(breakdowns, normalised=True)
    return lambda breakdowns: laid_out_as(breakdowns, layout)


@priority.command("weights")
@command
async def show_weights(run: Run) -> None:
    """Show the terms of the active policy with their weights and caps, by service level."""

    rows = (await run.ask(lambda client: client.weights()))["terms"]
    run.show_table(rows, ["level", "term", "component", "unit", "weight", "cap"], "all weights are 0")


@priority.command("preview")
@CHANGES
@click.option("--verbose", "explained", is_flag=True, help="Explain the first places of the new order.")
@LIMIT
@command
async def preview(run: Run, values: tuple[str, ...], explained: bool, limit: int) -> None:
    """Preview the order of batches with other ordering settings; changes nothing."""
    from administration.ordering.priorities import breakdown_of

    changes = changes_given(values)

    found = await run.ask(lambda client: client.preview_ordering(changes, limit=limit))
    reasons = [verbose(breakdown_of(one)) for one in found["reasons"][:limit]] if explained else []
    run.show(found, "\n\n".join([preview_as_text(found), *reasons]))


@priority.command("set")
@CHANGES
@click.option("--why", required=True, help="Reason, for the audit trail (muster setting history).")
@click.option("--by", "who", default=None, help="Author of the change; default: the user of this machine.")
@command
async def set_settings(run: Run, values: tuple[str, ...], why: str, who: str | None) -> None:
    """Set the ordering policy and its weights, all changes or none. Takes effect at the next ordering pass."""
    changes = changes_given(values)
    by = who or user()
    done = await run.ask(lambda client: client.set_ordering(changes, why=why, by=by))
    run.show(done, changed_in_words(done))


def changes_given(values: Sequence[str]) -> Changes:
    """Parse KEY=VALUE arguments into changes. Raises InvalidInputError.

    >>> changes_given(["policy=fifo", "components=XFACTORWEIGHT=10"])
    {'ordering.policy': 'fifo', 'ordering.components': 'XFACTORWEIGHT=10'}
    """
    from administration.ordering.priorities import ordering_changes

    return ordering_changes(pairs_of(values, "ordering setting"))


def preview_as_text(found: Mapping[str, Any]) -> str:
    """Format a preview (administration/ordering/priorities.py) as text."""
    lines = [
        f"{one['key']}: {as_text(one['from'])} -> {as_text(one['to'])} (nothing is changed)" for one in found["changes"]
    ]
    rows = [["batch", "place", "would be", "held"]]
    for move in found["places"]:
        held = move["would_be_held"] or ("" if move["held"] is None else "no longer")
        rows.append([str(move["batch"]), str(move["place"]), str(move["would_be"]), held])
    return "\n".join([*lines, aligned(rows) if found["places"] else "No active batches."])
