"""Which rows a refill asks the database for: a bounded number, whatever the backlog. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from domain.batches import Batch
from domain.units import SHARDS, BatchId, Seconds
from domain.waiting import FreshRange
from feeder.cursors import Cursors

ALL_SHARDS = frozenset(range(SHARDS))
MOST_RANGES = 1024  # index ranges of one refill
MOST_TAIL_ROWS = 256  # a remainder up to this is read whole, without cursors
ROWS_PER_RANGE = 8  # few rows of many shards keep close to the order of ids


@dataclass(frozen=True, slots=True)
class Want:
    """How many first instances of a batch should be read; `everywhere`: of all shards, not only owned ones."""

    batch: Batch
    rows: int
    everywhere: bool

    @property
    def whole(self) -> bool:
        """Whether the remainder is small enough to be read at once."""
        return self.everywhere and self.batch.counts.unsent <= MOST_TAIL_ROWS


@dataclass(frozen=True, slots=True)
class Reads:
    """The arguments of one `fresh` and one `tail`."""

    ranges: tuple[FreshRange, ...]
    tail_batches: tuple[BatchId, ...]
    tail_per_batch: int


def reads(
    wants: Sequence[Want], cursors: Cursors, *, owned: frozenset[int], now_s: Seconds, most_tail_rows: int
) -> Reads:
    """What to read for these wants, in their order. Rows: at most the wants, 8 more each, and `most_tail_rows`."""
    ranges: list[FreshRange] = []
    tails: list[Batch] = []
    tail_rows = 0
    for want in wants:
        unsent = want.batch.counts.unsent
        if want.whole and tail_rows + unsent <= most_tail_rows:
            tails.append(want.batch)
            tail_rows += unsent
        elif len(ranges) < MOST_RANGES:
            ranges += _ranges(want, cursors, ALL_SHARDS if want.everywhere else owned, now_s)
    per_batch = max((batch.counts.unsent for batch in tails), default=0)
    return Reads(tuple(ranges[:MOST_RANGES]), tuple(batch.batch_id for batch in tails), per_batch)


def _ranges(want: Want, cursors: Cursors, shards: frozenset[int], now_s: Seconds) -> list[FreshRange]:
    """The least advanced shards, as many as give about ROWS_PER_RANGE rows each."""
    batch_id = want.batch.batch_id
    chosen = cursors.open_shards(batch_id, shards, now_s=now_s)[: math.ceil(want.rows / ROWS_PER_RANGE)]
    limit = math.ceil(want.rows / len(chosen)) if chosen else 0
    return [FreshRange(batch_id, shard, cursors.after(batch_id, shard), limit) for shard in chosen]
