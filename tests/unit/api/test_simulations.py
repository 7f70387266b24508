"""Simulations over the API: their progress, and refusals before they start."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from administration.simulations.runs import SimulationRuns
from api.serving import Table, problems
from api.settings import SimulationsApi
from api.table import Ask, Route, operations_of
from domain.units import later
from domain.views import SILENT_S, SimulationState
from tests.facts import missing
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.administration.clocks import StillClock
from tests.unit.api.test_api_edge import SIGNED, Client, authenticator_of, document_of

ASKED = {
    "scenario": "recent",
    "rules": ["present values", "changed values"],
    "seeds": 1,
    "changes": {"deadline.p_tight": 0.8},
}
START = "/api/v1/thresholds/simulations"


@asynccontextmanager
async def an_api(store: MemoryStore) -> AsyncIterator[Client]:
    clock, authenticator = StillClock(), authenticator_of(store)
    known = as_postgres(store)
    routes = operations_of(SimulationsApi(known, SimulationRuns(known.simulations, clock), clock))
    api = web.Application(middlewares=[problems, authenticator.middleware])
    api.add_routes(Table(routes, authenticator, clock).definitions())
    app = web.Application()
    app.add_subapp("/api/v1", api)
    async with TestClient(TestServer(app), headers=SIGNED) as client:
        yield client


async def a_running_one(store: MemoryStore, *, heard_s_ago: float = 0.0) -> int:
    at = later(StillClock().now(), -heard_s_ago)
    found = await store.simulations.add(ASKED, who="ada", now=at, heard_since=at, most=1)
    assert found is not None
    return found


async def shown(client: Client, simulation_id: int) -> dict[str, Any]:
    found: dict[str, Any] = await (await client.get(f"/api/v1/simulations/{simulation_id}")).json()
    return found


async def test_running_simulation_shows_progress_and_request() -> None:
    store = MemoryStore()
    simulation_id = await a_running_one(store)
    await store.simulations.note(simulation_id, 0.25, now=StillClock().now())
    async with an_api(store) as client:
        found = await shown(client, simulation_id)

    assert (found["state"], found["done_fraction"], found["asked"], found["result"]) == ("running", 0.25, ASKED, None)


async def test_simulation_without_its_process_is_lost() -> None:
    store = MemoryStore()
    simulation_id = await a_running_one(store, heard_s_ago=SILENT_S + 1.0)
    async with an_api(store) as client:
        assert (await shown(client, simulation_id))["state"] == "lost"


async def test_result_is_the_replay_or_the_whole_comparison() -> None:
    store, now = MemoryStore(), StillClock().now()
    tried = await a_running_one(store)
    await store.simulations.end(tried, SimulationState.DONE, now=now, result={"rows": [], "replayed": {"seeds": 1}})
    rules = await a_running_one(store)
    await store.simulations.end(rules, SimulationState.DONE, now=now, result={"rows": []})
    async with an_api(store) as client:
        assert (await shown(client, tried))["result"] == {"seeds": 1}
        assert (await shown(client, rules))["result"] == {"rows": []}


async def test_cancelled_simulation_stays_cancelled() -> None:
    store = MemoryStore()
    simulation_id = await a_running_one(store)
    async with an_api(store) as client:
        for _ in range(2):
            found = await (await client.post(f"/api/v1/simulations/{simulation_id}/cancel")).json()
            assert found["state"] == "cancelled"
        await document_of(await client.post("/api/v1/simulations/99/cancel"), 404)
        await document_of(await client.get("/api/v1/simulations/99"), 404)


async def test_second_simulation_is_refused() -> None:
    store = MemoryStore()
    await a_running_one(store)
    async with an_api(store) as client:
        document = await document_of(await client.post(START, json={"values": {"p_tight": 0.8}}), 409)

    assert not missing(document["detail"], "maximum number of simulations")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"values": {}}, "threshold"),
        ({"values": {"p_tigth": 0.8}}, "threshold"),
        ({"values": {"p_tight": 2}}, "deadline.p_tight"),
        ({"values": {"p_tight": 0.8}, "seeds": 11}, "seeds"),
        ({"values": {"p_tight": 0.8}, "days": 0}, "days"),
        ({"values": {"p_tight": 0.8}}, "population"),  # no host has called
    ],
)
async def test_invalid_simulation_is_refused(body: dict[str, object], field: str) -> None:
    async with an_api(MemoryStore()) as client:
        assert (await document_of(await client.post(START, json=body), 422))["field"] == field


async def test_reply_has_a_location() -> None:
    async def started(ask: Ask[Any, Any]) -> object:
        return {"simulation_id": 7}

    store = MemoryStore()
    known = as_postgres(store)
    [start, show, _] = operations_of(
        SimulationsApi(known, SimulationRuns(known.simulations, StillClock()), StillClock())
    )
    authenticator = authenticator_of(store)
    kept = Route("POST", "/start", "start", "", started, "t", dict, start.params, status=202, leads_to="simulation")
    api = web.Application(middlewares=[problems, authenticator.middleware])
    api.add_routes(Table([kept, show], authenticator, StillClock()).definitions())
    app = web.Application()
    app.add_subapp("/muster/api/v1", api)
    async with TestClient(TestServer(app), headers=SIGNED) as client:
        response = await client.post("/muster/api/v1/start")

    assert (response.status, response.headers["Location"]) == (202, "/muster/api/v1/simulations/7")
