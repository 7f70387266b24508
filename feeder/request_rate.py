"""Follows what requests want and take: the mix of processor types, and whether the array must be filled early."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable

from domain.apps import ProcessorType
from domain.jobs import Ready
from domain.units import MINUTE_S, AppId, BatchId, Seconds
from feeder.groups import Group

LEAST_WATCHED = 16  # a batch or an app with fewer slots is not watched by itself
MOST_TAKEN = 500  # so that no refill on the side keeps requests waiting for long


def takes_until_low(slots: int, held: int) -> int:
    """After how many takes an array that should have `slots` and has `held` is low: a quarter, at most MOST_TAKEN.

    >>> takes_until_low(1000, 1000), takes_until_low(10_000, 10_000), takes_until_low(1000, 40)
    (250, 500, 10)
    """
    return max(1, min(slots // 4, held // 4, MOST_TAKEN))


class LowWatermark:
    """Counts down to the next refill: over all slots, the slots of each app, and each batch's of own shards.

    `low` is set when one of the counts has run out. `taken` counts per batch what was taken since it was cleared.
    """

    def __init__(self) -> None:
        self.low = asyncio.Event()
        self.taken: Counter[BatchId] = Counter()
        self._resting = False
        self._of_all: int | None = None
        self._of_app: dict[AppId, int] = {}
        self._of_batch: dict[BatchId, int] = {}

    def reset(self, groups: Iterable[Group], *, slots: int, readable: Collection[BatchId], low: bool = False) -> None:
        """The array holds this now, and more can be read of the `readable` batches: count anew. `low`: at once.

        A batch is low when half of its slots of own shards are taken, lest hosts are given what other workers give
        too while there is more of ours; an app when half of its slots are.
        """
        of_app: Counter[AppId] = Counter()
        own: Counter[BatchId] = Counter()
        held = 0
        for group in groups:
            held += len(group)
            if group.batch.batch_id in readable:
                of_app[group.batch.app_id] += len(group)
                own[group.batch.batch_id] += 0 if group.urgent else len(group) - group.foreign
        self._of_all = takes_until_low(slots, held)
        self._of_app = {app_id: count // 2 for app_id, count in of_app.items() if count >= LEAST_WATCHED}
        self._of_batch = {batch_id: count // 2 for batch_id, count in own.items() if count >= LEAST_WATCHED}
        self._resting = False
        self.low.clear()
        if low:
            self.low.set()

    def rest(self) -> None:
        """There is nothing more to read for now: `low` is not set until the next `reset`."""
        self._resting = True
        self.low.clear()

    def note_taken(self, ready: Ready, group: Group, *, left: int) -> None:
        """A slot of the group was taken; `left` slots remain in the array."""
        batch_id = ready.batch_id
        self.taken[batch_id] += 1
        if self._resting:
            return
        low = not left
        if self._of_all is not None:
            self._of_all -= 1
            low = low or self._of_all <= 0
        if group.batch.app_id in self._of_app:
            self._of_app[group.batch.app_id] -= 1
            low = low or self._of_app[group.batch.app_id] <= 0
        if batch_id in self._of_batch and not group.urgent and not group.is_foreign(ready):
            self._of_batch[batch_id] -= 1
            low = low or self._of_batch[batch_id] <= 0
        if low:
            self.low.set()


MIX_HALF_LIFE_S = Seconds(10 * MINUTE_S)


class RequestMix:
    """Requests per processor type, each worth half as much after MIX_HALF_LIFE_S.

    A request counts 2^((t - t0) / half-life) on a scale that is moved along, so that noting one costs
    no decay of the others.

    >>> mix = RequestMix()
    >>> mix.note([ProcessorType("cpu")], now_s=Seconds(0.0))
    >>> mix.note([ProcessorType("cpu"), ProcessorType("NVIDIA")], now_s=Seconds(600.0))
    >>> mix.weights(now_s=Seconds(600.0))
    {'cpu': 1.5, 'NVIDIA': 1.0}
    """

    def __init__(self) -> None:
        self._scaled: dict[ProcessorType, float] = {}
        self._origin_s = Seconds(0.0)

    def note(self, wanted: Iterable[ProcessorType], *, now_s: Seconds) -> None:
        """One request asked for these processor types at `now_s` of the monotonic clock."""
        if now_s - self._origin_s > 64 * MIX_HALF_LIFE_S:  # 2^64 is far from what a float can hold
            self._move_origin(now_s)
        value = self._value(now_s)
        for processor_type in wanted:
            self._scaled[processor_type] = self._scaled.get(processor_type, 0.0) + value

    def weights(self, *, now_s: Seconds) -> dict[ProcessorType, float]:
        """Decayed number of requests per processor type."""
        value = self._value(now_s)
        return {processor_type: count / value for processor_type, count in self._scaled.items()}

    def _value(self, now_s: Seconds) -> float:
        exponent = (now_s - self._origin_s) / MIX_HALF_LIFE_S
        return float(2.0 ** min(exponent, 1000.0))

    def _move_origin(self, now_s: Seconds) -> None:
        decayed = self.weights(now_s=now_s)
        self._scaled = {processor_type: count for processor_type, count in decayed.items() if count > 1e-6}
        self._origin_s = now_s
