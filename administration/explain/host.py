"""What would a host be given if it called now, and why not more?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import feeder.array
from administration.catalogue import fresh_catalogue
from administration.explain.arrays import Untouched, private_feeder
from administration.explain.asking import refusal_of_all, supposed_asking
from administration.explain.ports import ExplainStore
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.dispatch import RequestView
from domain.refusals import Refusal
from domain.units import HostId
from scheduler.assignment import choice_of, is_to_search
from scheduler.choice import Choice
from scheduler.context import SchedulingContext
from scheduler.ports import JobSource
from scheduler.trace import DecisionTrace, traced


@dataclass(frozen=True, slots=True)
class HostExplanation:
    """One host's dry run. `slots` holds how many slots each group of `found.groups` had before it.

    `refused` is why the project gives nothing to anybody now; the dry run is shown all the same. `on_worker`: decided
    on the job array of the worker that answers. `would_search`: that array has nothing for the host, so a request
    would also search the database, which a dry run does not do there.
    """

    view: RequestView
    asking: SchedulingContext
    calls_per_hour: float
    refused: Refusal | None
    found: DecisionTrace
    slots: tuple[int, ...]
    on_worker: bool = False
    would_search: bool = False


class HostExplainer:
    """Runs the decision for a host dry, on a view of the worker's job array `live`.

    Without one, on an array filled from the database for this answer: a worker's may hold other jobs.
    """

    def __init__(self, store: ExplainStore, clock: Clock, live: feeder.array.JobArray | None = None) -> None:
        self._store = store
        self._clock = clock
        self._live = live

    async def explain(self, host_id: HostId) -> HostExplanation:
        """Raises NotFoundError."""
        caller = await self._store.insight.caller(host_id)
        catalogue = await fresh_catalogue(self._store.applications, self._clock)
        view, array = await asyncio.gather(self._store.ledger.read(caller.key), self._array(catalogue))
        now = self._clock.now()
        asking = supposed_asking(view, catalogue, now=now)
        runs: list[tuple[DecisionTrace, tuple[int, ...]]] = []

        def decide(one: SchedulingContext, array: JobSource) -> Choice:
            slots = tuple(len(group.slots()) for group in array.groups())
            found = traced(one, array)
            runs.append((found, slots))
            return found.choice

        await choice_of(asking, array, decide)
        found, slots = runs[-1]  # the second, if the database was searched for what the array lacked
        return HostExplanation(
            view,
            asking,
            caller.calls_per_hour(now),
            refusal_of_all(view, catalogue),
            found,
            slots,
            on_worker=self._live is not None,
            would_search=self._live is not None and is_to_search(found.choice),
        )

    async def _array(self, catalogue: Catalogue) -> JobSource:
        if self._live is not None:
            return Untouched(self._live)
        return (await private_feeder(self._store.waiting, catalogue, self._clock)).array
