"""Instants for people, UTC. Pure."""

from __future__ import annotations

from domain.formatting import in_words
from domain.units import Instant, utc


def instant_of(at: Instant) -> str:
    """A date and a time of day.

    >>> instant_of(Instant(1_800_000_000.0))
    '2027-01-15 08:00 UTC'
    """
    return f"{utc(at):%Y-%m-%d %H:%M} UTC"


def seen_from(at: Instant, now: Instant) -> str:
    """An instant with how far away it is.

    >>> seen_from(Instant(1_800_000_000.0), Instant(1_799_992_800.0))
    '2027-01-15 08:00 UTC (in 2 h)'
    >>> seen_from(Instant(1_800_000_000.0), Instant(1_800_000_030.0))
    '2027-01-15 08:00 UTC (30 s ago)'
    """
    away = in_words(abs(at - now))
    return f"{instant_of(at)} ({f'in {away}' if at >= now else f'{away} ago'})"
