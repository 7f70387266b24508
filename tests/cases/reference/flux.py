"""Flux's job priority and usage history. Pure.

Facts: flux-accounting 9546e25 (mf_priority.cpp, job usage).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

DECAY = 0.5  # of a bin, once per half-life
EXPEDITED = 2**32 - 1
HELD_URGENCY, NEUTRAL_URGENCY, EXPEDITE_URGENCY = 0, 16, 31
WEIGHTS: Mapping[str, float] = {"fairshare": 100_000.0, "queue": 10_000.0, "bank": 0.0, "urgency": 1_000.0}


def priority(
    *,
    fairshare: float,
    queue: float = 0.0,
    bank: float = 0.0,
    urgency: int = 16,
    weights: Mapping[str, float] = WEIGHTS,
) -> int:
    """round(fairshare * Wf + queue * Wq + bank * Wb + (urgency - 16) * Wu), at least 0.

    Urgency 0 means held: exactly 0. Urgency 31 is expedited: 2^32 - 1. Queue and bank are configured numbers.

    >>> priority(fairshare=0.45321, urgency=15, weights={**WEIGHTS, "urgency": 1})
    45320
    """
    if urgency == HELD_URGENCY:
        return 0
    if urgency == EXPEDITE_URGENCY:
        return EXPEDITED
    full = {**WEIGHTS, **weights}
    total = fairshare * full["fairshare"] + queue * full["queue"] + bank * full["bank"]
    total += (urgency - NEUTRAL_URGENCY) * full["urgency"]
    return max(0, _rounded(total))


def _rounded(value: float) -> int:
    """Round to the nearest whole number, halves away from zero as in C."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def job_usage(
    *,
    elapsed_s: float,
    nnodes: float = 0.0,
    ncores: float = 0.0,
    ngpus: float = 0.0,
    w_node: float = 1.0,
    w_core: float = 0.0,
    w_gpu: float = 0.0,
) -> float:
    """Return a job's usage: (nodes * w_node + cores * w_core + gpus * w_gpu) * elapsed.

    >>> job_usage(elapsed_s=100, nnodes=1, ncores=8, ngpus=2, w_gpu=10)
    2100.0
    """
    return (nnodes * w_node + ncores * w_core + ngpus * w_gpu) * elapsed_s


def usage_of(jobs: Iterable[Mapping[str, float]]) -> float:
    """Return the usage of several jobs, each with the arguments of `job_usage`.

    >>> usage_of([{"nnodes": 2, "elapsed_s": 2000}, {"nnodes": 1, "elapsed_s": 500}])
    4500.0
    """
    return math.fsum(job_usage(**job) for job in jobs)


def bins_of(*, reset_s: float, half_life_s: float) -> int:
    """Return the number of bins of a usage history: whole half-lives of the reset period, at least one.

    >>> bins_of(reset_s=86400, half_life_s=28800)
    3
    """
    return max(1, int(reset_s / half_life_s)) if half_life_s > 0 else 1


def decayed_bins(past: Sequence[float], decay: float) -> list[float]:
    """Return the current weight of raw past bins, newest first: bin k times decay^(k + 1).

    >>> decayed_bins([128.0, 64.0, 64.0, 16.0], 0.5)
    [64.0, 16.0, 8.0, 1.0]
    """
    return [amount * decay ** (age + 1) for age, amount in enumerate(past)]


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of the current period, the decayed past usage, and their sum."""

    current: float
    past_decayed: tuple[float, ...]
    past: float
    historical: float


def usage_now(jobs: Iterable[Mapping[str, float]], past_bins: Sequence[float], decay: float) -> Usage:
    """Return what a user is charged: the current jobs and the raw past bins, newest first.

    >>> usage_now([{"nnodes": 1, "elapsed_s": 100}], [128.0, 64.0], 0.5).historical
    180.0
    """
    current, decayed = usage_of(jobs), decayed_bins(past_bins, decay)
    past = math.fsum(decayed)
    return Usage(current, tuple(decayed), past, current + past)


def rolled(bins: Sequence[float], decay: float) -> list[float]:
    """Return the bins one period later: each one position older and decayed once, the oldest dropped, bin 0 empty.

    >>> rolled([110.0, 20.0, 8.0], 0.5)
    [0.0, 55.0, 10.0]
    """
    return [0.0, *(amount * decay for amount in bins[:-1])] if bins else []


def with_new(bins: Sequence[float], new: float) -> list[float]:
    """Return the bins with new usage in the current one; only new usage, so that none counts twice.

    >>> with_new([40.0, 20.0], 10.0)
    [50.0, 20.0]
    """
    return [bins[0] + new, *bins[1:]] if bins else [new]


def history(bins: Sequence[float], decay: float, steps: Iterable[tuple[bool, float]]) -> list[float]:
    """Return the sum of the bins after each step (whether a period ends before it, new usage in it).

    >>> history([100.0, 40.0], 0.25, [(False, 60.0), (True, 60.0), (True, 0.0)])
    [200.0, 100.0, 15.0]
    """
    sums, standing = list[float](), list(bins)
    for rolls, new in steps:
        standing = with_new(rolled(standing, decay) if rolls else standing, new)
        sums.append(math.fsum(standing))
    return sums
