"""Matches the successes that a batch still needs with the instances expected to deliver them. Pure.

An open job needs its quorum minus its successes; each missing success is an open slot. A slot is served by an instance
in progress, by an unsent instance, or by an instance that does not exist yet. Further instances, and timed-out
instances that may still reply, act as helpers. Similar instances are computed together.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from batch_estimator.chain import Chain, RetryRules
from batch_estimator.sending import URGENT_AFTER_S
from batch_estimator.snapshot import BatchSnapshot, Bools, Floats, InstanceRows, InstanceStanding, Ints
from batch_estimator.survival import silent_share


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """The open slots. Positions are row numbers of the instance columns.

    `agreeing`, per position of `in_progress`: its job already has a success and needs another. `helper`, per position
    of `in_progress`, is the position of another outstanding instance of the same job that is not needed itself but
    could replace it, or -1; `retry_helper` is the same per unsent retry.
    """

    in_progress: Ints
    agreeing: Bools
    helper: Ints
    first_unsent: int
    retries_unsent: int
    retry_helper: Ints
    jobs: int
    jobs_with_success: int


def open_slots(snapshot: BatchSnapshot) -> Open:
    """Count the missing successes and match them with outstanding instances."""
    rows, jobs = snapshot.instances, snapshot.jobs
    n_jobs = len(jobs.is_open)
    of_open = jobs.is_open[rows.job] if n_jobs else np.zeros(0, dtype=bool)
    successes = _per_job(rows.job, of_open & (rows.standing == InstanceStanding.SUCCESS), n_jobs)
    need = np.where(jobs.is_open, np.maximum(jobs.needed - successes, 1), 0)

    running = np.flatnonzero(of_open & (rows.standing == InstanceStanding.IN_PROGRESS))
    running = running[np.lexsort((rows.host_id[running], rows.sent_at[running], rows.job[running]))]
    rank = _rank_in_group(rows.job[running])
    serving = rank < need[rows.job[running]]
    need = need - _per_job(rows.job, _mask(running[serving], len(rows.job)), n_jobs)

    unsent = of_open & (rows.standing == InstanceStanding.UNSENT)
    urgent = unsent & (rows.created_at > snapshot.submitted_at + URGENT_AFTER_S)
    urgent_per_job = np.minimum(_per_job(rows.job, urgent, n_jobs), need)
    first_per_job = np.minimum(_per_job(rows.job, unsent & ~urgent, n_jobs), need - urgent_per_job)
    to_make = need - urgent_per_job - first_per_job
    never_sent = _per_job(rows.job, of_open & (rows.standing != InstanceStanding.UNSENT), n_jobs) == 0
    retries = urgent_per_job + np.where(never_sent, 0, to_make)
    first = first_per_job + np.where(never_sent, to_make, 0)

    spare = np.concatenate([running[~serving], np.flatnonzero(of_open & (rows.standing == InstanceStanding.TIMED_OUT))])
    helper = _helpers(rows, spare, n_jobs)
    retry_jobs = np.repeat(np.arange(n_jobs), retries)
    return Open(
        running[serving],
        successes[rows.job[running[serving]]] > 0,
        helper[rows.job[running[serving]]],
        int(first.sum()),
        len(retry_jobs),
        helper[retry_jobs],
        int(jobs.is_open.sum()),
        int(((successes > 0) & jobs.is_open).sum()),
    )


def _per_job(job: Ints, chosen: Bools, n_jobs: int) -> Ints:
    return np.bincount(job[chosen], minlength=n_jobs)


def _mask(positions: Ints, length: int) -> Bools:
    mask = np.zeros(length, dtype=bool)
    mask[positions] = True
    return mask


def _rank_in_group(group: Ints) -> Ints:
    """Return 0, 1, 2, ... within each run of equal values.

    >>> _rank_in_group(np.array([4, 4, 7, 9, 9, 9])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    if len(group) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    return np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))


def _helpers(rows: InstanceRows, spare: Ints, n_jobs: int) -> Ints:
    """Return each job's latest spare instance, or -1 without one. On ties, the highest host id wins."""
    helper = np.full(n_jobs, -1, dtype=np.int64)
    by_sending = spare[np.lexsort((rows.host_id[spare], rows.sent_at[spare]))]
    helper[rows.job[by_sending]] = by_sending
    return helper


LEAST_LEFT_S = 60.0  # a timeout is noticed within a minute
ERROR_SOON = 0.3  # a future error occurs after this part of the mean error turnaround


@dataclass(frozen=True, slots=True, eq=False)
class Outstanding:
    """Sent instances without a reply, one element per instance (or per class of instances)."""

    age_s: Floats
    left_s: Floats  # until the timeout; at most 0 after it
    mu: Floats  # of ln T on its (host, app version), including the batch's shift
    sd: Floats
    lost: Floats  # q_h, before taking the age into account
    silent_s: Floats  # since the host's last contact, at most since sending

    def take(self, positions: Ints) -> Outstanding:
        return Outstanding(*(getattr(self, column.name)[positions] for column in fields(self)))

    def moved(self, shift: float, lost: Floats) -> Outstanding:
        """Return the instances with `shift` added to ln T and with other loss fractions."""
        return replace(self, mu=self.mu + shift, lost=lost)


@dataclass(frozen=True, slots=True, eq=False)
class Prospects:
    """Outcome probabilities of instances: `success`, `error` and `never` (no reply) sum to 1."""

    success: Floats
    error: Floats
    never: Floats


def prospects(out: Outstanding, rules: RetryRules) -> Prospects:
    """Return the probabilities of success, error and loss, given no reply up to age a, by Bayes' rule.

    success ~ (1 - p_e)(1 - q)(1 - F0(z)), error ~ p_e exp(-a / t_e), never ~ q, where z is the standardised ln of the
    age.

    With a loss fraction of 5 %, an instance as old as its host's mean turnaround is lost with probability 9.5 %, and
    with 62 % at two standard deviations beyond:

    >>> mean, one = np.full(2, 8.0), np.ones(2)
    >>> out = Outstanding(np.exp(mean + [0.0, 2.0]), one, mean, one, 0.05 * one, 0.0 * one)
    >>> prospects(out, RetryRules(86400.0, 600.0, 0.0, 600.0)).never.round(3).tolist()
    [0.095, 0.621]
    """
    z = (np.log(np.maximum(out.age_s, 1.0)) - out.mu) / out.sd
    success = (1.0 - rules.error_fraction) * (1.0 - out.lost) * silent_share(z)
    error = rules.error_fraction * np.exp(-out.age_s / rules.error_s)
    total = success + error + out.lost
    return Prospects(success / total, error / total, out.lost / total)


def answered_by(out: Outstanding, x: Floats, ended: Floats) -> Floats:
    """Return the share of future successes that arrive within x seconds, as a matrix of instances by times.

    C(x) = 1 - (1 - F0(z(a + x))) / (1 - F0(z(a))), but at most `ended`, the share of similarly silent hosts that make
    contact by then.

    >>> one = np.array([1.0])
    >>> out = Outstanding(100 * one, 900 * one, np.log(100 * one), one, 0 * one, 0 * one)
    >>> answered_by(out, np.array([0.0, 171.828]), np.array([[1.0, 1.0]])).round(3).tolist()
    [[0.0, 0.692]]
    """
    age = np.maximum(out.age_s, 1.0)[:, None]
    z_now = (np.log(age) - out.mu[:, None]) / out.sd[:, None]
    z_then = (np.log(age + np.maximum(x, 0.0)) - out.mu[:, None]) / out.sd[:, None]
    share: Floats = np.minimum(1.0 - silent_share(z_then) / silent_share(z_now), ended)
    return share


def failing(out: Outstanding, rules: RetryRules) -> Floats:
    """Return each instance's probability of no success before its timeout: an error, a loss or a later reply."""
    in_time = answered_by(out, np.maximum(out.left_s, 0.0)[:, None], np.ones((len(out.age_s), 1)))[:, 0]
    chance: Floats = 1.0 - prospects(out, rules).success * in_time
    return chance


def served_by(out: Outstanding, x: Floats, ended: Floats, chain: Chain, rules: RetryRules) -> Floats:
    """Return H(x), the probability that the slot succeeds within x seconds, through this instance or its retries.

    H(x) = s C(min(x, d)) + e(min(x, d)) G(x - min(0.3 t_e, d) - r)
           + [x > d] rest (1 - (1 - late(x)) (1 - G(x - d - r)))
    where s and e(.) come from `prospects`, d is the time left, rest is the probability of no reply by d, and late(x) is
    the share of rest that has replied by x.
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
    """Return the probability that a surplus instance succeeds within x seconds."""
    return prospects(out, rules).success[:, None] * answered_by(out, x, ended)


def _columns_at(values: Floats, x: Floats, at: Floats) -> Floats:
    """Interpolate each row of `values`, given at x, at that row's own `at` (a column vector)."""
    right = np.clip(np.searchsorted(x, at[:, 0]), 1, len(x) - 1)
    rows = np.arange(len(values))
    share = np.clip((at[:, 0] - x[right - 1]) / (x[right] - x[right - 1]), 0.0, 1.0)
    read: Floats = values[rows, right - 1] * (1.0 - share) + values[rows, right] * share
    return read[:, None]


MOST_CLASSES = 240
COARSER = 1.5


@dataclass(frozen=True, slots=True, eq=False)
class InstanceClasses:
    """Merged instances: their mean, the number (weight) in each class, and the class of each instance."""

    mean: Outstanding
    weight: Floats
    of: Ints


def merged(out: Outstanding, weight: Floats, bound_s: float) -> InstanceClasses:
    """Merge instances into a few classes with similar ln age, level, spread, loss fraction, time left and silence."""
    n = len(weight)
    if n <= MOST_CLASSES // 2:
        return InstanceClasses(out, weight, np.arange(n))
    scaled = _scaled(out, bound_s)
    width = 1.0
    while True:
        _, of = np.unique(_codes(scaled, width), return_inverse=True)
        count = int(of.max()) + 1
        if count <= MOST_CLASSES:
            break
        width *= COARSER
    total = np.bincount(of, weights=weight, minlength=count).astype(np.float64)
    means = [np.bincount(of, weights=weight * getattr(out, column.name)) / total for column in fields(out)]
    return InstanceClasses(Outstanding(*means), total, of)


def _scaled(out: Outstanding, bound_s: float) -> Floats:
    """Return coordinates scaled so that instances less than 1 apart are similar."""
    return np.stack(
        [
            np.log(np.maximum(out.age_s, 60.0)) / 0.2,
            out.mu / 0.4,
            out.sd / 0.4,
            np.log(out.lost / (1.0 - out.lost)) / 0.7,
            out.left_s / (0.04 * bound_s),
            np.log(np.maximum(out.silent_s, 3600.0)) / 0.7,
        ]
    )


def _codes(scaled: Floats, width: float) -> Ints:
    """Return one number for each combination of cells."""
    cells = np.floor(scaled / width).astype(np.int64)
    cells -= cells.min(axis=1, keepdims=True)
    codes = np.zeros(cells.shape[1], dtype=np.int64)
    for row in cells:
        codes = codes * (int(row.max()) + 1) + row
    return codes
