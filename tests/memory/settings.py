"""Changes of settings, process reports, requested simulations and arrivals of new hosts, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import store.memory.applications
from domain.errors import NotFoundError
from domain.samples import MOST_SAMPLES, Sample
from domain.settings import Settings
from domain.units import Instant
from domain.views import ProcessReport, SettingChange, Simulation, SimulationState
from store.memory.work import Work


class MemorySettings(store.memory.applications.MemorySettings):
    @asynccontextmanager
    async def editing(self, *, alone: bool) -> AsyncIterator[None]:
        yield

    async def in_force(self) -> Settings:
        return Settings.from_stored(await self.settings())[0]

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]:
        """Return changes, newest first."""
        changes = self._registry.setting_changes
        return changes[: before - 1 if before is not None else None][: -limit - 1 : -1]

    async def project_pause(self) -> SettingChange | None:
        changes = [one for one in self._registry.setting_changes if one.key == "project.down"]
        if not changes or (await self.settings()).get("project.down") is not True:
            return None
        return replace(changes[-1], changed_at=max(one.changed_at for one in changes if one.from_value is not True))


class MemoryProcessReports:
    def __init__(self) -> None:
        self._reports: dict[str, ProcessReport] = {}

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        known = self._reports.get(name)
        if known is None or known.reported_at <= now:
            self._reports[name] = ProcessReport(name, kind, now, dict(report))

    async def since(self, at: Instant, *, kind: str | None = None) -> Sequence[ProcessReport]:
        recent = [one for one in self._reports.values() if one.reported_at >= at and kind in (None, one.kind)]
        return sorted(recent, key=lambda one: (one.kind, one.name))

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


class MemorySamples:
    def __init__(self, work: Work) -> None:
        self._work = work
        self._samples: dict[tuple[int, Instant], Sample] = {}

    async def write(self, step_s: int, at: Instant, figures: Mapping[str, float]) -> None:
        self._samples[step_s, at] = Sample(at, dict(figures))

    async def last(self, step_s: int, until: Instant) -> Instant | None:
        return max((at for step, at in self._samples if step == step_s and at <= until), default=None)

    async def between(self, step_s: int, from_at: Instant, to_at: Instant) -> Sequence[Sample]:
        found = sorted(at for step, at in self._samples if step == step_s and from_at <= at < to_at)
        return [self._samples[step_s, at] for at in found[:MOST_SAMPLES]]

    async def delete(self, step_s: int, *, before: Instant, after: Instant) -> None:
        for step, at in list(self._samples):
            if step == step_s and not before <= at <= after:
                del self._samples[step, at]

    async def active_hosts(self, since: Instant) -> int:
        return sum(stored.host.last_rpc_at >= since for stored in self._work.hosts.values())


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


class MemoryArrivals:
    """Implements runtime.rate_limits's Arrivals."""

    def __init__(self) -> None:
        self._hosts: Counter[tuple[int, str]] = Counter()

    async def arrive(self, day: int, most: Mapping[str, int]) -> str | None:
        for who in sorted(most):
            if self._hosts[day, who] >= most[who]:
                return who
        for key in [one for one in self._hosts if one[0] < day]:
            del self._hosts[key]
        self._hosts.update((day, who) for who in most)
        return None
