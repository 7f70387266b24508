"""How much comes before each batch in the order? Worked out once a minute for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from domain.units import AppId, BatchId, Instant

PLACES_S = 60.0  # they are used for so long
Ahead: TypeAlias = tuple[int, int]  # unsent instances before a batch's own: of its app, of others


@dataclass(frozen=True, slots=True)
class Places:
    """As of `taken_at`."""

    taken_at: Instant
    ahead: Mapping[BatchId, Ahead]

    def serves(self, batch_id: BatchId, now: Instant) -> bool:
        """Whether they are of now, or old and the batch was among them."""
        age_s = now - self.taken_at
        return age_s == 0.0 or (0.0 < age_s < PLACES_S and batch_id in self.ahead)

    def of(self, batch_id: BatchId) -> Ahead:
        """Nothing, for a batch that has nothing to send."""
        return self.ahead.get(batch_id, (0, 0))


def places(rows: Iterable[tuple[BatchId, AppId, int, int]], taken_at: Instant) -> Places:
    """From (batch, app, unsent instances, send_rank) in the order of the queue.

    >>> places([(7, 1, 10, 2), (5, 2, 4, 2), (6, 1, 3, 0)], Instant(0.0)).ahead
    {6: (0, 0), 7: (3, 0), 5: (0, 13)}
    """
    ahead: dict[BatchId, Ahead] = {}
    total, of_app = 0, Counter[AppId]()
    for batch_id, app_id, unsent, _ in sorted(rows, key=lambda row: row[3]):
        ahead[batch_id] = (of_app[app_id], total - of_app[app_id])
        total += unsent
        of_app[app_id] += unsent
    return Places(taken_at, ahead)
