"""What a refill sees: the ready batches, how each is fed now, and the shards this worker owns. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from domain.acceleration import Acceleration
from domain.batches import Batch
from domain.jobs import Ready
from domain.settings import FeederSettings
from domain.units import AppId, BatchId, Instant, Seconds, shard_of
from feeder.gating import Standing, standing
from feeder.reading import ALL_SHARDS


@dataclass(frozen=True, slots=True)
class View:
    """`batches` are in order; `whole` says whether there are no more ready ones than these.

    Slots of the `kept` ones are not rotated out.
    """

    batches: tuple[Batch, ...]
    by_id: Mapping[BatchId, Batch]
    standings: Mapping[BatchId, Standing]
    owned: frozenset[int]
    whole: bool
    kept: frozenset[BatchId] = frozenset()

    def everywhere(self, batch_id: BatchId) -> bool:
        """Whether every worker holds the batch's first instances."""
        found = self.standings.get(batch_id)
        return found is not None and found.everywhere

    def shards_of(self, batch_id: BatchId) -> frozenset[int]:
        """The shards this worker reads the batch's first instances from."""
        return ALL_SHARDS if self.everywhere(batch_id) else self.owned

    def is_ours(self, ready: Ready) -> bool:
        """Whether this worker may hold the instance: its shard is ours, or every worker holds it."""
        return ready.urgent or shard_of(ready.job_id) in self.owned or self.everywhere(ready.batch_id)


def view_of(
    batches: Sequence[Batch],
    *,
    owned: frozenset[int],
    limit: int,
    now: Instant,
    medians_s: Mapping[AppId, Seconds | None],
    settings: FeederSettings,
    acceleration: Acceleration | None = None,
    kept: Collection[BatchId] = (),
) -> View:
    """The view of these ready batches, of which `limit` were asked for; `medians_s` has the median R_q of each app."""
    standings = {
        batch.batch_id: standing(
            batch,
            now=now,
            median_r_q_s=medians_s.get(batch.app_id),
            settings=settings,
            is_accelerated=acceleration is not None and acceleration.covers(batch.batch_id, batch.app_id),
        )
        for batch in batches
    }
    by_id = {batch.batch_id: batch for batch in batches}
    return View(tuple(batches), by_id, standings, owned, whole=len(batches) < limit, kept=frozenset(kept))
