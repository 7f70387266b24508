"""The retry chain: time until a fresh instance, its replacement or a tail copy succeeds. Pure. docs/formulas.md.

docs/decisions/0061 derives the expected time and effect of tail copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.snapshot import Floats, Tail
from batch_estimator.survival import replied

MOST_ROUNDS = 40  # maximum number of retries per job
CLOSE_ENOUGH = 1e-7
MOST_SD, POINTS = 8.0, 400  # range and resolution of ln T


@dataclass(frozen=True, slots=True, eq=False)
class FreshLaw:
    """The hosts that will run fresh instances: classes by ln T, each with its share of dispatches and loss fraction."""

    mu: Floats
    sd: Floats
    lost: Floats
    share: Floats  # sums to 1

    def success_by(self, after_s: Floats, error_fraction: float) -> Floats:
        """Return A(t), the probability of success within t: (1 - p_e) sum_h w_h (1 - q_h) F0((ln t - mu_h) / sd_h).

        >>> law = FreshLaw(np.array([9.0]), np.array([1.0]), np.array([0.1]), np.array([1.0]))
        >>> law.success_by(np.exp(np.array([9.0, 12.0])), 0.05).round(4).tolist()
        [0.4275, 0.8498]
        """
        ln_t = np.log(np.maximum(after_s, 1.0))
        replied_each = replied((ln_t[:, None] - self.mu[None, :]) / self.sd[None, :])
        done: Floats = (1.0 - error_fraction) * (replied_each @ (self.share * (1.0 - self.lost)))
        return done

    def returned_s(self, share: float) -> float:
        """Return the turnaround within which this share of the results return; 0 if all instances are lost.

        >>> law = FreshLaw(np.array([7.0, 9.0]), np.array([0.1, 0.1]), np.array([0.1, 0.1]), np.array([0.98, 0.02]))
        >>> [round(float(np.log(law.returned_s(share))), 1) for share in (0.49, 0.99)]  # half of each class
        [7.0, 9.0]
        """
        low, high = float(np.min(self.mu - MOST_SD * self.sd)), float(np.max(self.mu + MOST_SD * self.sd))
        at = np.linspace(low, high, POINTS)
        done = self.success_by(np.exp(at), 0.0)
        return float(np.exp(np.interp(share * done[-1], done, at))) if done[-1] > 0.0 else 0.0

    def lasts_s(self, bound_s: float) -> float:
        """Return the mean time an instance is in progress; lost and slower instances count as the bound.

        >>> law = FreshLaw(np.array([np.log(100.0)]), np.array([1.0]), np.array([0.1]), np.array([1.0]))
        >>> round(law.lasts_s(1000.0), 1)
        248.4
        """
        mean_s = np.minimum(np.exp(self.mu + 0.5 * self.sd**2), bound_s)
        return float(self.share @ ((1.0 - self.lost) * mean_s + self.lost * bound_s))


@dataclass(frozen=True, slots=True)
class RetryRules:
    """When a retry is created (at the timeout or after an error) and when it is sent (when a host requests work)."""

    bound_s: float  # from sending to timeout
    wait_s: float  # from creating a retry to sending it
    error_fraction: float
    error_s: float  # mean turnaround of an error


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """G(t): the probability that a job has succeeded `t` seconds after an instance was sent, including retries."""

    t: Floats
    served: Floats

    def by(self, after_s: Floats) -> Floats:
        """Return G at the given times; G is 0 before sending."""
        share: Floats = np.interp(after_s, self.t, self.served, left=0.0)
        return share


def chain_grid(bound_s: float) -> Floats:
    """Return a grid of times after sending, in seconds: fine at first, then in steps of 1/32 bound up to 6 bounds."""
    early = np.geomspace(0.002, 0.5, 24)
    return bound_s * np.concatenate([[0.0], early, np.arange(17, 6 * 32 + 1) / 32.0, np.arange(25, 65) / 4.0])


def retry_chain(law: FreshLaw, rules: RetryRules) -> Chain:
    """Solve the renewal equation for successive instances of a job, by iterating over the number of retries.

    G(t) = A(min(t, D)) + p_e G(t - t_e - r) + [t > D] rest (1 - (1 - L(t)) (1 - G(t - D - r))) with rest = 1 - A(D) -
    p_e and the late replies L(t) = (A(t) - A(D)) / rest. Each iteration adds one retry; G has converged when an
    iteration changes nothing.

    If every host replies after about an hour, 10 % never reply, and the bound is a day, then 90 % succeed within the
    first day and 99 % within the second:

    >>> law = FreshLaw(np.array([np.log(3600.0)]), np.array([0.3]), np.array([0.1]), np.array([1.0]))
    >>> chain = retry_chain(law, RetryRules(bound_s=86400.0, wait_s=600.0, error_fraction=0.0, error_s=600.0))
    >>> chain.by(np.array([86000.0, 172000.0])).round(3).tolist()
    [0.9, 0.99]
    """
    t = chain_grid(rules.bound_s)
    fresh = law.success_by(t, rules.error_fraction)
    by_bound = float(law.success_by(np.array([rules.bound_s]), rules.error_fraction)[0])
    rest = max(1.0 - by_bound - rules.error_fraction, 1e-9)
    in_time = np.minimum(fresh, by_bound)
    not_late = 1.0 - np.clip((fresh - by_bound) / rest, 0.0, 1.0)
    overdue = t > rules.bound_s
    after_error, after_timeout = t - rules.error_s - rules.wait_s, t - rules.bound_s - rules.wait_s
    served = in_time
    for _ in range(MOST_ROUNDS):
        again = np.interp(after_timeout, t, served, left=0.0)
        before = served
        served = in_time + rules.error_fraction * np.interp(after_error, t, before, left=0.0)
        served = np.minimum(served + overdue * rest * (1.0 - not_late * (1.0 - again)), 1.0)
        if float(np.max(served - before)) < CLOSE_ENOUGH:
            break
    return Chain(t, served)


LEAST_BOUND_S = 600.0  # between two copies of a job


@dataclass(frozen=True, slots=True)
class Copies:
    """From `starts_s` seconds on, jobs whose instances have all run for `late_factor` * `usual_s` are copied."""

    starts_s: float
    late_factor: float
    usual_s: float

    def chain(self, law: FreshLaw, rules: RetryRules) -> Chain:
        """Return the retry chain of copies: each is made `late_factor` usual turnarounds after the previous one."""
        bound_s = max(LEAST_BOUND_S, min(self.late_factor * self.usual_s, rules.bound_s))
        return retry_chain(law, RetryRules(bound_s, rules.wait_s, rules.error_fraction, rules.error_s))

    def after_s(self, age_s: Floats, mu: Floats) -> Floats:
        """Return the seconds from now until an instance's job is copied: max(start, factor e^mu - age).

        >>> copies = Copies(100.0, late_factor=2.0, usual_s=300.0)
        >>> copies.after_s(np.array([0.0, 590.0]), np.log([300.0, 300.0])).round().tolist()
        [600.0, 100.0]
        """
        after: Floats = np.maximum(self.starts_s, self.late_factor * np.exp(mu) - age_s)
        return after


def helped_by(served: Floats, copied_s: Floats, chain: Chain, *, wait_s: float, x: Floats) -> Floats:
    """Return the probability of success by the instance or a copy: 1 - (1 - H(x)) (1 - G_c(x - copied - wait)).

    `served` is a matrix, jobs by times; `copied_s` is when each job is copied, in seconds from now.
    """
    by_copy = chain.by(x[None, :] - (copied_s + wait_s)[:, None])
    either: Floats = 1.0 - (1.0 - served) * (1.0 - by_copy)
    return either


def tail_begins_s(tail: Tail, open_jobs: Floats, x: Floats, *, unsent_by_s: float) -> float:
    """Return the seconds until the tail begins: until about `tail.open_jobs` jobs are open, at most `unsent_by_s`.

    `open_jobs` is the expected number of open jobs at each time in x.

    >>> tail = Tail(open_jobs=5, unsent=None, late_factor=0.7)
    >>> tail_begins_s(tail, np.array([100.0, 20.0, 4.0, 1.0]), np.array([0.0, 60.0, 120.0, 180.0]), unsent_by_s=np.inf)
    116.25
    """
    level = max(float(tail.open_jobs), 0.5)
    begins_s = float(np.interp(-level, -np.minimum.accumulate(open_jobs), x))
    return min(begins_s, unsent_by_s)
