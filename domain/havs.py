"""How an event changes the statistics of a (host, app version). Pure.

The database applies the same change as relative SQL (never read-modify-write); a contract test keeps
`applied` and the SQL equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from domain.hosts import STATS_HALF_LIFE_S, DecayedSums, HostAppVersion
from domain.units import AppVersionId, HostId, Instant

QUOTA_FACTOR_MOST = 2.0**16  # of one delta; more doublings change no quota, and its figures fit a database column
QUOTA_ADDED_LEAST = -(2**30)


class HavEventKind(StrEnum):
    """What happened to one of its instances."""

    VALID = "valid"
    INVALID = "invalid"
    ERROR = "error"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class HavEvent:
    """One event of a (host, app version) at `at`.

    `ln_turnaround_ratio` is ln(turnaround / R): of a valid result, or of a time-out as a censored sample.
    `replaces` is the censored sample an earlier time-out of the same instance left at `replaces_at`, taken
    back now with the weight it still has; without `replaces_at` with its whole weight.
    `ln_turnaround` is ln of the turnaround in seconds, valid results only. `speed_s_per_flop` is elapsed
    seconds per estimated flop.
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


@dataclass(frozen=True, slots=True)
class HavDelta:
    """The sum of some events of one (host, app version), ready to be added to its row.

    `valid_reset`: a failure is among them, so consecutive_valid starts again from 0 before
    `valid_added` is added. The quota is multiplied by `quota_factor`, then `quota_added` is added.
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


def combine(events: Iterable[HavEvent]) -> list[HavDelta]:
    """One delta per (host, app version), in key order; events of a row in the order they came.

    A valid result adds 1 to consecutive_valid and doubles the quota; an error, an invalid result or a
    time-out starts it again from 0 and takes 1 off the quota.
    """
    deltas: dict[tuple[HostId, AppVersionId], HavDelta] = {}
    for event in events:
        key = (event.host_id, event.app_version_id)
        deltas[key] = _added(deltas.get(key) or HavDelta(*key, at=event.at), event)
    return [deltas[key] for key in sorted(deltas)]


def _added(delta: HavDelta, event: HavEvent) -> HavDelta:
    if event.kind is HavEventKind.VALID:
        times = 2 if delta.quota_factor < QUOTA_FACTOR_MOST else 1
        delta = replace(
            delta,
            valid_added=delta.valid_added + 1,
            quota_factor=delta.quota_factor * times,
            quota_added=max(QUOTA_ADDED_LEAST, delta.quota_added * times),
            n_valid=delta.n_valid + 1,
        )
    else:
        added = max(QUOTA_ADDED_LEAST, delta.quota_added - 1)
        delta = replace(delta, valid_reset=True, valid_added=0, quota_added=added)
    if event.kind in (HavEventKind.ERROR, HavEventKind.INVALID):
        delta = replace(delta, n_error=delta.n_error + 1)
    if event.kind is HavEventKind.TIMED_OUT:
        delta = replace(delta, n_timeout=delta.n_timeout + 1)
    if event.replaces is not None:
        delta = replace(delta, n_timeout=delta.n_timeout - 1)
    return _with_samples(delta, event)


def _with_samples(delta: HavDelta, event: HavEvent) -> HavDelta:
    sums = delta.tight if event.tight else delta.relaxed
    if event.replaces is not None:
        sums = _sampled(sums, event.replaces, -_kept_fraction(event.replaces_at or event.at, event.at))
    if event.ln_turnaround_ratio is not None:
        sums = _sampled(sums, event.ln_turnaround_ratio, 1.0)
    delta = replace(delta, tight=sums) if event.tight else replace(delta, relaxed=sums)
    if event.speed_s_per_flop is not None:
        delta = replace(delta, speed=_sampled(delta.speed, event.speed_s_per_flop, 1.0))
    if event.ln_turnaround is not None:
        delta = replace(
            delta,
            log_n=delta.log_n + 1,
            log_sum=delta.log_sum + event.ln_turnaround,
            log_sum_sq=delta.log_sum_sq + event.ln_turnaround**2,
        )
    return replace(delta, at=max(delta.at, event.at))


def _sampled(sums: DecayedSums, x: float, weight: float) -> DecayedSums:
    return DecayedSums(sums.n + weight, sums.total + weight * x, sums.total_sq + weight * x * x, sums.at)


def applied(row: HostAppVersion, delta: HavDelta, *, quota_start: int, quota_most: int) -> HostAppVersion:
    """The row after the delta. Sums are brought forward to `delta.at` first.

    quota' = min(most, max(1, (quota or start) * factor + added)).

    >>> row = HostAppVersion(HostId(1), AppVersionId(1), consecutive_valid=4, quota_per_day=50)
    >>> event = HavEvent(HostId(1), AppVersionId(1), HavEventKind.ERROR, Instant(0.0))
    >>> after = applied(row, combine([event])[0], quota_start=50, quota_most=500)
    >>> after.consecutive_valid, after.quota_per_day, after.n_error
    (0, 49, 1)
    """
    at = max(delta.at, row.relaxed.at)
    weight = _kept_fraction(row.relaxed.at, at)
    quota = (row.quota_per_day or quota_start) * delta.quota_factor + delta.quota_added
    return replace(
        row,
        consecutive_valid=(0 if delta.valid_reset else row.consecutive_valid) + delta.valid_added,
        quota_per_day=int(min(float(quota_most), max(1.0, quota))),
        speed=_summed(row.speed, delta.speed, weight, at),
        tight=_summed(row.tight, delta.tight, weight, at),
        relaxed=_summed(row.relaxed, delta.relaxed, weight, at),
        n_valid=row.n_valid + delta.n_valid,
        n_error=row.n_error + delta.n_error,
        n_timeout=max(0, row.n_timeout + delta.n_timeout),
        log_n=row.log_n + delta.log_n,
        log_sum=row.log_sum + delta.log_sum,
        log_sum_sq=row.log_sum_sq + delta.log_sum_sq,
    )


def _summed(old: DecayedSums, new: DecayedSums, weight: float, at: Instant) -> DecayedSums:
    return DecayedSums(
        max(0.0, old.n * weight + new.n), old.total * weight + new.total, old.total_sq * weight + new.total_sq, at
    )


def _kept_fraction(since_at: Instant, now: Instant) -> float:
    """What is left of a sample's weight: 2^(-(now - since) / half-life)."""
    return math.exp2(-max(0.0, now - since_at) / STATS_HALF_LIFE_S)
