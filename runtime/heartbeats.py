"""Heartbeats from each process: every 10 s to the database, every 2 s to its supervisor on standard output.

A process with a blocked event loop sends none; its supervisor then kills and restarts it.
"""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import structlog

from administration.failed_requests import FailedRequests, failures_of
from administration.heartbeats import FORGOTTEN_S, Document, partitions, taken_as_json, unrunnable_as_json
from domain.catalogue import CatalogueSource
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.units import Instant, Seconds, later
from feeder.array import JobArray
from feeder.unschedulable import Unrunnable
from runtime.counters import RequestCounters
from runtime.logs import PageCounters
from runtime.periodic_tasks import PeriodicTask
from store.process_reports import PostgresProcessReports

WRITE_EVERY_S = Seconds(10.0)
KEPT = 61  # heartbeats in ten minutes
RATES_OVER = 6  # heartbeats in a minute
MEASURE_EVERY_S = Seconds(60.0)

log = structlog.get_logger()


class DiskSpace:
    """Measures the free space of the disks of some folders, in a thread: a file server may not respond."""

    def __init__(self, folders: Sequence[Path], clock: Clock) -> None:
        self._folders = folders
        self._clock = clock
        self._measured: Sequence[Document] = ()

    def report(self) -> Sequence[Document]:
        """Return the latest measurement: `path`, `free_bytes` and `total_bytes` of each disk."""
        return self._measured

    def measure_once(self) -> None:
        found: dict[int, Document] = {}
        for folder in self._folders:
            device, usage = folder.stat().st_dev, shutil.disk_usage(folder)
            found.setdefault(device, {"path": str(folder), "free_bytes": usage.free, "total_bytes": usage.total})
        self._measured = tuple(found.values())

    async def run(self) -> None:
        while True:
            try:
                await asyncio.to_thread(self.measure_once)
            except OSError as error:
                log.warning("free disk space not measured", why=str(error))
            await self._clock.sleep(MEASURE_EVERY_S)


class WorkerHeartbeat:
    """Heartbeat of a request worker."""

    kind = "worker"

    def __init__(
        self,
        counters: RequestCounters,
        pages: PageCounters,
        array: JobArray,
        unrunnable: Callable[[], Sequence[Unrunnable]],
        source: CatalogueSource,
        clock: Clock,
        *,
        folder: str,
        disks: Callable[[], Sequence[Document]] = tuple,
    ) -> None:
        """Build the heartbeat. `folder` identifies the node's `files/`."""
        self._disks = disks
        self._counters = counters
        self._pages = pages
        self._folder = folder
        self._array = array
        self._unrunnable = unrunnable
        self._source = source
        self._clock = clock
        self._started_at = clock.now()
        self._looks: deque[tuple[Instant, Counter[str], float]] = deque(maxlen=RATES_OVER + 1)
        self._refusals: deque[Counter[str]] = deque(maxlen=KEPT)
        self._failed = FailedRequests(self._started_at)

    def resume(self, earlier: Document) -> None:
        """Continue the counts of the last heartbeat with the same name."""
        if "failed" in earlier:
            self._failed.resume(earlier["failed"])

    def report(self) -> dict[str, object]:
        """Return the report as JSON. Rates are per second over the last minute, refusals cover ten minutes."""
        now = self._clock.now()
        totals = Counter(self._counters.totals)
        self._looks.append((now, totals, self._counters.took_s))
        self._refusals.append(Counter({code.value: count for code, count in self._counters.refusals.items()}))
        self._failed.update(failures_of(totals, self._pages.replies), now)
        before_at, before, before_took_s = self._looks[0]
        cool_off_s = self._source.catalogue().settings.feeder.cool_off_s
        recent, past_s = totals - before, max(now - before_at, 1e-9)
        answered = recent["requests"]
        return {
            "started_at": self._started_at,
            "files": self._folder,
            "disks": list(self._disks()),
            "totals": dict(sorted(totals.items())),
            "per_s": {name: recent[name] / past_s for name in ("requests", "sent", "reports")},
            "took_s": (self._counters.took_s - before_took_s) / answered if answered else None,
            "failed": self._failed.as_json(),
            "refusals": dict((self._refusals[-1] - self._refusals[0]).most_common()),
            "refused": {code.value: count for code, count in self._counters.refusals.items()},
            "busy_s": self._counters.took_s,
            "history": [],  # consoles of older nodes read it during an upgrade
            "slots": len(self._array),
            "slots_most": self._source.catalogue().settings.feeder.slots,
            "partitions": partitions(self._array, self._source, self._clock.monotonic()),
            "cool_off_s": cool_off_s,
            "unrunnable": unrunnable_as_json(self._unrunnable()),
            "taken": taken_as_json(self._array.rotation.taken()),
        }


class BackgroundHeartbeat:
    """Heartbeat of a background process: each periodic task's last round, and the deadline of its next one."""

    kind = "background"

    def __init__(self, duties: Iterable[PeriodicTask], judged: Callable[[], Document], clock: Clock) -> None:
        """Build the heartbeat. `judged` returns the verdicts about work that hosts refused."""
        self._duties = tuple(duties)
        self._judged = judged
        self._started_at = clock.now()

    def resume(self, earlier: Document) -> None:
        """Do nothing: counts start at zero."""

    def report(self) -> dict[str, object]:
        """Return the report as JSON."""
        return {
            "started_at": self._started_at,
            "judged": self._judged(),
            "duties": [
                {
                    "name": duty.name,
                    "mine": duty.is_mine,
                    "rounds": duty.runs,
                    "failures": duty.failures,
                    "done_at": duty.ran_at,
                    "took_s": duty.took_s,
                    "failed_at": duty.failed_at,
                    "failure": duty.failure,
                    "deadline_at": duty.deadline_at,
                }
                for duty in self._duties
            ],
        }


class HeartbeatWriter:
    """Writes this process's heartbeat every 10 s, and retries while the database is unavailable."""

    def __init__(
        self,
        name: str,
        heartbeat: WorkerHeartbeat | BackgroundHeartbeat,
        reports: PostgresProcessReports,
        clock: Clock,
    ) -> None:
        self.failures = 0
        self._name = name
        self._heartbeat = heartbeat
        self._reports = reports
        self._clock = clock
        self._resumed = False

    async def write_once(self) -> None:
        """Write one heartbeat. Raises UnavailableError."""
        if not self._resumed:
            for earlier in await self._reports.since(later(self._clock.now(), -FORGOTTEN_S)):
                if earlier.name == self._name:
                    self._heartbeat.resume(earlier.report)
            self._resumed = True
        await self._reports.note(self._name, self._heartbeat.kind, self._heartbeat.report(), now=self._clock.now())

    async def run(self) -> None:
        while True:
            try:
                await self.write_once()
            except UnavailableError as error:
                log.warning("heartbeat not written", why=str(error))
            except Exception:
                self.failures += 1
                log.exception("heartbeat not written", failures=self.failures)  # the process continues without it
            await self._clock.sleep(WRITE_EVERY_S)


BEAT_S = Seconds(2.0)


def say(line: str) -> None:
    """Write a line to the supervisor. If the supervisor does not read, the line is dropped without blocking."""
    number = sys.stdout.fileno()
    if select.select([], [number], [], 0)[1]:
        os.write(number, f"{line}\n".encode())


async def send_heartbeats(hangs: Callable[[], str], clock: Clock) -> None:
    """Send heartbeats forever. `hangs` returns what hangs in this process, or "" if nothing does."""
    while True:
        what = hangs()
        if what:
            log.error("this process hangs; its supervisor will restart it", what=what)
        say(f"hangs {what}" if what else "alive")
        await clock.sleep(BEAT_S)
