"""Shows the project's state: rates, job arrays, active work, errors and periodic tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiohttp import web

from administration.access.who import present
from administration.attention.service import AttentionViews
from administration.failed_requests import failed_lately
from administration.heartbeats import FORGOTTEN_S, SILENT_S
from administration.samples import sampled
from console.charts import Bar, bar_of
from console.over_time import ASKS, begins_at, charts_of, gaps_of, range_links, window_asked
from console.restrictions import pauses_shown
from domain.access import Role
from domain.errors import InvalidInputError
from domain.formatting import roughly
from domain.units import Instant, later
from domain.views import ActiveTotal, ProcessReport
from web.handlers import Pages, PageServices, get
from web.rendering import RenderedPage

Document = Mapping[str, Any]  # Any: a JSON document
LIVE_S = 5
FIRST_ITEMS = 5  # that need attention; a link leads to all
REFUSALS_S = 600.0  # workers report the refusals of so long (runtime/heartbeats.py)
MINE = "mine"
MOST_POINTS = 200  # in a chart, which is at most 700 pixels wide


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates per second over a minute, summed over all workers. `took_s` is per request; None without requests."""

    workers: int
    requests: float = 0.0
    sent: float = 0.0
    reports: float = 0.0
    took_s: float | None = None
    slots: int = 0
    slots_most: int = 0


@dataclass(frozen=True, slots=True)
class ReadyJobs:
    """The jobs of an app in the job arrays. `kinds`: processor types with an app version."""

    app: str
    kinds: Sequence[str]
    urgent: int
    fresh: int


@dataclass(frozen=True, slots=True)
class Done:
    """The open work of one app at one quality of service."""

    total: ActiveTotal
    bar: Bar


@dataclass(frozen=True, slots=True)
class Duties:
    """The state of one periodic task, as reported by the process that runs it. `where` is None if no process does."""

    name: str
    where: str | None
    done_at: Instant | None
    took_s: float | None
    rounds: int
    failures: int
    failed_at: Instant | None
    failure: str


def rates_of(workers: Sequence[ProcessReport]) -> Rates:
    """Return the sums of the workers' rates."""
    reports: list[Document] = [one.report for one in workers]
    requests = sum(one["per_s"]["requests"] for one in reports)
    busy_s = sum((one["took_s"] or 0.0) * one["per_s"]["requests"] for one in reports)
    return Rates(
        len(reports),
        requests,
        sum(one["per_s"]["sent"] for one in reports),
        sum(one["per_s"]["reports"] for one in reports),
        busy_s / requests if requests else None,
        sum(one["slots"] for one in reports),
        sum(one["slots_most"] for one in reports),
    )


def ready_of(workers: Sequence[ProcessReport]) -> list[ReadyJobs]:
    """Return the jobs in all job arrays by app. A report repeats the jobs of an app for each processor type."""
    kinds: dict[str, set[str]] = {}
    counts: dict[str, Counter[str]] = {}
    for one in workers:
        report: Document = one.report
        of_worker: dict[str, Counter[str]] = {}
        for part in report["partitions"]:
            kinds.setdefault(part["app"], set()).add(part["processor_type"])
            of_worker[part["app"]] = Counter({name: part[name] for name in ("urgent", "fresh")})
        for app, counted in of_worker.items():
            counts.setdefault(app, Counter()).update(counted)
    return [ReadyJobs(app, sorted(kinds[app]), of["urgent"], of["fresh"]) for app, of in sorted(counts.items())]


def codes_of(workers: Sequence[ProcessReport]) -> list[tuple[str, int]]:
    """Return the number of refusals in the last ten minutes by code, most frequent first."""
    found: dict[str, int] = {}
    for one in workers:
        report: Document = one.report
        for code, count in report["refusals"].items():
            found[code] = found.get(code, 0) + count
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def counted_since(workers: Sequence[ProcessReport], now: Instant) -> Instant | None:
    """Return since when the refusals are counted, None for ten minutes: no worker started later.

    >>> both = [ProcessReport("a", "worker", Instant(0.0), {"started_at": at}) for at in (0.0, 900.0)]
    >>> counted_since(both, Instant(1000.0)), counted_since(both, Instant(1500.0))
    (900.0, None)
    """
    latest = max((float(str(one.report["started_at"])) for one in workers), default=0.0)
    return Instant(latest) if now - latest < REFUSALS_S else None


def failures_told(workers: Sequence[ProcessReport]) -> list[Document]:
    """Return the failed requests that running workers report. Workers of older versions report none."""
    reports: list[Document] = [one.report for one in workers]
    return [one["failed"] for one in reports if "failed" in one]


def duties_of(processes: Iterable[ProcessReport]) -> list[Duties]:
    """Return each periodic task once, from the process that holds it; failures are summed over all processes.

    Several hold a shared task: it is shown from the one whose last round is the oldest.
    """
    found: dict[str, Duties] = {}
    for one in processes:
        report: Document = one.report
        for duty in report["duties"]:
            known = found.get(duty["name"])
            failures = duty["failures"] + (known.failures if known else 0)
            is_behind = known is None or not known.where or (duty["done_at"] or 0.0) < (known.done_at or 0.0)
            if known is not None and not (duty["mine"] and is_behind):
                found[duty["name"]] = replace(known, failures=failures)
                continue
            found[duty["name"]] = Duties(
                duty["name"],
                one.name if duty["mine"] else None,
                duty["done_at"],
                duty["took_s"],
                duty["rounds"],
                failures,
                duty["failed_at"],
                duty["failure"],
            )
    return [found[name] for name in sorted(found)]


class AttentionPage(Pages[PageServices]):
    """Everything that needs attention."""

    def __init__(self, services: PageServices, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention

    @get("/attention", "attention", asks=("whose",))
    async def show(self, request: web.Request) -> RenderedPage:
        whose, own_id = request.query.get("whose", ""), present(request).submitter_id
        if whose not in ("", MINE):
            raise InvalidInputError("whose", f"{MINE}, or no value for all", whose)
        found = await self._attention.now()
        if whose == MINE and own_id is not None:
            found = found.of(own_id)
        values: dict[str, object] = {"attention": found, "whose": whose, "has_own": own_id is not None}
        return RenderedPage("attention.html", "Needs attention", "", values=values, every_s=LIVE_S)


class OverviewPage(Pages[PageServices]):
    """The start page."""

    def __init__(self, services: PageServices, attention: AttentionViews) -> None:
        super().__init__(services)
        self._attention = attention

    @get("/", "overview", asks=ASKS)
    async def show(self, request: web.Request) -> RenderedPage:
        now, store = self._services.clock.now(), self._services.store
        window = window_asked(request.query, now)
        found = await sampled(store.samples, window, now, most=MOST_POINTS)
        charts = charts_of(found, window)
        silent_at = later(now, -SILENT_S)
        processes = await store.process_reports.since(silent_at)
        gone = await store.process_reports.failures_of_gone(later(now, -FORGOTTEN_S), before=silent_at)
        totals = await store.listings.totals()
        runs = await store.generations.runs(1)
        workers = [one for one in processes if one.kind == "worker"]
        person, attention = present(request), await self._attention.now()
        known = self._services.catalogue
        own_id = None if person.may(Role.OPERATOR) else person.submitter_id
        pauses, more_pauses = await pauses_shown(store, known, most=FIRST_ITEMS)
        values: dict[str, object] = {
            "attention": attention if own_id is None else attention.of(own_id),
            "of_all": len(attention.items),
            "pauses": pauses,
            "more_pauses": more_pauses,
            "own": "" if own_id is None else await store.views.submitter_name(own_id),
            "first_items": FIRST_ITEMS,
            "rates": rates_of(workers),
            "charts": charts,
            "ranges": range_links(request.query, window, now),
            "begins": "" if (first_at := begins_at(found, window)) is None else roughly(now - first_at),
            "gaps": gaps_of(found, min(now, window.to_at)),
            "ready": ready_of(workers),
            "codes": codes_of(workers)[:12],
            "counted_since": counted_since(workers, now),
            "failed": failed_lately([*failures_told(workers), *gone], now=now),
            "duties": duties_of(one for one in processes if one.kind == "background"),
            "processes": processes,
            "work": [
                Done(one, bar_of(one.jobs_total, one.jobs_validated, one.jobs_failed, one.in_progress))
                for one in totals
            ],
            "batches": sum(one.batches for one in totals),
            "jobs_open": sum(one.jobs_total - one.jobs_validated - one.jobs_failed for one in totals),
            "unsent": sum(one.unsent for one in totals),
            "in_progress": sum(one.in_progress for one in totals),
            "backup_age_s": known.settings.storage.backup_age_s,
            "ranking": runs[0] if runs else None,
            "has_apps": bool(self._services.catalogue.apps),
            "has_versions": any(self._services.catalogue.current.values()),
        }
        return RenderedPage("overview.html", "Overview", "", values=values, charts=bool(charts), every_s=LIVE_S)
