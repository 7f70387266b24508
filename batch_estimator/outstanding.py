"""Will an outstanding instance be answered, by when, and what follows if not? Pure. ESTIMATOR 5.6."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from batch_estimator.chain import Chain, RetryRules
from batch_estimator.replies import silent
from batch_estimator.snapshot import Floats, Ints

LEAST_LEFT_S = 60.0  # a time-out that is due is noticed within the minute
ERROR_SOON = 0.3  # an error that is still to come does so within this part of its mean turnaround


@dataclass(frozen=True, slots=True, eq=False)
class Outstanding:
    """Instances that were sent and have not been answered, one element each (or one class of them)."""

    age_s: Floats
    left_s: Floats  # to the time-out; at most 0 when it is past
    mu: Floats  # of ln T on its (host, app version), the batch's shift included
    sd: Floats
    lost: Floats  # q_h, before its age is looked at
    silent_s: Floats  # since its host was last heard of, at most since its sending

    def take(self, positions: Ints) -> Outstanding:
        return Outstanding(*(getattr(self, column.name)[positions] for column in fields(self)))

    def moved(self, shift: float, lost: Floats) -> Outstanding:
        """The same under other uncertain quantities."""
        return replace(self, mu=self.mu + shift, lost=lost)


@dataclass(frozen=True, slots=True, eq=False)
class Prospects:
    """Shares of what can still become of instances, from now on; success, error and never sum to 1."""

    success: Floats
    error: Floats
    never: Floats


def prospects(out: Outstanding, rules: RetryRules) -> Prospects:
    """Bayes' rule over success, error and loss, given that nothing has come by age a.

    success ~ (1 - p_e)(1 - q)(1 - F0(z)), error ~ p_e exp(-a / t_e), never ~ q, with z the standardised
    ln of the age.

    An instance out for as long as its host takes on average, loss share 5 %: it is lost with
    probability 9.5 %, or 62 % once two standard deviations have passed:

    >>> mean, one = np.full(2, 8.0), np.ones(2)
    >>> out = Outstanding(np.exp(mean + [0.0, 2.0]), one, mean, one, 0.05 * one, 0.0 * one)
    >>> prospects(out, RetryRules(86400.0, 600.0, 0.0, 600.0)).never.round(3).tolist()
    [0.095, 0.621]
    """
    z = (np.log(np.maximum(out.age_s, 1.0)) - out.mu) / out.sd
    success = (1.0 - rules.error_fraction) * (1.0 - out.lost) * silent(z)
    error = rules.error_fraction * np.exp(-out.age_s / rules.error_s)
    total = success + error + out.lost
    return Prospects(success / total, error / total, out.lost / total)


def answered_by(out: Outstanding, x: Floats, ended: Floats) -> Floats:
    """Share of the successes to come that are in after x seconds: a matrix, instances by times.

    C(x) = 1 - (1 - F0(z(a + x))) / (1 - F0(z(a))), and never more than the share `ended` of hosts as silent as
    this one that are heard of by then.

    >>> one = np.array([1.0])
    >>> out = Outstanding(100 * one, 900 * one, np.log(100 * one), one, 0 * one, 0 * one)
    >>> answered_by(out, np.array([0.0, 171.828]), np.array([[1.0, 1.0]])).round(3).tolist()
    [[0.0, 0.692]]
    """
    age = np.maximum(out.age_s, 1.0)[:, None]
    z_now = (np.log(age) - out.mu[:, None]) / out.sd[:, None]
    z_then = (np.log(age + np.maximum(x, 0.0)) - out.mu[:, None]) / out.sd[:, None]
    share: Floats = np.minimum(1.0 - silent(z_then) / silent(z_now), ended)
    return share


def served_by(out: Outstanding, x: Floats, ended: Floats, chain: Chain, rules: RetryRules) -> Floats:
    """H(x): probability that the slot is served within x seconds, by this instance or its retries.

    H(x) = s C(min(x, d)) + e(min(x, d)) G(x - min(0.3 t_e, d) - r)
           + [x > d] rest (1 - (1 - late(x)) (1 - G(x - d - r)))
    with s, e(.) from `prospects`, d the time left, rest what is unanswered at d, late(x) the share of
    rest that has answered by x.
    """
    chances = prospects(out, rules)
    left = np.maximum(out.left_s, LEAST_LEFT_S)[:, None]
    done = chances.success[:, None] * answered_by(out, x, ended)
    at_bound = _columns_at(done, x, left)
    in_time = np.minimum(done, at_bound)
    erred = chances.error[:, None] * -np.expm1(-np.minimum(x, left) / rules.error_s)
    erred_by_bound = chances.error[:, None] * -np.expm1(-left / rules.error_s)
    rest = np.maximum(1.0 - at_bound - erred_by_bound, 1e-9)
    late = np.clip((done - at_bound) / rest, 0.0, 1.0)
    retried = chain.by(x - left - rules.wait_s)
    again = chain.by(x - np.minimum(ERROR_SOON * rules.error_s, left) - rules.wait_s)
    served: Floats = in_time + erred * again + (x > left) * rest * (1.0 - (1.0 - late) * (1.0 - retried))
    return np.clip(served, 0.0, 1.0)


def late_by(out: Outstanding, x: Floats, ended: Floats, rules: RetryRules) -> Floats:
    """Probability that an instance not counted on answers with a success within x seconds."""
    return prospects(out, rules).success[:, None] * answered_by(out, x, ended)


def _columns_at(values: Floats, x: Floats, at: Floats) -> Floats:
    """Each row of `values`, given at x, read at that row's own `at` (a column vector)."""
    right = np.clip(np.searchsorted(x, at[:, 0]), 1, len(x) - 1)
    rows = np.arange(len(values))
    share = np.clip((at[:, 0] - x[right - 1]) / (x[right] - x[right - 1]), 0.0, 1.0)
    read: Floats = values[rows, right - 1] * (1.0 - share) + values[rows, right] * share
    return read[:, None]
