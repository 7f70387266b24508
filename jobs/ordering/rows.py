"""A batch under way through an ordering: its size, its queue, its charges, and where it stood. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from domain.batches import BatchState
from domain.ordered_work import LeafId, OrderedBatch, OrderNotes, StoredPlace
from domain.units import AppId, BatchId
from domain.usage import Charge
from jobs.ordering.charges import noted
from jobs.ordering.sizing import JobSize
from priority.charging import Queue


@dataclass(frozen=True, slots=True)
class Row:
    """A batch under way through an ordering. `sent`: instances since the last one."""

    one: OrderedBatch
    size: JobSize
    queue: Queue
    queue_because: str
    notes: OrderNotes
    charges: Sequence[Charge]
    sent: int
    batch_id: BatchId
    leaf: LeafId
    is_active: bool
    waits: bool


def row_of(
    one: OrderedBatch,
    size: JobSize,
    *,
    queue: Queue,
    queue_because: str,
    notes: OrderNotes,
    charges: Sequence[Charge],
    sent: int,
) -> Row:
    """The row of a batch at its begin."""
    batch = one.batch
    leaf, is_active = (batch.submitter_id, batch.account_id), batch.state is BatchState.ACTIVE
    waits = is_active and batch.counts.unsent > 0
    return Row(one, size, queue, queue_because, notes, charges, sent, batch.batch_id, leaf, is_active, waits)


def differs(place: StoredPlace, one: OrderedBatch) -> bool:
    """Whether a batch stands elsewhere than its row says."""
    batch = one.batch
    return (place.tier, place.key, place.hold, place.sent_most, place.unpaid, place.job_pe) != (
        batch.order_tier,
        batch.order_key,
        batch.hold,
        batch.sent_most,
        batch.unpaid,
        batch.job_pe,
    )


def passed_over(rows: Sequence[Row]) -> list[Row]:
    """The rows with how often each was passed over, in the order they stood in: later ones of its app were sent."""
    made: dict[BatchId, Row] = {}
    served = set[AppId]()
    for row in sorted(rows, key=stood, reverse=True):
        app_id = row.one.batch.app_id
        notes = noted(row.notes, row.one, later_sent=app_id in served, sent=row.sent)
        made[row.batch_id] = row if notes is row.notes else replace(row, notes=notes)
        if row.sent > 0:
            served.add(app_id)
    return [made[row.batch_id] for row in rows]


def stood(row: Row) -> tuple[int, float, BatchId]:
    """Where it stood, smaller first."""
    return row.one.batch.order_tier, row.one.batch.order_key, row.batch_id
