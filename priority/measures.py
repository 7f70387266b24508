"""Quantities of a batch and its jobs from which priorities are computed. Pure.

Each measure handles its own edge cases. Sources: the Moab and Maui guides, as documented (not as implemented, where the
two differ).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from domain.units import MINUTE_S, Flop, Instant

ACCURACY_JOBS = 100  # number of the submitter's latest jobs that count
DEADLINE_POINTS = 1000.0
LEAST_TARGET_GAP = 1e-4


def expansion_factor(*, waited_s: float, runtime_s: float | None, least_runtime_s: float = 0.0) -> float:
    """Return XFACTOR = 1 + effective queue time / max(minimum run time, run time); 1 without a run time.

    >>> expansion_factor(waited_s=4 * 3600, runtime_s=3600), expansion_factor(waited_s=60, runtime_s=None)
    (5.0, 1.0)
    """
    runtime = max(least_runtime_s, runtime_s or 0.0)
    return 1.0 + max(0.0, waited_s) / runtime if runtime > 0.0 else 1.0


def batch_runtime_s(job_s: float | None, batch_flop: Flop | None, pool_flop_per_s: float) -> float | None:
    """Return a batch's run time R: max(one job on the reference host, the batch on the whole pool); None if unknown.

    A batch of ten thousand one-second jobs is not short:

    >>> batch_runtime_s(1.0, Flop(1e16), 1e12)
    10000.0
    """
    whole = batch_flop / pool_flop_per_s if batch_flop is not None and pool_flop_per_s > 0.0 else None
    known = [one for one in (job_s, whole) if one is not None]
    return max(known) if known else None


def processor_equivalents(request: Mapping[str, float], configured: Mapping[str, float]) -> float:
    """Return PE = max over resources of request / configured, times the configured processors ("procs").

    Resources not requested or not configured are skipped. Without processors, PE is 0.

    >>> processor_equivalents({"procs": 2, "mem_mb": 6144}, {"procs": 400, "mem_mb": 819200})
    3.0
    """
    procs = configured.get("procs", 0.0)
    parts = [
        wanted / configured[name]
        for name, wanted in request.items()
        if wanted > 0.0 and configured.get(name, 0.0) > 0.0
    ]
    return max(parts, default=0.0) * procs if procs > 0.0 else 0.0


def queue_minutes(waited_s: float) -> float:
    """Return QUEUETIME: effective queue time in minutes, at least 0.

    >>> queue_minutes(90.0)
    1.5
    """
    return max(0.0, waited_s / MINUTE_S)


def deadline_nearness(*, submitted_at: Instant, deadline_at: Instant | None, now: Instant) -> float:
    """Return DEADLINE: rises linearly from 0 at submission to 1000 at the deadline, then constant; 0 without one.

    >>> deadline_nearness(submitted_at=Instant(0.0), deadline_at=Instant(100.0), now=Instant(25.0))
    250.0
    """
    if deadline_at is None:
        return 0.0
    if deadline_at <= submitted_at or now >= deadline_at:
        return DEADLINE_POINTS
    return DEADLINE_POINTS * max(0.0, now - submitted_at) / (deadline_at - submitted_at)


def target_nearness(target: float | None, current: float) -> float:
    """Return TARGET: max(1e-4, target - current)^-2, constant once the target is missed; 0 without a target.

    >>> target_nearness(10.0, 8.0), target_nearness(None, 8.0)
    (0.25, 0.0)
    """
    if target is None:
        return 0.0
    return float(max(LEAST_TARGET_GAP, target - current) ** -2)


def estimate_accuracy(jobs: Iterable[tuple[float, float]]) -> float | None:
    """Return WCACCURACY: median of min(estimate, actual) / max(estimate, actual) over the last 100 jobs, newest first.

    Jobs without both values are skipped; None if no job remains.

    >>> estimate_accuracy([(100.0, 50.0), (100.0, 400.0), (10.0, 10.0)])
    0.5
    """
    usable = ((estimate, actual) for estimate, actual in jobs if estimate > 0.0 and actual > 0.0)
    ratios = [min(pair) / max(pair) for pair in islice(usable, ACCURACY_JOBS)]
    return statistics.median(ratios) if ratios else None


def capped(value: float, cap: float | None) -> float:
    """Return the value limited to the cap. A cap of None or 0 means no cap; negative values are unchanged.

    >>> capped(260.0, 200.0), capped(260.0, 0.0), capped(-5.0, 1.0)
    (200.0, 260.0, -5.0)
    """
    return min(value, cap) if cap else value


def absolute_percent(points: Sequence[float]) -> list[float]:
    """Return each part's percentage of the sum of absolute values. Negative parts give positive percentages; all are 0
    if the sum is 0.

    >>> absolute_percent([-6.0, 24.0])
    [20.0, 80.0]
    """
    whole = sum(abs(one) for one in points)
    return [100.0 * abs(one) / whole if whole > 0.0 else 0.0 for one in points]
