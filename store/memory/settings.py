"""Changed settings, the state of periodic tasks, process reports and requested simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.acceleration import Acceleration
from domain.errors import NotFoundError
from domain.ranking import RelaxedGate
from domain.units import Instant
from domain.views import ProcessReport, SettingChange, Simulation, SimulationState
from store.memory.registry import Registry


class MemorySettings:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def settings(self) -> Mapping[str, object]:
        return dict(sorted(self._registry.changed_settings.items()))

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        await self.set_settings({key: value}, now=now, who=who, why=why)

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        registry = self._registry
        for key, value in sorted(values.items()):
            old = registry.changed_settings.pop(key, None)
            if value is not None:
                registry.changed_settings[key] = value
            change_id = len(registry.setting_changes) + 1
            registry.setting_changes.append(SettingChange(key, old, value, now, who, why, change_id))

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]:
        """Newest first."""
        changes = self._registry.setting_changes
        return changes[: before - 1 if before is not None else None][: -limit - 1 : -1]


class MemoryNotes:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def note_relaxed_gates(self, gates: Sequence[RelaxedGate], *, now: Instant) -> None:
        del now  # when they were noted is asked by nobody here
        self._registry.relaxed_gates = tuple(gates)

    async def note_acceleration(self, acceleration: Acceleration) -> None:
        self._registry.acceleration = acceleration


class MemoryProcessReports:
    def __init__(self) -> None:
        self._reports: dict[str, ProcessReport] = {}

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        known = self._reports.get(name)
        if known is None or known.reported_at <= now:
            self._reports[name] = ProcessReport(name, kind, now, dict(report))

    async def since(self, at: Instant) -> Sequence[ProcessReport]:
        lately = [one for one in self._reports.values() if one.reported_at >= at]
        return sorted(lately, key=lambda one: (one.kind, one.name))

    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        found: dict[str, Instant] = {}
        for one in await self.since(since):
            for duty in _duties(one):
                name, at = str(duty["name"]), duty.get("deadline_at")
                if isinstance(at, float):
                    found[name] = max(found.get(name, Instant(at)), Instant(at))
        return dict(sorted(found.items()))

    async def failures_of_gone(self, since: Instant, *, before: Instant) -> Sequence[Mapping[str, object]]:
        workers = [one for one in await self.since(since) if one.kind == "worker" and one.reported_at < before]
        told = [one.report.get("failed") for one in workers]
        return [failed for failed in told if isinstance(failed, Mapping)]


def _duties(report: ProcessReport) -> Sequence[Mapping[str, object]]:
    duties = report.report.get("duties") if report.kind == "background" else None
    return duties if isinstance(duties, list) else ()


class MemorySimulations:
    def __init__(self) -> None:
        self._simulations: dict[int, Simulation] = {}

    async def add(
        self, asked: Mapping[str, object], *, who: str, now: Instant, heard_since: Instant, most: int
    ) -> int | None:
        running = [one for one in self._simulations.values() if one.state is SimulationState.RUNNING]
        if sum(one.heard_at >= heard_since for one in running) >= most:
            return None
        simulation_id = max(self._simulations, default=0) + 1
        added = Simulation(simulation_id, now, who, dict(asked), SimulationState.RUNNING, now, 0.0)
        self._simulations[simulation_id] = added
        return simulation_id

    async def note(self, simulation_id: int, done_fraction: float, *, now: Instant) -> bool:
        known = self._running(simulation_id)
        if known is None:
            return False
        done = max(known.done_fraction, done_fraction)
        self._simulations[simulation_id] = replace(known, heard_at=now, done_fraction=done)
        return True

    async def end(
        self,
        simulation_id: int,
        state: SimulationState,
        *,
        now: Instant,
        result: Mapping[str, object] | None = None,
        failure: str | None = None,
    ) -> bool:
        known = self._running(simulation_id)
        if known is None:
            return False
        done = 1.0 if state is SimulationState.DONE else known.done_fraction
        self._simulations[simulation_id] = replace(
            known, state=state, heard_at=now, result=result, failure=failure, done_fraction=done
        )
        return True

    async def simulations(self, limit: int) -> Sequence[Simulation]:
        newest = sorted(self._simulations, reverse=True)[:limit]
        return [replace(self._simulations[simulation_id], result=None) for simulation_id in newest]

    async def simulation(self, simulation_id: int) -> Simulation:
        if simulation_id not in self._simulations:
            raise NotFoundError("simulation", simulation_id)
        return self._simulations[simulation_id]

    def _running(self, simulation_id: int) -> Simulation | None:
        known = self._simulations.get(simulation_id)
        return known if known is not None and known.state is SimulationState.RUNNING else None
