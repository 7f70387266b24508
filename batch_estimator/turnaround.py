"""Estimates the turnaround of each (host, app version) as a lognormal distribution. Pure. docs/formulas.md.

ln T of one (host, app version) is normal around its own level; levels are normal around the app's mean. A level with
few results is shrunk towards that mean. There are three steps: the app's distribution from host sums, a level for each
(host, app version) in the roster, and this batch's shift relative to the app's earlier jobs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import BatchSnapshot, Bools, Floats, HavRows, InstanceStanding, Ints
from batch_estimator.survival import SurvivalData, silent_share, thinned

LEAST_SUCCESSES = 30  # number of results needed to fit a distribution to host sums
LEAST_HAVS = 10  # from at least this many (host, app version) rows
LEAST_VARIANCE = 0.05
MOST_WEIGHT = 5.0  # maximum weight of one (host, app version) in the app's mean
APRIORI_VARIANCE = 1.44
APRIORI_EXTRA_S = 4 * 3600.0
APRIORI_OBSERVATIONS = 3.0
LEAST_COLD_SUCCESSES = 3
ROUNDS = 25
LEAST_TAIL = 1e-13
LOST_FLOOR = 0.03  # prior fraction of instances that never return


@dataclass(frozen=True, slots=True)
class TurnaroundLaw:
    """In ln seconds: mean of the levels, variance around a level, variance of the levels. `n` results were used."""

    mean_ln: float
    within_var: float
    between_var: float
    n: float
    warm: bool

    def level(self, n: Floats, sum_ln: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of ln T on a (host, app version) whose n results have a ln sum of sum_ln.

        mu = (S/v_w + m/v_b) / (n/v_w + 1/v_b); sd^2 = v_w + 1/(n/v_w + 1/v_b).

        >>> law = TurnaroundLaw(mean_ln=10.0, within_var=1.0, between_var=0.5, n=100.0, warm=True)
        >>> mu, sd = law.level(np.array([0.0, 2.0]), np.array([0.0, 18.0]))
        >>> mu.tolist(), (sd**2).round(4).tolist()
        ([10.0, 9.5], [1.5, 1.25])
        """
        precision = n / self.within_var + 1.0 / self.between_var
        mu = (sum_ln / self.within_var + self.mean_ln / self.between_var) / precision
        return mu, np.sqrt(self.within_var + 1.0 / precision)


def turnaround_law(snapshot: BatchSnapshot) -> TurnaroundLaw:
    """Return the distribution fitted to the app's host sums or to this batch, or derived from the job requirements."""
    havs = snapshot.havs
    with_results = havs.n_success > 0
    if havs.n_success.sum() >= LEAST_SUCCESSES and with_results.sum() >= LEAST_HAVS:
        return _warm(havs)
    return _cold(snapshot)


def apriori_ln(snapshot: BatchSnapshot) -> float:
    """Return ln of the turnaround expected before any result is known: min(D / 2, 2 flop / speed + 4 h)."""
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


def _cold(snapshot: BatchSnapshot) -> TurnaroundLaw:
    expected = apriori_ln(snapshot)
    rows = snapshot.instances
    success = rows.standing == InstanceStanding.SUCCESS
    done = np.log(np.maximum(rows.reported_at[success] - rows.sent_at[success], 1.0))
    if len(done) < LEAST_COLD_SUCCESSES:
        return TurnaroundLaw(expected, APRIORI_VARIANCE / 2.0, APRIORI_VARIANCE / 2.0, float(len(done)), warm=False)
    silent = (rows.standing == InstanceStanding.IN_PROGRESS) | (rows.standing == InstanceStanding.TIMED_OUT)
    ages = np.log(np.maximum(snapshot.now - rows.sent_at[silent], 1.0))
    mean, variance = censored_normal(done, ages, expected)
    return TurnaroundLaw(mean, variance / 2.0, variance / 2.0, float(len(done)), warm=False)


def censored_normal(done: Floats, at_least: Floats, expected: float) -> tuple[float, float]:
    """Return mean and variance of a normal sample with exact values `done` and right-censored values `at_least`.

    Expectation maximisation, 25 rounds: a censored value counts with the moments of the tail above it and with the
    probability that it returns at all (3 % never do). Three prior observations at `expected` with variance 1 limit the
    effect of the first results.

    >>> mean, variance = censored_normal(np.full(97, 10.0), np.array([]), 11.0)
    >>> round(mean, 3), round(variance, 3)
    (10.03, 0.1)
    """
    from scipy.special import ndtr  # noqa: PLC0415  slow to import: only for forecasts

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


@dataclass(frozen=True, slots=True, eq=False)
class Roster:
    """One entry per (host, app version), and the entry index of each instance.

    Sums are over the app's other work, zero if there is none. `n_lost` counts timeouts and instances aborted after
    their due date, because lost instances do not time out when copies complete their jobs first. `last_contact_at` is
    the latest known contact: the host's last request, or a dispatch or reply of this batch.
    """

    host_id: Ints
    n_success: Floats
    sum_ln: Floats
    n_lost: Floats
    n_due: Floats
    last_contact_at: Floats
    of_instance: Ints  # -1 for an unsent instance
    of_sent: Ints


def roster_of(snapshot: BatchSnapshot) -> Roster:
    """Join the sums, the batch's instances and the sample by (host, app version)."""
    instances, havs, sent = snapshot.instances, snapshot.havs, snapshot.sent
    was_sent = np.flatnonzero(instances.standing != InstanceStanding.UNSENT)
    hosts = np.concatenate([havs.host_id, instances.host_id[was_sent], sent.host_id])
    versions = np.concatenate([havs.app_version_id, instances.app_version_id[was_sent], sent.app_version_id])
    span = int(versions.max(initial=0)) + 2
    keys, entry = np.unique(hosts * span + versions + 1, return_inverse=True)
    of_hav, of_batch, of_sent = np.split(entry, [len(havs.host_id), len(havs.host_id) + len(was_sent)])
    of_instance = np.full(len(instances.job), -1, dtype=np.int64)
    of_instance[was_sent] = of_batch

    def column(values: Ints | Floats) -> Floats:
        return np.bincount(of_hav, weights=values, minlength=len(keys)).astype(np.float64)

    contact = np.full(len(keys), -np.inf)
    np.fmax.at(contact, of_hav, havs.last_rpc_at)
    np.fmax.at(contact, of_batch, np.fmax(instances.sent_at[was_sent], instances.reported_at[was_sent]))
    return Roster(
        keys // span,
        column(havs.n_success),
        column(havs.sum_ln),
        column(np.maximum(havs.n_timeout, havs.n_due - havs.n_success - havs.n_error)),
        column(havs.n_due),
        contact,
        of_instance,
        of_sent,
    )


# ---- levels from unfinished work
# Sums contain only returned results, which are faster than work in progress. While much work is in progress (young app,
# queues, weekend) levels from sums are too low, and the loss rate would have to explain the difference.
LEVEL_ROWS = 800
LEAST_REPLIES = 5


def whole_levels(mu: Floats, sd: Floats, sampled: SurvivalData) -> tuple[Floats, Floats]:
    """Return the levels of ln T over all sent instances, given the levels over returned instances.

    With z = (ln T - mu) / sd of a sample by sending time, silent instances censored at their age: mu' = mu + mean(z) sd
    and sd' = sd(z) sd, by `censored_normal`.

    Three out of four returned at the level, and the fourth has been silent for one standard deviation longer:

    >>> z = np.tile([-1.0, 0.0, 1.0, 1.0], 100)
    >>> sampled = SurvivalData(8.0 + z, np.tile([False, False, False, True], 100), np.zeros(400, dtype=np.int64), z)
    >>> mu, sd = whole_levels(np.array([8.0]), np.array([1.0]), sampled)
    >>> mu.round(2).tolist(), sd.round(2).tolist()
    ([8.37], [1.02])
    """
    few = thinned(sampled, LEVEL_ROWS)
    if int((~few.silent).sum()) < LEAST_REPLIES:
        return mu, sd
    z = (few.ln_s - mu[few.entry]) / sd[few.entry]
    mean, variance = censored_normal(z[~few.silent], z[few.silent], 0.0)
    return mu + mean * sd, sd * float(np.sqrt(variance))


# ---- the batch's own shift
SIZE_EXPONENT = 0.6  # exponent of job size in the turnaround, below 1 because waiting does not grow with size
PRIOR_SD = 0.5
LEAST_SD = 0.10
DEPENDENCE = 1.0 / 3.0  # instances of one host are correlated: a third of the log-likelihood
POINTS = 37
SHIFT_ROWS = 700


@dataclass(frozen=True, slots=True)
class Shift:
    """This batch's shift of ln T, as mean and standard deviation."""

    mean: float
    sd: float


def batch_shift(snapshot: BatchSnapshot, law: TurnaroundLaw, mu: Floats, sd: Floats, watched: SurvivalData) -> Shift:
    """Return the posterior of the shift, given the jobs' size and the batch's instances so far.

    The prior is normal(0.6 ln(size / earlier size), 0.5^2). A cold distribution was fitted to this batch itself, so its
    shift is 0 with sd max(0.1, 1.2 / sqrt(n / 3 + 2)).
    """
    if not law.warm:
        return Shift(0.0, max(LEAST_SD, 1.2 / (law.n / 3.0 + 2.0) ** 0.5))
    size = _mean_ln(snapshot.jobs.fpops_flop) - snapshot.mean_ln_fpops
    prior = SIZE_EXPONENT * size if np.isfinite(size) else 0.0
    few = thinned(watched, SHIFT_ROWS)
    return posterior(prior, (few.ln_s - mu[few.entry]) / sd[few.entry], sd[few.entry], few.silent)


def posterior(prior_mean: float, z: Floats, sd: Floats, silent: Bools) -> Shift:
    """Return mean and sd of the shift b, computed on a grid from standardised values z of ln T (of ln age if silent).

    ln L(b) = 1/3 * sum( -(z - b/sd)^2 / 2 if returned, else ln(0.03 + 0.97 (1 - F0(z - b/sd))) ).

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
