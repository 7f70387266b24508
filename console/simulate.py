"""Runs simulations: lets users choose a scenario or their own population, compare rules, and see the charts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from administration.access.who import admit
from administration.forecasts.service import end_of
from administration.simulations.rules import DEFAULT_RULES, MOST_SEEDS, RequestedComparison, checked, choices
from administration.simulations.runs import SimulationRuns
from administration.stopped import stopped_of
from administration.thresholds.keys import FORESEEN
from administration.thresholds.recent import SCENARIO
from administration.thresholds.replay import MOST_ACTIVE
from administration.thresholds.shown import COMPARED, Conclusion, conclusion_of
from administration.thresholds.sizing import FEW_SEEDS, LEAST_HOSTS, left_in_words
from console.charts import Chart, hue
from console.drawing import Axis, BarSeries, Blank, ColumnPlot, Line, Plot
from domain.access import Role
from domain.batches import Batch, kind_in_words
from domain.errors import MusterError
from domain.units import HOUR_S, Instant, later
from domain.views import Simulation, SimulationState
from web.handlers import Fields, Pages, PageServices, fields_of, get, id_of, number_of, post, whole_number
from web.moments import length, number, percent
from web.rendering import Crumb, RenderedPage

Said = tuple[str, str, str]  # a chart's key, title and summary

SHARES: Sequence[tuple[str, str, Callable[[float], float]]] = (
    ("extra instances", "instances_per_job", lambda value: max(0.0, 100.0 * (value - 1.0))),
    ("late instances", "deadline_miss_fraction", lambda value: 100.0 * value),
    ("never returned", "never_returned_fraction", lambda value: 100.0 * value),
    ("tight due dates", "tight_fraction", lambda value: 100.0 * value),
    ("deadline mode", "deadline_mode_fraction", lambda value: 100.0 * value),
)
DELAYS: Sequence[tuple[str, str, Callable[[float], float]]] = (
    ("delay of other work, per job", "preempted_s_per_job", lambda value: value / 60.0),
    ("report to validation, median", "validation_delay_s", lambda value: value / 60.0),
    ("report to validation, 90 %", "validation_delay_p90_s", lambda value: value / 60.0),
)
LEAST_DELAY_S = 6.0  # below it, bars in minutes would show rounding


def charts_of(result: Document) -> list[Chart]:
    """Return the charts that have data to show."""
    drawn = (makespan_chart(result), tail_chart(result), ends_chart(result), price_chart(result), delays_chart(result))
    return [chart for chart in drawn if chart is not None]


def makespan_chart(result: Document) -> Chart | None:
    """Return the chart of makespans by kind of batch and by rule."""
    about = f"Median hours from {_start(result)} to the end of the last job; lower is better."
    return _by_kind(result, "makespan_s", ("makespan", "Makespan", about))


def tail_chart(result: Document) -> Chart | None:
    """Return the chart of the time that batches spend on the last tenth of their jobs."""
    about = "Median hours from the end of 90 % of a batch's jobs to the end of the last; lower is better."
    return _by_kind(result, "tail_s", ("tail", "Tail of the makespan", about))


def _start(result: Document) -> str:
    """Return from when a simulated batch's time counts: the batches of a project run already when it starts."""
    return "the start of the simulation" if result.get("replayed") else "submission"


def _by_kind(result: Document, figure: str, said: Said) -> Chart | None:
    """Return bars by kind of batch. Hatched bars are lower bounds, because the simulation ended first."""
    rules: Document = result["rules"]
    kinds = sorted({kind for one in rules.values() for kind in one.get(figure) or {}})
    if not kinds:
        return None

    def is_cut(rule: str, kind: str) -> bool:
        return figure == "makespan_s" and kind in rules[rule].get("cut_short", ())

    def cell(rule: str, kind: str) -> str:
        return f"{'> ' if is_cut(rule, kind) else ''}{length(_value(rules[rule], figure, kind))}"

    def drawn(place: int, rule: str) -> BarSeries:
        hours = [_hours(_value(rules[rule], figure, kind)) for kind in kinds]
        return BarSeries(rule, hours, hue(place), [is_cut(rule, kind) for kind in kinds])

    words = [kind_in_words(kind) for kind in kinds]
    cut = any(is_cut(rule, kind) for rule in rules for kind in kinds)
    key, title, about = said
    return Chart(
        key,
        title,
        about + (" Hatched bars: unfinished when the simulation ended, so the true value is larger." if cut else ""),
        ("promise", *rules),
        [(kind_in_words(kind), *(cell(rule, kind) for rule in rules)) for kind in kinds],
        ColumnPlot(words, [drawn(place, rule) for place, rule in enumerate(rules)], Axis("hours"), key),
    )


def _value(figures: Document, figure: str, kind: str) -> float | None:
    value: float | None = (figures.get(figure) or {}).get(kind)
    return value


def _hours(value: float | None) -> float | None:
    return None if value is None else round(value / HOUR_S, 2)


def ends_chart(result: Document) -> Chart | None:
    """Return the chart of the completion of AFAP batches over time, by rule; None for a simulated project, whose page
    has the end of each urgent batch.
    """
    curves: Document = result.get("curves") or {}
    if not curves or result.get("replayed"):
        return None
    shares = (0.5, 0.9, 1.0)

    def reached(rule: str, share: float) -> float | None:
        return next((at * HOUR_S for at, over in curves[rule] if over >= share - 1e-9), None)

    return Chart(
        "ends",
        "Completion of AFAP batches",
        "Fraction of jobs finished, by hours since submission; the last few take longest. Batches with a deadline are "
        "not included.",
        ("rule", *(f"{percent(share)} over" for share in shares)),
        [(rule, *(length(reached(rule, share)) for share in shares)) for rule in curves],
        Plot(
            Axis("hours since submission"),
            Axis("jobs finished", high=103.0, unit=" %"),
            [
                Line(rule, [at for at, _ in curves[rule]], [100.0 * over for _, over in curves[rule]], hue(place))
                for place, rule in enumerate(curves)
            ],
        ),
    )


def price_chart(result: Document) -> Chart | None:
    """Return the chart of each rule's costs: extra instances, missed and tight due dates, preempted work."""
    said = ("price", "What it costs", "Per cent of a batch's jobs or instances; lower is better.")
    return _by_rule(result, SHARES, said, axis=Axis("share", unit=" %"))


def delays_chart(result: Document) -> Chart | None:
    """Return the chart of delays that volunteers notice: those of their other work, and of credit."""
    about = "Minutes by which tight jobs delayed other work, and for which results waited for validation."
    said = ("delays", "Delays for volunteers", about)
    chart = _by_rule(result, DELAYS, said, axis=Axis("minutes", unit=" min"))
    every = [of.get(key) or 0.0 for of in result["rules"].values() for _, key, _ in DELAYS]
    if chart is None or max(every) >= LEAST_DELAY_S:
        return chart
    return replace(chart, summary=f"No delays of {length(LEAST_DELAY_S)} or more.", drawing=Blank())


def _by_rule(
    result: Document,
    figures: Sequence[tuple[str, str, Callable[[float], float]]],
    said: Said,
    *,
    axis: Axis,
) -> Chart | None:
    """Return bars for each figure that is available for at least one rule."""
    rules: Document = result["rules"]
    known = [one for one in figures if any(of.get(one[1]) is not None for of in rules.values())]
    if not known:
        return None

    def value(rule: str, key: str, drawn: Callable[[float], float]) -> float | None:
        found = rules[rule].get(key)
        return None if found is None else round(drawn(found), 2)

    names = [name for name, _, _ in known]
    values = {rule: [value(rule, key, drawn) for _, key, drawn in known] for rule in rules}
    return Chart(
        *said,
        ("rule", *names),
        [(rule, *(_with_unit(one, axis.unit) for one in values[rule])) for rule in rules],
        ColumnPlot(names, [BarSeries(rule, values[rule], hue(place)) for place, rule in enumerate(rules)], axis),
    )


def _with_unit(value: float | None, unit: str) -> str:
    return "–" if value is None else f"{number(value, 1)}{unit}"


LISTED = 20
JUDGED = {*COMPARED, "afap_makespan_s"}  # fields of figures
DECIDING = JUDGED | {"other_makespan_s", "jobs_failed"}
NOTES = {
    "jobs_per_day": "from the submission of the first batch to the end of the simulation; a simulation of this project "
    "does not count the jobs from which it learns the hosts' statistics",
    "use_fraction": "part of the processor time offered to the project that its jobs used "
    "while some were unsent; low if jobs wait for hosts above a gate, because the other hosts have no work meanwhile",
}
LIVE_S = 2
Document = Mapping[str, Any]  # Any: a JSON document

PEOPLE = (  # form name, path in the scenario file, label, minimum, maximum
    ("hosts", "population.hosts", "Hosts", 1, 5000),
    ("days", "days", "Simulated days", 1, 120),
    ("delay_bound_days", "delay_bound_days", "Delay bound (days)", 0.1, 90),
    ("loss_fraction", "population.loss_fraction", "Jobs never returned (fraction)", 0, 1),
    ("share_fraction", "population.share_fraction", "Host time for this project (fraction)", 0.01, 1),
    ("unreliable_hosts_fraction", "population.unreliable_hosts_fraction", "Unreliable hosts (share)", 0, 1),
)
RULE_WORDS = {
    "muster": "the project's own",
    "proposal": "its first design, without slack or retry margin",
    "fixed": "due date always at the delay bound",
    "accelerated": "the reference server's batch acceleration",
    "fixed+copies": "due date at the delay bound, with extra copies of the last jobs",
    "clairvoyant": "lower bound: a server that knows the future",
}


LEFT_OUT_WORDS = {  # by administration.thresholds.replay.LeftOut
    "unrunnable": "no host can run it: not simulated",
    "failing": "nearly all its jobs fail: not simulated",
    "sent": "all jobs sent: only its retries and copies depend on the change",
    "stopped": "paused, blocked by a limit, or without a version of its app: it is not sent",
    "beyond": "later in order than the batches that are compared",
}


def asked_of(fields: Fields, rules: list[str]) -> RequestedComparison:
    """Parse the form. Empty fields keep the scenario's values. Raises InvalidInputError.

    >>> asked_of({"scenario": "small", "hosts": "80", "seeds": "2"}, ["muster"]).changes
    {'population.hosts': 80}
    """
    changes: dict[str, float | str] = {}
    for name, path, _, low, high in PEOPLE:
        value = number_of(fields, name, low=low, high=high)
        if value is not None:
            changes[path] = int(value) if name == "hosts" else value
    if fields.get("computers", "") in choices().computers:
        changes["population.computers"] = fields["computers"]
    return RequestedComparison(
        fields.get("scenario", ""), rules, whole_number(fields.get("seeds", ""), "seeds", 1, MOST_SEEDS), changes
    )


def in_order(result: Document, asked: Document) -> Document:
    """Return the result with its rules in the requested order, because the database does not preserve it.

    >>> in_order({"rules": {"fixed": 1, "muster": 2}, "curves": {"fixed": []}}, {"rules": ["muster", "fixed"]})
    {'rules': {'muster': 2, 'fixed': 1}, 'curves': {'fixed': []}}
    """
    sorted_ = {
        key: {rule: result[key][rule] for rule in asked["rules"] if rule in (result.get(key) or {})}
        for key in ("rules", "curves")
    }
    return {**result, **sorted_}


def unfinished(result: Document) -> dict[str, float]:
    """Return the number of unfinished batches by rule. Their times end with the simulation.

    >>> unfinished({"rules": {"muster": {"batches_unfinished": 0.0}, "fixed": {"batches_unfinished": 3.0}}})
    {'fixed': 3.0}
    """
    found = {rule: figures.get("batches_unfinished") or 0.0 for rule, figures in result["rules"].items()}
    return {rule: count for rule, count in found.items() if count}


def decisive_first(result: Document) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the rows of figures that decide between the sides, and the others; rows are a label, cells and a field.

    Those of a simulated project that decide are in its Conclusion, if they have both values. Rows of older versions
    have no field: all of them come first.

    >>> decisive_first({"rows": [["tail, afap", ["1 h"], "tail_s"], ["jobs per day", ["7"], "jobs_per_day"]]})
    ([['tail, afap', ['1 h'], 'tail_s']], [['jobs per day', ['7'], 'jobs_per_day']])
    """
    rows = result["rows"]
    if result.get("replayed"):
        return [], [row for row in rows if JUDGED.isdisjoint(row[2:]) or not all(row[1])]
    first = [row for row in rows if DECIDING.issuperset(row[2:])]
    return first, [row for row in rows if row not in first]


VERDICTS = {  # of a Conclusion: its tag in the list
    "better": "better",
    "worse": "worse",
    "mixed": "mixed",
    "same": "no difference",
    "unsure": "no clear difference",
    "unclear": "unclear",
}


def verdict_of(found: Simulation) -> Conclusion | None:
    """Return what a simulation of the project shows; None for another one, and before it is done."""
    if found.result is None or found.asked.get("scenario") != SCENARIO:
        return None
    result = in_order(found.result, found.asked)
    sides, replayed = tuple(result["rules"].values()), result.get("replayed") or {}
    return conclusion_of(*sides, replayed.get("runs", ())) if len(sides) == 2 else None


def difference_of(now_s: float | None, changed_s: float | None) -> str:
    """Return by how much a batch ends later or earlier with the changed values; a dash if it is unfinished.

    >>> difference_of(7200.0, 5400.0), difference_of(60.0, 60.0), difference_of(None, 60.0)
    ('30\\xa0min earlier', 'none', '–')
    """
    if now_s is None or changed_s is None:
        return length(None)
    if round(now_s) == round(changed_s):
        return "none"
    return f"{length(abs(changed_s - now_s))} {'later' if changed_s > now_s else 'earlier'}"


def more_runs(seeds: int) -> int:
    """Return how many runs may show a difference that this number does not; 0 if there may be no more.

    >>> more_runs(1), more_runs(3), more_runs(MOST_SEEDS)
    (5, 6, 0)
    """
    return 0 if seeds >= MOST_SEEDS else min(MOST_SEEDS, max(FEW_SEEDS, 2 * seeds))


class SimulatePages(Pages[PageServices]):
    """Pages that start, track and show simulations."""

    def __init__(self, services: PageServices, runs: SimulationRuns) -> None:
        super().__init__(services)
        self._runs = runs

    @get("/simulate", "simulate")
    async def show(self, request: web.Request) -> RenderedPage:
        return await self._form(request, {}, [rule.value for rule in DEFAULT_RULES], None)

    @post("/simulate", "simulate_start")
    async def start(self, request: web.Request) -> RenderedPage | web.Response:
        """Start a simulation. Any submitter may do this, because it uses a CPU but no project data."""
        person = admit(request, Role.SUBMITTER)
        fields = await fields_of(request)
        rules = [str(rule) for rule in (await request.post()).getall("rules", [])]
        try:
            work = await asyncio.to_thread(checked, asked_of(fields, rules))
            simulation_id = await self._runs.start(work, who=person.name)
        except MusterError as error:
            return await self._form(request, fields, rules, error)
        await self._services.authenticator.note(
            request, "simulate", f"simulation {simulation_id}", scenario=fields.get("scenario")
        )
        return self._services.go(f"simulate/{simulation_id}")

    @get("/simulate/{id}", "simulation")
    async def one(self, request: web.Request) -> RenderedPage:
        found = await self._services.store.simulations.simulation(id_of(request))
        now = self._services.clock.now()
        charts = []
        result = None if found.result is None else in_order(found.result, found.asked)
        if result is not None:
            charts = charts_of(result)
        running = found.state is SimulationState.RUNNING
        lost = found.is_lost(now)
        values: dict[str, object] = {
            "found": found,
            "state": "lost" if lost else found.state.value,
            "charts": charts,
            "rules": [] if result is None else list(result["rules"]),
            "unfinished": {} if result is None else unfinished(result),
            "listed": LISTED,
            "words": RULE_WORDS,
            "figures": () if result is None else decisive_first(result),
            "notes": NOTES,
            "equal": result is not None
            and len(result["rules"]) > 1
            and all(len(set(row[1])) == 1 for row in result["rows"]),
            "may": admit(request, Role.VIEWER).may(Role.SUBMITTER),
            "left": left_in_words(found.asked, now - found.asked_at, found.done_fraction),
            "took_s": found.heard_at - found.asked_at if found.state is SimulationState.DONE else None,
            "change": None if found.asked.get("scenario") != SCENARIO else await self._change(request, found, result),
        }
        return RenderedPage(
            "simulation.html",
            f"Simulation {found.simulation_id}",
            "simulate",
            (Crumb("simulate", "Simulate"),),
            values,
            charts=True,
            every_s=LIVE_S if running and not lost else 0,
        )

    async def _change(self, request: web.Request, found: Simulation, result: Document | None) -> Document:
        """Return what a simulated change of thresholds comes to: old and new values, the preview, and the verdict."""
        asked: Document = found.asked
        changes, before = asked["changes"], asked.get("before", {})
        stored = (await self._services.store.settings.in_force()).as_mapping()
        replayed: Document = {} if result is None else result.get("replayed") or {}
        said = verdict_of(found)
        return {
            "rows": [(key, before.get(key, "–"), value, stored.get(key)) for key, value in changes.items()],
            "preview": urlencode(changes) if changes.keys() <= {*FORESEEN} else None,
            "in_force": all(stored.get(key) == value for key, value in changes.items()),
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
            "said": said,
            "few": LEAST_HOSTS
            if asked.get("hosts", LEAST_HOSTS) < min(LEAST_HOSTS, asked.get("hosts_active", 0))
            else 0,
            "again": 0
            if said is None or not (said.unsure or said.verdict in ("same", "unclear"))
            else more_runs(asked["seeds"]),
            "batches": await self._urgent(found.asked_at, replayed.get("batches", ())),
            "unfinished": await self._services.store.views.batches_with(replayed.get("unfinished", ())),
            "left_out": await self._left_out(asked.get("left_out", ())),
            "most_active": MOST_ACTIVE,
            "more_left_out": asked.get("more_left_out", 0),
        }

    async def _left_out(self, found: Sequence[Document]) -> Sequence[tuple[Batch, str]]:
        """Return the batches whose ends were not compared, with the reason."""
        why = {one["batch_id"]: LEFT_OUT_WORDS.get(one["why"], "") for one in found}
        return [(one, why[one.batch_id]) for one in await self._services.store.views.batches_with(sorted(why))]

    async def _urgent(self, begun_at: Instant, found: Sequence[Document]) -> Sequence[Document]:
        """Return the simulated batches that are urgent, with their forecast and their simulated ends."""
        store, ids = self._services.store, [one["batch_id"] for one in found]
        batches = {one.batch_id: one for one in await store.views.batches_with(ids)}
        last, stopped = await store.forecasts.last(ids), await stopped_of(store, self._services.clock)
        now = self._services.clock.now()
        return [
            {
                "batch": batch,
                "forecast": end_of(batch, last.get(batch.batch_id), stopped, now),
                "ends": [None if one[side] is None else later(begun_at, one[side]) for side in ("now_s", "changed_s")],
                "difference": difference_of(one["now_s"], one["changed_s"]),
            }
            for one in found
            if (batch := batches.get(one["batch_id"])) is not None
        ]

    @post("/simulate/{id}/cancel", "simulation_cancel")
    async def cancel(self, request: web.Request) -> web.Response:
        admit(request, Role.SUBMITTER)
        simulation_id = id_of(request)
        await self._services.store.simulations.simulation(simulation_id)
        await self._services.store.simulations.end(
            simulation_id, SimulationState.CANCELLED, now=self._services.clock.now()
        )
        await self._services.authenticator.note(request, "cancel_simulation", f"simulation {simulation_id}")
        return self._services.go(f"simulate/{simulation_id}", "cancelled")

    async def _verdict(self, listed: Simulation) -> str:
        """Return the verdict of a simulation of the project, "" without one. Lists have no results."""
        if listed.state is not SimulationState.DONE or listed.asked.get("scenario") != SCENARIO:
            return ""
        found = verdict_of(await self._services.store.simulations.simulation(listed.simulation_id))
        return found.verdict if found else ""

    async def _form(
        self, request: web.Request, fields: Fields, rules: list[str], wrong: MusterError | None
    ) -> RenderedPage:
        now = self._services.clock.now()
        past = await self._services.store.simulations.simulations(LISTED)
        offered = choices()
        values: dict[str, object] = {
            "fields": fields,
            "chosen": rules,
            "wrong": wrong,
            "scenarios": list(offered.scenarios.items()),
            "rules": [(rule, RULE_WORDS.get(rule, "")) for rule in offered.rules],
            "people": PEOPLE,
            "computers": offered.computers,
            "past": [(one, "lost" if one.is_lost(now) else one.state.value, await self._verdict(one)) for one in past],
            "verdicts": VERDICTS,
            "most_seeds": MOST_SEEDS,
            "few_seeds": FEW_SEEDS,
            "may": admit(request, Role.VIEWER).may(Role.SUBMITTER),
        }
        status = 422 if wrong is not None else 200
        return RenderedPage("simulate.html", "Simulate", "simulate", values=values, status=status)
