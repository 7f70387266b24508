"""Searches the database for work for a host when the array has none for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from domain.apps import ProcessorType
from domain.batches import Batch
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from domain.jobs import Candidate, FreshRange
from domain.units import AppId, InstanceId, Seconds
from feeder.array import JobArray, room_for_search
from feeder.cursors import Cursors
from feeder.groups import GroupKey, group_key
from feeder.ports import Shards, WaitingWork
from feeder.reading import ALL_SHARDS, Classes

REMEMBER_S = Seconds(1.0)  # later searches reuse a result for this long
MOST_BATCHES = 2000  # maximum number of ready batches read
MOST_ABSENT = 32  # maximum number of batches without slots, first in order
MOST_PRESENT = 8  # maximum number of batches with some slots
MOST_RANGES = 16  # maximum number of shards per batch that are read beyond the cursor
LEAST_ROWS = 16  # per batch, regardless of the number of batches

Kinds = frozenset[tuple[AppId, ProcessorType]]


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The end of a search for certain kinds of work: its time, the search's number, and the instances added."""

    ended_s: Seconds
    serial: int
    added: frozenset[InstanceId]


class Search:
    """Adds temporary slots beyond the configured number. The next refill drops those that were not taken.

    Concurrent searches share one query: searches for the same kinds wait for each other and reuse the result for a
    second.
    """

    def __init__(
        self,
        waiting: WaitingWork,
        shards: Shards,
        settings: CatalogueSource,
        clock: Clock,
        *,
        array: JobArray,
        cursors: Cursors,
        classes: Classes,
    ) -> None:
        self._waiting = waiting
        self._shards = shards
        self._settings = settings
        self._array = array
        self._cursors = cursors
        self._classes = classes
        self._clock = clock
        self._one_at_a_time = asyncio.Lock()
        self._done = 0
        self._outcomes: dict[Kinds, _Outcome] = {}

    async def search(self, wanted: Sequence[tuple[AppId, ProcessorType]], limit: int) -> bool:
        """Search for work of these kinds and add at most `limit` slots, fewer if there is less room.

        Return True if slots were added after the caller searched the array.
        """
        kinds, done_before = frozenset(wanted), self._done
        async with self._one_at_a_time:
            before = self._outcomes.get(kinds)
            if before is not None and before.ended_s + REMEMBER_S > self._clock.monotonic():
                if before.serial > done_before and before.added:
                    return True
                if not before.added or any(instance_id in self._array for instance_id in before.added):
                    return False
            added: frozenset[InstanceId] = frozenset()
            if self._room(limit) > 0 and self._shards.owned():
                with self._array.reading():
                    added = await self._added(kinds, limit)
            self._done += 1
            self._remember(kinds, _Outcome(self._clock.monotonic(), self._done, added))
            return bool(added)

    async def _added(self, kinds: Kinds, limit: int) -> frozenset[InstanceId]:
        catalogue = self._settings.catalogue()
        apps = {app_id for app_id, kind in kinds if catalogue.has_version_for(app_id, kind)}
        of_apps = await self._waiting.ready_batches(MOST_BATCHES, apps) if apps else ()
        # Batches with a usage limit get slots only from the refill plan, which respects the limit.
        batches = [batch for batch in of_apps if batch.sent_most is None]
        if not batches:
            return frozenset()
        candidates = self._new(await self._read(batches, limit))
        if not candidates:
            return frozenset()
        classes = await self._classes.of(candidates)
        by_id = {batch.batch_id: batch for batch in batches}
        added = set()
        for candidate in _taking_turns(self._new(candidates), self._room(limit)):
            ready = candidate.ready
            if self._array.place(candidate, by_id[ready.batch_id], classes[ready.job_class_id]):
                added.add(ready.instance_id)
        return frozenset(added)

    def _room(self, limit: int) -> int:
        settings = self._settings.catalogue().settings.feeder
        spare = room_for_search(settings)
        return min(limit, spare, settings.slots + spare - len(self._array))

    async def _read(self, batches: Sequence[Batch], limit: int) -> list[Candidate]:
        """Read the first instances of batches without slots, and instances after the cursors of other batches."""
        held = self._array.batches()
        absent = [batch.batch_id for batch in batches if batch.batch_id not in held][:MOST_ABSENT]
        present = [batch for batch in batches if batch.batch_id in held][:MOST_PRESENT]
        chosen = [*absent, *(batch.batch_id for batch in present)]
        room = self._room(limit)
        if not chosen:
            return []
        rows = min(
            room, max(LEAST_ROWS, -(-2 * room // len(chosen)))
        )  # per batch; some rows are already known, or equal
        found = list(await self._waiting.urgent(chosen, rows))
        if absent:
            found += await self._waiting.tail(absent, rows)
        ranges = [one for batch in present for one in self._ranges(batch, rows)]
        if ranges:
            found += await self._waiting.fresh(ranges)
        return found

    def _ranges(self, batch: Batch, rows: int) -> list[FreshRange]:
        now_s = self._clock.monotonic()
        shards = self._cursors.open_shards(batch.batch_id, ALL_SHARDS, now_s=now_s, most=MOST_RANGES)
        limit = -(-rows // len(shards)) if shards else 0
        return [FreshRange(batch.batch_id, s, self._cursors.after(batch.batch_id, s), limit) for s in shards]

    def _new(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Return the candidates not in the array. A group in back-off adds candidates only if it has no slots yet."""
        new = self._array.unknown(candidates)
        held = self._array.slots_of_groups() if new else {}
        is_out = self._array.rotation.is_out
        return [one for one in new if not (is_out(one.ready) and group_key(one.ready) in held)]

    def _remember(self, kinds: Kinds, outcome: _Outcome) -> None:
        fresh_enough_s = outcome.ended_s - REMEMBER_S
        self._outcomes = {key: old for key, old in self._outcomes.items() if old.ended_s > fresh_enough_s}
        self._outcomes[kinds] = outcome


def _taking_turns(candidates: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return at most `most` candidates, one per group in turn, because the host may be able to run only one group."""
    groups: dict[GroupKey, deque[Candidate]] = {}
    for candidate in candidates:
        groups.setdefault(group_key(candidate.ready), deque()).append(candidate)
    chosen: list[Candidate] = []
    while groups and len(chosen) < most:
        for key in list(groups)[: most - len(chosen)]:
            chosen.append(groups[key].popleft())
            if not groups[key]:
                del groups[key]
    return chosen
