"""Requests that failed are counted for a day, whatever becomes of the worker that counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from domain.catalogue import Catalogue
from domain.listings import ProcessReport
from domain.units import Instant, Seconds, later
from feeder.array import JobArray
from operations.counters import RequestCounters
from operations.failed_requests import Failed, FailedLately, FailedRequests, failed_lately
from operations.pulse import PulseTeller, WorkerPulse
from simulator.clock import VirtualClock
from tests.builders import NOW

HOUR_S = 3600.0


def shown(*counted: FailedRequests, now: Instant) -> FailedLately:
    return failed_lately([{"failed": one.as_json()} for one in counted], now=now)


def test_failures_of_workers_add_up_with_when_the_last_one_was() -> None:
    one, other = FailedRequests(NOW), FailedRequests(NOW)
    one.look({"status_503": 2, "requests": 9}, later(NOW, 10.0))
    one.look({"status_503": 2, "requests": 99}, later(NOW, 20.0))
    other.look({"status_503": 1, "status_400": 1}, later(NOW, 30.0))

    assert shown(one, other, now=later(NOW, 40.0)) == FailedLately(
        (Failed("400", 1, later(NOW, 30.0)), Failed("503", 3, later(NOW, 30.0))), since_at=NOW
    )


def test_what_failed_a_day_ago_is_forgotten() -> None:
    counted = FailedRequests(NOW)
    counted.look({"status_503": 2}, NOW)
    counted.look({"status_503": 3}, later(NOW, 20 * HOUR_S))

    assert [one.requests for one in shown(counted, now=later(NOW, 20 * HOUR_S)).rows] == [3]
    [row] = shown(counted, now=later(NOW, 25 * HOUR_S)).rows  # of a worker that is gone
    counted.look({"status_503": 3}, later(NOW, 25 * HOUR_S))

    assert row.requests == 1
    assert shown(counted, now=later(NOW, 25 * HOUR_S)) == FailedLately((row,), since_at=None)


class Reports:
    """What processes said last, in memory."""

    def __init__(self) -> None:
        self.last: dict[str, ProcessReport] = {}

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        self.last[name] = ProcessReport(name, kind, now, report)

    async def since(self, at: Instant) -> Sequence[ProcessReport]:
        return [one for one in self.last.values() if one.reported_at >= at]


class NoApps:
    """A catalogue without anything."""

    def catalogue(self) -> Catalogue:
        return Catalogue()


async def a_worker_fails(clock: VirtualClock, reports: Reports, name: str, times: int) -> None:
    """A worker is started, fails to answer so many requests, tells of it and dies."""
    counters, source = RequestCounters(clock), NoApps()
    array = JobArray(clock, lambda: source.catalogue().settings.feeder)
    teller = PulseTeller(name, WorkerPulse(counters, array, tuple, source, clock, folder="f"), reports, clock)
    await teller.tell_once()
    for _ in range(times):
        counters.request_failed(503)
    await teller.tell_once()


async def test_a_worker_goes_on_counting_where_the_one_before_it_died() -> None:
    clock, reports = VirtualClock(NOW), Reports()

    await a_worker_fails(clock, reports, "a", 2)
    await a_worker_fails(clock, reports, "a", 3)
    await a_worker_fails(clock, reports, "b", 4)
    await a_worker_fails(clock, reports, "a", 0)

    found = failed_lately([one.report for one in await reports.since(NOW)], now=later(NOW, Seconds(60.0)))
    assert [(one.status, one.requests) for one in found.rows] == [("503", 9)]
    assert found.since_at == NOW
