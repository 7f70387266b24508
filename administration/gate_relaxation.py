"""Lowers gates whose passing hosts send too few requests for the waiting jobs; restores them later (decision 0012).

Each round 1 counts unsent instances behind each gate, 2 computes, for every threshold, requests per hour from hosts
that pass, 3 selects the highest threshold at which the jobs are sent in time, and 4 stores the result, which requests
use seconds later. The result depends only on the request rate, not on how long a job has waited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from administration.thresholds.preview import (
    BehindGate,
    GateStanding,
    HostPopulationView,
    ReadsStandings,
    TypeOf,
    behind_gates,
    standings_of,
)
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.deadline_rules import traits_of
from domain.insight import WaitingBatch
from domain.ranking import RelaxedGate
from domain.settings import DeadlineSettings
from domain.units import AppId, Instant, Seconds
from hoststats.standing import Passing
from scheduler.gates import affordable, least_gate, longest_wait_s

RELAX_EVERY_S = Seconds(60.0)
MOST_BATCHES = 2000  # maximum number of waiting batches evaluated, first in order

log = structlog.get_logger("administration.gate_relaxation")


class Callers(ReadsStandings, Protocol):
    """Reads recently active hosts and waiting work."""

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]: ...


class GateNotes(Protocol):
    async def note_relaxed_gates(self, gates: Sequence[RelaxedGate], *, now: Instant) -> None:
        """Store the relaxed gates; all other gates use their configured thresholds."""
        ...


@dataclass(frozen=True, slots=True)
class GateReport:
    """One round's result: `waiting` unsent instances behind gates that may be lowered, and the lowered gates."""

    waiting: int = 0
    relaxed: tuple[RelaxedGate, ...] = ()


class GateRelaxer:
    """Periodic task that relaxes gates; runs in one process per cluster."""

    def __init__(self, callers: Callers, notes: GateNotes, catalogue: Callable[[], Catalogue], clock: Clock) -> None:
        self._callers = callers
        self._notes = notes
        self._catalogue = catalogue
        self._clock = clock

    async def run_once(self) -> GateReport:
        """Recompute the relaxed gates. Hosts are read only if jobs wait behind a gate."""
        catalogue, now = self._catalogue(), self._clock.now()
        settings = catalogue.settings.deadline
        if not relaxes(settings):
            return await self._noted(catalogue, GateReport(), now)
        waiting = await self._callers.waiting_batches(MOST_BATCHES)
        behind = high_gates(waiting, catalogue, now)
        types = sorted({(place.app_id, kind) for place in behind for kind, _, _ in place.thresholds})
        standings = await standings_of(self._callers, types, as_set(catalogue), now=now)
        gates = await asyncio.to_thread(
            lambda: relaxed_gates(behind, standings, catalogue, most_taken(waiting, catalogue), now=now)
        )
        return await self._noted(catalogue, GateReport(sum(behind.values()), gates), now)

    async def _noted(self, catalogue: Catalogue, report: GateReport, now: Instant) -> GateReport:
        """Store the relaxed gates, so that pages show the latest counts, log changed ones, and return the report."""
        before = {_key(gate): gate for cuts in catalogue.cut_points.values() for gate in cuts.relaxed}
        after = {_key(gate): gate for gate in report.relaxed}
        if before or after:
            await self._notes.note_relaxed_gates(report.relaxed, now=now)
        for key in sorted(before.keys() | after.keys()):
            was, is_now = before.get(key), after.get(key)
            if was is None or is_now is None or was.threshold != is_now.threshold:
                _log_change(was, is_now)
        return report


def as_set(catalogue: Catalogue) -> Catalogue:
    """Return the catalogue with all gates at their configured thresholds. Pure."""
    cuts = {of_type: replace(cut, relaxed=()) for of_type, cut in catalogue.cut_points.items()}
    return replace(catalogue, cut_points=cuts)


def high_gates(waiting: Sequence[WaitingBatch], catalogue: Catalogue, now: Instant) -> dict[BehindGate, int]:
    """Return the unsent instances behind gates that may be lowered: above 0 for some processor type. Pure."""
    found = behind_gates(waiting, as_set(catalogue), as_set(catalogue), now=now)
    return {
        place: jobs for place, jobs in found.items() if any(threshold > 0.0 for _, threshold, _ in place.thresholds)
    }


def with_relaxed_gates(
    waiting: Sequence[WaitingBatch],
    standings: Mapping[TypeOf, GateStanding],
    catalogue: Catalogue,
    *,
    now: Instant,
) -> Catalogue:
    """Return the catalogue with the gates as the next round would lower them. Pure."""
    gates: tuple[RelaxedGate, ...] = ()
    if relaxes(catalogue.settings.deadline):
        behind = high_gates(waiting, catalogue, now)
        gates = relaxed_gates(behind, standings, catalogue, most_taken(waiting, catalogue), now=now)
    cuts = {
        of_type: replace(cut, relaxed=tuple(one for one in gates if (one.app_id, one.processor_type) == of_type))
        for of_type, cut in catalogue.cut_points.items()
    }
    return replace(catalogue, cut_points=cuts)


def relaxes(settings: DeadlineSettings) -> bool:
    """Return whether gates are lowered while too few of the hosts that pass make requests."""
    return traits_of(settings).relaxes_gates and settings.gate_wait_fraction > 0.0


@dataclass(frozen=True, slots=True)
class TakenJobs:
    """The largest number of hosts and volunteers excluded from a waiting job because they have or had it."""

    hosts: int = 0
    volunteers: int = 0

    def leaves(self, passed: Passing) -> bool:
        """Return whether at least one passing host remains that is not excluded from any waiting job."""
        return passed.hosts > self.hosts and passed.volunteers > self.volunteers


def most_taken(waiting: Sequence[WaitingBatch], catalogue: Catalogue) -> dict[AppId, TakenJobs]:
    """Return, by app, the largest number of hosts and volunteers excluded from one of its waiting jobs; an app that the
    catalogue does not have yet is left out. Pure.
    """
    taken: dict[AppId, TakenJobs] = {}
    for one in waiting:
        app_id = one.batch.app_id
        if app_id not in catalogue.apps:
            continue
        before = taken.get(app_id, TakenJobs())
        per_volunteer = catalogue.apps[app_id].spread(one.most_quorum).per_volunteer
        taken[app_id] = TakenJobs(
            max(before.hosts, one.most_taken), max(before.volunteers, one.most_taken if per_volunteer else 0)
        )
    return taken


def relaxed_gates(
    behind: Mapping[BehindGate, int],
    standings: Mapping[TypeOf, GateStanding],
    catalogue: Catalogue,
    taken: Mapping[AppId, TakenJobs],
    *,
    now: Instant,
) -> tuple[RelaxedGate, ...]:
    """Return the gates to relax. Requests do not count if all passing hosts may be excluded (`taken`, by app). Pure."""
    settings = catalogue.settings
    population = HostPopulationView(standings, settings, now=now)
    found: dict[tuple[int, str, str], RelaxedGate] = {}
    for place, jobs in sorted(behind.items(), key=lambda one: (one[0].app_id, one[0].gate, one[0].thresholds)):
        types: list[TypeOf] = [(place.app_id, kind) for kind, _, _ in place.thresholds]

        def rate(p: float, types: Sequence[TypeOf] = types) -> float:
            found = population.passing(dict.fromkeys(types, p))
            return found.calls_per_hour if taken.get(types[0][0], TakenJobs()).leaves(found) else 0.0

        highest = max(threshold for _, threshold, _ in place.thresholds)
        longest_s = max(longest_wait_s(catalogue.cut_points.get(of_type), settings.deadline) for of_type in types)
        threshold, calls = affordable(highest, jobs, rate, longest_s=longest_s, least=least_gate(place.gate, rate))
        if threshold < highest:
            for gate in (RelaxedGate(*of_type, place.gate, threshold, jobs, calls, now) for of_type in types):
                known = found.get(_key(gate))
                found[_key(gate)] = gate if known is None or gate.threshold < known.threshold else known
    return tuple(found[key] for key in sorted(found))


def _key(gate: RelaxedGate) -> tuple[int, str, str]:
    return gate.app_id, gate.processor_type, gate.gate


def _log_change(before: RelaxedGate | None, after: RelaxedGate | None) -> None:
    """Log one line for a changed gate."""
    known = after or before
    assert known is not None
    log.info(
        "gate lowered" if after is not None else "gate restored",
        app_id=known.app_id,
        processor_type=known.processor_type,
        gate=str(known.gate),
        threshold=None if after is None else after.threshold,
        before=None if before is None else before.threshold,
        jobs=known.jobs,
        calls_per_hour=round(known.calls_per_hour, 3),
    )
