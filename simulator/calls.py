"""Decides when a client calls. PROTOCOL 9.

A client looks at its buffer and at finished jobs when it is switched on, when a job ends, when it may call again after
a call, and every LOOK_S after the last look. It then calls if a report is due (at once for a result due within a day or
within its work buffer and for 64 results, else an hour after the job's end), or if a buffer is below its lower end and
it does not back off from asking. It calls at the latest when the server asked for it. Request delays come first, and so
do pauses of 60 * 2^n * U(0.5..1) s, at most 4 h, after n calls without an answer; a failed job counts as one of these.

Each call asks for what is missing of the buffer. One that was made for nothing else and got no work makes the client
back off by 600 * 2^n * U(0.5..1.5) s, at most a day and a half, until it gets a job or one ends.

Looks that find nothing are left out: the client knows a lower bound of when its buffer can be low, and the first look
from then on is the next event.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from domain.units import DAY_S, HOUR_S, Instant, Seconds
from simulator.availability import Availability

LOOK_S = 60.0
ROUNDING = 1e-6  # of a look: a report's hour is a whole number of them
LEAST_DELAY_S = 5.0  # between two calls
REPORT_AFTER_S = HOUR_S
MOST_RESULTS = 64  # finished jobs that are reported at once
FIRST_RETRY_S = 60.0
MOST_RETRY_S = 4 * HOUR_S
FIRST_BACKOFF_S = 600.0
MOST_BACKOFF_S = DAY_S


@dataclass(slots=True)
class Calls:
    """One client's calls. `looked_at` is its last look, at first that of its first call."""

    looked_at: Instant
    buffer_s: Seconds
    availability: Availability
    draw: random.Random
    report_at: float = math.inf
    not_before_at: float = -math.inf
    contact_at: float = math.inf  # the server asked for a call by then
    failures: int = 0
    _known: tuple[float, float, float] | None = None  # what `_next_at` was found for
    _next_at: float = math.inf

    @property
    def soon_s(self) -> float:
        """What is due within this is reported at once."""
        return max(DAY_S, self.buffer_s)

    def next_at(self, low_from_at: float) -> float:
        """When it looks or calls next if nothing new happens, its buffer not being low before `low_from_at`."""
        wanted_at = min(low_from_at, self.report_at)
        first_at = max(self.looked_at, self.not_before_at)
        if (wanted_at, first_at, self.contact_at) != self._known:
            self._known = (wanted_at, first_at, self.contact_at)
            called_at = (
                self.availability.on_from(max(self.contact_at, first_at)) if self.contact_at < math.inf else math.inf
            )
            self._next_at = min(self._look_from(wanted_at, first_at), called_at)
        return self._next_at

    def _look_from(self, at: float, first_at: float) -> float:
        """The first look at or after `at`, if nothing happens before. Others are at `first_at`, every LOOK_S from then
        on, and when it is switched on.
        """
        if at == math.inf:
            return math.inf
        on_at = self.availability.on_from(max(at, first_at))
        if on_at > at or on_at == math.inf:
            return on_at
        begin_at = max(first_at, self.availability.on_since(at))
        looks = max(1, math.ceil((at - begin_at) / LOOK_S - ROUNDING)) if at > begin_at else 0
        return self.availability.on_from(max(at, begin_at + looks * LOOK_S))

    def is_due(self, now: Instant) -> bool:
        """Whether it calls at `now` whatever its buffer."""
        return now >= self.contact_at or now >= self.report_at

    def ended(self, due_at: Instant, at: Instant, *, waiting: int) -> None:
        """A job is over, and `waiting` results are to be reported: it looks."""
        self.looked_at = max(self.looked_at, at)
        at_once = due_at - at < self.soon_s or waiting >= MOST_RESULTS
        self.report_at = min(self.report_at, at if at_once else at + REPORT_AFTER_S)

    def answered(self, now: Instant, delay_s: Seconds, contact_s: Seconds | None = None) -> None:
        self.failures = 0
        self.contact_at = now + contact_s if contact_s else math.inf
        self.report_at = math.inf
        self.not_before_at = now + max(LEAST_DELAY_S, delay_s)

    def failed(self, at: Instant) -> None:
        """A call without an answer, or a job that failed."""
        self.failures += 1
        wait_s = min(MOST_RETRY_S, FIRST_RETRY_S * 2.0 ** min(self.failures, 30) * self.draw.uniform(0.5, 1.0))
        self.not_before_at = max(self.not_before_at, at + wait_s)

    def backoff_s(self, times: int) -> float:
        """How long not to ask for a kind of processor that got no work `times` times in a row."""
        return min(MOST_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(times - 1, 30)) * self.draw.uniform(0.5, 1.5)
