"""Simulates the project with and without changed thresholds, on the currently waiting work.

Both sides use the same hosts, batches and seeds. The project itself is not changed. A replay is prepared from the
database, its cases run wherever capacity is available (simulator/sweep.py), and the results are compared.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from statistics import median
from typing import Any, Protocol, cast

import msgspec

from administration.changes import Changes, with_changes
from administration.simulations.rules import as_result
from administration.simulations.runs import SimulationRuns
from administration.stopped import stopped_of
from administration.thresholds.recent import MOST_BATCHES, SCENARIO, Recent, RecentSample, recent_project
from administration.thresholds.shown import COMPARED
from administration.thresholds.sizing import processor_s, replay_cost
from domain.attention import nearly_all_fail
from domain.batches import Batch, BatchState, QoS
from domain.clock import Clock
from domain.settings import Settings
from domain.views import BatchChoice, BatchSort
from simulator.metrics import Figures, as_json
from simulator.report import BatchEnds, RuleComparison
from simulator.run import RULE, Case, Ran
from simulator.scenario import FileScenario
from simulator.submitters import BatchPlan
from simulator.sweep import compared
from store.postgres import PostgresStore

NOW, CHANGED = "present values", "changed values"
MOST_ENDS = 20_000  # per side; charts show fewer
MOST_SHOWN = 20  # urgent batches, first in order
MOST_LEFT_OUT = 20  # listed
MOST_ACTIVE = 1000  # active batches that are searched for those left out

Change = tuple[str, object, object]  # key, old value, new value
Ids = Collection[int | None]


class LeftOut(StrEnum):
    """Why the ends of an active batch are not compared."""

    UNRUNNABLE = "unrunnable"  # no host can run any of its unsent instances: it is not simulated
    SENT = "sent"  # it has no unsent instances
    FAILING = "failing"  # nearly all its ended jobs failed: it is not simulated
    STOPPED = "stopped"  # paused, blocked by a limit, or its app has no version
    BEYOND = "beyond"  # after the first MOST_SHOWN urgent or the first waiting batches


class _Document(msgspec.Struct):
    """The stored form. `ends` omits a side without figures for urgent batches."""

    changes: list[dict[str, Any]]
    population: RecentSample
    seeds: int
    now: Figures
    changed: Figures
    ends: dict[str, BatchEnds]
    runs: list[tuple[dict[str, Any], dict[str, Any]]] = []
    batches: list[dict[str, Any]] = []
    unfinished: list[int] = []


@dataclass(frozen=True, slots=True)
class Replayed:
    """The figures of both sides: medians over seeds, rounded to significant digits. `runs`: the COMPARED figures of
    both sides by seed. `batches`: when each urgent batch ended on both sides, in seconds after the start; None if it
    was unfinished in half of the runs. `unfinished`: the ids of the batches that were unfinished in any run.
    """

    sample: RecentSample
    changes: Sequence[Change]
    comparison: RuleComparison
    runs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = ()
    batches: Sequence[Mapping[str, Any]] = ()
    unfinished: Sequence[int] = ()

    def rounded(self) -> Replayed:
        """Return the replay in the precision of its stored form."""
        return self.read(self.as_document())

    @classmethod
    def read(cls, document: Mapping[str, object]) -> Replayed:
        """Return the replay from a document written by `as_document`, with keys in any order."""
        found = msgspec.convert(document, _Document)
        figures = {NOW: _in_order(found.now), CHANGED: _in_order(found.changed)}
        ends = {name: found.ends[name] for name in figures if name in found.ends}
        return cls(
            found.population,
            tuple((one["key"], one["from"], one["to"]) for one in found.changes),
            RuleComparison(SCENARIO, found.seeds, figures, ends),
            found.runs,
            found.batches,
            found.unfinished,
        )

    def as_json(self) -> dict[str, object]:
        """Return the JSON; `now` and `changed` have the same figures as `muster simulate`."""
        rules = self.comparison.rules
        return {
            "changes": [{"key": key, "from": before, "to": after} for key, before, after in self.changes],
            "population": asdict(self.sample),
            "seeds": self.comparison.seeds,
            "now": as_json(rules[NOW]),
            "changed": as_json(rules[CHANGED]),
        }

    def as_document(self) -> dict[str, object]:
        """Return the JSON with each run's figures, the ends of urgent batches, unfinished batches, and chart data."""
        ends = {name: asdict(thinned(one, MOST_ENDS)) for name, one in self.comparison.ends.items()}
        more = {"runs": self.runs, "batches": self.batches, "unfinished": self.unfinished}
        return {**self.as_json(), "ends": ends, **more}


def thinned(ends: BatchEnds, most: int) -> BatchEnds:
    """Return at most `most` ends, evenly spaced. They count as complete only if the given ends do.

    >>> thinned(BatchEnds((4.0, 1.0, 3.0, 2.0), 6), 2)
    BatchEnds(ends_s=(2.0, 4.0), jobs=3)
    """
    step = max(1, -(-len(ends.ends_s) // most))
    kept = tuple(sorted(ends.ends_s)[step - 1 :: step])
    return BatchEnds(kept, len(kept) + -(-(ends.jobs - len(ends.ends_s)) // step))


def _in_order(figures: Figures) -> Figures:
    """Return the figures with tables sorted by key."""
    tables = {one.name: getattr(figures, one.name) for one in fields(figures)}
    in_order = {name: dict(sorted(table.items())) for name, table in tables.items() if isinstance(table, Mapping)}
    return replace(figures, **in_order)  # type: ignore[arg-type]  # each of its own field's kind


class ReplaySize(Protocol):
    """The number of seeds, the maximum number of simulated hosts, and the number of simulated days."""

    @property
    def seeds(self) -> int: ...
    @property
    def hosts(self) -> int: ...
    @property
    def days(self) -> float: ...


@dataclass(frozen=True, slots=True)
class ThresholdReplay:
    """A replay to run. `cases` starts with the unchanged settings. Implements simulations.runs.RequestedRun."""

    asked: Mapping[str, object]
    sample: RecentSample
    changes: tuple[Change, ...]
    now: tuple[Case, ...]
    changed: tuple[Case, ...]

    @property
    def cases(self) -> tuple[Case, ...]:
        return (*self.now, *self.changed)

    def replayed(self, ran: Sequence[Ran]) -> Replayed:
        """Return the comparison computed from the results of `cases`, in order."""
        half = len(self.now)
        pairs = zip(ran[:half], ran[half:], strict=True)
        runs = [(_compared_figures(one), _compared_figures(other)) for one, other in pairs]
        plans = self.now[0].scenario.batches
        unfinished = [
            one.batch_id
            for one in plans
            if one.batch_id is not None and any(one.name not in run.spans_s for run in ran)
        ]
        return Replayed(self.sample, self.changes, self._compared(ran), runs, self._ends(ran), unfinished).rounded()

    def result(self, ran: Sequence[Ran]) -> dict[str, object]:
        """Return the result for a page: also the whole replay under `replayed`."""
        return {**as_result(self._compared(ran)), "replayed": self.replayed(ran).as_document()}

    def _ends(self, ran: Sequence[Ran]) -> list[dict[str, object]]:
        half = len(self.now)
        return [
            {
                "batch_id": one.batch_id,
                "now_s": _usual_span_s(one.name, ran[:half]),
                "changed_s": _usual_span_s(one.name, ran[half:]),
            }
            for one in _urgent(self.now[0].scenario)
        ]

    def _compared(self, ran: Sequence[Ran]) -> RuleComparison:
        ran_now, ran_changed = ran[: len(self.now)], ran[len(self.now) :]
        sides = {NOW: compared(self.now, ran_now), CHANGED: compared(self.changed, ran_changed)}
        figures = {name: next(iter(side.rules.values())) for name, side in sides.items()}
        ends = {name: one for name, side in sides.items() for one in side.ends.values()}
        return RuleComparison(self.cases[0].scenario.name, len(self.now), figures, ends)


def _urgent(scenario: FileScenario) -> Sequence[BatchPlan]:
    return [one for one in scenario.batches if one.deadline_s is not None or one.qos is QoS.AFAP][:MOST_SHOWN]


def left_out(active: Sequence[Batch], simulated: Ids, shown: Ids, unrunnable: Ids) -> dict[str, object]:
    """Return the first urgent batches whose ends are not shown and batches that are not simulated because no host can
    run them or their jobs fail, with the reason, and the number of the others.
    """
    not_shown = [one for one in active if one.batch_id not in shown]
    found = [
        {"batch_id": one.batch_id, "why": why.value}
        for one, why in ((one, _why_left_out(one, simulated, unrunnable)) for one in not_shown)
        if one.qos is QoS.AFAP or one.deadline_at is not None or why in (LeftOut.UNRUNNABLE, LeftOut.FAILING)
    ]
    return {"left_out": found[:MOST_LEFT_OUT], "more_left_out": max(0, len(found) - MOST_LEFT_OUT)}


def _why_left_out(batch: Batch, simulated: Ids, unrunnable: Ids) -> LeftOut:
    if batch.batch_id in unrunnable:
        return LeftOut.UNRUNNABLE
    if not batch.counts.unsent:
        return LeftOut.SENT
    if nearly_all_fail(batch.counts):
        return LeftOut.FAILING
    is_beyond = batch.batch_id in simulated or len(simulated) >= MOST_BATCHES
    return LeftOut.BEYOND if is_beyond else LeftOut.STOPPED


def _usual_span_s(name: str, ran: Sequence[Ran]) -> float | None:
    """Return the median, as of other figures. An unfinished batch counts as the last."""
    middle = median(one.spans_s.get(name, math.inf) for one in ran)
    return None if middle == math.inf else round(middle, 1)


def _compared_figures(ran: Ran) -> dict[str, object]:
    figures = as_json(ran.figures)
    return {name: figures[name] for name in COMPARED if name in figures}


async def replay(
    store: PostgresStore, clock: Clock, changes: Changes, *, seeds: Sequence[int], most_hosts: int, days: float
) -> ThresholdReplay:
    """Prepare a replay. Raises InvalidInputError if no host was recently active or no work waits."""
    unrunnable = (await stopped_of(store, clock)).unrunnable
    recent = await recent_project(store, clock, most_hosts=most_hosts, days=days, without=unrunnable)
    active = await store.listings.batches(
        BatchChoice(state=BatchState.ACTIVE), BatchSort.ORDER, after=None, limit=MOST_ACTIVE
    )
    simulated, shown = ({one.batch_id for one in some} for some in (recent.scenario.batches, _urgent(recent.scenario)))
    before = recent.catalogue.settings
    jobs = sum(plan.jobs for plan in recent.scenario.batches)
    return ThresholdReplay(
        {
            "scenario": recent.scenario.name,
            "rules": [NOW, CHANGED],
            "seeds": len(seeds),
            "changes": dict(changes),
            "before": {key: before.as_mapping()[key] for key in changes},
            "hosts": recent.sample.hosts,
            "hosts_active": recent.sample.hosts_active,
            "days": days,
            "known_s": recent.sample.known_s,
            **left_out([one.batch for one in active], simulated, shown, unrunnable),
            "cpu_s": round(len(seeds) * processor_s(jobs, recent.sample.hosts, days), 1),
        },
        recent.sample,
        tuple((key, before.as_mapping()[key], value) for key, value in changes.items()),
        _cases(recent, seeds, before, {}),
        _cases(recent, seeds, with_changes(before, changes), changes),
    )


async def start_replay(
    store: PostgresStore, clock: Clock, runs: SimulationRuns, changes: Changes, size: ReplaySize, *, who: str
) -> int:
    """Start a replay in the background and return the simulation's id. Raises SimulationsBusyError, or as `replay`."""
    await runs.check_free()
    seeds = range(1, size.seeds + 1)
    work = await replay(store, clock, changes, seeds=seeds, most_hosts=size.hosts, days=size.days)
    estimated_s = (await replay_cost(store, clock)).slower * cast("float", work.asked["cpu_s"])
    return await runs.start(replace(work, asked={**work.asked, "estimated_s": estimated_s}), who=who)


def _cases(recent: Recent, seeds: Sequence[int], settings: Settings, changes: Changes) -> tuple[Case, ...]:
    others = {key: value for key, value in changes.items() if key != RULE}
    return tuple(Case(recent.scenario, seed, str(settings.deadline.rule), others) for seed in seeds)
