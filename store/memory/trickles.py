"""Trickle messages of instances in memory."""

from __future__ import annotations

from collections.abc import Sequence

from domain.dispatch import Trickle
from domain.units import InstanceId, Instant


class MemoryTrickles:
    def __init__(self) -> None:
        self._kept: list[Trickle] = []
        self._last_id = 0

    async def keep(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        self._kept = [one for one in self._kept if one.received_at >= forget_before]
        too_many = 0
        refused = set[object]()
        for one in found:
            key = _key(one)
            known = [kept for kept in self._kept if kept.instance_id == one.instance_id]
            if key in refused or any(_key(kept) == key for kept in known):
                continue
            if len(known) >= per_instance:
                too_many += 1
                refused.add(key)
                continue
            self._last_id += 1
            received_at = found[0].received_at
            self._kept.append(
                Trickle(one.instance_id, one.sent_at, received_at, one.variety, one.text, trickle_id=self._last_id)
            )
        return too_many

    async def of_instance(self, instance_id: InstanceId, *, after: int, limit: int) -> Sequence[Trickle]:
        found = [one for one in self._kept if one.instance_id == instance_id and one.trickle_id > after]
        return found[:limit]


def _key(one: Trickle) -> object:
    return one.instance_id, one.sent_at, one.variety, one.text
