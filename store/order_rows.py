"""How do rows of the order of batches become values, and back? Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from domain.limits import Limit, Quantity
from domain.ordered_work import (
    LeafId,
    LeafStanding,
    LeafUsage,
    Member,
    OrderedBatch,
    OrderNotes,
    Reference,
    StoredGrant,
    WindowUsage,
)
from domain.ordering import QueueClock, Request
from domain.units import BatchId
from domain.usage import Amounts, DecayedUsage
from store import rows
from store.rows import Row, mapper

_notes = mapper(
    OrderNotes,
    clock=mapper(QueueClock, accrued_s="noted_waited_s", since="noted_waiting_since"),
    bypassed="noted_bypassed",
    sent="noted_sent",
    charged="noted_charged",
    used="noted_used",
    charged_at="noted_charged_at",
    used_fraction="noted_used_fraction",
    sampled="noted_sampled",
    rate="noted_rate",
)
ordered_batch = mapper(  # a row of batches_to_order, or of ended_batch_to_correct
    OrderedBatch,
    batch=rows.batch,
    request=mapper(Request, left_out=["gpus"]),
    notes=lambda row: None if row["noted_sent"] is None else _notes(row),
)


def _leaf(row: Row) -> LeafId:
    return row["submitter_id"], row["account_id"]


member = mapper(Member)
leaf_usage = mapper(LeafUsage, leaf=_leaf, usage=mapper(DecayedUsage, amounts=mapper(Amounts)))
window_usage = mapper(WindowUsage, leaf=_leaf)
grant = mapper(StoredGrant)
limit = mapper(Limit, quantity=lambda row: Quantity[row["quantity"].upper()], name=lambda row: row["name"] or None)


def notes_columns(batch_id: BatchId, notes: OrderNotes) -> tuple[object, ...]:
    """One entry for each array argument of sql/ordering.sql (write_batch_orders)."""
    return (
        batch_id,
        notes.clock.accrued_s,
        notes.clock.since,
        notes.bypassed,
        notes.sent,
        notes.charged,
        notes.used,
        notes.charged_at,
        notes.used_fraction,
        notes.sampled,
        notes.rate,
    )


def usage_columns(one: LeafUsage) -> tuple[object, ...]:
    """One entry for each array argument of sql/ordering.sql (write_usage)."""
    amounts = one.usage.amounts
    resources = (amounts.flop, amounts.cpu_s, amounts.memory_byte_s, amounts.gpu_s)
    return (*one.leaf, *resources, one.usage.at, rows.encoded(one.accuracies))


def window_columns(one: WindowUsage) -> tuple[object, ...]:
    """One entry for each array argument of sql/ordering.sql (add_usage_windows)."""
    return (*one.leaf, one.level, one.starts_at, one.length_s, one.flop)


def quantity_word(quantity: Quantity) -> str:
    """How a quantity is written in the database, and by people.

    >>> quantity_word(Quantity.JOB_PE)
    'job_pe'
    """
    return quantity.name.lower()


def standing(text: str | None) -> LeafStanding | None:
    return None if text is None else msgspec.json.decode(text, type=LeafStanding)


def reference(text: str | None) -> Reference | None:
    return None if text is None else msgspec.json.decode(text, type=Reference)


def columns(lines: Sequence[tuple[object, ...]], count: int) -> list[list[object]]:
    """Lines as columns, for the arrays of a query.

    >>> columns([(1, 2), (3, 4)], 2), columns([], 2)
    ([[1, 3], [2, 4]], [[], []])
    """
    return [list(column) for column in zip(*lines, strict=True)] or [[] for _ in range(count)]
