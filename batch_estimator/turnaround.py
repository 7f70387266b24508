"""How long is a (host, app version) with a job, as a lognormal law? Pure.

ESTIMATOR 5.2: ln T of one (host, app version) is normal about a level of its own; levels are normal
about the app's mean. Few results shrink a level towards that mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from batch_estimator.snapshot import Floats, HavRows, Snapshot, Standing

LEAST_SUCCESSES = 30  # for a law from host sums,
LEAST_HAVS = 10  # on this many (host, app version) at least
LEAST_VARIANCE = 0.05
MOST_WEIGHT = 5.0  # of one (host, app version) in the app's mean
APRIORI_VARIANCE = 1.44
APRIORI_EXTRA_S = 4 * 3600.0
APRIORI_OBSERVATIONS = 3.0
LEAST_COLD_SUCCESSES = 3
ROUNDS = 25
LEAST_TAIL = 1e-13
LOST_FLOOR = 0.03  # share of instances that never come back, before anything is known


@dataclass(frozen=True, slots=True)
class TurnaroundLaw:
    """Mean of the levels, variance about a level, variance of the levels; ln seconds. `n` results made it."""

    mean_ln: float
    within_var: float
    between_var: float
    n: float
    warm: bool

    def level(self, n: Floats, sum_ln: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of ln T on a (host, app version) with n results, sum_ln their sum.

        mu = (S/v_w + m/v_b) / (n/v_w + 1/v_b); sd^2 = v_w + 1/(n/v_w + 1/v_b).

        >>> law = TurnaroundLaw(mean_ln=10.0, within_var=1.0, between_var=0.5, n=100.0, warm=True)
        >>> mu, sd = law.level(np.array([0.0, 2.0]), np.array([0.0, 18.0]))
        >>> mu.tolist(), (sd**2).round(4).tolist()
        ([10.0, 9.5], [1.5, 1.25])
        """
        precision = n / self.within_var + 1.0 / self.between_var
        mu = (sum_ln / self.within_var + self.mean_ln / self.between_var) / precision
        return mu, np.sqrt(self.within_var + 1.0 / precision)


def turnaround_law(snapshot: Snapshot) -> TurnaroundLaw:
    """From the app's host sums, else from this batch alone, else from what a job asks for."""
    havs = snapshot.havs
    with_results = havs.n_success > 0
    if havs.n_success.sum() >= LEAST_SUCCESSES and with_results.sum() >= LEAST_HAVS:
        return _warm(havs)
    return _cold(snapshot)


def apriori_ln(snapshot: Snapshot) -> float:
    """ln of the turnaround expected of a job nobody has done: min(D / 2, 2 flop / speed + 4 h)."""
    fpops = float(np.mean(snapshot.jobs.fpops_flop)) if len(snapshot.jobs.fpops_flop) else np.nan
    speed = snapshot.median_flop_per_s
    most_s = 0.5 * snapshot.delay_bound_s
    if not (np.isfinite(fpops) and np.isfinite(speed) and speed > 0 and fpops >= 0):
        return float(np.log(most_s))
    return float(np.log(max(60.0, min(most_s, 2.0 * fpops / speed + APRIORI_EXTRA_S))))


def _warm(havs: HavRows) -> TurnaroundLaw:
    rows = havs.n_success > 0
    n, total, squares = havs.n_success[rows].astype(np.float64), havs.sum_ln[rows], havs.sum_ln_sq[rows]
    means, stands_for = total / n, havs.weight[rows]
    freedom = float(np.sum(stands_for * (n - 1.0)))
    within = float(np.sum(stands_for * np.maximum(squares - n * means**2, 0.0))) / max(freedom, 1.0)
    within = max(LEAST_VARIANCE, within if freedom >= 1.0 else APRIORI_VARIANCE / 2.0)
    weights = stands_for * np.minimum(n, MOST_WEIGHT)
    mean = float(np.average(means, weights=weights))
    spread = float(np.average((means - mean) ** 2, weights=weights))
    between = max(LEAST_VARIANCE, spread - within * float(np.average(1.0 / n, weights=weights)))
    return TurnaroundLaw(mean, within, between, float(np.sum(n)), warm=True)


def _cold(snapshot: Snapshot) -> TurnaroundLaw:
    expected = apriori_ln(snapshot)
    rows = snapshot.instances
    success = rows.standing == Standing.SUCCESS
    done = np.log(np.maximum(rows.reported_at[success] - rows.sent_at[success], 1.0))
    if len(done) < LEAST_COLD_SUCCESSES:
        return TurnaroundLaw(expected, APRIORI_VARIANCE / 2.0, APRIORI_VARIANCE / 2.0, float(len(done)), warm=False)
    silent = (rows.standing == Standing.IN_PROGRESS) | (rows.standing == Standing.TIMED_OUT)
    ages = np.log(np.maximum(snapshot.now - rows.sent_at[silent], 1.0))
    mean, variance = censored_normal(done, ages, expected)
    return TurnaroundLaw(mean, variance / 2.0, variance / 2.0, float(len(done)), warm=False)


def censored_normal(done: Floats, at_least: Floats, expected: float) -> tuple[float, float]:
    """Mean and variance of a normal law seen whole in `done` and from below in `at_least`.

    Expectation maximisation, 25 rounds: a censored value counts with the moments of what lies above it,
    and with the probability that it comes at all (3 % never do). Three observations at `expected` with
    variance 1 keep the first results in hand.

    >>> mean, variance = censored_normal(np.full(97, 10.0), np.array([]), 11.0)
    >>> round(mean, 3), round(variance, 3)
    (10.03, 0.1)
    """
    mean, variance = float(np.mean(done)), max(float(np.var(done)), 0.25)
    for _ in range(ROUNDS):
        sd = variance**0.5
        z = (at_least - mean) / sd
        tail: Floats = np.maximum(ndtr(-z), LEAST_TAIL)
        coming = (1.0 - LOST_FLOOR) * tail / (LOST_FLOOR + (1.0 - LOST_FLOOR) * tail)
        hazard = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) / tail
        value = mean + sd * hazard
        second = variance * np.maximum(1.0 + z * hazard - hazard**2, 0.0)
        n = len(done) + float(np.sum(coming)) + APRIORI_OBSERVATIONS
        new_mean = (float(np.sum(done)) + float(np.sum(coming * value)) + APRIORI_OBSERVATIONS * expected) / n
        about = float(np.sum((done - new_mean) ** 2)) + float(np.sum(coming * ((value - new_mean) ** 2 + second)))
        about += APRIORI_OBSERVATIONS * (1.0 + (expected - new_mean) ** 2)
        mean, variance = new_mean, max(about / n, 2.0 * LEAST_VARIANCE)
    return mean, variance
