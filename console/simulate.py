"""Try rules on a simulated population: pick a scenario or change its people, compare rules, look at the charts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from administration.access.who import admit
from administration.simulations.rules import DEFAULT_RULES, MOST_SEEDS, RequestedComparison, checked, scenarios
from administration.simulations.runs import SimulationRuns
from console.simulation_charts import charts_of
from domain.access import Role
from domain.errors import MusterError
from domain.views import SimulationState
from simulator.host_models import FITTED
from simulator.run import FIXED_COPIES, RULES
from simulator.scenario import SHIPPED
from web.bodies import whole_number
from web.desk import Desk, Fields, fields_of, id_of, number_of
from web.rendering import Crumb, Page

LISTED = 30
LIVE_S = 2
Document = Mapping[str, Any]  # Any: a JSON document

PEOPLE = (  # name in the form, path in the file, what it is, lowest, highest
    ("hosts", "population.hosts", "Hosts", 1, 5000),
    ("days", "days", "Simulated days", 1, 120),
    ("delay_bound_days", "delay_bound_days", "Delay bound (days)", 0.1, 90),
    ("loss_fraction", "population.loss_fraction", "Jobs that never come back (share)", 0, 1),
    ("share_fraction", "population.share_fraction", "Hosts' time for this project (share)", 0.01, 1),
    ("unreliable_hosts_fraction", "population.unreliable_hosts_fraction", "Unreliable hosts (share)", 0, 1),
)
RULE_WORDS = {
    "muster": "the project's own",
    "proposal": "the proposal's pseudo-code, word for word",
    "fixed": "always the delay bound",
    "accelerated": "the reference server's batch acceleration",
    FIXED_COPIES: "always the delay bound, with the project's copies of last jobs",
    "clairvoyant": "a bound: what a server that knows the future would reach",
}


def asked_of(fields: Fields, rules: list[str]) -> RequestedComparison:
    """What a form asks for; empty fields leave the scenario as it is. Raises InvalidInputError.

    >>> asked_of({"scenario": "small", "hosts": "80", "seeds": "2"}, ["muster"]).changes
    {'population.hosts': 80}
    """
    changes: dict[str, float | str] = {}
    for name, path, _, low, high in PEOPLE:
        value = number_of(fields, name, low=low, high=high)
        if value is not None:
            changes[path] = int(value) if name == "hosts" else value
    if fields.get("computers", "") in FITTED:
        changes["population.computers"] = fields["computers"]
    return RequestedComparison(
        fields.get("scenario", ""), rules, whole_number(fields.get("seeds", ""), "seeds", 1, MOST_SEEDS), changes
    )


def in_order(result: Document, asked: Document) -> Document:
    """The result with its rules in the order they were asked for, as its rows have them: a database keeps none.

    >>> in_order({"rules": {"fixed": 1, "muster": 2}, "curves": {"fixed": []}}, {"rules": ["muster", "fixed"]})
    {'rules': {'muster': 2, 'fixed': 1}, 'curves': {'fixed': []}}
    """
    sorted_ = {
        key: {rule: result[key][rule] for rule in asked["rules"] if rule in (result.get(key) or {})}
        for key in ("rules", "curves")
    }
    return {**result, **sorted_}


def unfinished(result: Document) -> dict[str, float]:
    """Batches that were not over at the end, by rule: their times were counted up to there.

    >>> unfinished({"rules": {"muster": {"batches_unfinished": 0.0}, "fixed": {"batches_unfinished": 3.0}}})
    {'fixed': 3.0}
    """
    found = {rule: figures.get("batches_unfinished") or 0.0 for rule, figures in result["rules"].items()}
    return {rule: count for rule, count in found.items() if count}


class SimulatePages:
    """Simulations asked for, running and done."""

    def __init__(self, desk: Desk, runs: SimulationRuns) -> None:
        self._desk = desk
        self._runs = runs

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/simulate", self.show, name="simulate"),
            web.post("/simulate", self.start, name="simulate_start"),
            web.get("/simulate/{id}", self.one, name="simulation"),
            web.post("/simulate/{id}/cancel", self.cancel, name="simulation_cancel"),
        ]

    async def show(self, request: web.Request) -> web.Response:
        return await self._form(request, {}, [rule.value for rule in DEFAULT_RULES], None)

    async def start(self, request: web.Request) -> web.Response:
        """Any submitter may: it takes a CPU, not the project's data."""
        person = admit(request, Role.SUBMITTER)
        fields = await fields_of(request)
        rules = [str(rule) for rule in (await request.post()).getall("rules", [])]
        try:
            work = await asyncio.to_thread(checked, asked_of(fields, rules))
            simulation_id = await self._runs.start(work, who=person.name)
        except MusterError as error:
            return await self._form(request, fields, rules, error)
        await self._desk.door.note(request, "simulate", f"simulation {simulation_id}", scenario=fields.get("scenario"))
        return self._desk.go(f"simulate/{simulation_id}", "simulation")

    async def one(self, request: web.Request) -> web.Response:
        found = await self._desk.store.simulations.simulation(id_of(request))
        charts = []
        result = None if found.result is None else in_order(found.result, found.asked)
        if result is not None:
            charts = charts_of(result)
        running = found.state is SimulationState.RUNNING
        lost = found.is_lost(self._desk.clock.now())
        values: dict[str, object] = {
            "found": found,
            "state": "lost" if lost else found.state.value,
            "charts": charts,
            "rules": [] if result is None else list(result["rules"]),
            "unfinished": {} if result is None else unfinished(result),
            "words": RULE_WORDS,
        }
        page = Page(
            "simulation.html",
            f"Simulation {found.simulation_id}",
            "simulate",
            (Crumb("simulate", "Simulate"),),
            values,
            charts=True,
            every_s=LIVE_S if running and not lost else 0,
        )
        return self._desk.show(request, page)

    async def cancel(self, request: web.Request) -> web.Response:
        admit(request, Role.SUBMITTER)
        simulation_id = id_of(request)
        await self._desk.store.simulations.simulation(simulation_id)
        await self._desk.store.simulations.end(simulation_id, SimulationState.CANCELLED, now=self._desk.clock.now())
        await self._desk.door.note(request, "cancel_simulation", f"simulation {simulation_id}")
        return self._desk.go(f"simulate/{simulation_id}", "cancelled")

    async def _form(
        self, request: web.Request, fields: Fields, rules: list[str], wrong: MusterError | None
    ) -> web.Response:
        now = self._desk.clock.now()
        past = await self._desk.store.simulations.simulations(LISTED)
        values: dict[str, object] = {
            "fields": fields,
            "chosen": rules,
            "wrong": wrong,
            "scenarios": [(name, _about(name)) for name in scenarios()],
            "rules": [(rule, RULE_WORDS.get(rule, "")) for rule in RULES],
            "people": PEOPLE,
            "computers": sorted(FITTED),
            "past": [(one, "lost" if one.is_lost(now) else one.state.value) for one in past],
            "most_seeds": MOST_SEEDS,
            "may": admit(request, Role.VIEWER).may(Role.SUBMITTER),
        }
        status = 422 if wrong is not None else 200
        return self._desk.show(request, Page("simulate.html", "Simulate", "simulate", values=values, status=status))


def _about(name: str) -> str:
    """What a shipped scenario is, by the comment it begins with."""
    first = (SHIPPED / f"{name}.toml").read_text(encoding="utf-8").partition("\n")[0]
    return first.lstrip("# ") if first.startswith("#") else ""
