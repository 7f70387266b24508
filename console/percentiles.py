"""Shows the distribution of turnaround with the thresholds, and changes thresholds with a preview."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

from aiohttp import web

from administration.access.who import admit
from administration.changes import Changes, recorded, subject_of
from administration.gate_relaxation import relaxes
from administration.simulations.rules import MOST_SEEDS
from administration.simulations.runs import SimulationRuns
from administration.thresholds.in_force import lowered_gates, lowered_in_words
from administration.thresholds.keys import FORESEEN, THRESHOLDS, TITLES, changes_of, gate_meanings
from administration.thresholds.preview import gates_of
from administration.thresholds.service import Thresholds
from administration.thresholds.shown import after_in_words, population_in_words
from administration.thresholds.sizing import ENOUGH_S, FEW_DAYS, FEW_SEEDS, LEAST_HOSTS, replay_cost
from console.charts import Chart
from console.drawing import Axis, Bins, MarkLine, Plot, labelled_fraction
from domain.access import Role
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.errors import InvalidInputError
from domain.ranking import CutPoints, Gate
from domain.views import MOST_DAYS, MOST_HOSTS, SOME_DAYS
from scheduler.gates import reachable
from web.handlers import (
    Fields,
    Pages,
    PageServices,
    fields_of,
    get,
    number_of,
    post,
    reason_of,
    whole_number,
)
from web.moments import number
from web.rendering import Crumb, RenderedPage

Document = Mapping[str, Any]  # Any: a JSON document
GateOfApp = tuple[Document, Document]  # the app on a processor type, one of its gates

BINS = 40
LEAST_SPAN = 0.5  # minimum width of the axis, as a difference of logarithms
LEAST_SHOWN, MOST_SHOWN = 0.02, 0.98  # quantiles shown; outliers would compress the rest of the chart
LEAST_DAYS = 0.1
MOST_NAMED = 5  # batches that need a gate
LEAST_SEEDS = 2  # one run cannot tell an effect from chance
AT_RANKING = "ranking.min_samples"  # the threshold that also changes which hosts the next ranking counts
GATE_HUES = {"p_afap": "c4", "p_late": "c6", "p_retry": "c7", "p_tight": "c5"}  # the colour of each gate's lines
PERCENTILES = ("deadline.p_afap", "deadline.p_late", "deadline.p_retry", "deadline.p_tight")


def distribution(cuts: CutPoints, catalogue: Catalogue, changed: Catalogue | None = None) -> Chart | None:
    """Return the histogram of hosts by relative turnaround, with the cut-off of each threshold.

    A gate that is temporarily lowered is drawn where it is set and where it is now. With previewed thresholds
    (`changed`), the hosts are those ranked then, and changed gates are also drawn at their new value. None if too
    few hosts are ranked for percentiles.
    """
    key = cuts.app_id, cuts.processor_type
    then = cuts if changed is None else changed.cut_points.get(key, cuts)
    scores = then.turnaround
    if len(scores) < 2 or then.n < (changed or catalogue).settings.ranking.min_rows:
        return None
    app = catalogue.apps[cuts.app_id].name if cuts.app_id in catalogue.apps else str(cuts.app_id)
    low, high = (scores[min(len(scores) - 1, int(len(scores) * share))] for share in (LEAST_SHOWN, MOST_SHOWN))
    middle, span = (low + high) / 2.0, max(high - low, LEAST_SPAN)
    low, width = middle - span / 2.0, span / BINS
    edges = [low + width * place for place in range(BINS + 1)]
    hosts = _counted(scores, edges, then.n)
    present = catalogue.settings.deadline
    sides = {"": gates_of(present), "now": gates_of(reachable(present, cuts))}
    if changed is not None:
        moved = changed.settings.deadline
        sides |= {"new": gates_of(moved), "then": gates_of(reachable(moved, then))}
    lines = [(threshold, names, exp(_score_at(scores, 1.0 - threshold))) for threshold, names in named(sides)]
    marks = [
        MarkLine(at, f"{name} {threshold:g}", GATE_HUES[name.partition(" ")[0]])
        for threshold, names, at in lines
        for name in names
    ]
    return Chart(
        f"turnaround-{cuts.app_id}-{cuts.processor_type.lower().replace(' ', '-')}",
        f"{app}, {cuts.processor_type}",
        f"{number(then.n)} hosts{'' if changed is None else ', ranked after the change'}. Those left of a line are fast"
        " enough for its threshold; they must also be reliable enough.",
        ("threshold", "value", "slowest turnaround", "hosts fast enough"),
        [
            (", ".join(names), f"{threshold:g}", f"{number(at, 2)} × expected", number(then.n * (1.0 - threshold)))
            for threshold, names, at in lines
        ],
        Plot(
            Axis("turnaround, as a multiple of the expected one", "log", exp(low), exp(low + span), "× expected"),
            Axis("hosts", "count", high=max(hosts) / (1.0 - labelled_fraction(len(marks)))),
            bins=Bins("hosts", [exp(edge) for edge in edges], hosts),
            marks=marks,
        ),
    )


def named(sides: Mapping[str, Mapping[Gate, float]]) -> list[tuple[float, list[str]]]:
    """Return thresholds in ascending order with their gates. If the sides differ in a gate, it has each of its values,
    named after the first side with it. Names are short: labels of charts then find a place between the other lines.

    >>> held, moved = {Gate.LATE: 0.5, Gate.TIGHT: 0.5}, {Gate.LATE: 0.5, Gate.TIGHT: 0.7}
    >>> named({"": held | {Gate.TIGHT: 0.9}, "now": held, "new": moved, "then": held})
    [(0.5, ['p_late', 'p_tight now']), (0.7, ['p_tight new']), (0.9, ['p_tight'])]
    """
    found: dict[float, list[str]] = {}
    for gate in sorted({gate for gates in sides.values() for gate in gates}):
        names: dict[float, str] = {}
        for side, gates in sides.items():
            names.setdefault(gates[gate], side)
        for threshold, side in names.items():
            found.setdefault(threshold, []).append(f"{gate.value} {side}".rstrip())
    return sorted(found.items())


def gate_legend() -> list[tuple[str, str, str]]:
    """Return each gate with its colour in charts, and its title in forms.

    >>> gate_legend()[-1]
    ('p_tight', 'c5', 'P to finish after the target')
    """
    return [(gate, hue, TITLES[f"deadline.{gate}"]) for gate, hue in GATE_HUES.items()]


def moved_first(hosts: Sequence[Document]) -> tuple[list[GateOfApp], list[GateOfApp]]:
    """Return the gates of previewed apps that the change moves, and the others.

    >>> same, old, new = ({"gate": "p_afap", "old": one, "new": two} for one, two in ((1, 1), (1, 2), (2, 2)))
    >>> moved_first([{"app": "fold", "gates": [same, old]}, {"app": "dock", "gates": [new]}])[0][0][1] is old
    True
    """
    every = [(one, gate) for one in hosts for gate in one["gates"]]
    return [one for one in every if one[1]["old"] != one[1]["new"]], [
        one for one in every if one[1]["old"] == one[1]["new"]
    ]


def _score_at(scores: tuple[float, ...], share: float) -> float:
    """Return the score below which the fraction `share` of the scores lies."""
    return scores[max(0, min(len(scores) - 1, int(share * len(scores))))]


def _counted(scores: tuple[float, ...], edges: list[float], hosts: int) -> list[float]:
    """Return the number of hosts in each bin; hosts outside the axis are omitted."""
    counts = [0] * (len(edges) - 1)
    width = edges[1] - edges[0]
    for score in scores:
        place = math.floor((score - edges[0]) / width)
        if 0 <= place < len(counts):
            counts[place] += 1
        elif score == edges[-1]:
            counts[-1] += 1
    return [hosts * count / len(scores) for count in counts]


@dataclass(frozen=True, slots=True)
class SimulatedSize:
    """Implements administration.thresholds.replay.ReplaySize."""

    seeds: int
    hosts: int
    days: float


class PercentilePages(Pages[PageServices]):
    """Pages that show, preview and save thresholds."""

    def __init__(self, services: PageServices, thresholds: Thresholds, runs: SimulationRuns) -> None:
        super().__init__(services)
        self._thresholds = thresholds
        self._runs = runs

    @get("/percentiles", "percentiles", asks=(*FORESEEN, "saved"))
    async def show(self, request: web.Request) -> RenderedPage:
        catalogue = await self._catalogue()
        runs = await self._services.store.generations.runs(1)
        thresholds = await self._thresholds.show()
        changes = await self._services.store.settings.setting_changes(200)
        cuts = [catalogue.cut_points[key] for key in sorted(catalogue.cut_points)]
        charts = [chart for chart in (distribution(one, catalogue) for one in cuts) if chart is not None]
        lowered = lowered_gates(catalogue, catalogue.current)
        values: dict[str, object] = {
            "charts": charts,
            "run": runs[0] if runs else None,
            "unranked": [
                one.key for one in changes if runs and one.changed_at > runs[0].started_at and one.key == AT_RANKING
            ],
            "moved": [one for one in thresholds if one["key"] in FORESEEN],
            "others": [one for one in thresholds if one["key"] not in FORESEEN],
            "lowered": lowered,
            "in_force": lowered_in_words(lowered),
            "trail": [change for change in changes if change.key in THRESHOLDS][:20],
            "percentiles": PERCENTILES,
            "titles": TITLES,
            "saved": [one for one in thresholds if one["key"] in request.query.get("saved", "").split(",")],
            "asked": {key: request.query.get(key, "") for key in FORESEEN if key in request.query},
            "legend": gate_legend(),
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
            "small": catalogue.settings.ranking.min_rows,
            "active_s": catalogue.settings.ranking.active_s,
        }
        return RenderedPage("percentiles.html", "Thresholds", "percentiles", values=values, charts=bool(charts))

    @get("/percentiles/preview", "percentiles_preview", asks=FORESEEN, form="show")
    async def preview(self, request: web.Request) -> RenderedPage:
        """Show eligible hosts and the batches that need a gate. This is a GET, because it changes nothing."""
        changes = await self._asked(request.query if request.method == "GET" else await fields_of(request))
        foreseen = await self._thresholds.foreseen(changes)
        shown, catalogue, changed = foreseen.shown, foreseen.present, foreseen.changed
        keys = sorted(changed.cut_points)
        drawn = (
            distribution(catalogue.cut_points.get(key, changed.cut_points[key]), catalogue, changed) for key in keys
        )
        charts = [chart for chart in drawn if chart is not None]
        values: dict[str, object] = {
            "charts": charts,
            "shown": shown,
            "effects": foreseen.effects,
            "busy": traits_of(catalogue.settings.deadline).afap_first
            and any(one.gate is Gate.AFAP and one.batches for one in foreseen.effects),
            "most_named": MOST_NAMED,
            "gates": moved_first(shown["hosts"]),
            "small": {(one["app"], one["processor_type"]): population_in_words(one) for one in shown["hosts"]},
            "changes": [(one["key"], one["from"], one["to"]) for one in shown["changes"]],
            "in_force": lowered_in_words(lowered_gates(catalogue, catalogue.current)),
            "relaxes": [relaxes(one.settings.deadline) for one in (catalogue, changed)],
            "after": after_in_words(shown["changes"]),
            "titles": TITLES,
            "meanings": gate_meanings(),
            "legend": gate_legend(),
            "moved": list(changes.items()),
            "may": admit(request, Role.VIEWER).may(Role.OPERATOR),
            "may_simulate": admit(request, Role.VIEWER).may(Role.SUBMITTER),
            "sizes": await self._sizes(),
        }
        crumbs = (Crumb("percentiles", "Thresholds"),)
        return RenderedPage("thresholds_preview.html", "Preview", "percentiles", crumbs, values, bool(charts))

    @post("/percentiles", "percentiles_save", form="preview", edits=True)
    async def save(self, request: web.Request) -> web.Response:
        person = admit(request, Role.OPERATOR)
        fields = await fields_of(request)
        why = reason_of(fields)
        changes = await self._asked(fields)
        changed = await self._thresholds.set(changes, who=person.name, why=why)
        await self._services.authenticator.note(
            request, "set_thresholds", subject_of(changes), why=why, **recorded(changed)
        )
        return self._services.go_to("percentiles", "thresholds", saved=",".join(changes))

    @post("/percentiles/simulate", "percentiles_simulate", form="preview")
    async def simulate(self, request: web.Request) -> web.Response:
        """Simulate the project with its present hosts and waiting work, with and without the changes."""
        from administration.thresholds.replay import start_replay  # noqa: PLC0415  the simulator, with it

        person, fields = admit(request, Role.SUBMITTER), await fields_of(request)
        changes = await self._asked(fields)
        seeds = whole_number(fields.get("seeds", ""), "seeds", LEAST_SEEDS, MOST_SEEDS)
        hosts = whole_number(fields.get("hosts", ""), "hosts", 1, MOST_HOSTS)
        size = SimulatedSize(seeds, hosts, number_of(fields, "days", low=LEAST_DAYS, high=MOST_DAYS) or SOME_DAYS)
        services = self._services
        number = await start_replay(services.store, services.clock, self._runs, changes, size, who=person.name)
        await services.authenticator.note(request, "simulate", f"simulation {number}", values=dict(changes))
        return services.go(f"simulate/{number}")

    async def _sizes(self) -> Mapping[str, object]:
        """Return the fields of a simulation, sized for about a minute, and the expected time."""
        cost = await replay_cost(self._services.store, self._services.clock)
        hosts = cost.hosts_within(ENOUGH_S, seeds=FEW_SEEDS, days=FEW_DAYS)
        least = min(hosts, LEAST_HOSTS)
        ranked = "fewer cannot be ranked" if least == LEAST_HOSTS else ""
        chance = "one run cannot tell a difference from chance"
        return {
            "fields": (  # name, label, value, bounds, why the lower bound
                ("hosts", f"Simulated hosts, of {number(cost.hosts_active)} active", hosts, least, MOST_HOSTS, ranked),
                ("days", "Simulated days", FEW_DAYS, LEAST_DAYS, MOST_DAYS, ""),
                ("seeds", "Runs with different seeds", FEW_SEEDS, LEAST_SEEDS, MOST_SEEDS, chance),
            ),
            "takes_s": cost.seconds(hosts=hosts, seeds=FEW_SEEDS, days=FEW_DAYS),
            "possible": cost.hosts_active > 0 and cost.jobs_open > 0,
        }

    async def _catalogue(self) -> Catalogue:
        """Return the catalogue with the stored settings. The worker's own settings follow a change after seconds."""
        settings = await self._services.store.settings.in_force()
        return replace(self._services.catalogue, settings=settings)

    async def _asked(self, fields: Fields) -> Changes:
        """Return the thresholds in a form or URL that differ from the stored values. Raises InvalidInputError."""
        given = [(key, _value(key, text)) for key, text in fields.items() if key in FORESEEN and text.strip()]
        present = (await self._catalogue()).settings.as_mapping()
        changes = changes_of(given, FORESEEN) if given else {}
        moved = {key: value for key, value in changes.items() if value != present[key]}
        if not moved:
            field, present_value = given[0] if len(given) == 1 else ("threshold", "no changed value")
            raise InvalidInputError(field, "a value other than the present one", present_value)
        return moved


def _value(key: str, text: str) -> object:
    """Parse a number in a form. Raises InvalidInputError.

    >>> _value("ranking.min_rows", "20"), _value("deadline.p_tight", "0.85")
    (20, 0.85)
    """
    try:
        value = float(text)
    except ValueError:
        raise InvalidInputError(key, "a number", text) from None
    return int(value) if value.is_integer() and key == "ranking.min_rows" else value
