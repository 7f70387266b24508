"""One ordering of all batches: from what the database says to places, holds, charges and breakdowns. Pure.

1 size every batch's jobs and charge what happened since the last ordering; 2 see how everybody stands; 3 order;
4 hold what limits hold, in that order; 5 note it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

from domain.catalogue import Catalogue
from domain.ordered_work import (
    LeafId,
    OrderedBatch,
    OrderingCharges,
    OrderingView,
    OrderNotes,
    Permission,
    Reference,
    StoredGrant,
    StoredPlace,
)
from domain.ordering import BatchFacts, Breakdown, QueueClock, Request
from domain.units import AppId, BatchId, Flop, Instant
from jobs.ordering.admission import permitted
from jobs.ordering.books import Books
from jobs.ordering.caps import Caps, Waiting
from jobs.ordering.charges import charges_of, clocked, fraction_of
from jobs.ordering.explaining import to_explain
from jobs.ordering.grants import Grants
from jobs.ordering.names import names_by_scope, names_of
from jobs.ordering.rooms import UNBOUNDED, Claim, Room, idle_holds, in_progress, rooms, soft_sentences
from jobs.ordering.rows import Row, differs, passed_over, row_of
from jobs.ordering.sizing import JobSize, gpu_of, job_size
from priority.charging import queues
from priority.logical_time import logical_correction
from priority.order import BatchOrder
from priority.policies import policy_of
from priority.scheme import PolicyContext, request_pe
from priority.standings import LeafStandings, standings


@dataclass(frozen=True, slots=True)
class Look:
    """What one ordering found: what it charges, the places that changed, and whose breakdowns are to be kept."""

    charges: OrderingCharges
    places: Sequence[StoredPlace]
    explained: Sequence[BatchId]
    batches: int
    held: int
    order: BatchOrder = field(repr=False)
    rows: Mapping[BatchId, Row] = field(repr=False)
    found: Mapping[BatchId, Room] = field(repr=False)

    def records(self, batch_ids: Sequence[BatchId]) -> dict[BatchId, dict[str, object]]:
        """Why these batches stand where they stand, as it is stored."""
        return {batch_id: self._record(batch_id) for batch_id in batch_ids}

    def _record(self, batch_id: BatchId) -> dict[str, object]:
        row, room = self.rows[batch_id], self.found[batch_id]
        return record_of(self.order.breakdown(batch_id), queue=row.queue_because, hold=room.hold)


def record_of(breakdown: Breakdown, *, queue: str, hold: str | None) -> dict[str, object]:
    """A breakdown as it is stored, with the queue its batch is really in, and why, and what holds it."""
    return {**breakdown.as_record(), "queue": queue, "hold": hold}


def look(
    view: OrderingView,
    *,
    reference: Reference,
    catalogue: Catalogue,
    sampled: Mapping[BatchId, Sequence[float]],
    now: Instant,
    anew: bool = True,
) -> Look:
    """Order everything. `sampled` is what jobs of some batches took of their estimates; `anew`: the settings are others
    than those of the last ordering, or not known.

    Raises InvalidInputError for settings that make no sense.
    """
    return _Ordering(view, reference, catalogue, sampled, now=now, anew=anew).look()


class _Ordering:
    """The steps, each with what the ones before it found."""

    def __init__(
        self,
        view: OrderingView,
        reference: Reference,
        catalogue: Catalogue,
        sampled: Mapping[BatchId, Sequence[float]],
        *,
        now: Instant,
        anew: bool,
    ) -> None:
        self._view = view
        self._reference = reference
        self._catalogue = catalogue
        self._settings = catalogue.settings.ordering
        self._sampled = sampled
        self._now = now
        self._anew = anew
        self._queues = queues(self._settings.queues)
        self._grants = Grants(view.accounts, view.grants, now)
        self._may_date = permitted(view.members, view.accounts, Permission.DEADLINE)
        # Batches are alike in many ways: what they are is made once.
        self._names = cache(partial(names_of, names_by_scope(view, catalogue)))
        self._size = cache(partial(_size_of, catalogue, reference))
        self._queue = cache(partial(self._grants.queue_of, queues=self._queues))
        self._rows = passed_over([self._row(one) for one in view.batches])
        self._claims = {row.batch_id: self._claim(row) for row in self._rows}
        self._totals = in_progress(self._claims.values())

    def look(self) -> Look:
        books = Books(self._view, self._settings, self._now)
        for row in self._rows:
            books.take(row.one.batch.level, row.charges, self._sampled.get(row.batch_id, ()))
        submitting, levels = books.submitting(self._held_pe()), books.level_windows()
        standing = standings(self._view.accounts, submitting, self._settings, now=self._now, level_windows=levels)
        active = {row.batch_id: row for row in self._rows if row.is_active}
        order = BatchOrder(
            policy_of(self._settings), [self._facts(row) for row in active.values()], self._moment(standing)
        )
        caps = Caps(self._view.accounts, submitting, levels, self._settings, self._now)
        in_order = [active[place.batch_id] for place in order.places]
        found = self._rooms(in_order, caps)
        places = [_place(place.tier, place.key, active[place.batch_id], found) for place in order.places]
        moved = [place for place in places if differs(place, active[place.batch_id].one)]
        by_id = {place.batch_id: place for place in moved}
        explained = to_explain(in_order, by_id, anew=self._anew, serial=self._view.serial)
        return Look(
            self._charges(books, standing, self._notes(in_order, found)),
            moved,
            explained,
            len(active),
            sum(room.hold is not None for room in found.values()),
            order,
            active,
            found,
        )

    # ------------------------------------------------------------ every batch by itself

    def _row(self, one: OrderedBatch) -> Row:
        size = self._size(one.batch.app_id, one.request, one.job_flop)
        queue, because = self._queue(one.batch.queue, one.batch.account_id)
        notes = one.notes or OrderNotes(QueueClock(since=one.batch.created_at))
        sampled = self._sampled.get(one.batch.batch_id)
        if sampled is not None:
            notes = replace(notes, sampled=one.batch.counts.jobs_validated)
        fraction = fraction_of(sampled or (), notes.used_fraction)
        sent = one.batch.counts.sent - notes.sent
        after, charges = charges_of(one, notes, size, rate=queue.rate, fraction=fraction, now=self._now)
        return row_of(one, size, queue=queue, queue_because=because, notes=after, charges=charges, sent=sent)

    def _claim(self, row: Row) -> Claim:
        batch = row.one.batch
        names, counts = self._names(batch.submitter_id, batch.account_id, batch.app_id, row.queue.name), batch.counts
        return Claim(batch.batch_id, names, row.size, batch.level, counts.unsent, counts.in_progress)

    def _held_pe(self) -> dict[LeafId, float]:
        """Processor equivalents under way, by leaf."""
        held: dict[LeafId, float] = {}
        for row in self._rows:
            held[row.leaf] = held.get(row.leaf, 0.0) + max(0, row.one.batch.counts.in_progress) * row.size.pe
        return held

    # ------------------------------------------------------------ order

    def _facts(self, row: Row) -> BatchFacts:
        batch = row.one.batch
        return BatchFacts(
            batch.batch_id,
            batch.submitter_id,
            batch.account_id,
            batch.created_at,
            batch.logical_end_at,
            batch.app_id,
            row.queue.name,
            batch.level,
            batch.user_priority,
            row.notes.clock,
            batch.deadline_at if row.leaf in self._may_date else None,
            row.size.request,
            row.size.runtime_s,
            row.one.batch_flop,
            batch.counts.unsent,
            row.notes.bypassed,
            soft_sentences(self._claims[row.batch_id], self._view.limits, self._totals) if self._view.limits else (),
            unpaid=row.queue.is_unpaid,
        )

    def _moment(self, standing: LeafStandings) -> PolicyContext:
        reference = self._reference
        return PolicyContext(
            self._now,
            standing.leaves,
            reference.host,
            request_pe(reference.most, reference.host),
            reference.pool_flop_per_s,
            {queue.name: queue.tier for queue in self._queues.values()},
            {queue.name: queue.priority for queue in self._queues.values()},
            standing.levels,
            standing.held_by_account,
            self._view.serial + 1,
        )

    # ------------------------------------------------------------ hold

    def _rooms(self, in_order: Sequence[Row], caps: Caps) -> dict[BatchId, Room]:
        waiting = [row for row in in_order if row.waits]
        leaves = {row.leaf for row in waiting}
        claims = []
        for row in waiting:
            others_wait = len(leaves) > 1
            batch = Waiting(row.leaf, row.one.batch.level, row.size.amounts.flop)
            others = caps.barred(batch, others_wait=others_wait)
            claim = self._claims[row.batch_id]
            claims.append(replace(claim, others=others) if others else claim)
        return {row.batch_id: UNBOUNDED for row in in_order} | rooms(claims, self._view.limits, self._totals)

    # ------------------------------------------------------------ note

    def _notes(self, in_order: Sequence[Row], found: Mapping[BatchId, Room]) -> dict[BatchId, OrderNotes]:
        """What is remembered of each batch: its clock runs on while it could be sent."""
        free = [row for row in in_order if row.waits and found[row.batch_id].hold is None]
        idle = idle_holds(
            [self._claims[row.batch_id] for row in free],
            slots=self._catalogue.settings.feeder.slots,
            fraction=self._settings.idle_fraction,
            least=self._settings.idle_jobs,
        )
        eligible = {row.batch_id for row in free} - idle
        noted = {}
        for row in self._rows:
            clock = clocked(row.notes.clock, eligible=row.batch_id in eligible, now=self._now)
            noted[row.batch_id] = row.notes if clock is row.notes.clock else replace(row.notes, clock=clock)
        return noted

    def _charges(self, books: Books, standing: LeafStandings, notes: Mapping[BatchId, OrderNotes]) -> OrderingCharges:
        over = [row for row in self._rows if not row.is_active and row.one.batch.counts.in_progress <= 0]
        due = {row.batch_id: logical_correction(row.one, row.notes.used_fraction) for row in over}
        return OrderingCharges(
            self._view.serial,
            self._now,
            self._reference,
            {row.batch_id: notes[row.batch_id] for row in self._rows if notes[row.batch_id] != row.one.notes},
            [batch_id for batch_id, correction in due.items() if correction is None],
            [correction for correction in due.values() if correction is not None],
            books.changed_usage(),
            books.changed_windows(),
            books.windows_from,
            self._charged_grants(),
            standing.leaves,
        )

    def _charged_grants(self) -> Sequence[StoredGrant]:
        for row in self._rows:
            account_id, in_progress = row.one.batch.account_id, max(0, row.one.batch.counts.in_progress)
            reserved_su = in_progress * row.size.units(row.notes.rate)
            self._grants.take(account_id, used_su=sum(one.used_su for one in row.charges), reserved_su=reserved_su)
        return self._grants.charged()


def _size_of(catalogue: Catalogue, reference: Reference, app_id: AppId, request: Request, job_flop: Flop) -> JobSize:
    return job_size(request, job_flop, reference, gpu_of(catalogue, app_id))


def _place(tier: int, key: float, row: Row, found: Mapping[BatchId, Room]) -> StoredPlace:
    room, counts = found[row.batch_id], row.one.batch.counts
    bounded = room.jobs is not None and room.hold is None and room.jobs < counts.unsent
    sent_most = counts.sent + room.jobs if bounded and room.jobs is not None else None
    return StoredPlace(row.batch_id, tier, key, room.hold, sent_most, row.queue.is_unpaid, row.size.pe)
