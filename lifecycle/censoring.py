"""What does an instance that never came back say about its host? Pure."""

from __future__ import annotations

import math

from domain.units import Instant, Seconds

LEAST_S = Seconds(1.0)  # turnarounds and runtimes count as at least this, so that their logarithms are tame
LEAST_CENSORED_RATIO = 10.0  # POLICY 4.5


def censored_sample(*, sent_at: Instant, due_at: Instant, now: Instant, est_runtime_s: Seconds) -> float:
    """The ln(turnaround / R) of a turnaround that is only known to be longer: what a time-out leaves.

    s = ln max(10, (now - sent) / R, (due - sent) / R): at least what the host was given (POLICY D23), and
    never so little that losing jobs looks like being a little slow (POLICY 4.5). The same whether we give the
    instance up after its grace or the client does at its due date, unstarted. A late valid result takes it
    back. A job with R = 1 h that was given 20 h and is given up after 22 h:

    >>> round(censored_sample(sent_at=Instant(0.0), due_at=Instant(72_000.0), now=Instant(79_200.0),
    ...                       est_runtime_s=Seconds(3600.0)), 3)  # ln 22
    3.091
    """
    silent_s = max(now - sent_at, due_at - sent_at)
    return math.log(max(LEAST_CENSORED_RATIO, silent_s / max(LEAST_S, est_runtime_s)))
