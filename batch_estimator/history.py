"""How far do the sums of finished work flatter the hosts? Pure.

Sums hold what came back; what is still out is slower. While much of the app's work is out (a young app,
long buffers, a week-end) levels from sums are too low, and the loss rate would have to explain the rest.
"""

from __future__ import annotations

import numpy as np

from batch_estimator.snapshot import Floats
from batch_estimator.turnaround import censored_normal
from batch_estimator.watched import Watched, thinned

MOST_ROWS = 800
LEAST_REPLIES = 5


def whole_levels(mu: Floats, sd: Floats, sampled: Watched) -> tuple[Floats, Floats]:
    """Levels of ln T that hold for all that was sent, from those of what came back.

    With z = (ln T - mu) / sd of a sample drawn by sending time, the silent ones censored at their age:
    mu' = mu + mean(z) sd, sd' = sd(z) sd, by `censored_normal`.

    Three of four came back as the level has it, the fourth is silent for a standard deviation longer:

    >>> z = np.tile([-1.0, 0.0, 1.0, 1.0], 100)
    >>> sampled = Watched(8.0 + z, np.tile([False, False, False, True], 100), np.zeros(400, dtype=np.int64), z)
    >>> mu, sd = whole_levels(np.array([8.0]), np.array([1.0]), sampled)
    >>> mu.round(2).tolist(), sd.round(2).tolist()
    ([8.37], [1.02])
    """
    few = thinned(sampled, MOST_ROWS)
    if int((~few.silent).sum()) < LEAST_REPLIES:
        return mu, sd
    z = (few.ln_s - mu[few.entry]) / sd[few.entry]
    mean, variance = censored_normal(z[~few.silent], z[few.silent], 0.0)
    return mu + mean * sd, sd * float(np.sqrt(variance))
