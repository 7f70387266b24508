"""Whose place is explained anew? Pure.

Where waiting counts, every number changes with every ordering, and most batches stand as they stood among the others.
Those are explained in turns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from domain.ordered_work import StoredPlace
from domain.units import BatchId
from jobs.ordering.rows import Row, stood

TURNS: Final = 10  # orderings after which everything that changed is explained


def to_explain(
    in_order: Sequence[Row], moved: Mapping[BatchId, StoredPlace], *, anew: bool, serial: int
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


def _elsewhere(place: StoredPlace, row: Row) -> bool:
    batch = row.one.batch
    return (place.tier, place.hold, place.sent_most) != (batch.order_tier, batch.hold, batch.sent_most)
