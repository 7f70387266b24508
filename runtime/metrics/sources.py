"""Measures a process every two seconds, without queries, and writes the readings to the node's metrics store."""

from __future__ import annotations

import os
import resource
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import structlog

from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.units import AppId, Instant, Seconds
from feeder.service import Feeder
from runtime.counters import RefillCounters, RequestCounters
from runtime.guards import ClockCheck, NodePauses
from runtime.logs import PageCounters
from runtime.metrics import catalogue as metric
from runtime.metrics.catalogue import LOOP_LAG, MetricSample, Source
from runtime.metrics.metrics_store import MetricReading, MetricsStore, counts, reading
from runtime.periodic_tasks import DutyWatch, PeriodicTask
from store.locks import PostgresShards
from store.postgres import PostgresFigures

PAGE_BYTES = resource.getpagesize()


def of_requests(counters: RequestCounters) -> Iterator[MetricSample]:
    """Yield metrics of scheduler requests since the process started."""
    failed = {name[7:]: n for name, n in counters.totals.items() if name.startswith("status_")}
    answered = counters.totals["requests"] - sum(failed.values())
    for status, n in {"200": answered, **failed}.items():
        yield metric.REQUESTS.of(status, value=n)
    yield metric.JOBS_SENT.of(value=counters.totals["sent"])
    yield metric.JOBS_RESENT.of(value=counters.totals["resent"])
    yield metric.RESULTS_REPORTED.of(value=counters.totals["reports"])
    for code, n in counters.refusals.items():
        yield metric.REFUSALS.of(code.value, value=n)
    for fate, n in counters.trickles.items():
        yield metric.TRICKLES.of(fate.value, value=n)
    yield metric.REQUEST_SECONDS.counted(buckets=counters.latency, total=counters.took_s)


def of_pages(counters: PageCounters) -> Iterator[MetricSample]:
    """Yield metrics of all other requests."""
    for (area, status), n in counters.replies.items():
        yield metric.PAGES.of(area, status, value=n)
    for area, took_s in counters.took_s.items():
        yield metric.PAGE_SECONDS.of(area, value=took_s)
    for page, (*buckets, total) in counters.console.items():
        yield metric.CONSOLE_SECONDS.counted(page, buckets=buckets, total=total)


def of_array(feeder: Feeder, catalogue: Catalogue) -> Iterator[MetricSample]:
    """Yield the contents of the job array. An app's slots count once for each processor type it has a version for."""
    slots: Counter[AppId] = Counter()
    urgent = 0
    for group in feeder.array.each_group():
        slots[group.batch.app_id] += len(group)
        urgent += len(group) if group.urgent else 0
    yield metric.ARRAY_CAPACITY.of(value=catalogue.settings.feeder.slots)
    yield metric.ARRAY_URGENT.of(value=urgent)
    yield metric.UNRUNNABLE.of(value=sum(one.is_certain for one in feeder.array.unrunnable()))
    for app_id, app in catalogue.apps.items():
        for processor_type in sorted(catalogue.processor_types(app_id)):
            yield metric.ARRAY_SLOTS.of(app.name, processor_type, value=slots[app_id])


def of_refills(feeder: Feeder, refills: RefillCounters, now: Instant) -> Iterator[MetricSample]:
    """Yield metrics of refills of the job array."""
    yield metric.REFILLS.of(value=sum(refills.latency))
    yield metric.REFILL_SECONDS.counted(buckets=refills.latency, total=refills.took_s)
    yield metric.REFILLED.of(value=refills.placed)
    yield metric.REFILL_FAILURES.of(value=feeder.failures)
    if feeder.last is not None:
        yield metric.REFILL_AGE.of(value=max(0.0, now - feeder.last.started_at))


def of_cut_points(catalogue: Catalogue, now: Instant) -> Iterator[MetricSample]:
    """Yield the age of the cut points, including stale ones."""
    computed = {key: cuts.computed_at for key, cuts in catalogue.cut_points.items()} | dict(catalogue.stale_since)
    for (app_id, processor_type), at in sorted(computed.items()):
        if app_id in catalogue.apps:
            age_s = max(0.0, now - at)
            yield metric.CUT_POINTS_AGE.of(catalogue.apps[app_id].name, processor_type, value=age_s)


def of_store(figures: PostgresFigures) -> Iterator[MetricSample]:
    """Yield metrics of database connections, and the number of requests per round trip."""
    pool = figures.pool()
    yield metric.POOL.of("idle", value=pool.idle)
    yield metric.POOL.of("busy", value=pool.connections - pool.idle)
    yield metric.POOL_MOST.of(value=pool.most)
    yield metric.CALLS.of(value=pool.calls)
    for kind, groups in figures.groups().items():
        yield metric.GROUPS.counted(kind, buckets=_by_size(groups.sizes), total=_members(groups.sizes))
        yield metric.GROUP_WAITING.of(kind, value=groups.waiting)
        yield metric.LANES.of(kind, value=groups.connections)


def of_node(pauses: NodePauses, check: ClockCheck, shards: PostgresShards, now: Instant) -> Iterator[MetricSample]:
    """Yield whether a worker may send work, and its view of the database."""
    yield metric.SERVING.of(value=pauses.refuse_work_because(now) is None)
    yield metric.CLOCK_OFFSET.of(value=check.drift_s)
    yield metric.DATABASE_UP.of(value=check.answered and not shards.in_doubt())
    yield metric.ROUND_TRIP.of(value=check.round_trip_s)
    yield metric.SHARDS.of(value=len(shards.owned()))
    if not shards.in_doubt():
        yield metric.LOCKS_SILENT.of(value=shards.silent_s())


def of_duties(duties: Sequence[PeriodicTask]) -> Iterator[MetricSample]:
    """Yield the time and duration of each periodic task's last round."""
    for duty in duties:
        yield metric.DUTY_RUNS.of(duty.name, value=duty.runs)
        yield metric.DUTY_FAILURES.of(duty.name, value=duty.failures)
        yield metric.DUTY_MINE.of(duty.name, value=duty.is_mine)
        if duty.ran_at is not None:
            yield metric.DUTY_LAST.of(duty.name, value=duty.ran_at)
            yield metric.DUTY_SECONDS.of(duty.name, value=duty.took_s)


def of_overdue(watch: DutyWatch) -> Iterator[MetricSample]:
    """Yield by how much periodic tasks are overdue in the cluster."""
    for duty, late_s in watch.late_s().items():
        yield metric.DUTY_OVERDUE.of(duty, value=late_s)


def of_process(started_at: Instant, version: str) -> Callable[[], Iterable[MetricSample]]:
    """Return a source of this process's CPU time and memory."""

    def measure() -> Iterator[MetricSample]:
        times = os.times()
        yield metric.BUILD.of(version, value=1)
        yield metric.STARTED.of(value=started_at)
        yield metric.CPU.of(value=times.user + times.system)
        statm = Path("/proc/self/statm")
        if statm.exists():  # Linux only
            yield metric.MEMORY.of(value=int(statm.read_text().split()[1]) * PAGE_BYTES)

    return measure


def _by_size(sizes: Mapping[int, int]) -> list[int]:
    """Return how many groups fall into each of the catalogue's buckets.

    >>> _by_size({1: 5, 3: 2, 4: 1, 64: 1})
    [5, 0, 3, 0, 0, 0, 1]
    """
    buckets = [0] * (len(metric.GROUP_SIZES) + 1)
    for size, n in sizes.items():
        buckets[bisect_left(metric.GROUP_SIZES, size)] += n
    return buckets


def _members(sizes: Mapping[int, int]) -> int:
    return sum(size * n for size, n in sizes.items())


REPORT_EVERY_S = Seconds(2.0)

log = structlog.get_logger()


class Reporter:
    """Reports the metrics of one process. Counters continue from the previous process with the same name."""

    def __init__(self, process: str, board: MetricsStore, sources: Sequence[Source], clock: Clock) -> None:
        self.board = board
        self._process = process
        self._sources = sources
        self._clock = clock
        self._lag_s = 0.0
        earlier = board.last(process)
        self._earlier = counts(earlier) if earlier is not None else {}

    def report_once(self) -> MetricReading:
        """Take one reading, store it and return it."""
        taken = reading(self._process, self._clock.now(), self._samples(), self._earlier)
        self.board.put(taken)
        return taken

    async def run(self) -> None:
        """Measure forever, and once more when the process stops."""
        try:
            while True:
                self.report_once()
                asleep_at = self._clock.monotonic()
                await self._clock.sleep(REPORT_EVERY_S)
                self._lag_s = max(0.0, self._clock.monotonic() - asleep_at - REPORT_EVERY_S)
        finally:
            self.report_once()

    def _samples(self) -> Iterable[MetricSample]:
        yield LOOP_LAG.of(value=self._lag_s)
        for source in self._sources:
            yield from _measured(source)


def _measured(source: Callable[[], Iterable[MetricSample]]) -> Sequence[MetricSample]:
    """Return a source's samples. If a source fails, this is logged, and the other sources are still measured."""
    try:
        return list(source())
    except Exception:
        log.exception("not measured", source=getattr(source, "__qualname__", repr(source)))
        return ()
