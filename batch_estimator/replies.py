"""What share of replies is in, on the scale of standard deviations of ln T? Pure.

F0 is the logistic law with the normal law's middle: Phi(z) ~ 1 / (1 + exp(-1.702 z)) within 0.01. Its
upper tail is longer: a reply that is two standard deviations late still comes more often than a normal
law would have it (docs/decisions/0020).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from batch_estimator.snapshot import Floats

SLOPE = 1.702
LEAST_SHARE = 1e-13  # of what can still happen: keeps a ratio of two tails finite


def replied(z: Floats) -> Floats:
    """F0(z) = 1 / (1 + exp(-1.702 z)).

    >>> replied(np.array([0.0, 1.0])).round(4).tolist()
    [0.5, 0.8458]
    """
    share: Floats = expit(SLOPE * z)
    return share


def silent(z: Floats) -> Floats:
    """1 - F0(z), at least 1e-13.

    >>> silent(np.array([0.0, 2.0, 40.0])).round(4).tolist()
    [0.5, 0.0322, 0.0]
    """
    share: Floats = np.maximum(expit(-SLOPE * z), LEAST_SHARE)
    return share


def logit_moved(share: Floats, by: float) -> Floats:
    """The share whose log-odds are `by` more.

    >>> logit_moved(np.array([0.5]), 1.0).round(4).tolist()
    [0.7311]
    """
    moved: Floats = share / (share + (1.0 - share) * np.exp(-by))
    return moved
