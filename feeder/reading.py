"""Decides what a refill reads: ready batches, and a number of rows that does not depend on the backlog.

Each job class is read only once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.errors import NotFoundError
from domain.jobs import Candidate, FreshRange, JobClass, Ready
from domain.units import SHARDS, BatchId, Instant, JobClassId, Seconds, shard_of
from feeder.cursors import Cursors
from feeder.ports import WaitingWork
from feeder.supply import FeedMode, feed_mode
from feeder.turn_taking import Places


class Classes:
    """Caches job classes by id as long as their batch has work."""

    def __init__(self, waiting: WaitingWork) -> None:
        self._waiting = waiting
        self._known: dict[JobClassId, JobClass] = {}

    async def of(self, candidates: Iterable[Candidate]) -> dict[JobClassId, JobClass]:
        """Return the classes of these instances. Raises NotFoundError."""
        wanted = {candidate.ready.job_class_id for candidate in candidates}
        missing = sorted(wanted - self._known.keys())
        classes = {job_class_id: self._known[job_class_id] for job_class_id in wanted - set(missing)}
        read = await self._waiting.job_classes(missing) if missing else {}
        for job_class_id in missing:
            if job_class_id not in read:
                raise NotFoundError("job class", job_class_id)
            classes[job_class_id] = self._known[job_class_id] = read[job_class_id]
        return classes

    def keep_batches(self, batch_ids: Collection[BatchId]) -> None:
        """Forget the classes of all other batches."""
        for job_class_id in [key for key, known in self._known.items() if known.batch_id not in batch_ids]:
            del self._known[job_class_id]


ALL_SHARDS = frozenset(range(SHARDS))
MOST_RANGES = 1024  # maximum number of index ranges per refill
MOST_TAIL_ROWS = 256  # a tail of up to this size may be read as a whole, without cursors
FEW_ROWS = 16  # up to this size it always is; a larger one if half of it is needed
ROWS_PER_RANGE = 8  # reading only a few rows from each of many shards stays close to id order
SPARE_ROWS = 1  # extra rows per range, because shards differ in size

ByBatch = Mapping[BatchId, Sequence[Candidate]]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """How many first instances of a batch to read, and from which shards to read them.

    `unheld` is the estimated number of instances, over all shards, not in this array. Shards in `first` are read first.
    """

    batch: Batch
    rows: int
    unheld: int
    shards: frozenset[int]
    first: frozenset[int] = ALL_SHARDS

    @property
    def whole(self) -> bool:
        """Return whether this worker owns the whole tail and can read it in one query."""
        most = min(MOST_TAIL_ROWS, max(FEW_ROWS, 2 * self.rows))
        return len(self.shards) == SHARDS and self.batch.counts.unsent <= most


@dataclass(frozen=True, slots=True)
class Reads:
    """The arguments of one `fresh` call and one `tail` call. A batch with fewer than `tail_per_batch` rows was read
    completely.
    """

    ranges: tuple[FreshRange, ...]
    tail_batches: tuple[BatchId, ...]
    tail_per_batch: int


def reads(wants: Sequence[ReadRequest], cursors: Cursors, *, now_s: Seconds, most_tail_rows: int) -> Reads:
    """Return the reads for these requests, in their order.

    Rows: at most those requested, plus ROWS_PER_RANGE each, SPARE_ROWS per range, and `most_tail_rows`.
    """
    ranges: list[FreshRange] = []
    tails: list[Batch] = []
    tail_rows = 0
    for want in wants:
        unsent = want.batch.counts.unsent
        if want.whole and tail_rows + unsent <= most_tail_rows:
            tails.append(want.batch)
            tail_rows += unsent
        elif len(ranges) < MOST_RANGES:
            ranges += _ranges(want, cursors, now_s)
    most = max((batch.counts.unsent for batch in tails), default=0)
    return Reads(tuple(ranges[:MOST_RANGES]), tuple(batch.batch_id for batch in tails), most + 1)


def _ranges(want: ReadRequest, cursors: Cursors, now_s: Seconds) -> list[FreshRange]:
    """Return ranges in the least advanced shards that yield the requested rows, about ROWS_PER_RANGE rows each.

    If the shards in `first` should have enough rows, only these are read.
    """
    batch_id = want.batch.batch_id
    per_shard = want.unheld / SHARDS
    expected = min(ROWS_PER_RANGE, per_shard)
    most = math.ceil(want.rows / expected) if expected > 0 else SHARDS
    chosen = cursors.open_shards(batch_id, want.shards, now_s=now_s)
    if want.first != want.shards:
        first = [shard for shard in chosen if shard in want.first and not cursors.is_probed(batch_id, shard)]
        enough = len(first) * per_shard >= want.rows
        chosen = first if first and enough else first + [shard for shard in chosen if shard not in first]
    chosen = chosen[:most]
    limit = math.ceil(want.rows / len(chosen)) + SPARE_ROWS if chosen else 0
    return [FreshRange(batch_id, shard, cursors.after(batch_id, shard), limit) for shard in chosen]


def by_batch(candidates: Sequence[Candidate]) -> ByBatch:
    """Group candidates by batch, keeping the order in which they were read."""
    grouped: dict[BatchId, list[Candidate]] = {}
    for candidate in candidates:
        grouped.setdefault(candidate.ready.batch_id, []).append(candidate)
    return grouped


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The ready batches in order. `whole` is True if no ready batch is missing.

    `kept` are batches with reserved slots, which never enter back-off.
    """

    batches: tuple[Batch, ...]
    by_id: Mapping[BatchId, Batch]
    feeds: Mapping[BatchId, FeedMode]
    places: Places
    owned: frozenset[int]
    whole: bool
    kept: frozenset[BatchId] = frozenset()

    def everywhere(self, batch_id: BatchId) -> bool:
        """Return whether all workers hold the batch's first instances."""
        found = self.feeds.get(batch_id)
        return found is not None and found.everywhere

    def shards_of(self, batch_id: BatchId) -> frozenset[int]:
        """Return the shards from which this worker reads the batch's first instances."""
        return ALL_SHARDS if self.everywhere(batch_id) else self.owned

    def is_ours(self, ready: Ready) -> bool:
        """Return whether this worker may have the instance: it owns the shard, or all workers may have the instance."""
        return ready.urgent or shard_of(ready.job_id) in self.owned or self.everywhere(ready.batch_id)


def snapshot_of(
    batches: Sequence[Batch], catalogue: Catalogue, places: Places, *, owned: frozenset[int], limit: int, now: Instant
) -> Snapshot:
    """Return the snapshot with these ready batches. `limit` is the requested maximum number of batches."""
    medians_s = {app_id: catalogue.median_safe_runtime_s(app_id) for app_id in {one.app_id for one in batches}}
    flags = catalogue.acceleration
    feeds = {
        batch.batch_id: feed_mode(
            batch,
            now=now,
            median_r_q_s=medians_s[batch.app_id],
            settings=catalogue.settings,
            is_accelerated=flags is not None and flags.covers(batch.batch_id, batch.app_id),
        )
        for batch in batches
    }
    by_id = {batch.batch_id: batch for batch in batches}
    kept = frozenset(catalogue.reserved.kept)
    return Snapshot(tuple(batches), by_id, feeds, places, owned, whole=len(batches) < limit, kept=kept)
