"""What would a host be given if it called now, and why not more?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from domain.clock import Clock
from domain.dispatch import RequestView
from domain.refusals import Refusal
from domain.units import HostId
from operations.catalogue import fresh_catalogue
from operations.explain.arrays import private_feeder
from operations.explain.asking import refusal_of_all, supposed_asking
from operations.explain.ports import ExplainStore
from scheduler.asking import Asking
from scheduler.choice import Choice
from scheduler.giving import choice_of
from scheduler.ports import JobArray
from scheduler.watching import Watched, watched


@dataclass(frozen=True, slots=True)
class HostExplanation:
    """One host's dry run. `slots` holds how many slots each group of `found.groups` had before it.

    `refused` is why the project gives nothing to anybody now; the dry run is shown all the same.
    """

    view: RequestView
    asking: Asking
    calls_per_hour: float
    refused: Refusal | None
    found: Watched
    slots: tuple[int, ...]


class HostExplainer:
    """Runs the decision for a host dry, on an array of its own that is filled from the database as a worker's is."""

    def __init__(self, store: ExplainStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def explain(self, host_id: HostId) -> HostExplanation:
        """Raises NotFoundError."""
        caller = await self._store.insight.caller(host_id)
        catalogue = await fresh_catalogue(self._store.applications, self._clock)
        view, fed = await asyncio.gather(
            self._store.ledger.read(caller.key), private_feeder(self._store.waiting, catalogue, self._clock)
        )
        now = self._clock.now()
        asking = supposed_asking(view, catalogue, now=now)
        runs: list[tuple[Watched, tuple[int, ...]]] = []

        def decide(one: Asking, array: JobArray) -> Choice:
            slots = tuple(len(group.slots()) for group in array.groups())
            found = watched(one, array)
            runs.append((found, slots))
            return found.choice

        await choice_of(asking, fed.array, decide)
        found, slots = runs[-1]  # the second, if the database was searched for what the array lacked
        return HostExplanation(view, asking, caller.calls_per_hour(now), refusal_of_all(view, catalogue), found, slots)
