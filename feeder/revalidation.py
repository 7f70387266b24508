"""Revalidates slots against the database: periodically, and immediately after a request lost all its chosen jobs."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Collection, Iterable, Sequence

from domain.jobs import Ready
from domain.units import InstanceId, Seconds
from feeder.array import JobArray
from feeder.groups import GroupKey, group_key
from feeder.ports import WaitingWork


class Sweep:
    """Iterates over all slots in `round_s`, in slices, so that each check is small.

    >>> sweep = Sweep(Seconds(60.0))
    >>> ids = [InstanceId(i) for i in range(120)]
    >>> len(sweep.due(ids, now_s=Seconds(0.0))), len(sweep.due(ids, now_s=Seconds(1.0)))
    (0, 2)
    """

    def __init__(self, round_s: Seconds) -> None:
        self._round_s = round_s
        self._waiting: deque[InstanceId] = deque()
        self._size = 0
        self._started_s: Seconds | None = None
        self._checked = 0

    def due(self, slots: Iterable[InstanceId], *, now_s: Seconds, limit: int = 1000) -> list[InstanceId]:
        """Return at most `limit` slots to check at `now_s` (monotonic). `slots` is read at the start of each round.

        At t seconds into a round over n slots, ceil(n * t / round_s) of them have been returned.
        """
        if self._started_s is None or (now_s - self._started_s >= self._round_s and not self._waiting):
            self._waiting = deque(slots)
            self._size, self._started_s, self._checked = len(self._waiting), now_s, 0
        share = min(1.0, (now_s - self._started_s) / self._round_s)
        count = min(limit, math.ceil(self._size * share) - self._checked, len(self._waiting))
        self._checked += max(0, count)
        return [self._waiting.popleft() for _ in range(count)]


MOST_RECHECKED = 256  # maximum number of slots over all groups


class Revalidation:
    """Drops slots that other workers have sent, earlier than the next sweep would.

    Concurrent losers share one query: a caller that waited for another caller's query on the same group uses its
    result.
    """

    def __init__(self, waiting: WaitingWork, array: JobArray) -> None:
        self._waiting = waiting
        self._array = array
        self._one_at_a_time = asyncio.Lock()
        self._callers = 0
        self._questions = 0
        self._asked: dict[GroupKey, int] = {}  # number of the last query per group, kept while callers wait

    async def recheck(self, lost: Collection[Ready]) -> None:
        """Revalidate the first slots of the groups of `lost`, at most MOST_RECHECKED, and drop those that are gone."""
        keys = dict.fromkeys(group_key(slot) for slot in lost)
        answered = self._questions
        self._callers += 1
        try:
            async with self._one_at_a_time:
                await self._ask([key for key in keys if self._asked.get(key, 0) <= answered])
        finally:
            self._callers -= 1
            if not self._callers:
                self._asked.clear()

    async def _ask(self, keys: Sequence[GroupKey]) -> None:
        heads = self._heads(keys)
        if not heads:
            return
        unsent = set(await self._waiting.still_unsent(heads))
        for instance_id in heads:
            if instance_id not in unsent:
                self._array.drop(instance_id)
        self._questions += 1
        self._asked.update(dict.fromkeys(keys, self._questions))

    def _heads(self, keys: Sequence[GroupKey]) -> list[InstanceId]:
        each = -(-MOST_RECHECKED // max(1, len(keys)))
        return [slot.instance_id for key in keys for slot in self._array.head_of(key, each)][:MOST_RECHECKED]
