"""What the ordering remembers, and the rules it goes by, in dictionaries."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import (
    LeafId,
    LeafStanding,
    LeafUsage,
    LogicalCorrection,
    OrderedBatch,
    OrderNotes,
    Reference,
    StoredGrant,
    WindowUsage,
)
from domain.ordering import Request
from domain.units import AccountId, BatchId, Flop, Instant, Seconds
from store.memory.registry import Registry
from store.memory.rows import StoredBatch
from store.memory.work import Work

WindowKey = tuple[LeafId, str, Instant, Seconds]
LimitKey = tuple[str, str, str]  # scope, quantity, name; empty: everybody's


class OrderBook:
    """The tables of the order of batches."""

    def __init__(self) -> None:
        self.serial = 0
        self.reference: Reference | None = None
        self.notes: dict[BatchId, OrderNotes] = {}
        self.breakdowns: dict[BatchId, Mapping[str, object]] = {}
        self.usage: dict[LeafId, LeafUsage] = {}
        self.standings: dict[LeafId, LeafStanding] = {}
        self.windows: dict[WindowKey, WindowUsage] = {}
        self.grants: dict[AccountId, StoredGrant] = {}
        self.limits: dict[LimitKey, Limit] = {}


def limit_key(scope: Scope, quantity: Quantity, name: str | None) -> LimitKey:
    """The key of a limit, in the order they are listed.

    >>> limit_key(Scope.APP, Quantity.JOB_PE, None)
    ('app', 'job_pe', '')
    """
    return str(scope), quantity.name.lower(), name or ""


def ordered_batch(batch: StoredBatch, book: OrderBook) -> OrderedBatch:
    """A batch as the ordering sees it."""
    classes = batch.classes
    return OrderedBatch(
        batch.as_batch(),
        batch.new.batch_flop,
        Request(
            max(one.ncpus for one in classes),
            max(one.memory_bytes for one in classes),
            max(one.disk_bytes for one in classes),
        ),
        Flop(statistics.fmean(one.fpops_est_flop for one in classes)),
        min(one.max_errors for one in classes),
        book.notes.get(batch.batch_id),
        batch.batch_id in book.breakdowns,
        batch.new.charged_s,
        batch.refunded_s,
    )


def correct_logical_times(registry: Registry, work: Work, corrections: Sequence[LogicalCorrection]) -> list[BatchId]:
    """Charge what is due in logical time; the batches that were charged."""
    submitters, found = registry.submitters, []
    for one in corrections:
        batch = work.batches[one.batch_id]
        if batch.new.charged_s - batch.refunded_s == one.charged_s:
            batch.refunded_s = Seconds(batch.new.charged_s - one.due_s)
            submitter = submitters[one.submitter_id]
            logical_at = Instant(submitter.logical_at + (one.due_s - one.charged_s))
            submitters[one.submitter_id] = replace(submitter, logical_at=logical_at)
            found.append(one.batch_id)
    return found
