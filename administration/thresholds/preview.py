"""Previews a change of thresholds: hosts that pass each gate, and the waiting batches and jobs that need it.

A job's gate depends on the requesting host; the preview assumes an idle host of the app's median speed. Jobs sent to
such a host in normal order have no gate (decision 0036). The deadline rule itself is the scheduler's code.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from domain.apps import AppVersion, ProcessorType
from domain.batches import Batch, QoS, complete_at
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.insight import Newcomers, WaitingBatch
from domain.jobs import JobClass
from domain.ranking import BOOTSTRAP_P, CutPoints, Gate, Percentile
from domain.settings import DeadlineSettings, Settings
from domain.units import AppId, AppVersionId, Flop, HostId, Instant, JobClassId, Seconds
from feeder.supply import gate_of
from hoststats.ports import Table
from hoststats.standing import Passing, Percentiles, opens, passing, percentiles, reranked, time_to_send_s
from muster_client import shapes
from scheduler.deadline import Due, Moment, due_inputs, rule_of
from scheduler.gates import reachable
from scheduler.runtime import runtime_behind_s

UNRANKED = "no host can have a higher P"
LOWERED = "lowered while the hosts above it request too rarely"
NEWCOMER, BEST = Percentile(None), Percentile(math.inf)  # a newcomer passes no gate, the best host passes all
TypeOf = tuple[AppId, ProcessorType]
Passes = tuple[bool, frozenset[tuple[TypeOf, float]]]  # whether gates are strict, and thresholds by type


@dataclass(frozen=True, slots=True)
class BehindGate:
    """Jobs of one app behind one gate; `thresholds` are the old and new thresholds for each processor type."""

    app_id: AppId
    gate: Gate
    thresholds: tuple[tuple[ProcessorType, float, float], ...]


def behind_gates(
    waiting: Iterable[WaitingBatch], old: Catalogue, new: Catalogue, *, now: Instant
) -> dict[BehindGate, int]:
    """Return how many unsent instances wait behind each gate; those without a gate in the old catalogue are omitted.

    The catalogues differ only in settings and cut points.
    """
    counts: dict[BehindGate, int] = {}
    for one in waiting:
        firsts = one.batch.counts.unsent - one.retries_unsent
        for retry, jobs in ((False, firsts), (True, one.retries_unsent)):
            place = _place(one, old, new, retry=retry, now=now) if jobs > 0 else None
            if place is not None:
                counts[place] = counts.get(place, 0) + jobs
    return counts


def _place(one: WaitingBatch, old: Catalogue, new: Catalogue, *, retry: bool, now: Instant) -> BehindGate | None:
    """Return the gate of a batch's retries or first instances: the one with the highest threshold among the types."""
    app_id, found, gates = one.batch.app_id, [], []
    for kind in sorted(old.processor_types(app_id)):
        before, after = (_typical(one, catalogue, kind, retry=retry, now=now) for catalogue in (old, new))
        if before is None or after is None or before.gate is Gate.NONE:
            continue
        of_retries = before.retry and before.threshold <= gates_of(old.settings.deadline)[Gate.RETRY]
        gates.append((before.threshold, Gate.RETRY if of_retries else before.gate))
        found.append((kind, before.threshold, after.threshold))
    return BehindGate(app_id, max(gates)[1], tuple(found)) if found else None


def goes_in_turn(batch: Batch, completion_at: float | None, settings: DeadlineSettings, now: Instant) -> bool:
    """Return whether any host that finishes a job soon in its queue order gets first instances, and busier hosts need
    p_afap: AFAP batches, and those past C (decisions 0036 and 0084).
    """
    is_past = completion_at is not None and completion_at <= now
    return traits_of(settings).afap_first and (batch.qos is QoS.AFAP or is_past)


def gates_needed(one: WaitingBatch, catalogue: Catalogue, *, now: Instant) -> frozenset[Gate]:
    """Return the gates that some hosts need for a batch's waiting jobs, as its page "What holds it back" names them."""
    batch, settings, needed = one.batch, catalogue.settings.deadline, set[Gate]()
    if goes_in_turn(batch, complete_at(batch, one.delay_bound_s), settings, now):
        needed.add(Gate.AFAP)
    elif batch.counts.unsent > one.retries_unsent:
        gate = gate_of(batch, now=now, median_r_q_s=catalogue.median_safe_runtime_s(batch.app_id), settings=settings)
        needed |= {Gate.LATE, Gate.TIGHT} if gate is Gate.LATE else {gate}
    if one.retries_unsent and (place := _place(one, catalogue, catalogue, retry=True, now=now)) is not None:
        needed.add(place.gate)
    return frozenset(needed.intersection(gates_in_use(settings)))


def _typical(one: WaitingBatch, catalogue: Catalogue, kind: ProcessorType, *, retry: bool, now: Instant) -> Due | None:
    """Return the due date on an idle host of median speed whose percentile is the lowest that qualifies."""
    app_id, settings, acceleration = one.batch.app_id, catalogue.settings.deadline, catalogue.acceleration
    cuts = catalogue.cut_points.get((app_id, kind))
    is_accelerated = acceleration is not None and acceleration.covers(one.batch.batch_id, app_id)
    safe_s = Seconds(min(catalogue.median_safe_runtime_s(app_id) or 0.0, one.delay_bound_s))
    held = reachable(settings, cuts)
    for percentile in (NEWCOMER, Percentile(held.p_retry), BEST):
        job = due_inputs(
            one.batch,
            _job_class(one),
            cuts,
            runtime_s=runtime_behind_s(safe_s, cuts, settings),
            safe_runtime_s=safe_s,
            retry=retry,
            low_turnaround=True if is_accelerated else None,
        )
        due = rule_of(settings)(Moment(now, Seconds(0.0), Seconds(0.0), percentile), job, held)
        if isinstance(due, Due):
            return due
    return None


def _job_class(one: WaitingBatch) -> JobClass:
    """Return a job class with the batch's delay bound, which is all that a due date depends on."""
    return JobClass(JobClassId(0), one.batch.batch_id, Flop(1.0), Flop(1.0), 0.0, 0.0, one.delay_bound_s)


def gates_of(settings: DeadlineSettings) -> Mapping[Gate, float]:
    """Return the threshold of each gate under these settings.

    >>> gates_of(DeadlineSettings())[Gate.TIGHT]
    0.9
    """
    return {
        Gate.AFAP: settings.p_afap,
        Gate.LATE: settings.p_late,
        Gate.RETRY: settings.p_retry,
        Gate.TIGHT: settings.p_tight,
    }


def types_of(catalogue: Catalogue) -> Sequence[TypeOf]:
    """Return every (app, processor type) with a current version, in order."""
    return [
        (app_id, kind) for app_id in sorted(catalogue.current) for kind in sorted(catalogue.processor_types(app_id))
    ]


@dataclass(frozen=True, slots=True, eq=False)
class GateStanding:
    """Hosts of one (app, processor type): rows (STANDING_FIELDS) of recently active hosts, and newcomers."""

    table: Table
    cuts: CutPoints | None
    newcomers: Newcomers
    one_in: int = 1  # rows that each row of the table stands for


class HostPopulationView:
    """The hosts as ranked and gated under one set of settings."""

    def __init__(
        self,
        standings: Mapping[TypeOf, GateStanding],
        settings: Settings,
        *,
        now: Instant,
        low_turnaround: frozenset[HostId] = frozenset(),
        ranked: Mapping[TypeOf, Percentiles] | None = None,
        passed: dict[Passes, Passing] | None = None,
    ) -> None:
        """Build the view; `ranked` are the percentiles and `passed` the counts that are already computed."""
        self._standings = standings
        self._now = now
        self._low_turnaround = low_turnaround
        self._low = np.fromiter(low_turnaround, np.int64, len(low_turnaround))
        self.settings = settings
        self._strict = traits_of(settings.deadline).strict_gates
        self._passed: dict[Passes, Passing] = {} if passed is None else passed
        self._ranked: Mapping[TypeOf, Percentiles] = ranked or {
            of_type: percentiles(one.table, one.cuts, now=now, settings=settings.ranking)
            for of_type, one in standings.items()
        }

    def under(self, catalogue: Catalogue) -> HostPopulationView:
        """Return the same hosts with other settings and cut points. Percentiles are recomputed only if these differ."""
        settings, cuts = catalogue.settings, catalogue.cut_points
        same = settings.ranking == self.settings.ranking
        return HostPopulationView(
            {of_type: replace(one, cuts=cuts.get(of_type)) for of_type, one in self._standings.items()},
            settings,
            now=self._now,
            low_turnaround=self._low_turnaround,
            ranked=self._ranked if same else None,
            passed=self._passed if same else None,
        )

    def is_small(self, of_type: TypeOf) -> bool:
        """Return whether the bootstrap rule applies."""
        cuts = self._standings[of_type].cuts
        return cuts is None or cuts.n < self.settings.ranking.min_rows

    def measured(self, of_type: TypeOf) -> int:
        """Return the number of hosts with enough results for a rank."""
        cuts = self._standings[of_type].cuts
        return 0 if cuts is None else cuts.n

    def side(self, of_type: TypeOf, gate: Gate) -> shapes.GateSide:
        """Return one gate on one processor type. Newcomers that pass count in the request rate, but not in `havs`."""
        settings, cuts = self.settings.deadline, self._standings[of_type].cuts
        asked, threshold = gates_of(settings)[gate], gates_of(reachable(settings, cuts))[gate]
        passed, one_in = self.passing({of_type: threshold}), self._standings[of_type].one_in
        fast = opens(self._ranked[of_type].x, threshold, strict=self._strict)
        capped = UNRANKED if cuts is None or not cuts.turnaround else LOWERED
        return {
            "asked": asked,
            "threshold": threshold,
            "because": capped if threshold < asked else "",
            "havs": passed.rows * one_in,
            "fast": int(np.count_nonzero(fast)) * one_in,
            "newcomers": self._newcomers(of_type, threshold).hosts,
            "calls_per_hour": round(passed.calls_per_hour, 3),
        }

    def hosts(self, gate: Gate) -> int:
        """Return the number of hosts that pass a gate on some processor type of some app, each once."""
        settings = self.settings.deadline
        thresholds = {
            of_type: gates_of(reachable(settings, one.cuts))[gate] for of_type, one in self._standings.items()
        }
        newcomers = (self._newcomers(of_type, threshold).hosts for of_type, threshold in thresholds.items())
        one_in = max((one.one_in for one in self._standings.values()), default=1)
        return self.passing(thresholds).hosts * one_in + max(newcomers, default=0)

    def passing(self, thresholds: Mapping[TypeOf, float]) -> Passing:
        """Return the rows that reach their threshold, and the request rate of their hosts and of passing newcomers.

        A newcomer on several processor types of an app sends one request, so only the type with most newcomers counts.
        """
        key = (self._strict, frozenset(thresholds.items()))  # gates often share a threshold
        found = self._passed.get(key)
        if found is None:
            found = self._passed[key] = passing(
                (self._standings[of_type].table, opens(self._ranked[of_type].p, threshold, strict=self._strict))
                for of_type, threshold in thresholds.items()
            )
        newcomers = [self._newcomers(of_type, threshold).calls_per_hour for of_type, threshold in thresholds.items()]
        return replace(found, calls_per_hour=found.calls_per_hour + max(newcomers, default=0.0))

    def low_turnaround(self, types: Iterable[TypeOf]) -> Passing:
        """Return the rows of hosts that serve accelerated batches, and the hosts' request rate."""
        tables = [self._standings[of_type].table for of_type in types]
        return passing((table, np.isin(table["host_id"], self._low)) for table in tables)

    def _newcomers(self, of_type: TypeOf, threshold: float) -> Newcomers:
        """Return the newcomers that pass: under the bootstrap rule, hosts without a row have P = 0.5."""
        enough = threshold < BOOTSTRAP_P if self._strict else threshold <= BOOTSTRAP_P
        return self._standings[of_type].newcomers if self.is_small(of_type) and enough else Newcomers()


def with_next_ranking(
    catalogue: Catalogue, standings: Mapping[TypeOf, GateStanding], settings: Settings, *, now: Instant
) -> Catalogue:
    """Return the catalogue with changed settings, and with the cut points of the next ranking if these change them.

    Run times and the retry turnaround stay as they were measured.
    """
    changed = replace(catalogue, settings=settings)
    if settings.ranking.min_samples == catalogue.settings.ranking.min_samples:
        return changed
    cuts = {
        of_type: reranked(
            one.table, one.cuts or CutPoints(*of_type, now, 0, (), ()), one.one_in, now=now, settings=settings.ranking
        )
        for of_type, one in standings.items()
    }
    return replace(changed, cut_points={**catalogue.cut_points, **cuts})


@dataclass(frozen=True, slots=True)
class GateEffect:
    """A gate that a change moves: the hosts that pass it before and after, and the waiting batches that need it now."""

    gate: Gate
    before: int
    after: int
    batches: Sequence[Batch]


def effects_of(
    waiting: Sequence[WaitingBatch],
    present: Catalogue,
    old: HostPopulationView,
    new: HostPopulationView,
    *,
    now: Instant,
) -> list[GateEffect]:
    """Return the gates whose threshold or number of passing hosts changes."""
    needed = [(one.batch, gates_needed(one, present, now=now)) for one in waiting]
    sides = (old, new)
    found = []
    for gate in gates_in_use(old.settings.deadline):
        before, after = (side.hosts(gate) for side in sides)
        set_before, set_after = (gates_of(side.settings.deadline)[gate] for side in sides)
        if (before, set_before) != (after, set_after):
            found.append(GateEffect(gate, before, after, [batch for batch, gates in needed if gate in gates]))
    return found


def types_previewed(
    standings: Mapping[TypeOf, GateStanding],
    old: HostPopulationView,
    new: HostPopulationView,
    names: Mapping[AppId, str],
) -> list[shapes.TypePreviewed]:
    """Return each gate of each (app, processor type), before and after the change."""
    gates = gates_in_use(old.settings.deadline)
    return [
        {
            "app": names[of_type[0]],
            "processor_type": of_type[1],
            "havs": int(standing.table.size) * standing.one_in,
            "newcomers": standing.newcomers.hosts,
            "small_population": old.is_small(of_type),
            "would_be_small": new.is_small(of_type),
            "measured": old.measured(of_type),
            "would_be_measured": new.measured(of_type),
            "gates": [
                {"gate": gate.value, "old": old.side(of_type, gate), "new": new.side(of_type, gate)} for gate in gates
            ],
        }
        for of_type, standing in standings.items()
    ]


def waits_previewed(
    behind: Mapping[BehindGate, int], old: HostPopulationView, new: HostPopulationView, names: Mapping[AppId, str]
) -> list[shapes.WaitPreviewed]:
    """Return how long it would take to send the jobs behind each gate, before and after the change."""
    return [
        {
            "app": names[place.app_id],
            "gate": place.gate.value,
            "jobs": jobs,
            "old": _wait(old, place.gate, jobs, {(place.app_id, kind): before for kind, before, _ in place.thresholds}),
            "new": _wait(new, place.gate, jobs, {(place.app_id, kind): after for kind, _, after in place.thresholds}),
        }
        for place, jobs in sorted(behind.items(), key=lambda one: (one[0].app_id, one[0].gate, one[0].thresholds))
    ]


def _wait(population: HostPopulationView, gate: Gate, jobs: int, thresholds: Mapping[TypeOf, float]) -> shapes.WaitSide:
    """Return the waiting time, assuming one job per request. `send_s` is None if no host that passes sends requests."""
    passed = population.low_turnaround(thresholds) if gate is Gate.LOW_TURNAROUND else population.passing(thresholds)
    rate = passed.calls_per_hour
    send_s = time_to_send_s(jobs, rate)
    return {
        "threshold": min(thresholds.values()),
        "calls_per_hour": round(rate, 3),
        "send_s": None if send_s is None else round(send_s, 1),
    }


def gates_in_use(settings: DeadlineSettings) -> Iterable[Gate]:
    """Return the gates that a deadline rule uses.

    >>> [gate.value for gate in gates_in_use(DeadlineSettings())]
    ['p_afap', 'p_late', 'p_retry', 'p_tight']
    """
    return tuple(gate for gate in traits_of(settings).gates if gate in gates_of(settings))


MOST_READ = 30_000  # rows; of larger projects a sample, so that a preview costs no more
KEPT_S = Seconds(60.0)  # operators who tune a threshold try several values in a row
MOST_KEPT = 200_000  # rows: 14 MB


class ReadsStandings(Protocol):
    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant, one_in: int = 1
    ) -> Sequence[tuple[Table, Newcomers]]: ...


@dataclass(frozen=True, slots=True)
class HostsRead:
    """Hosts read from the database by group of versions: one host in `one_in`, whose rates stand for all."""

    read_at: Instant
    found: Sequence[tuple[Table, Newcomers]]
    one_in: int = 1


async def standings_of(
    insight: ReadsStandings, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
) -> dict[TypeOf, GateStanding]:
    """Return the recent rows, newcomers and cut points of the given types."""
    if not types:
        return {}
    groups, active_since = _query_of(types, catalogue, now)
    return _with_cuts(types, catalogue, await insight.standings(groups, active_since=active_since, now=now))


class KeptStandings:
    """Caches the latest read for KEPT_S if it has at most MOST_KEPT rows."""

    def __init__(self, insight: ReadsStandings) -> None:
        self._insight = insight
        self._kept: tuple[object, HostsRead] | None = None
        self._until: asyncio.TimerHandle | None = None

    async def of(
        self, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
    ) -> tuple[dict[TypeOf, GateStanding], HostsRead]:
        """Return the result of `standings_of`, or a sample if more than MOST_READ rows are ranked."""
        if not types:
            return {}, HostsRead(now, ())
        ranked = sum(catalogue.cut_points[one].n for one in types if one in catalogue.cut_points)
        one_in = max(1, math.ceil(ranked / MOST_READ))
        hosts = await self.read(*_query_of(types, catalogue, now), now=now, one_in=one_in)
        return _with_cuts(types, catalogue, hosts.found, one_in), hosts

    async def read(
        self, groups: Sequence[Sequence[AppVersion]], active_since: Instant, *, now: Instant, one_in: int = 1
    ) -> HostsRead:
        query = (_ids(groups), round(now - active_since), one_in)
        if self._kept is not None and self._kept[0] == query:
            return self._kept[1]
        self._drop()
        found = await self._insight.standings(groups, active_since=active_since, now=now, one_in=one_in)
        hosts = HostsRead(now, found if one_in == 1 else [_for_all(*one, one_in) for one in found], one_in)
        if sum(table.size for table, _ in hosts.found) <= MOST_KEPT:
            self._drop()  # stored by a concurrent read
            self._kept = query, hosts
            self._until = asyncio.get_running_loop().call_later(KEPT_S, self._drop)
        return hosts

    def _drop(self) -> None:
        self._kept = None
        if self._until is not None:
            self._until.cancel()
            self._until = None


def _for_all(table: Table, newcomers: Newcomers, one_in: int) -> tuple[Table, Newcomers]:
    """Return the rows of a sample with the request rates of all hosts for which they stand."""
    table["calls_per_hour"] *= one_in
    return table, Newcomers(newcomers.hosts * one_in, newcomers.calls_per_hour * one_in)


def _query_of(
    types: Sequence[TypeOf], catalogue: Catalogue, now: Instant
) -> tuple[Sequence[Sequence[AppVersion]], Instant]:
    """Return the versions of each type, and the earliest last request that a host may have to be included."""
    groups = [
        [version for version in catalogue.current[app_id] if version.processor_type == kind] for app_id, kind in types
    ]
    return groups, Instant(now - catalogue.settings.ranking.active_s)


def _with_cuts(
    types: Sequence[TypeOf], catalogue: Catalogue, found: Sequence[tuple[Table, Newcomers]], one_in: int = 1
) -> dict[TypeOf, GateStanding]:
    return {
        of_type: GateStanding(table, catalogue.cut_points.get(of_type), newcomers, one_in)
        for of_type, (table, newcomers) in zip(types, found, strict=True)
    }


def _ids(groups: Sequence[Sequence[AppVersion]]) -> list[list[AppVersionId]]:
    return [[version.app_version_id for version in versions] for versions in groups]
