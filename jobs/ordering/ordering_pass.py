"""Orders all batches: computes places, limits, charges and breakdowns from the stored state. Also the periodic task.

Steps: 1 compute each batch's job size and its charges since the last pass; 2 compute usage; 3 order the batches; 4
block, in that order, batches that exceed limits; 5 store the results. Only the periodic task does input and output.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice

from domain.batches import Batch
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
from domain.restrictions import pause_of
from domain.submission import NewBatch
from domain.units import HOUR_S, AppId, BatchId, Flop, Instant, Seconds
from jobs.ordering.admission import Grants, permitted
from jobs.ordering.headroom import (
    UNBOUNDED,
    Caps,
    Headroom,
    QuotaClaim,
    headrooms,
    idle_holds,
    in_progress,
    soft_sentences,
)
from jobs.ordering.rows import BatchRow, differs, names_by_scope, names_of, passed_over, to_explain
from jobs.ordering.sizing import JobFootprint, gpu_of, job_size
from jobs.ordering.usage import UsageLedger, charges_of, clocked, fraction_of, wants_sample
from jobs.ports import OrderedWork
from priority.charging import queues
from priority.logical_time import counted, logical_correction
from priority.order import BatchOrder
from priority.policies import policy_of
from priority.scheme import PolicyContext, request_pe
from priority.standings import LeafStandings, standings


@dataclass(frozen=True, slots=True)
class OrderingPass:
    """The result of one pass: charges, changed places, and the batches whose breakdowns are to be stored."""

    charges: OrderingCharges
    places: Sequence[StoredPlace]
    explained: Sequence[BatchId]
    batches: int
    held: int
    order: BatchOrder = field(repr=False)
    rows: Mapping[BatchId, BatchRow] = field(repr=False)
    found: Mapping[BatchId, Headroom] = field(repr=False)

    def records(self, batch_ids: Sequence[BatchId]) -> dict[BatchId, dict[str, object]]:
        """Return the breakdowns of these batches as stored."""
        return {batch_id: self._record(batch_id) for batch_id in batch_ids}

    def _record(self, batch_id: BatchId) -> dict[str, object]:
        row, headroom = self.rows[batch_id], self.found[batch_id]
        breakdown, batch = self.order.breakdown(batch_id), row.one.batch
        return record_of(breakdown, importance_of(batch), queue=row.queue_because, hold=headroom.hold)


def importance_of(batch: Batch | NewBatch) -> dict[str, object]:
    """Return what was asked for: the values that the place rests on."""
    return {"level": batch.level.value, "asked_queue": batch.queue, "user_priority": batch.user_priority}


def record_of(
    breakdown: Breakdown, importance: Mapping[str, object], *, queue: str, hold: str | None
) -> dict[str, object]:
    """Return a breakdown as stored, with the importance, the effective queue with its reason, and blocking limits."""
    return {**breakdown.as_record(), **importance, "queue": queue, "hold": hold}


def order_all(
    view: OrderingView,
    *,
    reference: Reference,
    catalogue: Catalogue,
    sampled: Mapping[BatchId, Sequence[float]],
    now: Instant,
    changed: bool = True,
    important: Collection[BatchId] = (),
) -> OrderingPass:
    """Order all batches. Raises InvalidInputError if the settings are inconsistent.

    `sampled` has the used / estimated ratios of some batches' jobs. `changed`: the settings differ from the last pass;
    `important`: the batches whose importance differs.
    """
    return _Ordering(view, reference, catalogue, sampled, now=now, changed=changed, important=important).run()


class _Ordering:
    """The steps of a pass; each uses the results of earlier ones."""

    def __init__(
        self,
        view: OrderingView,
        reference: Reference,
        catalogue: Catalogue,
        sampled: Mapping[BatchId, Sequence[float]],
        *,
        now: Instant,
        changed: bool,
        important: Collection[BatchId],
    ) -> None:
        self._view = view
        self._reference = reference
        self._catalogue = catalogue
        self._settings = catalogue.settings.ordering
        self._sampled = sampled
        self._now = now
        self._changed = changed
        self._important = important
        self._queues = queues(self._settings.queues)
        self._grants = Grants(view.accounts, view.grants, now)
        self._may_date = permitted(view.members, view.accounts, Permission.DEADLINE)
        # Many batches share these values, so each value is computed only once.
        self._names = cache(partial(names_of, names_by_scope(view, catalogue)))
        self._size = cache(partial(_size_of, catalogue, reference))
        self._queue = cache(partial(self._grants.queue_of, queues=self._queues))
        self._rows = passed_over([self._row(one) for one in view.batches])
        self._claims = {row.batch_id: self._claim(row) for row in self._rows}
        self._totals = in_progress(self._claims.values())

    def run(self) -> OrderingPass:
        ledger = UsageLedger(self._view, self._settings, self._now)
        for row in self._rows:
            ledger.take(row.leaf, row.one.batch.level, row.charges, self._sampled.get(row.batch_id, ()))
        submitting, levels = ledger.submitting(self._held_pe()), ledger.level_windows()
        standing = standings(self._view.accounts, submitting, self._settings, now=self._now, level_windows=levels)
        active = {row.batch_id: row for row in self._rows if row.is_active}
        order = BatchOrder(
            policy_of(self._settings), [self._facts(row) for row in active.values()], self._moment(standing)
        )
        caps = Caps(self._view.accounts, submitting, levels, self._settings, self._now)
        in_order = [active[place.batch_id] for place in order.places]
        found = self._headrooms(in_order, caps)
        places = [_place(place.tier, place.key, active[place.batch_id], found) for place in order.places]
        moved = [place for place in places if differs(place, active[place.batch_id].one)]
        by_id = {place.batch_id: place for place in moved}
        explained = to_explain(
            in_order, by_id, changed=self._changed, important=self._important, serial=self._view.serial
        )
        return OrderingPass(
            self._charges(ledger, standing, self._notes(in_order, found)),
            moved,
            explained,
            len(active),
            sum(headroom.hold is not None for headroom in found.values()),
            order,
            active,
            found,
        )

    # ------------------------------------------------------------ each batch on its own

    def _row(self, one: OrderedBatch) -> BatchRow:
        size = self._size(one.batch.app_id, one.request, one.job_flop)
        queue, because = self._queue(one.batch.queue, one.batch.account_id)
        notes = one.notes or OrderNotes(QueueClock(since=one.batch.created_at))
        sampled = self._sampled.get(one.batch.batch_id)
        if sampled is not None:
            notes = replace(notes, sampled=one.batch.counts.jobs_validated)
        fraction = fraction_of(sampled or (), notes.used_fraction, used=counted(one).used)
        sent = one.batch.counts.sent - notes.sent
        after, charges = charges_of(one, notes, size, rate=queue.rate, fraction=fraction, now=self._now)
        return BatchRow(one, size, queue, because, notes=after, charges=charges, sent=sent)

    def _claim(self, row: BatchRow) -> QuotaClaim:
        batch = row.one.batch
        names, counts = self._names(batch.submitter_id, batch.account_id, batch.app_id, row.queue.name), batch.counts
        return QuotaClaim(batch.batch_id, names, row.size, batch.level, counts.unsent, counts.in_progress)

    def _held_pe(self) -> dict[LeafId, float]:
        """Return the processor equivalents in progress for each leaf."""
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

    def _headrooms(self, in_order: Sequence[BatchRow], caps: Caps) -> dict[BatchId, Headroom]:
        waiting = [row for row in in_order if row.waits]
        leaves = {row.leaf for row in waiting}
        claims = []
        for row in waiting:
            others_wait = len(leaves) > 1
            caps_said = caps.barred(row.leaf, row.one.batch.level, row.size.amounts.flop, others_wait=others_wait)
            others = (*row.one.waits_for(), *caps_said)
            claim = self._claims[row.batch_id]
            claims.append(replace(claim, others=others) if others else claim)
        return {row.batch_id: UNBOUNDED for row in in_order} | headrooms(claims, self._view.limits, self._totals)

    # ------------------------------------------------------------ stored state

    def _notes(self, in_order: Sequence[BatchRow], found: Mapping[BatchId, Headroom]) -> dict[BatchId, OrderNotes]:
        """Return the state to store for each batch. A batch's queue clock runs while its jobs could be sent."""
        free = [row for row in in_order if row.waits and found[row.batch_id].hold is None and not self._is_paused(row)]
        idle = idle_holds(
            [self._claims[row.batch_id] for row in free],
            slots=self._catalogue.settings.feeder.slots,
            fraction=self._settings.idle_fraction,
            least=self._settings.idle_jobs,
        )
        eligible = {row.batch_id for row in free} - idle
        if self._settings.accrual == "always":
            eligible = {row.batch_id for row in in_order if row.waits}
        noted = {}
        for row in self._rows:
            clock = clocked(row.notes.clock, eligible=row.batch_id in eligible, now=self._now)
            noted[row.batch_id] = row.notes if clock is row.notes.clock else replace(row.notes, clock=clock)
        return noted

    def _is_paused(self, row: BatchRow) -> bool:
        return pause_of(self._catalogue.restrictions, row.one.batch) is not None

    def _charges(
        self, ledger: UsageLedger, standing: LeafStandings, notes: Mapping[BatchId, OrderNotes]
    ) -> OrderingCharges:
        over = [row for row in self._rows if not row.is_active and row.one.batch.counts.in_progress <= 0]
        due = {row.batch_id: logical_correction(row.one, row.notes.used_fraction) for row in over}
        return OrderingCharges(
            self._view.serial,
            self._now,
            self._reference,
            notes={row.batch_id: notes[row.batch_id] for row in self._rows if notes[row.batch_id] != row.one.notes},
            forgotten=[batch_id for batch_id, correction in due.items() if correction is None],
            corrections=[correction for correction in due.values() if correction is not None],
            usage=ledger.changed_usage(),
            windows=ledger.changed_windows(),
            windows_from=ledger.windows_from,
            used=ledger.returned(),
            days_from=ledger.days_from,
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


def _place(tier: int, key: float, row: BatchRow, found: Mapping[BatchId, Headroom]) -> StoredPlace:
    headroom, counts = found[row.batch_id], row.one.batch.counts
    bounded = headroom.jobs is not None and headroom.hold is None and headroom.jobs < counts.unsent
    sent_most = counts.sent + headroom.jobs if bounded and headroom.jobs is not None else None
    unpaid, level = row.queue.is_unpaid, row.one.batch.level
    return StoredPlace(row.batch_id, tier, key, headroom.hold, sent_most, unpaid, row.size.pe, level)


REFERENCE_S = HOUR_S  # maximum age of a reference host, unless the number of hosts doubles: computing reads all hosts
MOST_SAMPLED = 100  # maximum number of batches whose results are sampled per pass
EXPLAINED_AT_ONCE = 200  # breakdowns stored before other periodic tasks get a turn

NEW = OrderNotes()


@dataclass(frozen=True, slots=True)
class OrderingReport:
    """The outcome of one pass. `late`: another pass committed first, and this pass wrote nothing."""

    policy: str
    batches: int
    moved: int
    held: int
    charged: int  # number of submitters whose usage changed
    explained: int
    took_s: Seconds
    late: bool = False


class Orderer:
    """Orders all batches by the current policy. Runs once per cluster; a second instance does no harm."""

    def __init__(self, work: OrderedWork, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._work = work
        self._catalogue = catalogue
        self._clock = clock
        self._explained_by: OrderingSettings | None = None  # the settings at the last pass whose breakdowns were stored
        self._importance: Mapping[BatchId, Mapping[str, object]] = {}  # of each batch, likewise

    async def run_once(self) -> OrderingReport:
        """Run one pass. Charges are written first; the next pass recomputes any places that were not written."""
        now, started_s, catalogue = self._clock.now(), self._clock.monotonic(), self._catalogue()
        view = await self._work.view()
        reference = await self._reference(view, now)
        sampled = await self._sampled(view)
        ordering = catalogue.settings.ordering
        importance = {one.batch.batch_id: importance_of(one.batch) for one in view.batches}
        known = self._importance
        found = await asyncio.to_thread(
            order_all,
            view,
            reference=reference,
            catalogue=catalogue,
            sampled=sampled,
            now=now,
            changed=ordering != self._explained_by,
            important={one for one, asked in importance.items() if known.get(one, asked) != asked},
        )
        late = await self._work.charge(found.charges) is None
        moved = 0 if late else await self._work.move(found.places)
        explained = 0 if late else await self._explain(found, now)
        if not late:
            self._importance = importance
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
        """Return the stored reference host, or a new one after an hour, for the first host, and when the number of
        hosts has doubled.
        """
        known, newest = view.reference, view.newest_host_id
        if known is not None and 0.0 <= now - known.at < REFERENCE_S and newest < max(1, 2 * known.newest_host_id):
            return known
        return await self._work.reference(active_since=Instant(now - ACTIVE_HOST_S), now=now)

    async def _sampled(self, view: OrderingView) -> Mapping[BatchId, Sequence[float]]:
        """Return the ratios of actual to estimated usage for some batches with enough new results."""
        wanted = islice((one for one in view.batches if wants_sample(one, one.notes or NEW)), MOST_SAMPLED)
        batch_ids = [one.batch.batch_id for one in wanted]
        found = await self._work.used_fractions(batch_ids) if batch_ids else {}
        return {batch_id: found.get(batch_id, ()) for batch_id in batch_ids}

    async def _explain(self, found: OrderingPass, now: Instant) -> int:
        """Store the breakdowns of moved batches in portions, because other periodic tasks share this process."""
        for start in range(0, len(found.explained), EXPLAINED_AT_ONCE):
            some = found.explained[start : start + EXPLAINED_AT_ONCE]
            await self._work.explain(await asyncio.to_thread(found.records, some), now=now)
        return len(found.explained)
