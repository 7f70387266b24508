"""Failed requests are counted for a day, across restarts of workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from administration.failed_requests import Failed, FailedLately, FailedRequests, failed_lately
from console.overview import failures_told
from domain.catalogue import Catalogue
from domain.units import Instant, Seconds, later
from domain.views import ProcessReport
from feeder.array import JobArray
from runtime.counters import RequestCounters
from runtime.heartbeats import HeartbeatWriter, WorkerHeartbeat
from runtime.logs import PageCounters
from simulator.virtual_time import VirtualClock
from tests.builders import NOW

HOUR_S = 3600.0


def shown(*counted: FailedRequests, now: Instant) -> FailedLately:
    return failed_lately([one.as_json() for one in counted], now=now)


def test_failures_of_workers_add_up() -> None:
    one, other = FailedRequests(NOW), FailedRequests(NOW)
    one.update({"503": 2}, later(NOW, 10.0))
    one.update({"503": 2}, later(NOW, 20.0))
    other.update({"503": 1, "400": 1}, later(NOW, 30.0))

    assert shown(one, other, now=later(NOW, 40.0)) == FailedLately(
        (Failed("scheduler", "400", 1, later(NOW, 30.0)), Failed("scheduler", "503", 3, later(NOW, 30.0))),
        workers=2,
        since_at=NOW,
    )


def test_failures_older_than_a_day_are_dropped() -> None:
    counted = FailedRequests(NOW)
    counted.update({"503": 2}, NOW)
    counted.update({"503": 3}, later(NOW, 20 * HOUR_S))

    assert [one.requests for one in shown(counted, now=later(NOW, 20 * HOUR_S)).rows] == [3]
    [row] = shown(counted, now=later(NOW, 25 * HOUR_S)).rows  # from a stopped worker
    counted.update({"503": 3}, later(NOW, 25 * HOUR_S))

    assert row.requests == 1
    assert shown(counted, now=later(NOW, 25 * HOUR_S)) == FailedLately((row,), workers=1, since_at=None)


class Reports:
    """The last report of each process, in memory."""

    def __init__(self) -> None:
        self.last: dict[str, ProcessReport] = {}

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        self.last[name] = ProcessReport(name, kind, now, report)

    async def since(self, at: Instant) -> Sequence[ProcessReport]:
        return [one for one in self.last.values() if one.reported_at >= at]


class NoApps:
    """An empty catalogue."""

    def catalogue(self) -> Catalogue:
        return Catalogue()


async def a_worker_fails(clock: VirtualClock, reports: Reports, name: str, times: int) -> None:
    """Start a worker, fail `times` requests, report them and stop."""
    counters, source = RequestCounters(clock), NoApps()
    array = JobArray(clock, lambda: source.catalogue().settings.feeder)
    heartbeat = WorkerHeartbeat(counters, PageCounters(), array, tuple, source, clock, folder="f")
    writer = HeartbeatWriter(name, heartbeat, reports, clock)  # type: ignore[arg-type]  # a twin
    await writer.write_once()
    for _ in range(times):
        counters.request_failed(503)
    await writer.write_once()


async def test_restarted_worker_continues_the_counts() -> None:
    clock, reports = VirtualClock(NOW), Reports()

    await a_worker_fails(clock, reports, "a", 2)
    await a_worker_fails(clock, reports, "a", 3)
    await a_worker_fails(clock, reports, "b", 4)
    await a_worker_fails(clock, reports, "a", 0)

    found = failed_lately(failures_told(await reports.since(NOW)), now=later(NOW, Seconds(60.0)))
    assert [(one.status, one.requests) for one in found.rows] == [("503", 9)]
    assert found.since_at == NOW


async def test_server_errors_are_counted_by_area() -> None:
    clock, source, pages, counters = VirtualClock(NOW), NoApps(), PageCounters(), RequestCounters(VirtualClock(NOW))
    array = JobArray(clock, lambda: source.catalogue().settings.feeder)
    heartbeat = WorkerHeartbeat(counters, pages, array, tuple, source, clock, folder="f")
    for area, status in (("upload", 503), ("upload", 500), ("api", 502), ("api", 404), ("readyz", 503)):
        pages.note(area, status, 0.1)
    counters.request_failed(400)

    found = failed_lately(failures_told([ProcessReport("a", "worker", NOW, heartbeat.report())]), now=NOW)

    assert [(one.area, one.status, one.requests) for one in found.rows] == [
        ("api", "5xx", 1),
        ("scheduler", "400", 1),
        ("upload", "5xx", 2),
    ]


def test_reports_without_failures_count_no_worker() -> None:
    silent = ProcessReport("an older one", "worker", NOW, {"slots": 9})

    assert failed_lately(failures_told([silent]), now=NOW).workers == 0
