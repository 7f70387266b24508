"""Converts between values and database rows of the order of batches. Pure."""

from __future__ import annotations

import msgspec

from domain.limits import Limit, Quantity
from domain.ordered_work import (
    Grant,
    LeafId,
    LeafStanding,
    LeafUsage,
    Member,
    OrderedBatch,
    OrderNotes,
    Reference,
    WindowUsage,
)
from domain.ordering import PlaceInOrder, QueueClock, Request
from domain.usage import Amounts, DecayedUsage, UsageRow
from store import rows
from store.rows import Row, columns_of, mapper

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
ordered_batch = mapper(  # a row of batches_to_order or of ended_batch_to_correct
    OrderedBatch,
    batch=rows.batch,
    request=mapper(Request, left_out=["gpus"]),
    notes=lambda row: None if row["noted_sent"] is None else _notes(row),
    awaited=lambda row: tuple(row["awaited"] or ()),
    unmet=lambda row: tuple(row["unmet"] or ()),
)


def _leaf(row: Row) -> LeafId:
    return row["submitter_id"], row["account_id"]


member = mapper(Member)
leaf_usage = mapper(LeafUsage, leaf=_leaf, usage=mapper(DecayedUsage, amounts=mapper(Amounts)))
window_usage = mapper(WindowUsage, leaf=_leaf)
grant = mapper(Grant)
place = mapper(PlaceInOrder, of="active")
limit = mapper(Limit, quantity=lambda row: Quantity[row["quantity"].upper()], name=lambda row: row["name"] or None)


# the arrays of sql/ordering.sql: write_batch_orders (after the batch ids), write_usage and so on
notes_columns = columns_of(
    "clock.accrued_s clock.since bypassed sent charged used charged_at used_fraction sampled rate"
)
_LEAF = {"submitter_id": lambda one: one.leaf[0], "account_id": lambda one: one.leaf[1]}
usage_columns = columns_of(
    "submitter_id account_id usage.amounts.flop usage.amounts.cpu_s usage.amounts.memory_byte_s usage.amounts.gpu_s"
    " usage.at accuracies",
    accuracies=lambda one: rows.encoded(one.accuracies),
    **_LEAF,
)
window_columns = columns_of("submitter_id account_id level starts_at length_s flop", **_LEAF)
history_columns = columns_of(
    "submitter_id account_id instances used.flop used.cpu_s used.memory_byte_s used.gpu_s used_su", **_LEAF
)
usage_row = mapper(UsageRow)
place_columns = columns_of("batch_id tier key hold sent_most unpaid job_pe")
grant_columns = columns_of("account_id period_start_at used_su reserved_su")
correction_columns = columns_of("batch_id submitter_id charged_s due_s")


def quantity_word(quantity: Quantity) -> str:
    """Return the name of a quantity in the database and in commands.

    >>> quantity_word(Quantity.JOB_PE)
    'job_pe'
    """
    return quantity.name.lower()


def standing(text: str | None) -> LeafStanding | None:
    return None if text is None else msgspec.json.decode(text, type=LeafStanding)


def reference(text: str | None) -> Reference | None:
    return None if text is None else msgspec.json.decode(text, type=Reference)
