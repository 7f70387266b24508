"""How do rows of the order of batches become values, and back? Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import (
    LeafStanding,
    LeafUsage,
    Member,
    OrderedBatch,
    OrderNotes,
    Reference,
    StoredGrant,
    WindowUsage,
)
from domain.ordering import QueueClock, Request, ServiceLevel
from domain.units import BatchId
from domain.usage import Amounts, DecayedUsage
from store import rows
from store.rows import Row


def ordered_batch(row: Row) -> OrderedBatch:
    """A row of batches_to_order, or of ended_batch_to_correct."""
    return OrderedBatch(
        rows.batch(row),
        row["batch_flop"],
        Request(row["cores"], row["memory_bytes"], row["disk_bytes"]),
        row["job_flop"],
        row["max_errors"],
        None if row["noted_sent"] is None else _notes(row),
        row["explained"],
        row["charged_s"],
        row["refunded_s"],
    )


def _notes(row: Row) -> OrderNotes:
    return OrderNotes(
        QueueClock(row["noted_waited_s"], row["noted_waiting_since"]),
        row["noted_bypassed"],
        row["noted_sent"],
        row["noted_charged"],
        row["noted_used"],
        row["noted_charged_at"],
        row["noted_used_fraction"],
        row["noted_sampled"],
        row["noted_rate"],
    )


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


def member(row: Row) -> Member:
    permissions = tuple(row["permissions"])
    return Member(row["submitter_id"], row["name"], row["account_id"], row["shares"], permissions)


def leaf_usage(row: Row) -> LeafUsage:
    amounts = Amounts(row["flop"], row["cpu_s"], row["memory_byte_s"], row["gpu_s"])
    leaf = (row["submitter_id"], row["account_id"])
    return LeafUsage(leaf, DecayedUsage(amounts, row["at"]), tuple(row["accuracies"]))


def usage_columns(one: LeafUsage) -> tuple[object, ...]:
    """One entry for each array argument of sql/ordering.sql (write_usage)."""
    amounts = one.usage.amounts
    resources = (amounts.flop, amounts.cpu_s, amounts.memory_byte_s, amounts.gpu_s)
    return (*one.leaf, *resources, one.usage.at, rows.encoded(one.accuracies))


def window_usage(row: Row) -> WindowUsage:
    leaf = (row["submitter_id"], row["account_id"])
    return WindowUsage(leaf, ServiceLevel(row["level"]), row["starts_at"], row["length_s"], row["flop"])


def window_columns(one: WindowUsage) -> tuple[object, ...]:
    """One entry for each array argument of sql/ordering.sql (add_usage_windows)."""
    return (*one.leaf, one.level, one.starts_at, one.length_s, one.flop)


def grant(row: Row) -> StoredGrant:
    return StoredGrant(
        row["account_id"],
        row["granted_su"],
        row["period_start_at"],
        row["period_s"],
        row["used_su"],
        row["reserved_su"],
    )


def limit(row: Row) -> Limit:
    quantity = Quantity[row["quantity"].upper()]
    return Limit(Scope(row["scope"]), quantity, row["name"] or None, row["soft"], row["hard"])


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
