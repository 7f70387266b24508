"""Counts requests and refills, and logs them once a minute."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from statistics import median

import structlog

from domain.clock import Clock
from domain.dispatch import TrickleFate
from domain.refusals import RefusalCode
from domain.units import Seconds
from feeder.refill import Refill
from runtime.metrics.catalogue import LATENCY_S

LOG_EVERY_S = Seconds(60.0)
LOOK_EVERY_S = Seconds(0.25)  # refills run about once a second; missing one does not matter

log = structlog.get_logger()


class RequestCounters:
    """Counts scheduler requests. Implements the scheduler's RequestObserver."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.totals: Counter[str] = Counter()
        self.refusals: Counter[RefusalCode] = Counter()
        self.trickles: Counter[TrickleFate] = Counter()
        self.took_s = 0.0
        self.latency = [0] * (len(LATENCY_S) + 1)  # number of answered requests by duration

    def request_answered(
        self, *, sent: int, resent: int, reports: int, refusals: Mapping[RefusalCode, int], took_s: Seconds
    ) -> None:
        totals = self.totals
        totals["requests"] += 1
        totals["sent"] += sent
        totals["resent"] += resent
        totals["reports"] += reports
        if refusals:
            self.refusals.update(refusals)
        self.took_s += took_s
        self.latency[bisect_left(LATENCY_S, took_s)] += 1

    def trickles_taken(self, fates: Mapping[TrickleFate, int]) -> None:
        self.trickles.update(fates)

    def request_failed(self, status: int) -> None:
        self.totals.update({"requests": 1, f"status_{status}": 1})

    async def run(self) -> None:
        """Log the counts of each minute with requests."""
        before: Counter[str] = Counter()
        while True:
            await self._clock.sleep(LOG_EVERY_S)
            since = self.totals - before
            before = self.totals.copy()
            if since:
                log.info("requests", **since, refusals={code.value: n for code, n in self.refusals.most_common(5)})


class RefillCounters:
    """Counts refills that placed slots. `last` returns the feeder's latest refill."""

    def __init__(self, last: Callable[[], Refill | None], clock: Clock) -> None:
        self._last = last
        self._clock = clock
        self._seen: Refill | None = None
        self._took_s: list[float] = []
        self._placed = 0
        self.latency = [0] * (len(LATENCY_S) + 1)  # number of all refills so far by duration
        self.took_s = 0.0
        self.placed = 0

    async def run(self) -> None:
        """Log the counts of each minute, and those of the last incomplete minute at the end."""
        try:
            while True:
                until_s = self._clock.monotonic() + LOG_EVERY_S
                while self._clock.monotonic() < until_s:
                    await self._clock.sleep(LOOK_EVERY_S)
                    self.look()
                self._log()
        finally:
            self._log()

    def look(self) -> None:
        """Count the latest refill, unless it was counted already."""
        refill = self._last()
        if refill is None or refill is self._seen:
            return
        self._seen = refill
        if refill.placed:
            self._took_s.append(refill.took_s)
            self._placed += refill.placed
            self.latency[bisect_left(LATENCY_S, refill.took_s)] += 1
            self.took_s += refill.took_s
            self.placed += refill.placed

    def _log(self) -> None:
        if self._took_s:
            counted, median_s, most_s = len(self._took_s), median(self._took_s), max(self._took_s)
            log.info("refills", refills=counted, placed=self._placed, median_s=median_s, most_s=most_s)
        self._took_s, self._placed = [], 0
