"""Grace period and timeout of an instance, the minimum outage, and turnaround samples. Pure."""

from __future__ import annotations

import math

from domain.settings import LifecycleSettings
from domain.units import Instant, Seconds, elapsed_s, later

# ---- grace period, timeout, outage

MISSED_ROUNDS = 3  # fewer missed sweeps than this are not an outage, at any interval


def grace_s(sent_at: Instant, due_at: Instant, settings: LifecycleSettings) -> Seconds:
    """Return the grace period, the time from `due_at` to the timeout of an instance that was not reported.

    grace = grace_fraction * (due_at - sent_at), at least min_grace_s, at most max_grace_s.
    An interval of 10 h gets 1 h; half an hour gets 5 min; a month gets a day.

    >>> grace_s(Instant(0.0), Instant(36_000.0), LifecycleSettings())
    3600.0
    """
    share_s = settings.grace_fraction * elapsed_s(sent_at, due_at)
    return Seconds(min(settings.max_grace_s, max(settings.min_grace_s, share_s)))


def timeout_at(sent_at: Instant, due_at: Instant, settings: LifecycleSettings) -> Instant:
    """Return when an instance times out: due_at + grace_s.

    >>> timeout_at(Instant(0.0), Instant(36_000.0), LifecycleSettings())
    39600.0
    """
    return later(due_at, grace_s(sent_at, due_at, settings))


def least_outage_s(settings: LifecycleSettings) -> Seconds:
    """Return the minimum time without a sign of life from the project that counts as an outage.

    It is outage_s, but at least MISSED_ROUNDS sweeps, because each sweep records that the project is up.

    >>> least_outage_s(LifecycleSettings()), least_outage_s(LifecycleSettings(sweep_interval_s=Seconds(1000.0)))
    (600.0, 3000.0)
    """
    return Seconds(max(settings.outage_s, MISSED_ROUNDS * settings.sweep_interval_s))


# ---- turnaround samples, for the statistics of a (host, app version)

LEAST_S = Seconds(1.0)  # minimum of turnarounds and yardsticks, so that logarithms stay bounded
LEAST_CENSORED_RATIO = 10.0  # docs/formulas.md#percentiles


def yardstick_s(*, tight: bool, est_runtime_s: Seconds, median_turnaround_s: Seconds | None) -> Seconds:
    """Return the yardstick for a turnaround: R for tight instances, otherwise the usual turnaround of the batch's jobs.

    Tight samples show how much longer than R a host needs (R_q), relaxed samples how fast it is compared with other
    hosts; R cannot show that, because it is the host's own (decision 11). Without results of similar jobs, R is used.

    >>> yardstick_s(tight=False, est_runtime_s=Seconds(3600.0), median_turnaround_s=Seconds(86400.0))
    86400.0
    >>> yardstick_s(tight=True, est_runtime_s=Seconds(3600.0), median_turnaround_s=Seconds(86400.0))
    3600.0
    """
    if tight or median_turnaround_s is None:
        return est_runtime_s
    return median_turnaround_s


def returned_sample(turnaround_s: float, *, yardstick_s: Seconds) -> float:
    """Return ln(turnaround / yardstick) for a valid result.

    >>> returned_sample(1800.0, yardstick_s=Seconds(3600.0)) == -math.log(2.0)
    True
    """
    return math.log(max(LEAST_S, turnaround_s) / max(LEAST_S, yardstick_s))


def censored_sample(*, sent_at: Instant, due_at: Instant, now: Instant, yardstick_s: Seconds) -> float:
    """Return ln(turnaround / yardstick) as a lower bound: the sample for a timeout.

    s = ln max(10, (now - sent) / yardstick, (due - sent) / yardstick): at least the time that the host was given, and
    large enough that losing jobs does not look like being slightly slow. It is the same whether the server gives up the
    instance after its grace period, or the client gives it up unstarted at its due date. A late valid result removes
    it. For a batch whose jobs take an hour, a due date after 20 h and a timeout after 22 h:

    >>> round(censored_sample(sent_at=Instant(0.0), due_at=Instant(72_000.0), now=Instant(79_200.0),
    ...                       yardstick_s=Seconds(3600.0)), 3)  # ln 22
    3.091
    """
    silent_s = max(now - sent_at, due_at - sent_at)
    return math.log(max(LEAST_CENSORED_RATIO, silent_s / max(LEAST_S, yardstick_s)))
