"""Times of an instance: grace and time-out, the least outage, and the samples its turnaround gives. Pure."""

from __future__ import annotations

import math

from domain.settings import LifecycleSettings
from domain.units import Instant, Seconds, elapsed_s, later

# ---- grace, time-out, outage

MISSED_ROUNDS = 3  # a gap of fewer sweeps is no outage, however far apart they are


def grace_s(sent_at: Instant, due_at: Instant, settings: LifecycleSettings) -> Seconds:
    """How long after `due_at` silence is borne before the instance times out.

    grace = grace_fraction * (due_at - sent_at), at least min_grace_s, at most max_grace_s.
    A 10 h interval gets 1 h; half an hour gets 5 min; a month gets a day.

    >>> grace_s(Instant(0.0), Instant(36_000.0), LifecycleSettings())
    3600.0
    """
    share_s = settings.grace_fraction * elapsed_s(sent_at, due_at)
    return Seconds(min(settings.max_grace_s, max(settings.min_grace_s, share_s)))


def timeout_at(sent_at: Instant, due_at: Instant, settings: LifecycleSettings) -> Instant:
    """The instant an instance times out: due_at + grace_s.

    >>> timeout_at(Instant(0.0), Instant(36_000.0), LifecycleSettings())
    39600.0
    """
    return later(due_at, grace_s(sent_at, due_at, settings))


def least_outage_s(settings: LifecycleSettings) -> Seconds:
    """How long the project must have been silent for that to be an outage.

    outage_s, but at least MISSED_ROUNDS sweeps: the project says that it is alive once a sweep.

    >>> least_outage_s(LifecycleSettings()), least_outage_s(LifecycleSettings(sweep_interval_s=Seconds(1000.0)))
    (600.0, 3000.0)
    """
    return Seconds(max(settings.outage_s, MISSED_ROUNDS * settings.sweep_interval_s))


# ---- samples of turnarounds, for the statistics of a (host, app version)

LEAST_S = Seconds(1.0)  # turnarounds and yardsticks count as at least this, so that their logarithms are tame
LEAST_CENSORED_RATIO = 10.0  # docs/formulas.md#percentiles


def yardstick_s(*, tight: bool, est_runtime_s: Seconds, median_turnaround_s: Seconds | None) -> Seconds:
    """What a turnaround is measured by: R while tight, else what the batch's jobs usually take.

    Tight instances say how much longer than R a host needs (R_q), relaxed ones how fast it is among its kind: R
    would not do, being the host's own (decision 11). Where nothing like the batch has come back yet, R it is.

    >>> yardstick_s(tight=False, est_runtime_s=Seconds(3600.0), median_turnaround_s=Seconds(86400.0))
    86400.0
    >>> yardstick_s(tight=True, est_runtime_s=Seconds(3600.0), median_turnaround_s=Seconds(86400.0))
    3600.0
    """
    if tight or median_turnaround_s is None:
        return est_runtime_s
    return median_turnaround_s


def returned_sample(turnaround_s: float, *, yardstick_s: Seconds) -> float:
    """ln(turnaround / yardstick) of a valid result.

    >>> returned_sample(1800.0, yardstick_s=Seconds(3600.0)) == -math.log(2.0)
    True
    """
    return math.log(max(LEAST_S, turnaround_s) / max(LEAST_S, yardstick_s))


def censored_sample(*, sent_at: Instant, due_at: Instant, now: Instant, yardstick_s: Seconds) -> float:
    """The ln(turnaround / yardstick) of a turnaround that is only known to be longer: what a time-out leaves.

    s = ln max(10, (now - sent) / yardstick, (due - sent) / yardstick): at least what the host was given,
    and never so little that losing jobs looks like being a little slow. The same whether we give
    the instance up after its grace or the client does at its due date, unstarted. A late valid result takes it
    back. A job of a batch whose jobs take an hour, that was given 20 h and is given up after 22 h:

    >>> round(censored_sample(sent_at=Instant(0.0), due_at=Instant(72_000.0), now=Instant(79_200.0),
    ...                       yardstick_s=Seconds(3600.0)), 3)  # ln 22
    3.091
    """
    silent_s = max(now - sent_at, due_at - sent_at)
    return math.log(max(LEAST_CENSORED_RATIO, silent_s / max(LEAST_S, yardstick_s)))
