"""How often does an instance never come back? Pure. ESTIMATOR 5.4: a mixture-cure rate from censored data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.replies import silent
from batch_estimator.snapshot import Floats

USUAL_FRACTION = 0.03
USUAL_WEIGHT = 120.0  # instances of one host are not independent: a third of them counts
ROUNDS = 30
HOST_WEIGHT = 12.0  # instances past their time-out that a host's own record must outweigh
COMMON_PART = 0.4  # of the rate that no record of a host changes
SILENT_FOR_EVER = 0.75  # of the instances past their time-out and silent; the others come late
LEAST_FRACTION, MOST_FRACTION = 0.002, 0.9


@dataclass(frozen=True, slots=True)
class Loss:
    """Share of instances that never come back, and how many such the data hold."""

    fraction: float
    n_lost: float

    @property
    def logit_sd(self) -> float:
        """How unsure the log-odds of the share are: sqrt(0.35^2 + 1 / (n_lost + 1.5))."""
        return float(np.sqrt(0.35**2 + 1.0 / (self.n_lost + 1.5)))


def loss_fraction(z_silent: Floats, rows: int) -> Loss:
    """The share q, from the standardised ln age of the silent among `rows` instances.

    q <- (sum over the silent of q / (q + (1-q)(1 - F0(z))) + 120 * 0.03) / (rows + 120), thirty times. The
    exposure is every instance sent: an app younger than its time-outs is not taken for a lossless one.

    Ten of 100 are silent at an age that nearly all have come back by:

    >>> loss = loss_fraction(np.full(10, 4.0), 100)
    >>> round(loss.fraction, 3), round(loss.n_lost, 1)
    (0.061, 9.8)
    """
    tail = silent(z_silent)
    q, lost = USUAL_FRACTION, 0.0
    for _ in range(ROUNDS):
        lost = float(np.sum(q / (q + (1.0 - q) * tail)))
        q = (lost + USUAL_WEIGHT * USUAL_FRACTION) / (rows + USUAL_WEIGHT)
    return Loss(q, lost)


def host_loss(q: float, n_lost: Floats, n_due: Floats) -> Floats:
    """The share q_h on a (host, app version) with n_lost silent among n_due past their due date.

    q_h = 0.4 q + 0.6 (0.75 n_lost + 12 q) / (n_due + 12), kept within [0.002, 0.9].

    >>> host_loss(0.04, np.array([0.0, 0.0, 8.0]), np.array([0.0, 12.0, 12.0])).round(4).tolist()
    [0.04, 0.028, 0.178]
    """
    own = (SILENT_FOR_EVER * n_lost + HOST_WEIGHT * q) / (n_due + HOST_WEIGHT)
    return np.clip(COMMON_PART * q + (1.0 - COMMON_PART) * own, LEAST_FRACTION, MOST_FRACTION)
