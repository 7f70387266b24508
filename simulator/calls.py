"""When does a client call? PROTOCOL 9.

It asks for work at instants of a grid, `interval_s` apart, or as soon after them as it is on, if it wants any, and
calls there at the latest when the server told it to; it reports at once what
is due within a day or within its work buffer, everything else an hour after its end or with the next call. It waits as
long as the server told it, and after calls without an answer 60 * 2^n * U(0.5..1) s, at most 4 h. For a kind of
processor that got no work it asks again after 600 * 2^n * U(0.5..1.5) s, at the next instant of the grid.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from domain.units import DAY_S, HOUR_S, Instant, Seconds
from simulator.availability import Availability

REPORT_AFTER_S = HOUR_S
FIRST_RETRY_S = 60.0
MOST_RETRY_S = 4 * HOUR_S
FIRST_BACKOFF_S = 600.0
MOST_POSTPONED_S = 600.0  # an instant of the grid is waited past by this at most, else the next one is taken


@dataclass(slots=True)
class Calls:
    """One client's. `grid_at` is an instant of its grid; it first asks at the first one at or after `joins_at`."""

    interval_s: Seconds
    grid_at: Instant
    joins_at: Instant
    most_backoff_s: Seconds
    buffer_s: Seconds
    asks_with_reports: bool
    availability: Availability
    draw: random.Random
    ask_at: float = -math.inf
    report_at: float = math.inf
    not_before_at: float = -math.inf
    contact_at: float = -math.inf  # it calls from then on even if there is nothing to say
    failures: int = 0
    _wanted_at: float = math.nan  # of the last answer, which is `_on_at`
    _on_at: float = math.inf

    def __post_init__(self) -> None:
        self.ask_at = self._grid_from(self.joins_at)

    @property
    def soon_s(self) -> float:
        """What is due within this is reported at once."""
        return max(DAY_S, self.buffer_s)

    def next_at(self) -> float:
        """When it calls next if nothing new happens; only while it is on."""
        wanted_at = max(min(self.ask_at, self.report_at), self.not_before_at)
        if wanted_at != self._wanted_at:
            self._wanted_at = wanted_at
            self._on_at = self.availability.on_from(wanted_at) if wanted_at < math.inf else math.inf
        return self._on_at

    def asks(self, now: Instant) -> bool:
        """Whether a call at `now` asks for work."""
        return now >= self.ask_at or self.asks_with_reports

    def ended(self, due_at: Instant, at: Instant) -> None:
        """A task is over: when that is to be told."""
        soon = due_at - at < self.soon_s
        self.report_at = min(self.report_at, at if soon else at + REPORT_AFTER_S)

    def is_idle(self, now: Instant) -> bool:
        """Whether a call at `now` that asks for nothing would have no purpose."""
        return now < self.report_at and now < self.contact_at

    def stay_away(self, now: Instant) -> None:
        """There was no purpose in a call: at the next instant of the grid it is seen again."""
        self.ask_at = self._grid_from(math.nextafter(now, math.inf))

    def answered(self, now: Instant, delay_s: Seconds, contact_s: Seconds | None = None) -> None:
        self.failures = 0
        self.contact_at = math.inf if contact_s is None else now + contact_s
        self.report_at = math.inf
        self.not_before_at = now + delay_s
        asks_from_at = math.nextafter(now, math.inf) if now >= self.ask_at else self.ask_at
        if delay_s > MOST_POSTPONED_S:
            asks_from_at = max(asks_from_at, now + delay_s)
        if asks_from_at > self.ask_at:
            self.ask_at = self._grid_from(asks_from_at)

    def unanswered(self, now: Instant) -> None:
        self.failures += 1
        wait_s = min(MOST_RETRY_S, FIRST_RETRY_S * 2.0**self.failures * self.draw.uniform(0.5, 1.0))
        self.not_before_at = now + wait_s

    def backoff_s(self, times: int) -> float:
        """How long not to ask for a kind of processor that got no work `times` times in a row."""
        return min(self.most_backoff_s, FIRST_BACKOFF_S * 2.0 ** min(times - 1, 30)) * self.draw.uniform(0.5, 1.5)

    def _grid_from(self, at: float) -> float:
        return self.grid_at + math.ceil((at - self.grid_at) / self.interval_s) * self.interval_s
