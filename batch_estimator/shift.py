"""How much longer do this batch's jobs take than the app's earlier ones? Pure. ESTIMATOR 5.3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.replies import silent as silent_share
from batch_estimator.snapshot import Bools, Floats, Snapshot
from batch_estimator.turnaround import LOST_FLOOR, TurnaroundLaw
from batch_estimator.watched import Watched, thinned

SIZE_EXPONENT = 0.6  # of a job's size in its turnaround: waiting does not grow with size
PRIOR_SD = 0.5
LEAST_SD = 0.10
DEPENDENCE = 1.0 / 3.0  # instances of one host are not independent: a third of the log-likelihood
POINTS = 37
MOST_ROWS = 700


@dataclass(frozen=True, slots=True)
class Shift:
    """What is added to ln T for this batch: mean and standard deviation."""

    mean: float
    sd: float


def batch_shift(snapshot: Snapshot, law: TurnaroundLaw, mu: Floats, sd: Floats, watched: Watched) -> Shift:
    """The posterior of the shift, from the jobs' size and the batch's instances so far.

    The prior is normal(0.6 ln(size / earlier size), 0.5^2). A cold law was fitted to this batch itself:
    its shift is 0 with sd max(0.1, 1.2 / sqrt(n / 3 + 2)).
    """
    if not law.warm:
        return Shift(0.0, max(LEAST_SD, 1.2 / (law.n / 3.0 + 2.0) ** 0.5))
    size = _mean_ln(snapshot.jobs.fpops_flop) - snapshot.mean_ln_fpops
    prior = SIZE_EXPONENT * size if np.isfinite(size) else 0.0
    few = thinned(watched, MOST_ROWS)
    return posterior(prior, (few.ln_s - mu[few.entry]) / sd[few.entry], sd[few.entry], few.silent)


def posterior(prior_mean: float, z: Floats, sd: Floats, silent: Bools) -> Shift:
    """Mean and sd of the shift b on a grid, given standardised values z of ln T (or ln age, if silent).

    ln L(b) = 1/3 * sum( -(z - b/sd)^2 / 2 if it came back, else ln(0.03 + 0.97 (1 - F0(z - b/sd))) ).

    Twelve results half a unit later than expected weigh as much as four, and move the prior's mean:

    >>> shift = posterior(0.0, np.full(12, 0.5), np.ones(12), np.zeros(12, dtype=bool))
    >>> round(shift.mean, 3), round(shift.sd, 3)
    (0.25, 0.354)
    """
    grid = prior_mean + PRIOR_SD * np.linspace(-3.5, 3.5, POINTS)
    log_weight = -0.5 * ((grid - prior_mean) / PRIOR_SD) ** 2
    came, inverse = z[~silent], 1.0 / sd[~silent]
    # sum of (z - b/sd)^2 over the results, expanded in b
    log_weight -= DEPENDENCE * 0.5 * (np.sum(inverse**2) * grid**2 - 2.0 * grid * np.sum(came * inverse))
    waiting = z[silent][:, None] - grid[None, :] / sd[silent][:, None]
    log_weight += DEPENDENCE * np.sum(np.log(LOST_FLOOR + (1.0 - LOST_FLOOR) * silent_share(waiting)), axis=0)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = float(weight @ grid)
    return Shift(mean, max(LEAST_SD, float(weight @ (grid - mean) ** 2) ** 0.5))


def _mean_ln(fpops: Floats) -> float:
    known = fpops[fpops > 0]
    return float(np.mean(np.log(known))) if len(known) else float("nan")
