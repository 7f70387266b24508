"""Previews a change of thresholds: rows that pass, their calls, jobs behind each gate, and how long they would wait.

The gate in front of a job depends on the host that asks. Here it is the one that an idle host of the app's median speed
would meet; what such a host is sent in its turn is behind none (decision 0036). The rule itself is the scheduler's.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from domain.apps import AppVersion, ProcessorType
from domain.catalogue import Catalogue
from domain.deadline_rules import traits_of
from domain.insight import Newcomers, WaitingBatch
from domain.jobs import JobClass
from domain.ranking import BOOTSTRAP_P, CutPoints, Gate, Percentile
from domain.settings import DeadlineSettings, Settings
from domain.units import AppId, AppVersionId, Flop, HostId, Instant, JobClassId, Seconds
from hoststats.ports import Table
from hoststats.ranking import Floats
from hoststats.standing import Passing, opens, passing, percentiles, time_to_send_s
from muster_client import shapes
from scheduler.deadline import Due, Moment, due_inputs, rule_of
from scheduler.gates import reachable
from scheduler.runtime import runtime_behind_s

NEWCOMER, BEST = Percentile(None), Percentile(math.inf)  # one opens no gate, the other every one
TypeOf = tuple[AppId, ProcessorType]


@dataclass(frozen=True, slots=True)
class BehindGate:
    """Jobs of one app behind one gate; `thresholds` are what hosts must reach on each processor type, old and new."""

    app_id: AppId
    gate: Gate
    thresholds: tuple[tuple[ProcessorType, float, float], ...]


def behind_gates(
    waiting: Iterable[WaitingBatch], catalogue: Catalogue, old: DeadlineSettings, new: DeadlineSettings, *, now: Instant
) -> dict[BehindGate, int]:
    """How many unsent instances wait behind each gate; those no gate keeps are left out."""
    counts: dict[BehindGate, int] = {}
    for one in waiting:
        firsts = one.batch.counts.unsent - one.retries_unsent
        for retry, jobs in ((False, firsts), (True, one.retries_unsent)):
            place = _place(one, catalogue, old, new, retry=retry, now=now) if jobs > 0 else None
            if place is not None:
                counts[place] = counts.get(place, 0) + jobs
    return counts


def _place(
    one: WaitingBatch,
    catalogue: Catalogue,
    old: DeadlineSettings,
    new: DeadlineSettings,
    *,
    retry: bool,
    now: Instant,
) -> BehindGate | None:
    app_id = one.batch.app_id
    found = []
    gate = Gate.NONE
    is_accelerated = catalogue.acceleration is not None and catalogue.acceleration.covers(one.batch.batch_id, app_id)
    for kind in sorted(catalogue.processor_types(app_id)):
        cuts = catalogue.cut_points.get((app_id, kind))
        before, after = (
            _typical(
                one,
                cuts,
                catalogue.median_safe_runtime_s(app_id),
                settings,
                retry=retry,
                is_accelerated=is_accelerated,
                now=now,
            )
            for settings in (old, new)
        )
        if before is None or after is None or before.gate is Gate.NONE:
            continue
        gate = Gate.RETRY if retry and before.gate is not Gate.LOW_TURNAROUND else before.gate
        found.append((kind, before.threshold, after.threshold))
    return BehindGate(app_id, gate, tuple(found)) if found else None


def _typical(
    one: WaitingBatch,
    cuts: CutPoints | None,
    safe_runtime_s: Seconds | None,
    settings: DeadlineSettings,
    *,
    retry: bool,
    is_accelerated: bool,
    now: Instant,
) -> Due | None:
    """The due date of an idle host of median speed that has the least percentile it is given one with."""
    safe_s = Seconds(min(safe_runtime_s or 0.0, one.delay_bound_s))
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
    """What a due date depends on of a class: its delay bound."""
    return JobClass(JobClassId(0), one.batch.batch_id, Flop(1.0), Flop(1.0), 0.0, 0.0, one.delay_bound_s)


def gates_of(settings: DeadlineSettings) -> Mapping[Gate, float]:
    """The threshold of each gate.

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
    """Every (app, processor type) with a current version, in order."""
    return [
        (app_id, kind) for app_id in sorted(catalogue.current) for kind in sorted(catalogue.processor_types(app_id))
    ]


@dataclass(frozen=True, slots=True, eq=False)
class GateStanding:
    """The hosts of one (app, processor type): rows (STANDING_FIELDS) of those that called lately, and newcomers."""

    table: Table
    cuts: CutPoints | None
    newcomers: Newcomers


class HostPopulationView:
    """The hosts as one setting of the thresholds sees them."""

    def __init__(
        self,
        standings: Mapping[TypeOf, GateStanding],
        settings: Settings,
        *,
        now: Instant,
        low_turnaround: frozenset[HostId] = frozenset(),
        ranked: Mapping[TypeOf, Floats] | None = None,
    ) -> None:
        """`ranked` are the percentiles, where they are known."""
        self._standings = standings
        self._now = now
        self._low_turnaround = low_turnaround
        self._low = np.fromiter(low_turnaround, np.int64, len(low_turnaround))
        self.settings = settings
        self._strict = traits_of(settings.deadline).strict_gates
        self._p: Mapping[TypeOf, Floats] = ranked or {
            of_type: percentiles(one.table, one.cuts, now=now, settings=settings.ranking)
            for of_type, one in standings.items()
        }

    def under(self, settings: Settings) -> HostPopulationView:
        """The same hosts as other settings see them; they are ranked anew where those rank otherwise."""
        ranked = self._p if settings.ranking == self.settings.ranking else None
        return HostPopulationView(
            self._standings, settings, now=self._now, low_turnaround=self._low_turnaround, ranked=ranked
        )

    def is_small(self, of_type: TypeOf) -> bool:
        """Whether the bootstrap rule holds."""
        cuts = self._standings[of_type].cuts
        return cuts is None or cuts.n < self.settings.ranking.min_rows

    def side(self, of_type: TypeOf, gate: Gate) -> shapes.GateSide:
        """One gate on one processor type.

        `newcomers` hosts without a row pass, too; they are not among `havs`, but among the calls.
        """
        settings = self.settings.deadline
        threshold = gates_of(reachable(settings, self._standings[of_type].cuts))[gate]
        passed = self.passing({of_type: threshold})
        return {
            "asked": gates_of(settings)[gate],
            "threshold": threshold,
            "havs": passed.rows,
            "newcomers": self._newcomers(of_type, threshold).hosts,
            "calls_per_hour": round(passed.calls_per_hour, 3),
        }

    def passing(self, thresholds: Mapping[TypeOf, float]) -> Passing:
        """Rows that reach their threshold, and the calls from their hosts and from newcomers who do.

        A newcomer to several processor types of an app calls but once: of those only the most numerous are counted.
        """
        found = passing(
            (self._standings[of_type].table, opens(self._p[of_type], threshold, strict=self._strict))
            for of_type, threshold in thresholds.items()
        )
        newcomers = [self._newcomers(of_type, threshold).calls_per_hour for of_type, threshold in thresholds.items()]
        return replace(found, calls_per_hour=found.calls_per_hour + max(newcomers, default=0.0))

    def low_turnaround(self, types: Iterable[TypeOf]) -> Passing:
        """Rows of the hosts that the jobs of accelerated batches are for, and the calls from them."""
        tables = [self._standings[of_type].table for of_type in types]
        return passing((table, np.isin(table["host_id"], self._low)) for table in tables)

    def _newcomers(self, of_type: TypeOf, threshold: float) -> Newcomers:
        """Hosts without a row pass where the bootstrap rule gives them 0.5 and that is enough."""
        enough = threshold < BOOTSTRAP_P if self._strict else threshold <= BOOTSTRAP_P
        return self._standings[of_type].newcomers if self.is_small(of_type) and enough else Newcomers()


def types_previewed(
    standings: Mapping[TypeOf, GateStanding],
    old: HostPopulationView,
    new: HostPopulationView,
    names: Mapping[AppId, str],
) -> list[shapes.TypePreviewed]:
    """Every gate of every (app, processor type), as it is and as it would be."""
    gates = gates_asked(old.settings.deadline)
    return [
        {
            "app": names[of_type[0]],
            "processor_type": of_type[1],
            "havs": int(standing.table.size),
            "newcomers": standing.newcomers.hosts,
            "small_population": old.is_small(of_type),
            "gates": [
                {"gate": gate.value, "old": old.side(of_type, gate), "new": new.side(of_type, gate)} for gate in gates
            ],
        }
        for of_type, standing in standings.items()
    ]


def waits_previewed(
    behind: Mapping[BehindGate, int], old: HostPopulationView, new: HostPopulationView, names: Mapping[AppId, str]
) -> list[shapes.WaitPreviewed]:
    """How long what waits behind each gate would take to be sent."""
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
    """At one job per call; `send_s` None: no host behind the gate calls."""
    passed = population.low_turnaround(thresholds) if gate is Gate.LOW_TURNAROUND else population.passing(thresholds)
    rate = passed.calls_per_hour
    send_s = time_to_send_s(jobs, rate)
    return {
        "threshold": min(thresholds.values()),
        "calls_per_hour": round(rate, 3),
        "send_s": None if send_s is None else round(send_s, 1),
    }


def gates_asked(settings: DeadlineSettings) -> Iterable[Gate]:
    """The gates a deadline rule has.

    >>> [gate.value for gate in gates_asked(DeadlineSettings())]
    ['p_afap', 'p_late', 'p_retry', 'p_tight']
    """
    return tuple(gate for gate in traits_of(settings).gates if gate in gates_of(settings))


KEPT_S = Seconds(60.0)  # whoever moves a threshold tries several values
MOST_KEPT = 200_000  # rows: 14 MB


class ReadsStandings(Protocol):
    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]: ...


@dataclass(frozen=True, slots=True)
class HostsRead:
    """What was read of hosts, by group of versions, and when."""

    read_at: Instant
    found: Sequence[tuple[Table, Newcomers]]


async def standings_of(
    insight: ReadsStandings, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
) -> dict[TypeOf, GateStanding]:
    """Of each of these types the rows of hosts that called lately, the newcomers, and what they are judged by."""
    if not types:
        return {}
    groups, active_since = _asked(types, catalogue, now)
    return _judged(types, catalogue, await insight.standings(groups, active_since=active_since, now=now))


class KeptStandings:
    """Says for KEPT_S what it read last, of no more than MOST_KEPT rows, and lets go of it then."""

    def __init__(self, insight: ReadsStandings) -> None:
        self._insight = insight
        self._kept: tuple[object, HostsRead] | None = None
        self._until: asyncio.TimerHandle | None = None

    async def of(
        self, types: Sequence[TypeOf], catalogue: Catalogue, *, now: Instant
    ) -> tuple[dict[TypeOf, GateStanding], Instant]:
        """The same as `standings_of`, by hosts as they were at the instant that is told."""
        if not types:
            return {}, now
        hosts = await self.read(*_asked(types, catalogue, now), now=now)
        return _judged(types, catalogue, hosts.found), hosts.read_at

    async def read(self, groups: Sequence[Sequence[AppVersion]], active_since: Instant, *, now: Instant) -> HostsRead:
        asked = (_ids(groups), round(now - active_since))
        if self._kept is not None and self._kept[0] == asked:
            return self._kept[1]
        self._let_go()
        hosts = HostsRead(now, await self._insight.standings(groups, active_since=active_since, now=now))
        if sum(table.size for table, _ in hosts.found) <= MOST_KEPT:
            self._let_go()  # of what somebody else has read meanwhile
            self._kept = asked, hosts
            self._until = asyncio.get_running_loop().call_later(KEPT_S, self._let_go)
        return hosts

    def _let_go(self) -> None:
        self._kept = None
        if self._until is not None:
            self._until.cancel()
            self._until = None


def _asked(
    types: Sequence[TypeOf], catalogue: Catalogue, now: Instant
) -> tuple[Sequence[Sequence[AppVersion]], Instant]:
    """The versions of each of these types, and since when a host has to have called."""
    groups = [
        [version for version in catalogue.current[app_id] if version.processor_type == kind] for app_id, kind in types
    ]
    return groups, Instant(now - catalogue.settings.ranking.active_s)


def _judged(
    types: Sequence[TypeOf], catalogue: Catalogue, found: Sequence[tuple[Table, Newcomers]]
) -> dict[TypeOf, GateStanding]:
    return {
        of_type: GateStanding(table, catalogue.cut_points.get(of_type), newcomers)
        for of_type, (table, newcomers) in zip(types, found, strict=True)
    }


def _ids(groups: Sequence[Sequence[AppVersion]]) -> list[list[AppVersionId]]:
    return [[version.app_version_id for version in versions] for versions in groups]
