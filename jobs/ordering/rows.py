"""One batch in an ordering pass: size, queue, charges, names for limits, previous place, when to explain it. Pure.

Breakdowns change with each pass while most places do not, so most breakdowns are stored in turns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from domain.batches import BatchState
from domain.catalogue import Catalogue
from domain.limits import Scope
from domain.ordered_work import LeafId, OrderedBatch, OrderingView, OrderNotes, StoredPlace
from domain.units import AppId, BatchId
from domain.usage import Charge
from jobs.ordering.sizing import JobFootprint
from jobs.ordering.usage import noted
from priority.charging import Queue

NamesByScope = Mapping[Scope, Mapping[int, str]]


def names_by_scope(view: OrderingView, catalogue: Catalogue) -> NamesByScope:
    """Return names by scope and id."""
    return {
        Scope.SUBMITTER: {member.submitter_id: member.name for member in view.members},
        Scope.ACCOUNT: {account.account_id: account.name for account in view.accounts},
        Scope.APP: {app_id: app.name for app_id, app in catalogue.apps.items()},
    }


def names_of(known: NamesByScope, submitter_id: int, account_id: int, app_id: int, queue: str) -> Mapping[Scope, str]:
    """Return the names that apply to one batch, "" for deleted objects.

    >>> names_of({Scope.SUBMITTER: {7: "ada"}, Scope.ACCOUNT: {}, Scope.APP: {}}, 7, 1, 1, "normal")[Scope.SUBMITTER]
    'ada'
    """
    ids = {Scope.SUBMITTER: submitter_id, Scope.ACCOUNT: account_id, Scope.APP: app_id}
    return {scope: known[scope].get(number, "") for scope, number in ids.items()} | {Scope.QUEUE: queue}


@dataclass(frozen=True, slots=True)
class BatchRow:
    """An unfinished batch in an ordering pass. `sent`: instances sent since the last pass."""

    one: OrderedBatch
    size: JobFootprint
    queue: Queue
    queue_because: str
    notes: OrderNotes
    charges: Sequence[Charge]
    sent: int

    @property
    def batch_id(self) -> BatchId:
        return self.one.batch.batch_id

    @property
    def leaf(self) -> LeafId:
        return self.one.batch.submitter_id, self.one.batch.account_id

    @property
    def is_active(self) -> bool:
        return self.one.batch.state is BatchState.ACTIVE

    @property
    def waits(self) -> bool:
        return self.is_active and self.one.batch.counts.unsent > 0


def differs(place: StoredPlace, one: OrderedBatch) -> bool:
    """Return whether the place differs from the batch's stored one."""
    batch = one.batch
    return (place.tier, place.key, place.hold, place.sent_most, place.unpaid, place.job_pe) != (
        batch.order_tier,
        batch.order_key,
        batch.hold,
        batch.sent_most,
        batch.unpaid,
        batch.job_pe,
    )


def passed_over(rows: Sequence[BatchRow]) -> list[BatchRow]:
    """Return the rows with updated counts of how often a batch was bypassed by later batches of the same app."""
    made: dict[BatchId, BatchRow] = {}
    served = set[AppId]()
    for row in sorted(rows, key=stood, reverse=True):
        app_id = row.one.batch.app_id
        notes = noted(row.notes, row.one, later_sent=app_id in served, sent=row.sent)
        made[row.batch_id] = row if notes is row.notes else replace(row, notes=notes)
        if row.sent > 0:
            served.add(app_id)
    return [made[row.batch_id] for row in rows]


def stood(row: BatchRow) -> tuple[int, float, BatchId]:
    """Return the sort key of the batch's previous place; smaller keys come first."""
    return row.one.batch.order_tier, row.one.batch.order_key, row.batch_id


TURNS: Final = 10  # within this many passes, each batch is explained at least once


def to_explain(
    in_order: Sequence[BatchRow],
    moved: Mapping[BatchId, StoredPlace],
    *,
    changed: bool,
    important: Collection[BatchId] = (),
    serial: int,
) -> list[BatchId]:
    """Return the batches to explain, in order: those without an explanation, those whose importance changed
    (`important`), one in TURNS of all, and, of those whose place changed, the batches with a new predecessor, a new
    tier or new blocking limits.

    With `changed` (the policy or its weights differ), all batches whose place changed. So no breakdown is older than
    TURNS passes.
    """
    behind = {row.batch_id: other.batch_id for other, row in pairwise(sorted(in_order, key=stood))}
    now_behind = {row.batch_id: other.batch_id for other, row in pairwise(in_order)}
    found = []
    for row in in_order:
        batch_id, place = row.batch_id, moved.get(row.batch_id)
        follows_another = behind.get(batch_id) != now_behind.get(batch_id)
        if (
            not row.one.explained
            or batch_id in important
            or batch_id % TURNS == serial % TURNS
            or (place is not None and (changed or follows_another or _elsewhere(place, row)))
        ):
            found.append(batch_id)
    return found


def _elsewhere(place: StoredPlace, row: BatchRow) -> bool:
    batch = row.one.batch
    return (place.tier, place.hold, place.sent_most) != (batch.order_tier, batch.hold, batch.sent_most)
