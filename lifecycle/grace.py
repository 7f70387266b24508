"""How long is a late result waited for, and how far does an outage move due dates? Pure."""

from __future__ import annotations

from domain.settings import LifecycleSettings
from domain.units import Instant, Seconds, elapsed_s, later


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


def outage_shift_s(last_alive_at: Instant | None, now: Instant, settings: LifecycleSettings) -> Seconds:
    """How far open due dates move because the project was away since `last_alive_at`; 0 = not at all.

    The whole absence, once it is at least outage_s: hosts could not report meanwhile. None is a project
    that never ran.

    >>> outage_shift_s(Instant(1000.0), Instant(8200.0), LifecycleSettings())
    7200.0
    """
    if last_alive_at is None:
        return Seconds(0.0)
    absence_s = elapsed_s(last_alive_at, now)
    return absence_s if absence_s >= settings.outage_s else Seconds(0.0)
