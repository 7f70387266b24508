"""How often does an instance come back with an error, and when? Pure. ESTIMATOR 5.1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats, Snapshot, Standing

USUAL_FRACTION = 0.03
USUAL_WEIGHT = 20.0
LEAST_ERRORS = 5


@dataclass(frozen=True, slots=True)
class Failures:
    """Share of replies that are errors, their mean turnaround, and how many were seen."""

    fraction: float
    turnaround_s: float
    n: float

    @property
    def logit_sd(self) -> float:
        """How unsure the log-odds of the share are: sqrt(0.2^2 + 1 / (n + 1.5))."""
        return float(np.sqrt(0.04 + 1.0 / (self.n + 1.5)))


def error_fraction(n_error: float, n_success: float) -> float:
    """Errors among replies, drawn to 3 % by 20 replies: (errors + 0.6) / (errors + successes + 20).

    Silence is left out: an instance that never replies is the loss law's business.

    >>> error_fraction(0, 0), error_fraction(9.4, 70.6)
    (0.03, 0.1)
    """
    return (n_error + USUAL_WEIGHT * USUAL_FRACTION) / (n_error + n_success + USUAL_WEIGHT)


def failures_of(snapshot: Snapshot) -> Failures:
    """Over the batch and the app's other work."""
    rows, havs = snapshot.instances, snapshot.havs
    failed = (rows.standing == Standing.ERROR) | (rows.standing == Standing.INVALID)
    n_error = float(failed.sum()) + float(np.sum(havs.weight * havs.n_error))
    n_success = float((rows.standing == Standing.SUCCESS).sum()) + float(np.sum(havs.weight * havs.n_success))
    took = np.concatenate([(rows.reported_at - rows.sent_at)[failed], _sampled_errors(snapshot)])
    took = took[np.isfinite(took)]
    bound = snapshot.delay_bound_s
    turnaround_s = float(np.mean(took)) if len(took) >= LEAST_ERRORS else 0.1 * bound
    turnaround_s = min(max(turnaround_s, 0.02 * bound), 0.5 * bound)
    return Failures(error_fraction(n_error, n_success), turnaround_s, n_error)


def _sampled_errors(snapshot: Snapshot) -> Floats:
    sent = snapshot.sent
    failed = (sent.standing == Standing.ERROR) | (sent.standing == Standing.INVALID)
    took: Floats = (sent.reported_at - sent.sent_at)[failed]
    return took
