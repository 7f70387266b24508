"""A batch in an ordering pass: size, queue, charges, names for limits, previous place, and when it is explained. Pure.

Where waiting counts, every number changes with every pass while most batches keep their place: those are explained in
turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Names by scope and id."""
    return {
        Scope.SUBMITTER: {member.submitter_id: member.name for member in view.members},
        Scope.ACCOUNT: {account.account_id: account.name for account in view.accounts},
        Scope.APP: {app_id: app.name for app_id, app in catalogue.apps.items()},
    }


def names_of(known: NamesByScope, submitter_id: int, account_id: int, app_id: int, queue: str) -> Mapping[Scope, str]:
    """The names of one batch, "" for what there is no more.

    >>> names_of({Scope.SUBMITTER: {7: "ada"}, Scope.ACCOUNT: {}, Scope.APP: {}}, 7, 1, 1, "normal")[Scope.SUBMITTER]
    'ada'
    """
    ids = {Scope.SUBMITTER: submitter_id, Scope.ACCOUNT: account_id, Scope.APP: app_id}
    return {scope: known[scope].get(number, "") for scope, number in ids.items()} | {Scope.QUEUE: queue}


@dataclass(frozen=True, slots=True)
class BatchRow:
    """A batch under way through an ordering. `sent`: instances since the last one."""

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


def passed_over(rows: Sequence[BatchRow]) -> list[BatchRow]:
    """The rows with how often each was passed over, in the order they stood in: later ones of its app were sent."""
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
    """Where it stood, smaller first."""
    return row.one.batch.order_tier, row.one.batch.order_key, row.batch_id


TURNS: Final = 10  # orderings after which everything that changed is explained


def to_explain(
    in_order: Sequence[BatchRow], moved: Mapping[BatchId, StoredPlace], *, anew: bool, serial: int
) -> list[BatchId]:
    """The batches to explain, in their order: those without an explanation, and of those whose number changed all that
    stand behind another batch than before, in another tier or under another hold, and a tenth of the others.

    With `anew` all whose number changed: the policy or its weights are others.
    """
    behind = {row.batch_id: other.batch_id for other, row in pairwise(sorted(in_order, key=stood))}
    now_behind = {row.batch_id: other.batch_id for other, row in pairwise(in_order)}
    found = []
    for row in in_order:
        batch_id, place = row.batch_id, moved.get(row.batch_id)
        if not row.one.explained or (
            place is not None
            and (
                anew
                or behind.get(batch_id) != now_behind.get(batch_id)
                or _elsewhere(place, row)
                or batch_id % TURNS == serial % TURNS
            )
        ):
            found.append(batch_id)
    return found


def _elsewhere(place: StoredPlace, row: BatchRow) -> bool:
    batch = row.one.batch
    return (place.tier, place.hold, place.sent_most) != (batch.order_tier, batch.hold, batch.sent_most)
