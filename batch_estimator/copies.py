"""When copies of a batch's last jobs will be made, and what they bring. Pure. docs/decisions/0061."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.chain import Chain, FreshLaw, RetryRules, retry_chain
from batch_estimator.snapshot import Floats, Tail

LEAST_BOUND_S = 600.0  # between a copy and the next one of its job


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies from `starts_s` seconds from now on, of jobs whose instances are out for `late_factor` times `usual_s`."""

    starts_s: float
    late_factor: float
    usual_s: float

    def chain(self, law: FreshLaw, rules: RetryRules) -> Chain:
        """The retry chain of copies: the next one is made `late_factor` usual turnarounds after the last."""
        bound_s = max(LEAST_BOUND_S, min(self.late_factor * self.usual_s, rules.bound_s))
        return retry_chain(law, RetryRules(bound_s, rules.wait_s, rules.error_fraction, rules.error_s))

    def after_s(self, age_s: Floats, mu: Floats) -> Floats:
        """Seconds from now until an instance's job is copied: max(start, factor e^mu - age).

        >>> copies = Copies(100.0, late_factor=2.0, usual_s=300.0)
        >>> copies.after_s(np.array([0.0, 590.0]), np.log([300.0, 300.0])).round().tolist()
        [600.0, 100.0]
        """
        after: Floats = np.maximum(self.starts_s, self.late_factor * np.exp(mu) - age_s)
        return after


def helped_by(served: Floats, copied_s: Floats, chain: Chain, *, wait_s: float, x: Floats) -> Floats:
    """1 - (1 - H(x)) (1 - G_c(x - copied - wait)): the job is served by its instance or by a copy.

    `served` is a matrix, jobs by times; `copied_s` is when each job is copied, in seconds from now.
    """
    by_copy = chain.by(x[None, :] - (copied_s + wait_s)[:, None])
    either: Floats = 1.0 - (1.0 - served) * (1.0 - by_copy)
    return either


def tail_begins_s(tail: Tail, open_jobs: Floats, x: Floats, *, unsent_by_s: float) -> float:
    """Seconds until the tail begins: when `tail.open_jobs` are expected to be open, or at `unsent_by_s`.

    `open_jobs` is how many jobs are expected to be open at each of the times x.

    >>> tail = Tail(open_jobs=5, unsent=None, late_factor=0.7)
    >>> tail_begins_s(tail, np.array([100.0, 20.0, 4.0, 1.0]), np.array([0.0, 60.0, 120.0, 180.0]), unsent_by_s=np.inf)
    116.25
    """
    level = max(float(tail.open_jobs), 0.5)
    begins_s = float(np.interp(-level, -np.minimum.accumulate(open_jobs), x))
    return min(begins_s, unsent_by_s)
