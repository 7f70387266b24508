"""Changes of (host, app version) statistics by events. Pure.

The database applies the same changes as relative SQL (never read-modify-write); a contract test checks that `applied`
and the SQL agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from domain.hosts import STATS_HALF_LIFE_S, DecayedSums, HostAppVersion
from domain.quick import quick_dataclass
from domain.units import AppVersionId, HostId, Instant

QUOTA_FACTOR_MOST = 2.0**16  # per delta; more doublings change no quota, and the value must fit a database column
QUOTA_ADDED_LEAST = -(2**30)
INT_MOST = 2**31 - 1  # maximum of a database column


class HavEventKind(StrEnum):
    """The outcome of an instance."""

    VALID = "valid"
    INVALID = "invalid"
    ERROR = "error"
    TIMED_OUT = "timed_out"
    LOST = "lost"  # aborted by its user, or lost together with all jobs of the host


@quick_dataclass(frozen=True, slots=True)
class HavEvent:
    """One event for a (host, app version) at `at`.

    `ln_turnaround_ratio` is ln(turnaround / R) for tight instances, otherwise ln(turnaround / the batch's median); it
    comes from a valid result, or from a timeout as a censored sample. `late`: a valid result after its due date.
    `replaces` is the censored sample that an earlier timeout of the same instance added at `replaces_at`; it is removed
    with its remaining weight, or with its full weight if `replaces_at` is unknown. The instance stores its scheduled
    timeout, not the sweep up to a minute later that applied it, which makes the weight 0.00003 too small. Only a valid
    result or another timeout removes the sample: a late error or invalid result is no better evidence of the
    turnaround, so the sample stays and only `n_timeout` is reduced. `ln_turnaround` is ln(turnaround in seconds), valid
    results only. `speed_s_per_flop` is elapsed seconds per estimated flop.
    """

    host_id: HostId
    app_version_id: AppVersionId
    kind: HavEventKind
    at: Instant
    tight: bool = False
    ln_turnaround_ratio: float | None = None
    replaces: float | None = None
    ln_turnaround: float | None = None
    speed_s_per_flop: float | None = None
    replaces_at: Instant | None = None
    late: bool = False

    @property
    def missed(self) -> bool:
        return self.late or self.kind is HavEventKind.TIMED_OUT

    @property
    def takes_back(self) -> float | None:
        """Return the sample that the event removes, or None."""
        return self.replaces if self.kind in (HavEventKind.VALID, HavEventKind.TIMED_OUT) else None


@quick_dataclass(frozen=True, slots=True)
class HavDelta:
    """The sum of the events for one (host, app version), to be added to its row.

    `valid_reset`: the events include a failure, so consecutive_valid is set to 0 before `valid_added` is added. The
    quota is multiplied by `quota_factor`, then increased by `quota_added` and clamped to `quota_least` and
    `quota_most`, the results of applying the events to the lowest and the highest quota.
    """

    host_id: HostId
    app_version_id: AppVersionId
    at: Instant
    valid_reset: bool = False
    valid_added: int = 0
    quota_factor: float = 1.0
    quota_added: int = 0
    speed: DecayedSums = DecayedSums()
    tight: DecayedSums = DecayedSums()
    relaxed: DecayedSums = DecayedSums()
    log_n: int = 0
    log_sum: float = 0.0
    log_sum_sq: float = 0.0
    n_valid: int = 0
    n_error: int = 0
    n_timeout: int = 0
    tight_missed_n: float = 0.0
    quota_least: int = 1
    quota_most: int = INT_MOST


def combine(events: Iterable[HavEvent], *, quota_most: int) -> list[HavDelta]:
    """Return one delta per (host, app version), in key order; the events of each row are applied in the order given.

    Sums are as of the latest event: earlier samples are decayed to that instant.

    A valid result adds 1 to consecutive_valid and doubles the quota. An error, an invalid result or a timeout resets
    consecutive_valid to 0 and subtracts 1 from the quota, which is clamped to 1..`quota_most` after each event. A lost
    instance only subtracts 1 from the quota.
    """
    gathered: dict[tuple[HostId, AppVersionId], _Gathered] = {}
    for event in events:
        key = (event.host_id, event.app_version_id)
        found = gathered.get(key)
        if found is None:
            found = gathered[key] = _Gathered(event.at, quota_most)
        found.add(event)
    return [gathered[key].delta(key) for key in sorted(gathered)]


class _Sums:
    """Decayed sums over samples of one kind."""

    __slots__ = ("n", "total", "total_sq")

    def __init__(self) -> None:
        self.n = self.total = self.total_sq = 0.0

    def add(self, x: float, weight: float = 1.0) -> None:
        self.n += weight
        self.total += weight * x
        self.total_sq += weight * x * x

    def lighten(self, weight: float) -> None:
        self.n *= weight
        self.total *= weight
        self.total_sq *= weight

    def decayed(self) -> DecayedSums:
        return DecayedSums(self.n, self.total, self.total_sq)


class _Gathered:
    """A delta under construction. Many are built per second, so this mutable class avoids copying values."""

    def __init__(self, at: Instant, quota_most: int) -> None:
        self.at = at
        self._limit = quota_most
        self.quota_least, self.quota_most = 0, INT_MOST
        self.valid_reset = False
        self.valid_added = self.quota_added = self.n_valid = self.n_error = self.n_timeout = 0
        self.quota_factor = 1.0
        self.tight_missed_n = 0.0
        self.speed, self.tight, self.relaxed, self.log = _Sums(), _Sums(), _Sums(), _Sums()

    def add(self, event: HavEvent) -> None:
        if event.at > self.at:
            self._bring_forward(event.at)
        self._count(event)
        self._sample(event)

    def _bring_forward(self, at: Instant) -> None:
        weight = _kept_fraction(self.at, at)
        for sums in (self.speed, self.tight, self.relaxed):
            sums.lighten(weight)
        self.tight_missed_n *= weight
        self.at = at

    def _count(self, event: HavEvent) -> None:
        if event.kind is HavEventKind.VALID:
            times = 2 if self.quota_factor < QUOTA_FACTOR_MOST else 1
            self.valid_added += 1
            self.quota_factor *= times
            self.quota_added = max(QUOTA_ADDED_LEAST, self.quota_added * times)
            self._bound_quota(2, 0)
            self.n_valid += 1
        else:
            if event.kind is not HavEventKind.LOST:
                self.valid_reset, self.valid_added = True, 0
            self.quota_added = max(QUOTA_ADDED_LEAST, self.quota_added - 1)
            self._bound_quota(1, -1)
        self.n_error += event.kind in (HavEventKind.ERROR, HavEventKind.INVALID)
        self.n_timeout += (event.kind is HavEventKind.TIMED_OUT) - (event.replaces is not None)

    def _bound_quota(self, factor: int, added: int) -> None:
        """Apply a step to the lowest and the highest quota. Steps are monotonic: other quotas stay in between."""
        limit = self._limit
        self.quota_least = min(limit, max(1, self.quota_least * factor + added))
        self.quota_most = min(limit, max(1, self.quota_most * factor + added))

    def _sample(self, event: HavEvent) -> None:
        sums, taken_back = self.tight if event.tight else self.relaxed, event.takes_back
        if taken_back is not None:
            weight = _kept_fraction(event.replaces_at or event.at, event.at)
            sums.add(taken_back, -weight)
            self.tight_missed_n -= weight * event.tight
        if event.ln_turnaround_ratio is not None:
            sums.add(event.ln_turnaround_ratio)
            self.tight_missed_n += event.tight and event.missed
        if event.speed_s_per_flop is not None:
            self.speed.add(event.speed_s_per_flop)
        if event.ln_turnaround is not None:
            self.log.add(event.ln_turnaround)

    def delta(self, key: tuple[HostId, AppVersionId]) -> HavDelta:
        return HavDelta(
            *key,
            self.at,
            self.valid_reset,
            self.valid_added,
            self.quota_factor,
            self.quota_added,
            self.speed.decayed(),
            self.tight.decayed(),
            self.relaxed.decayed(),
            round(self.log.n),
            self.log.total,
            self.log.total_sq,
            self.n_valid,
            self.n_error,
            self.n_timeout,
            self.tight_missed_n,
            self.quota_least,
            self.quota_most,
        )


def applied(row: HostAppVersion, delta: HavDelta, *, quota_start: int) -> HostAppVersion:
    """Return the row with the delta applied. The row's sums are first decayed to `delta.at`.

    quota' = min(delta.quota_most, max(delta.quota_least, (quota or start) * factor + added)).

    >>> row = HostAppVersion(HostId(1), AppVersionId(1), consecutive_valid=4, quota_per_day=50)
    >>> event = HavEvent(HostId(1), AppVersionId(1), HavEventKind.ERROR, Instant(0.0))
    >>> after = applied(row, combine([event], quota_most=500)[0], quota_start=50)
    >>> after.consecutive_valid, after.quota_per_day, after.n_error
    (0, 49, 1)
    """
    at = max(delta.at, row.relaxed.at)
    weight = _kept_fraction(row.relaxed.at, at)
    quota = (row.quota_per_day or quota_start) * delta.quota_factor + delta.quota_added
    return replace(
        row,
        consecutive_valid=(0 if delta.valid_reset else row.consecutive_valid) + delta.valid_added,
        quota_per_day=int(min(delta.quota_most, max(delta.quota_least, quota))),
        speed=_summed(row.speed, delta.speed, weight, at),
        tight=_summed(row.tight, delta.tight, weight, at),
        relaxed=_summed(row.relaxed, delta.relaxed, weight, at),
        n_valid=row.n_valid + delta.n_valid,
        n_error=row.n_error + delta.n_error,
        n_timeout=max(0, row.n_timeout + delta.n_timeout),
        log_n=row.log_n + delta.log_n,
        log_sum=row.log_sum + delta.log_sum,
        log_sum_sq=row.log_sum_sq + delta.log_sum_sq,
        tight_missed_n=max(0.0, row.tight_missed_n * weight + delta.tight_missed_n),
        clean_since_at=delta.at
        if delta.valid_reset or (delta.n_valid > 0 and row.clean_since_at is None)
        else row.clean_since_at,
    )


def _summed(old: DecayedSums, new: DecayedSums, weight: float, at: Instant) -> DecayedSums:
    return DecayedSums(
        max(0.0, old.n * weight + new.n), old.total * weight + new.total, old.total_sq * weight + new.total_sq, at
    )


def _kept_fraction(since_at: Instant, now: Instant) -> float:
    """Return the remaining weight of a sample taken at `since`: 2^(-(now - since) / half-life)."""
    return math.exp2(-max(0.0, now - since_at) / STATS_HALF_LIFE_S)
