"""Which of a group's first slots are gone: asked when a request lost everything it chose."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from domain.jobs import Ready
from domain.units import InstanceId
from feeder.array import JobArray
from feeder.groups import GroupKey, group_key
from feeder.ports import WaitingWork

MOST_RECHECKED = 256  # slots of all groups together


class Recheck:
    """Drops slots that other workers have sent meanwhile, before the next sweep would find them.

    A crowd that loses together asks the database once: who waits for another's question takes its answer.
    """

    def __init__(self, waiting: WaitingWork, array: JobArray) -> None:
        self._waiting = waiting
        self._array = array
        self._one_at_a_time = asyncio.Lock()
        self._callers = 0
        self._questions = 0
        self._asked: dict[GroupKey, int] = {}  # the number of the last question about a group, while somebody waits

    async def recheck(self, lost: Collection[Ready]) -> None:
        """Ask about the first slots of the groups these were in, at most MOST_RECHECKED; those that are gone leave."""
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
