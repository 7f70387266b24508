"""What requests came to, counted since the process started and logged once a minute."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import structlog

from domain.clock import Clock
from domain.refusals import RefusalCode
from domain.units import Seconds

LOG_EVERY_S = Seconds(60.0)

log = structlog.get_logger()


class RequestCounters:
    """Satisfies the scheduler's RequestObserver."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.totals: Counter[str] = Counter()
        self.refusals: Counter[RefusalCode] = Counter()
        self.took_s = 0.0

    def request_answered(
        self, *, sent: int, resent: int, reports: int, refusals: Mapping[RefusalCode, int], took_s: Seconds
    ) -> None:
        self.totals.update(requests=1, sent=sent, resent=resent, reports=reports)
        self.refusals.update(refusals)
        self.took_s += took_s

    def request_failed(self, status: int) -> None:
        self.totals.update({"requests": 1, f"status_{status}": 1})

    async def run(self) -> None:
        """Log what the last minute brought, when it brought anything."""
        before: Counter[str] = Counter()
        while True:
            await self._clock.sleep(LOG_EVERY_S)
            since = self.totals - before
            before = self.totals.copy()
            if since:
                log.info("requests", **since, refusals={code.value: n for code, n in self.refusals.most_common(5)})
