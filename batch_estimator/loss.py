"""Estimates loss and error fractions, how long silent hosts stay silent, and timeouts. Pure. docs/formulas.md.

The loss fraction, the share of instances that never return, is a mixture-cure rate fitted to censored data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.sending import URGENT_AFTER_S
from batch_estimator.snapshot import BatchSnapshot, Bools, Floats, InstanceStanding, Ints
from batch_estimator.survival import silent_share

USUAL_LOSS = 0.03
LOSS_WEIGHT = 120.0  # instances of one host are correlated: each counts as a third
ROUNDS = 30
HOST_WEIGHT = 12.0  # weight of the app's rate against a host's own data, in instances past their timeout
COMMON_PART = 0.4  # part of the app's rate that a host's own data does not change
SILENT_FOR_EVER = 0.75  # of silent instances past their timeout; the remaining ones reply late
LEAST_FRACTION, MOST_FRACTION = 0.002, 0.9


@dataclass(frozen=True, slots=True)
class Loss:
    """The fraction of instances that never return, and the number of such instances in the data."""

    fraction: float
    n_lost: float

    @property
    def logit_sd(self) -> float:
        """Return the standard deviation of the fraction's log-odds: sqrt(0.35^2 + 1 / (n_lost + 1.5))."""
        return float(np.sqrt(0.35**2 + 1.0 / (self.n_lost + 1.5)))


def loss_fraction(z_silent: Floats, rows: int) -> Loss:
    """Return the loss fraction q, from the standardised ln age of the silent instances among `rows`.

    q <- (sum over silent instances of q / (q + (1-q)(1 - F0(z))) + 120 * 0.03) / (rows + 120), iterated 30 times. All
    sent instances count, so that an app younger than its timeouts does not appear to lose nothing.

    Ten out of 100 are silent at an age by which nearly all replies have arrived:

    >>> loss = loss_fraction(np.full(10, 4.0), 100)
    >>> round(loss.fraction, 3), round(loss.n_lost, 1)
    (0.061, 9.8)
    """
    tail = silent_share(z_silent)
    q, lost = USUAL_LOSS, 0.0
    for _ in range(ROUNDS):
        lost = float(np.sum(q / (q + (1.0 - q) * tail)))
        q = (lost + LOSS_WEIGHT * USUAL_LOSS) / (rows + LOSS_WEIGHT)
    return Loss(q, lost)


def host_loss(q: float, n_lost: Floats, n_due: Floats) -> Floats:
    """Return the loss fraction q_h of a (host, app version): of n_due instances past their due date, n_lost are silent.

    q_h = 0.4 q + 0.6 (0.75 n_lost + 12 q) / (n_due + 12), clamped to [0.002, 0.9].

    >>> host_loss(0.04, np.array([0.0, 0.0, 8.0]), np.array([0.0, 12.0, 12.0])).round(4).tolist()
    [0.04, 0.028, 0.178]
    """
    own = (SILENT_FOR_EVER * n_lost + HOST_WEIGHT * q) / (n_due + HOST_WEIGHT)
    return np.clip(COMMON_PART * q + (1.0 - COMMON_PART) * own, LEAST_FRACTION, MOST_FRACTION)


USUAL_ERRORS = 0.03
ERRORS_WEIGHT = 20.0
LEAST_ERRORS = 5


@dataclass(frozen=True, slots=True)
class Failures:
    """The fraction of replies that are errors, the mean turnaround of errors, and their number."""

    fraction: float
    turnaround_s: float
    n: float

    @property
    def logit_sd(self) -> float:
        """Return the standard deviation of the fraction's log-odds: sqrt(0.2^2 + 1 / (n + 1.5))."""
        return float(np.sqrt(0.04 + 1.0 / (self.n + 1.5)))


def error_fraction(n_error: float, n_success: float) -> float:
    """Return the error fraction, with a prior of 3 % worth 20 replies: (errors + 0.6) / (errors + successes + 20).

    Silent instances are excluded, because the loss model covers them.

    >>> error_fraction(0, 0), error_fraction(9.4, 70.6)
    (0.03, 0.1)
    """
    return (n_error + ERRORS_WEIGHT * USUAL_ERRORS) / (n_error + n_success + ERRORS_WEIGHT)


def failures_of(snapshot: BatchSnapshot) -> Failures:
    """Return the failures in the batch and in other work of the app, without those of withdrawn versions."""
    rows, havs = snapshot.instances, snapshot.havs
    in_use, of_havs = _in_use(rows.app_version_id, snapshot), _in_use(havs.app_version_id, snapshot)
    failed = _failed(rows.standing) & in_use
    n_error = float(failed.sum()) + float(np.sum((havs.weight * havs.n_error)[of_havs]))
    n_success = float(((rows.standing == InstanceStanding.SUCCESS) & in_use).sum())
    n_success += float(np.sum((havs.weight * havs.n_success)[of_havs]))
    took = np.concatenate([(rows.reported_at - rows.sent_at)[failed], _sampled_errors(snapshot)])
    took = took[np.isfinite(took)]
    bound = snapshot.delay_bound_s
    turnaround_s = float(np.mean(took)) if len(took) >= LEAST_ERRORS else 0.1 * bound
    turnaround_s = min(max(turnaround_s, 0.02 * bound), 0.5 * bound)
    return Failures(error_fraction(n_error, n_success), turnaround_s, n_error)


def _sampled_errors(snapshot: BatchSnapshot) -> Floats:
    sent = snapshot.sent
    took: Floats = (sent.reported_at - sent.sent_at)[_failed(sent.standing) & _in_use(sent.app_version_id, snapshot)]
    return took


def _failed(standing: Ints) -> Bools:
    failed: Bools = (standing == InstanceStanding.ERROR) | (standing == InstanceStanding.INVALID)
    return failed


def _in_use(app_version_id: Ints, snapshot: BatchSnapshot) -> Bools:
    return ~np.isin(app_version_id, list(snapshot.withdrawn))


# ---- silent hosts
# At a random instant, the density u(s) of hosts silent for s is proportional to the share of gaps between contacts
# longer than s (renewal theory), so the hosts' current silences contain all the data needed: P(still silent at s + x |
# silent for s) = u(s + x) / u(s). Gaps have long tails and some hosts have left: u is Lomax (Pareto II), so the longer
# a host has been silent, the longer it is expected to stay silent.

SHORTEST_S, LONGEST_S = 60.0, 40 * 86400.0
SCALES_S = tuple(float(scale) for scale in np.geomspace(900.0, 4 * 86400.0, 17))


@dataclass(frozen=True, slots=True)
class Silence:
    """The probability distribution of the length s of a host's silence: u(s) ~ (1 + s / scale)^-(shape + 1)."""

    shape: float
    scale_s: float

    def ended(self, silent_s: Floats, after_s: Floats) -> Floats:
        """Return the probability that a host silent for `silent_s` contacts the server within `after_s`; broadcasts.

        1 - u(s + x) / u(s) = 1 - ((s + c) / (s + x + c))^(k + 1).

        >>> law = Silence(shape=1.0, scale_s=100.0)
        >>> law.ended(np.array([0.0, 300.0]), np.array([100.0, 400.0])).round(4).tolist()
        [0.75, 0.75]
        """
        start = silent_s + self.scale_s
        ended: Floats = 1.0 - np.exp((self.shape + 1.0) * (np.log(start) - np.log(start + after_s)))
        return ended


def silence_law(silences_s: Floats, weights: Floats) -> Silence:
    """Return the maximum-likelihood fit over a list of scales c; for each, k = W / sum w ln(1 + s / c).

    Silences over 40 days are excluded: these hosts are considered gone.

    >>> law = silence_law(np.array([0.0, 3600.0, 7200.0, 86400.0, 864000.0]), np.ones(5))
    >>> round(law.shape, 2), round(law.scale_s)
    (0.33, 900)
    """
    known = np.isfinite(silences_s) & (silences_s <= LONGEST_S)
    s, w = np.maximum(silences_s[known], SHORTEST_S), weights[known]
    scales = np.array(SCALES_S)
    logs = np.log1p(s[:, None] / scales[None, :])
    total = float(np.sum(w))
    per_scale = w @ logs
    shapes = total / per_scale
    likelihood = total * np.log(shapes / scales) - (shapes + 1.0) * per_scale
    best = int(np.argmax(likelihood))
    return Silence(float(shapes[best]), float(scales[best]))


# ---- timeouts of unsent instances
# They are taken from this batch's latest instances, which reflect the deadline rule; the delay bound is only their
# maximum. They never come from C(B): deadlines that follow the forecast would feed back into it (docs/decisions/0034).

LEAST_GIVEN = 5
LATELY = 50  # number of latest instances used


def bound_of(snapshot: BatchSnapshot) -> float:
    """Return the median seconds from sending to timeout for the batch's retries, or else for its latest instances.

    With fewer than 5 of either, return the maximum for an instance: D plus the grace period.
    """
    rows = snapshot.instances
    given = rows.timeout_at - rows.sent_at
    sent = (rows.standing != InstanceStanding.UNSENT) & np.isfinite(given) & (given > 0.0)
    urgent = rows.created_at > snapshot.submitted_at + URGENT_AFTER_S
    retries = given[sent & urgent]
    if len(retries) >= LEAST_GIVEN:
        return float(np.median(retries))
    recent = sent_last(given[sent], rows.sent_at[sent])
    if len(recent) < LEAST_GIVEN:
        return float(snapshot.delay_bound_s)
    return min(float(np.median(recent)), float(snapshot.delay_bound_s))


def sent_last(given_s: Floats, sent_at: Floats) -> Floats:
    """Return the bounds of the 50 instances sent last, and of others sent at the same time as the earliest of them.

    >>> float(sent_last(np.arange(60.0), np.arange(60.0)).min())
    10.0
    """
    if len(given_s) <= LATELY:
        return given_s
    last: Floats = given_s[sent_at >= np.partition(sent_at, -LATELY)[-LATELY]]
    return last
