"""Orders all batches: from what the database says to places, limits, charges and breakdowns; and the periodic task.

1 size every batch's jobs and charge what happened since the last pass; 2 compute everyone's usage; 3 order; 4 block
what limits block, in that order; 5 store it. Only the periodic task does input and output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice

from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.ordered_work import (
    ACTIVE_HOST_S,
    Grant,
    LeafId,
    OrderedBatch,
    OrderingCharges,
    OrderingView,
    OrderNotes,
    Permission,
    Reference,
    StoredPlace,
)
from domain.ordering import BatchFacts, Breakdown, QueueClock, Request
from domain.ordering_settings import OrderingSettings
from domain.units import HOUR_S, AppId, BatchId, Flop, Instant, Seconds
from jobs.ordering.admission import Grants, permitted
from jobs.ordering.headroom import (
    UNBOUNDED,
    Caps,
    QuotaClaim,
    Room,
    idle_holds,
    in_progress,
    rooms,
    soft_sentences,
)
from jobs.ordering.rows import BatchRow, differs, names_by_scope, names_of, passed_over, to_explain
from jobs.ordering.sizing import JobFootprint, gpu_of, job_size
from jobs.ordering.usage import Books, charges_of, clocked, fraction_of, wants_sample
from jobs.ports import OrderedWork
from priority.charging import queues
from priority.logical_time import logical_correction
from priority.order import BatchOrder
from priority.policies import policy_of
from priority.scheme import PolicyContext, request_pe
from priority.standings import LeafStandings, standings


@dataclass(frozen=True, slots=True)
class OrderingPass:
    """What one ordering found: what it charges, the places that changed, and whose breakdowns are to be kept."""

    charges: OrderingCharges
    places: Sequence[StoredPlace]
    explained: Sequence[BatchId]
    batches: int
    held: int
    order: BatchOrder = field(repr=False)
    rows: Mapping[BatchId, BatchRow] = field(repr=False)
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
) -> OrderingPass:
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

    def look(self) -> OrderingPass:
        books = Books(self._view, self._settings, self._now)
        for row in self._rows:
            books.take(row.leaf, row.one.batch.level, row.charges, self._sampled.get(row.batch_id, ()))
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
        return OrderingPass(
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

    def _row(self, one: OrderedBatch) -> BatchRow:
        size = self._size(one.batch.app_id, one.request, one.job_flop)
        queue, because = self._queue(one.batch.queue, one.batch.account_id)
        notes = one.notes or OrderNotes(QueueClock(since=one.batch.created_at))
        sampled = self._sampled.get(one.batch.batch_id)
        if sampled is not None:
            notes = replace(notes, sampled=one.batch.counts.jobs_validated)
        fraction = fraction_of(sampled or (), notes.used_fraction)
        sent = one.batch.counts.sent - notes.sent
        after, charges = charges_of(one, notes, size, rate=queue.rate, fraction=fraction, now=self._now)
        return BatchRow(one, size, queue, because, notes=after, charges=charges, sent=sent)

    def _claim(self, row: BatchRow) -> QuotaClaim:
        batch = row.one.batch
        names, counts = self._names(batch.submitter_id, batch.account_id, batch.app_id, row.queue.name), batch.counts
        return QuotaClaim(batch.batch_id, names, row.size, batch.level, counts.unsent, counts.in_progress)

    def _held_pe(self) -> dict[LeafId, float]:
        """Processor equivalents under way, by leaf."""
        held: dict[LeafId, float] = {}
        for row in self._rows:
            held[row.leaf] = held.get(row.leaf, 0.0) + max(0, row.one.batch.counts.in_progress) * row.size.pe
        return held

    # ------------------------------------------------------------ order

    def _facts(self, row: BatchRow) -> BatchFacts:
        batch, limits = row.one.batch, self._view.limits
        return BatchFacts(
            batch.batch_id,
            batch.submitter_id,
            batch.account_id,
            batch.created_at,
            logical_end_at=batch.logical_end_at,
            app_id=batch.app_id,
            queue=row.queue.name,
            level=batch.level,
            user_priority=batch.user_priority,
            clock=row.notes.clock,
            deadline_at=batch.deadline_at if row.leaf in self._may_date else None,
            request=row.size.request,
            job_runtime_s=row.size.runtime_s,
            batch_flop=row.one.batch_flop,
            unsent=batch.counts.unsent,
            bypassed=row.notes.bypassed,
            soft_limits=soft_sentences(self._claims[row.batch_id], limits, self._totals) if limits else (),
            unpaid=row.queue.is_unpaid,
        )

    def _moment(self, standing: LeafStandings) -> PolicyContext:
        reference = self._reference
        return PolicyContext(
            self._now,
            standing.leaves,
            reference=reference.host,
            largest_pe=request_pe(reference.most, reference.host),
            pool_flop_per_s=reference.pool_flop_per_s,
            queue_tiers={queue.name: queue.tier for queue in self._queues.values()},
            queue_numbers={queue.name: queue.priority for queue in self._queues.values()},
            level_deltas=standing.levels,
            held_by_account=standing.held_by_account,
            usage_snapshot_id=self._view.serial + 1,
        )

    # ------------------------------------------------------------ hold

    def _rooms(self, in_order: Sequence[BatchRow], caps: Caps) -> dict[BatchId, Room]:
        waiting = [row for row in in_order if row.waits]
        leaves = {row.leaf for row in waiting}
        claims = []
        for row in waiting:
            others_wait = len(leaves) > 1
            others = caps.barred(row.leaf, row.one.batch.level, row.size.amounts.flop, others_wait=others_wait)
            claim = self._claims[row.batch_id]
            claims.append(replace(claim, others=others) if others else claim)
        return {row.batch_id: UNBOUNDED for row in in_order} | rooms(claims, self._view.limits, self._totals)

    # ------------------------------------------------------------ note

    def _notes(self, in_order: Sequence[BatchRow], found: Mapping[BatchId, Room]) -> dict[BatchId, OrderNotes]:
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
            notes={row.batch_id: notes[row.batch_id] for row in self._rows if notes[row.batch_id] != row.one.notes},
            forgotten=[batch_id for batch_id, correction in due.items() if correction is None],
            corrections=[correction for correction in due.values() if correction is not None],
            usage=books.changed_usage(),
            windows=books.changed_windows(),
            windows_from=books.windows_from,
            grants=self._charged_grants(),
            standings=standing.leaves,
        )

    def _charged_grants(self) -> Sequence[Grant]:
        for row in self._rows:
            account_id, in_progress = row.one.batch.account_id, max(0, row.one.batch.counts.in_progress)
            reserved_su = in_progress * row.size.units(row.notes.rate)
            self._grants.take(account_id, used_su=sum(one.used_su for one in row.charges), reserved_su=reserved_su)
        return self._grants.charged()


def _size_of(
    catalogue: Catalogue, reference: Reference, app_id: AppId, request: Request, job_flop: Flop
) -> JobFootprint:
    return job_size(request, job_flop, reference, gpu_of(catalogue, app_id))


def _place(tier: int, key: float, row: BatchRow, found: Mapping[BatchId, Room]) -> StoredPlace:
    room, counts = found[row.batch_id], row.one.batch.counts
    bounded = room.jobs is not None and room.hold is None and room.jobs < counts.unsent
    sent_most = counts.sent + room.jobs if bounded and room.jobs is not None else None
    return StoredPlace(row.batch_id, tier, key, room.hold, sent_most, row.queue.is_unpaid, row.size.pe)


REFERENCE_S = HOUR_S  # between two looks at all of them
MOST_SAMPLED = 100  # batches whose results are looked at, per ordering
EXPLAINED_AT_ONCE = 200  # breakdowns made between two looks at the other duties

NEW = OrderNotes()


@dataclass(frozen=True, slots=True)
class OrderingReport:
    """What one ordering did. `late`: another one came first, and nothing was written."""

    policy: str
    batches: int
    moved: int
    held: int
    charged: int  # submitters whose usage changed
    explained: int
    took_s: Seconds
    late: bool = False


class Orderer:
    """Orders all batches anew by the policy of the moment. Once per cluster; a second one at once does no harm."""

    def __init__(self, work: OrderedWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._explained_by: OrderingSettings | None = None  # the settings of the last ordering that was explained

    async def run_once(self) -> OrderingReport:
        """One ordering. Charges are written first: a place that is not written is found again by the next one."""
        now, started_s, catalogue = self._clock.now(), self._clock.monotonic(), self._catalogue()
        view = await self._work.view()
        reference = await self._reference(view, now)
        sampled = await self._sampled(view)
        ordering = catalogue.settings.ordering
        anew = ordering != self._explained_by
        found = await asyncio.to_thread(
            look, view, reference=reference, catalogue=catalogue, sampled=sampled, now=now, anew=anew
        )
        late = await self._work.charge(found.charges) is None
        moved = 0 if late else await self._work.move(found.places)
        explained = 0 if late else await self._explain(found, now)
        self._explained_by = None if late else ordering
        return OrderingReport(
            ordering.policy,
            found.batches,
            moved,
            found.held,
            len(found.charges.usage),
            explained,
            Seconds(self._clock.monotonic() - started_s),
            late,
        )

    async def _reference(self, view: OrderingView, now: Instant) -> Reference:
        """The one that is kept, or what hosts are like now."""
        if view.reference is not None and 0.0 <= now - view.reference.at < REFERENCE_S:
            return view.reference
        return await self._work.reference(active_since=Instant(now - ACTIVE_HOST_S), now=now)

    async def _sampled(self, view: OrderingView) -> Mapping[BatchId, Sequence[float]]:
        """What jobs took of their estimates, of some batches that have more results than when that was last seen."""
        wanted = islice((one for one in view.batches if wants_sample(one, one.notes or NEW)), MOST_SAMPLED)
        batch_ids = [one.batch.batch_id for one in wanted]
        found = await self._work.used_fractions(batch_ids) if batch_ids else {}
        return {batch_id: found.get(batch_id, ()) for batch_id in batch_ids}

    async def _explain(self, found: OrderingPass, now: Instant) -> int:
        """Keep the breakdowns of what moved, some at a time: other duties share this process."""
        for start in range(0, len(found.explained), EXPLAINED_AT_ONCE):
            some = found.explained[start : start + EXPLAINED_AT_ONCE]
            await self._work.explain(await asyncio.to_thread(found.records, some), now=now)
        return len(found.explained)
