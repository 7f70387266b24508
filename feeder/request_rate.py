"""Tracks the demand: the mix of requested processor types, and whether the array needs an early refill."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable

from domain.apps import ProcessorType
from domain.jobs import Ready
from domain.units import MINUTE_S, AppId, BatchId, Seconds
from feeder.groups import Group

LEAST_WATCHED = 16  # smaller batches and apps have no low watermark of their own
MOST_TAKEN = 500  # limits the size of a fill-up, which blocks requests


def takes_until_low(slots: int, held: int) -> int:
    """Return how many slots can be taken before the array is low: min(slots / 4, held / 4, MOST_TAKEN), at least 1.

    >>> takes_until_low(1000, 1000), takes_until_low(10_000, 10_000), takes_until_low(1000, 40)
    (250, 500, 10)
    """
    return max(1, min(slots // 4, held // 4, MOST_TAKEN))


class LowWatermark:
    """Triggers the next refill by counting down all slots, each app's slots, and each batch's slots in own shards.

    `low` is set when any count reaches 0. `taken` counts slots taken per batch since `low` was cleared.
    """

    def __init__(self) -> None:
        self.low = asyncio.Event()
        self.taken: Counter[BatchId] = Counter()
        self._resting = False
        self._of_all: int | None = None
        self._of_app: dict[AppId, int] = {}
        self._of_batch: dict[BatchId, int] = {}

    def reset(self, groups: Iterable[Group], *, slots: int, readable: Collection[BatchId], low: bool = False) -> None:
        """Restart the counts. The `readable` batches have more to read. `low`: set `low` immediately.

        A batch is low when half of its slots of own shards are taken, so that workers do not compete for shared slots
        while they have their own; an app is low when half of its slots are taken.
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
        """Stop setting `low` until the next `reset`, because there is currently nothing more to read."""
        self._resting = True
        self.low.clear()

    def note_taken(self, ready: Ready, group: Group, *, left: int) -> None:
        """Count a slot taken from the group; `left` slots remain in the array."""
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
    """Requests by processor type, with exponential decay (half-life MIX_HALF_LIFE_S).

    A request counts 2^((t - t0) / half-life) relative to a moving origin, so that counting a request does not require
    decaying all others.

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
        """Count a request for these processor types at `now_s` (monotonic)."""
        if now_s - self._origin_s > 64 * MIX_HALF_LIFE_S:  # well before 2^x overflows a float
            self._move_origin(now_s)
        value = self._value(now_s)
        for processor_type in wanted:
            self._scaled[processor_type] = self._scaled.get(processor_type, 0.0) + value

    def weights(self, *, now_s: Seconds) -> dict[ProcessorType, float]:
        """Return the decayed number of requests by processor type."""
        value = self._value(now_s)
        return {processor_type: count / value for processor_type, count in self._scaled.items()}

    def _value(self, now_s: Seconds) -> float:
        exponent = (now_s - self._origin_s) / MIX_HALF_LIFE_S
        return float(2.0 ** min(exponent, 1000.0))

    def _move_origin(self, now_s: Seconds) -> None:
        decayed = self.weights(now_s=now_s)
        self._scaled = {processor_type: count for processor_type, count in decayed.items() if count > 1e-6}
        self._origin_s = now_s
