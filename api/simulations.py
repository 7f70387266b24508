"""Starts, shows and cancels background simulations of changed thresholds over the API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from administration.show import shown
from administration.simulations.rules import MOST_SEEDS
from administration.simulations.runs import SimulationRuns
from administration.thresholds.keys import changes_of
from api.table import Ask, NoParams, operation
from domain.access import Right
from domain.clock import Clock
from domain.views import MOST_DAYS, MOST_HOSTS, SOME_DAYS, SOME_HOSTS, SOME_SEEDS, Simulation, SimulationState
from muster_client import shapes
from store.postgres import PostgresStore

LOST = "lost"  # the process that ran it has disappeared


class SimulationParams(msgspec.Struct, forbid_unknown_fields=True):
    simulation_id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]


class TriedBody(msgspec.Struct, forbid_unknown_fields=True):
    """New values by key, the number of seeds, the maximum number of hosts, and the number of simulated days."""

    values: dict[str, Any]
    seeds: Annotated[int, msgspec.Meta(ge=1, le=MOST_SEEDS)] = SOME_SEEDS
    hosts: Annotated[int, msgspec.Meta(ge=1, le=MOST_HOSTS)] = SOME_HOSTS
    days: Annotated[float, msgspec.Meta(gt=0.0, le=MOST_DAYS)] = SOME_DAYS


class SimulationsApi:
    TAG = "settings"

    def __init__(self, store: PostgresStore, runs: SimulationRuns, clock: Clock) -> None:
        self._store = store
        self._runs = runs
        self._clock = clock

    @operation(
        "POST",
        "/thresholds/simulations",
        "Simulate the project with its current thresholds and with these, in the background, one simulation at a time. "
        "`Location` is the address of its progress.",
        right=Right.SUBMIT,
        status=202,
        errors=(409,),
        leads_to="simulation",
    )
    async def simulate_thresholds(self, ask: Ask[NoParams, TriedBody]) -> shapes.SimulationShown:
        """Start a simulation. Submitters may do this, because it uses a CPU but changes no project data."""
        from administration.thresholds.replay import start_replay  # noqa: PLC0415  the simulator, with it

        body = ask.body
        changes = changes_of(body.values.items())
        simulation_id = await start_replay(self._store, self._clock, self._runs, changes, body, who=ask.person.name)
        return self._shown(await self._store.simulations.simulation(simulation_id))

    @operation("GET", "/simulations/{simulation_id}", "The progress and result of a simulation.", errors=(404,))
    async def simulation(self, ask: Ask[SimulationParams, None]) -> shapes.SimulationShown:
        return self._shown(await self._store.simulations.simulation(ask.params.simulation_id))

    @operation(
        "POST",
        "/simulations/{simulation_id}/cancel",
        "Cancel a simulation. A finished simulation is unchanged.",
        right=Right.SUBMIT,
        errors=(404,),
    )
    async def cancel_simulation(self, ask: Ask[SimulationParams, None]) -> shapes.SimulationShown:
        simulation_id = ask.params.simulation_id
        await self._store.simulations.simulation(simulation_id)
        await self._store.simulations.end(simulation_id, SimulationState.CANCELLED, now=self._clock.now())
        return self._shown(await self._store.simulations.simulation(simulation_id))

    def _shown(self, found: Simulation) -> shapes.SimulationShown:
        result = found.result
        return shown(
            shapes.SimulationShown,
            found,
            asked=dict(found.asked),
            state=LOST if found.is_lost(self._clock.now()) else found.state.value,
            result=None if result is None else _told(result),
        )


def _told(result: Mapping[str, object]) -> dict[str, Any]:
    """Return a replay's results for a simulation of thresholds, or the whole result for a comparison of rules.

    >>> _told({"rows": [], "replayed": {"seeds": 3}}), _told({"rows": []})
    ({'seeds': 3}, {'rows': []})
    """
    replayed = result.get("replayed")
    return dict(replayed if isinstance(replayed, Mapping) else result)
