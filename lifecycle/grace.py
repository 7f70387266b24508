"""How long is a late result waited for, and how long a silence of the project is an outage? Pure."""

from __future__ import annotations

from domain.settings import LifecycleSettings
from domain.units import Instant, Seconds, elapsed_s, later

MISSED_ROUNDS = 3  # a gap of fewer sweeps is no outage, however far apart they are


def grace_s(sent_at: Instant, due_at: Instant, settings: LifecycleSettings) -> Seconds:
    """How long after `due_at` silence is borne before the instance times out.

    grace = grace_fraction * (due_at - sent_at), at least min_grace_s, at most max_grace_s (POLICY 5).
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
