"""Runs refills (snapshot, evict, plan, read, place), and fill-ups from the last snapshot between refills."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.jobs import Candidate, JobClass
from domain.settings import FeederSettings
from domain.units import BatchId, Instant, JobClassId, Seconds, shard_of
from feeder.array import JobArray
from feeder.cursors import Cursors
from feeder.eviction import Eviction, Left
from feeder.groups import reading_rank
from feeder.partitions import MOST_CHANGED, Part, approached
from feeder.placing import Offer, Placing
from feeder.ports import Shards, WaitingWork
from feeder.reading import MOST_TAIL_ROWS, ByBatch, Classes, ReadRequest, Reads, Snapshot, by_batch, reads, snapshot_of
from feeder.supply import BatchSupply, targets
from feeder.turn_taking import TurnTaking

MOST_BATCHES = 500  # maximum number of batches per refill, first in order
URGENT_PER_BATCH = 64  # urgent instances read in addition to those in the array or in back-off
SCANNED_BATCHES = 16  # number of batches per refill with a group in back-off that are searched for other groups
SCANNED_ROWS = 128  # rows read from each of them


@dataclass(frozen=True, slots=True)
class Refill:
    """The result of one refill: `offered` rows were processed, and `dropped` slots left the array unsent.

    `found_nothing`: another refill now would not find anything either.
    """

    started_at: Instant
    took_s: Seconds
    batches: int
    offered: int
    placed: int
    dropped: int
    rotated_out: int
    slots: int
    found_nothing: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows read from the database, by batch."""

    urgent: ByBatch
    fresh: ByBatch
    tail: ByBatch
    classes: Mapping[JobClassId, JobClass]


class Refiller:
    """Runs refills with one or two limited queries of each kind, so that their cost does not depend on the backlog.

    A large array reaches its plan over several refills, with requests in between (feeder.partitions).
    """

    def __init__(
        self, waiting: WaitingWork, shards: Shards, clock: Clock, *, array: JobArray, cursors: Cursors, classes: Classes
    ) -> None:
        self._waiting = waiting
        self._shards = shards
        self._array = array
        self._cursors = cursors
        self._classes = classes
        self._clock = clock
        self._turns = TurnTaking()
        self._upkeep = Eviction(waiting, array, cursors, classes, clock)
        self._seen: Snapshot | None = None  # from the last full refill
        self._more_urgent: frozenset[BatchId] = frozenset()  # batches whose urgent range was not read completely

    async def refill(self, catalogue: Catalogue) -> Refill:
        """Fill the array according to the plan. Propagates database errors; the array stays usable."""
        started_at, started_s = self._clock.now(), self._clock.monotonic()
        with self._array.reading():
            held_before = self._array.batches()
            self._array.level.taken.clear()
            self._seen = None
            view = await self._view(catalogue)
            left = await self._upkeep.do(view, held_before)
            urgent = await self._read_urgent(view, view.batches, catalogue.settings.feeder)
            self._reread_remainders(view, urgent)
            placing, more = await self._fill(view, urgent, catalogue, scan=True)
            self._seen = view
        return self._done(started_at, started_s, view, placing, left, more=more)

    async def plan(self, catalogue: Catalogue) -> Mapping[Part, int]:
        """Return how many slots each batch's urgent and other instances should have now, without placing any.

        Propagates database errors.
        """
        view = await self._view(catalogue)
        urgent = await self._read_urgent(view, view.batches, catalogue.settings.feeder)
        return self._targets(self._supplies(view, urgent), catalogue, view, catalogue.settings.feeder.slots)

    async def fill_up(self, catalogue: Catalogue) -> Refill:
        """Replace slots taken since the last full refill, using its snapshot. Refill fully if shards have moved.

        It reads only what it adds, so it may run many times per second.
        """
        view = self._seen
        if view is None or view.owned != self._shards.owned():
            return await self.refill(catalogue)
        started_at, started_s = self._clock.now(), self._clock.monotonic()
        with self._array.reading():
            cut = [batch for batch in view.batches if batch.batch_id in self._more_urgent]
            urgent = await self._read_urgent(view, cut, catalogue.settings.feeder)
            placing, more = await self._fill(view, urgent, catalogue, scan=False)
        return self._done(started_at, started_s, view, placing, Left(0, 0), more=more)

    def _done(
        self, started_at: Instant, started_s: float, view: Snapshot, placing: Placing, left: Left, *, more: bool
    ) -> Refill:
        return Refill(
            started_at,
            took_s=Seconds(self._clock.monotonic() - started_s),
            batches=len(view.batches),
            offered=placing.offered,
            placed=placing.placed,
            dropped=left.dropped + placing.dropped,
            rotated_out=left.rotated_out,
            slots=len(self._array),
            found_nothing=not more,
        )

    async def _fill(self, view: Snapshot, urgent: ByBatch, catalogue: Catalogue, *, scan: bool) -> tuple[Placing, bool]:
        """Plan, read and place; return whether another pass may find more. `scan`: also search beyond groups in
        back-off.
        """
        whole, now_s = catalogue.settings.feeder.slots, self._clock.monotonic()
        supplies = self._supplies(view, urgent)
        plan = self._targets(supplies, catalogue, view, whole)
        target = approached(plan, self._array.slots_of_parts(), free=whole - len(self._array))
        self._more_urgent |= {part[0] for part in plan if part[1] and target[part] < plan[part]}
        wants = self._wants(supplies, target, view, scan=scan)
        planned = reads(wants, self._cursors, now_s=now_s, most_tail_rows=whole + MOST_TAIL_ROWS)
        found = await self._read(planned, urgent)
        placing = Placing(self._array, self._cursors, classes=found.classes, slots=whole, target=target)
        placing.keep_bounds()
        placed = self._place(placing, view.batches, {want.batch.batch_id: want.rows for want in wants}, found)
        ended = self._note_ends(planned, found, placed)
        placing.trim()
        self._array.deal()
        readable = {supply.batch.batch_id for supply in supplies if self._is_readable(supply.batch, view)}
        cut_short = target != plan and placing.placed + placing.dropped >= MOST_CHANGED // 2
        self._array.level.reset(self._array.each_group(), slots=whole, readable=readable, low=cut_short)
        more = bool(placing.placed or found.fresh or (ended and readable))  # at least cursors have moved
        return placing, more

    # ------------------------------------------------------------ snapshot and plan

    async def _view(self, catalogue: Catalogue) -> Snapshot:
        """Return the snapshot of the ready batches."""
        batches = await self._waiting.ready_batches(MOST_BATCHES, catalogue.sent_apps())
        owned, now = self._shards.owned(), self._clock.now()
        places = self._turns.places(batches, catalogue.settings.ordering, now)
        return snapshot_of(batches, catalogue, places, owned=owned, limit=MOST_BATCHES, now=now)

    def _supplies(self, view: Snapshot, urgent: ByBatch) -> list[BatchSupply]:
        held = self._array.slots_of_parts()
        batches_out = self._array.rotation.batches_out()
        return [self._supply(batch, view, urgent.get(batch.batch_id, ()), held, batches_out) for batch in view.batches]

    def _supply(
        self,
        batch: Batch,
        view: Snapshot,
        urgent: Sequence[Candidate],
        held: Mapping[Part, int],
        batches_out: frozenset[BatchId],
    ) -> BatchSupply:
        new = [candidate.ready for candidate in urgent if not self._array.remembers(candidate.ready)]
        retries = sum(ready.urgent for ready in new)
        batch_id = batch.batch_id
        return BatchSupply(
            batch,
            view.feeds[batch_id],
            held_urgent=held.get((batch_id, True), 0),
            held_other=held.get((batch_id, False), 0),
            urgent_read=retries,
            handed_back_read=len(new) - retries,
            readable=self._is_readable(batch, view),
            groups_out=batch_id in batches_out,
            taken=self._array.level.taken[batch_id],
        )

    def _reread_remainders(self, view: Snapshot, urgent: ByBatch) -> None:
        """Re-read a fully read tail when the database has more unsent rows than we track."""
        held = self._array.slots_of_parts()
        for batch in view.batches:
            batch_id = batch.batch_id
            if self._cursors.is_dry(batch_id, now_s=self._clock.monotonic()):
                new = sum(not self._array.remembers(one.ready) for one in urgent.get(batch_id, ()))
                known = held.get((batch_id, True), 0) + held.get((batch_id, False), 0) + new
                known += self._array.in_flight.of_batch(batch_id) + self._array.rotation.out_of_batch(batch_id)
                if batch.counts.unsent > known:
                    self._cursors.is_not_dry(batch_id)

    def _is_readable(self, batch: Batch, view: Snapshot) -> bool:
        now_s = self._clock.monotonic()
        if self._cursors.is_dry(batch.batch_id, now_s=now_s):
            return False
        return self._cursors.is_open(batch.batch_id, view.shards_of(batch.batch_id), now_s=now_s)

    def _targets(
        self, supplies: Sequence[BatchSupply], catalogue: Catalogue, view: Snapshot, slots: int
    ) -> dict[Part, int]:
        requests = self._array.mix.weights(now_s=self._clock.monotonic())
        return targets(
            supplies, catalogue=catalogue, requests=requests, owned=view.owned, slots=slots, now=self._clock.now()
        )

    def _wants(
        self, supplies: Sequence[BatchSupply], target: Mapping[Part, int], view: Snapshot, *, scan: bool
    ) -> list[ReadRequest]:
        """Return the first instances to read: those missing from the plan, and some rows beyond groups in back-off."""
        wants = []
        scanned = 0
        for supply in supplies:
            rows = target[supply.batch.batch_id, False] - supply.held_other
            if scan and supply.groups_out and supply.readable and scanned < SCANNED_BATCHES:
                rows = max(rows, SCANNED_ROWS)
                scanned += 1
            if rows > 0:
                wants.append(
                    ReadRequest(supply.batch, rows, supply.unheld, view.shards_of(supply.batch.batch_id), view.owned)
                )
        return wants

    # ------------------------------------------------------------ read

    async def _read_urgent(self, view: Snapshot, batches: Sequence[Batch], settings: FeederSettings) -> ByBatch:
        """Read the urgent range of these batches from its start, excluding instances reserved for other workers."""
        self._more_urgent = frozenset()
        slots, out = self._array.slots_of_parts(), self._array.rotation.out_of_batch
        known = {b.batch_id: slots.get((b.batch_id, True), 0) + out(b.batch_id) for b in batches}
        found: list[Candidate] = []
        for ids in ([one for one in known if known[one]], [one for one in known if not known[one]]):
            if ids:  # separate queries, so that one batch with many slots does not raise the row limit of all
                per_batch = min(max(known[one] for one in ids), settings.slots) + URGENT_PER_BATCH
                read = await self._waiting.urgent(ids, per_batch)
                rows = Counter(candidate.ready.batch_id for candidate in read)
                self._more_urgent |= {batch_id for batch_id, count in rows.items() if count == per_batch}
                found += read
        return by_batch([candidate for candidate in found if view.is_ours(candidate.ready)])

    async def _read(self, planned: Reads, urgent: ByBatch) -> _Found:
        fresh = await self._waiting.fresh(planned.ranges) if planned.ranges else ()
        tail: Sequence[Candidate] = ()
        if planned.tail_batches:
            tail = await self._waiting.tail(planned.tail_batches, planned.tail_per_batch)
        everything = [*fresh, *tail, *(one for candidates in urgent.values() for one in candidates)]
        return _Found(urgent, by_batch(fresh), by_batch(tail), await self._classes.of(everything))

    # ------------------------------------------------------------ place

    def _place(
        self, placing: Placing, batches: Sequence[Batch], rows_wanted: Mapping[BatchId, int], found: _Found
    ) -> dict[BatchId, bool]:
        """Place the rows in batch order. Return, for each batch, whether all its first instances were processed."""
        placed: dict[BatchId, bool] = {}
        for batch in batches:
            batch_id = batch.batch_id
            urgent = sorted(found.urgent.get(batch_id, ()), key=lambda one: reading_rank(one.ready, self._array.turns))
            retries = [Offer(one, by_cursor=False) for one in urgent if one.ready.urgent]
            placing.place(batch, retries, placing.wanted.get((batch_id, True), 0))
            most = max(rows_wanted.get(batch_id, 0), placing.wanted.get((batch_id, False), 0))
            placed[batch_id] = placing.place(batch, self._first_instances(batch_id, urgent, found), most)
        return placed

    def _first_instances(self, batch_id: BatchId, urgent: Sequence[Candidate], found: _Found) -> list[Offer]:
        """Return the non-urgent offers (handed back, or read from the tail or by cursors), sorted by turn and id."""
        offers = [Offer(one, by_cursor=False) for one in urgent if not one.ready.urgent]
        offers += [Offer(one, by_cursor=False) for one in found.tail.get(batch_id, ())]
        offers += [Offer(one, by_cursor=True) for one in found.fresh.get(batch_id, ())]
        return sorted(offers, key=lambda offer: reading_rank(offer.candidate.ready, self._array.turns))

    def _note_ends(self, planned: Reads, found: _Found, placed: Mapping[BatchId, bool]) -> int:
        """Close ranges that returned fewer rows than requested, if all were processed. Return their number."""
        now_s = self._clock.monotonic()
        ended = 0
        rows = Counter((batch_id, shard_of(one.ready.job_id)) for batch_id, some in found.fresh.items() for one in some)
        for asked in planned.ranges:
            if rows[asked.batch_id, asked.shard] < asked.limit and placed[asked.batch_id]:
                self._cursors.found_end(asked.batch_id, asked.shard, now_s=now_s)
                ended += 1
        for batch_id in planned.tail_batches:
            if placed[batch_id] and len(found.tail.get(batch_id, ())) < planned.tail_per_batch:
                self._cursors.found_dry(batch_id, now_s=now_s)
        return ended
