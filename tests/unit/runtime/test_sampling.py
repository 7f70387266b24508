"""The sampler: rates from workers' counts, thinning into longer steps, and a table that does not grow."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from domain.samples import KEPT_S, STEPS_S, Sample
from domain.units import Instant, later
from domain.views import ProcessReport
from runtime.sampling import Sampler, WorkerRates, summed
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.jobs.projects import HandClock


def a_report(after_s: float, requests: int, *, started_s: float = -1000.0, **more: Any) -> ProcessReport:
    totals = {"requests": requests, "sent": requests // 2}
    document = {"started_at": NOW + started_s, "totals": totals, "busy_s": requests / 100, **more}
    return ProcessReport("a", "worker", later(NOW, after_s), document)


def test_rates_are_differences_of_counts() -> None:
    rates = WorkerRates(a_report(0.0, 100, refused={"disk": 5, "cpus": 1}))
    rates = rates.after(a_report(10.0, 120, refused={"disk": 10, "cpus": 1}))

    assert rates.rates == {
        "requests": 2.0,
        "sent": 1.0,
        "reports": 0.0,
        "failed": 0.0,
        "busy": pytest.approx(0.02),
        "refused.disk": 0.5,
    }
    assert rates.after(a_report(10.0, 120)) is rates
    assert summed([rates, rates])["requests"] == 4.0


def test_restarted_worker_counts_from_its_start() -> None:
    rates = WorkerRates(a_report(0.0, 1000)).after(a_report(10.0, 20, started_s=5.0))

    assert rates.rates["requests"] == 4.0


def test_worker_that_reported_once_has_no_rates() -> None:
    assert summed([WorkerRates(a_report(0.0, 100))]) == {}


class Project:
    """A sampler over a store in memory, with a worker that answers two requests per second."""

    def __init__(self) -> None:
        self.clock = HandClock(Instant(NOW // 21_600 * 21_600))
        self.store = MemoryStore()
        self.sampler = Sampler(as_postgres(self.store), self.clock)
        self.started_at = self.clock.now()

    async def run(self, length_s: float, every_s: float = 10.0) -> None:
        end_at = later(self.clock.now(), length_s)
        while self.clock.now() < end_at:
            now = self.clock.now()
            totals = {"requests": int(2 * (now - self.started_at))}
            report = {"started_at": self.started_at, "totals": totals}
            await self.store.process_reports.note("a", "worker", report, now=now)
            await self.sampler.run_once()
            await self.clock.sleep(every_s)

    async def all(self, step_s: int) -> list[Sample]:
        return list(await self.store.samples.between(step_s, Instant(0.0), Instant(1e12)))


def test_samples_are_added_up_when_a_longer_step_ends() -> None:
    async def scenario() -> tuple[list[Sample], list[Sample]]:
        project = Project()
        await project.run(700.0)
        return await project.all(60), await project.all(600)

    minutes, tens = asyncio.run(scenario())

    assert len(minutes) == 11 and len(tens) == 1
    assert {round(one.figures["requests"], 3) for one in minutes} == {2.0}
    assert tens[0].figures["requests"] == pytest.approx(2.0)


def test_no_step_keeps_more_than_its_time() -> None:
    async def scenario() -> dict[int, list[Sample]]:
        project = Project()
        await project.run(400 * 86400.0, every_s=86_400.0)
        await project.run(3700.0)
        return {step: await project.all(step) for step in STEPS_S}

    found = asyncio.run(scenario())

    for step, samples in found.items():
        assert 0 < len(samples) <= KEPT_S[step] / step + 3
        assert samples[-1].at - samples[0].at <= KEPT_S[step] + 2 * step


def test_another_process_continues_where_the_last_one_ended() -> None:
    async def scenario() -> list[float]:
        project = Project()
        await project.run(130.0)
        project.sampler = Sampler(as_postgres(project.store), project.clock)
        await project.run(120.0)
        return [one.at - project.started_at for one in await project.all(60)]

    assert asyncio.run(scenario()) == [0.0, 60.0, 120.0, 180.0]


def test_samples_of_a_clock_that_ran_ahead_are_deleted() -> None:
    async def scenario() -> tuple[list[Sample], list[Sample]]:
        project = Project()
        for step in STEPS_S:
            await project.store.samples.write(step, later(project.clock.now(), 1e7), {"hosts": 1.0})
        await project.run(70.0)
        return await project.all(10), await project.all(60)

    tens, minutes = asyncio.run(scenario())

    assert (len(tens), len(minutes)) == (7, 1)
