"""Which rows a refill asks the database for: a bounded number, whatever the backlog. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from domain.batches import Batch
from domain.jobs import Candidate, FreshRange
from domain.units import SHARDS, BatchId, Seconds
from feeder.cursors import Cursors

ALL_SHARDS = frozenset(range(SHARDS))
MOST_RANGES = 1024  # index ranges of one refill
MOST_TAIL_ROWS = 256  # a remainder up to this may be read whole, without cursors
FEW_ROWS = 16  # and is, up to this; a larger one if half of it is wanted
ROWS_PER_RANGE = 8  # few rows of many shards keep close to the order of ids
SPARE_ROWS = 1  # more of each range, because no two shards hold the same number

ByBatch = Mapping[BatchId, Sequence[Candidate]]


@dataclass(frozen=True, slots=True)
class Want:
    """How many first instances of a batch should be read, and of which shards.

    `unheld` are those of all shards that are not in this array, about. Of the shards, `first` are read before others.
    """

    batch: Batch
    rows: int
    unheld: int
    shards: frozenset[int]
    first: frozenset[int] = ALL_SHARDS

    @property
    def whole(self) -> bool:
        """Whether the remainder is ours, and so small that it is read at once."""
        most = min(MOST_TAIL_ROWS, max(FEW_ROWS, 2 * self.rows))
        return len(self.shards) == SHARDS and self.batch.counts.unsent <= most


@dataclass(frozen=True, slots=True)
class Reads:
    """The arguments of one `fresh` and one `tail`; a batch that gives fewer than `tail_per_batch` was read whole."""

    ranges: tuple[FreshRange, ...]
    tail_batches: tuple[BatchId, ...]
    tail_per_batch: int


def reads(wants: Sequence[Want], cursors: Cursors, *, now_s: Seconds, most_tail_rows: int) -> Reads:
    """What to read for these wants, in their order.

    Rows: at most the wants, ROWS_PER_RANGE more each, SPARE_ROWS per range, and `most_tail_rows`.
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


def _ranges(want: Want, cursors: Cursors, now_s: Seconds) -> list[FreshRange]:
    """The least advanced shards, as many as should hold the rows wanted: about ROWS_PER_RANGE of each.

    Those to be read first are chosen alone if they should hold as many.
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
    """What was read, each batch's in the order in which it was read."""
    grouped: dict[BatchId, list[Candidate]] = {}
    for candidate in candidates:
        grouped.setdefault(candidate.ready.batch_id, []).append(candidate)
    return grouped
