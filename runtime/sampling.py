"""Samples the project's figures every 10 s, and adds the samples up to longer steps (domain/samples.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from administration.heartbeats import SILENT_S, Document
from domain.clock import Clock
from domain.samples import KEPT_S, REFUSED, STEPS_S, thinned
from domain.units import DAY_S, Instant, Seconds, later
from domain.views import ActiveTotal, ProcessReport
from store.postgres import PostgresStore

SAMPLE_EVERY_S = Seconds(float(STEPS_S[0]))
COUNT_HOSTS_EVERY_S = Seconds(600.0)  # counting reads every host
COUNTED = ("requests", "sent", "reports")


def counts_of(report: Document) -> dict[str, float]:
    """Return the counts of a worker since it started. Workers of older versions report no refusals.

    >>> counts_of({"totals": {"requests": 5, "status_503": 1}, "busy_s": 0.5, "refused": {"disk": 2}})
    {'requests': 5, 'sent': 0, 'reports': 0, 'failed': 1, 'busy': 0.5, 'refused.disk': 2}
    """
    totals: Mapping[str, int] = report["totals"]
    return {
        **{name: totals.get(name, 0) for name in COUNTED},
        "failed": sum(count for name, count in totals.items() if name.startswith("status_")),
        "busy": report.get("busy_s", 0.0),
        **{f"{REFUSED}{code}": count for code, count in report.get("refused", {}).items()},
    }


@dataclass(frozen=True, slots=True)
class WorkerRates:
    """The last report of a worker, and its rates per second since the one before."""

    last: ProcessReport
    rates: Mapping[str, float] = field(default_factory=dict)

    def after(self, report: ProcessReport) -> WorkerRates:
        """Return the rates at the next report, which may be the same. A restarted worker counts from its start."""
        past_s = report.reported_at - self.last.reported_at
        if past_s <= 0.0:
            return self
        document: Document = report.report
        now, before = counts_of(document), counts_of(self.last.report)
        if document["started_at"] != self.last.report["started_at"]:
            before, past_s = {}, max(1.0, report.reported_at - document["started_at"])
        changed = {name: (count - before.get(name, 0.0)) / past_s for name, count in now.items()}
        return WorkerRates(report, {name: rate for name, rate in changed.items() if rate or not _is_refusal(name)})


def _is_refusal(name: str) -> bool:
    return name.startswith(REFUSED)


def summed(workers: Sequence[WorkerRates]) -> dict[str, float]:
    """Return the sums of the workers' rates; {} before a worker has reported twice."""
    found: dict[str, float] = {}
    for one in workers:
        for name, rate in one.rates.items():
            found[name] = found.get(name, 0.0) + rate
    return {name: round(rate, 6) for name, rate in found.items()}


def amounts(totals: Sequence[ActiveTotal]) -> dict[str, float]:
    """Return the sums over active work."""
    return {
        "batches": sum(one.batches for one in totals),
        "jobs_open": sum(one.jobs_total - one.jobs_validated - one.jobs_failed for one in totals),
        "unsent": sum(one.unsent for one in totals),
        "in_progress": sum(one.in_progress for one in totals),
    }


class Sampler:
    """Writes samples. It runs once per cluster."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._workers: dict[str, WorkerRates] = {}
        self._added_until: dict[int, float] = {}  # by step: start of the current one
        self._hosts = 0
        self._counted_at = Instant(-COUNT_HOSTS_EVERY_S)

    async def run_once(self) -> dict[str, float]:
        """Write the sample of this step, and those of longer steps that have ended. Raises UnavailableError."""
        now = self._clock.now()
        figures = await self._figures(now)
        await self._store.samples.write(STEPS_S[0], _start(now, STEPS_S[0]), figures)
        for fine, coarse in pairwise(STEPS_S):
            if self._added_until.get(coarse) != _start(now, coarse):
                await self._add_up(fine, coarse, now)
                self._added_until[coarse] = _start(now, coarse)
        for step in STEPS_S:
            await self._store.samples.delete(step, before=later(now, -KEPT_S[step] - step), after=later(now, step))
        return figures

    async def _figures(self, now: Instant) -> dict[str, float]:
        reports = await self._store.process_reports.since(later(now, -SILENT_S))
        known = self._workers
        self._workers = {
            one.name: known[one.name].after(one) if one.name in known else WorkerRates(one)
            for one in reports
            if one.kind == "worker"
        }
        if abs(now - self._counted_at) >= COUNT_HOSTS_EVERY_S:
            self._hosts, self._counted_at = await self._store.samples.active_hosts(later(now, -DAY_S)), now
        open_work = amounts(await self._store.listings.totals())
        return {**summed(list(self._workers.values())), **open_work, "hosts": self._hosts}

    async def _add_up(self, fine: int, coarse: int, now: Instant) -> None:
        """Write the coarse samples since the last one, also those before a time without samples."""
        samples, end = self._store.samples, _start(now, coarse)
        last = await samples.last(coarse, now)
        since = Instant(0.0) if last is None else later(last, coarse)
        for one in thinned(await samples.between(fine, since, end), coarse):
            await samples.write(coarse, one.at, one.figures)


def _start(at: Instant, step_s: int) -> Instant:
    """Return the start of the step that contains an instant.

    >>> _start(Instant(125.0), 60)
    120.0
    """
    return Instant(at // step_s * step_s)
