"""Formats times, durations and quantities for pages.

Times are relative to now, with the absolute time in the tooltip and in machine-readable form: <time datetime title>.
"""

from __future__ import annotations

from markupsafe import Markup

from domain import formatting
from domain.formatting import in_words
from domain.units import Instant, utc

DASH = "–"
THIN = "\u202f"  # thousands separator
FIXED = "\u00a0"  # space at which no line breaks
UNITS = ("", "k", "M", "G", "T", "P", "E")
LEAST_NEXT, LEAST_WHOLE = 999.5, 99.5  # rounded, these have one more digit


def stamp(at: float) -> str:
    """Format an absolute time.

    >>> stamp(1_800_000_000.0)
    '2027-01-15 08:00:00 UTC'
    """
    return f"{utc(at):%Y-%m-%d %H:%M:%S} UTC"


def iso(at: float) -> str:
    """Format a time for machines.

    >>> iso(1_800_000_000.0)
    '2027-01-15T08:00:00Z'
    """
    return f"{utc(at):%Y-%m-%dT%H:%M:%SZ}"


def length(seconds: float | None) -> str:
    """Format a duration, which no line break divides; None becomes a dash.

    >>> length(200_000.0), length(None)
    ('2\\xa0d\\xa08\\xa0h', '–')
    """
    return DASH if seconds is None else in_words(seconds).replace(" ", FIXED)


def relative(at: float, now: float) -> str:
    """Format a time relative to now.

    >>> relative(100.0, 40.0), relative(40.0, 100.0), relative(100.0, 100.4)
    ('in 60\\xa0s', '60\\xa0s ago', 'now')
    >>> relative(102.2, 100.0)
    'in 2\\xa0s'
    """
    away = round(at - now)
    if not away:
        return "now"
    return f"in {length(away)}" if away > 0 else f"{length(-away)} ago"


def moment(at: Instant | float | None, now: float) -> Markup:
    """Return the <time> element for an instant; None becomes a dash.

    >>> moment(1_800_000_000.0, 1_799_999_940.0)
    Markup('<time datetime="2027-01-15T08:00:00Z" title="2027-01-15 08:00:00 UTC">in 60\\xa0s</time>')
    """
    if at is None:
        return Markup('<span class="none">–</span>')
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(at), stamp(at), relative(at, now))


def clock(at: float, now: float) -> Markup:
    """Return the <time> element with the absolute time as text.

    >>> clock(1_800_000_000.0, 1_800_000_060.0)
    Markup('<time class="clock" datetime="2027-01-15T08:00:00Z" title="60\\xa0s ago">2027-01-15 08:00:00</time>')
    """
    text = stamp(at).removesuffix(" UTC")
    return Markup('<time class="clock" datetime="{}" title="{}">{}</time>').format(iso(at), relative(at, now), text)


def number(value: float | None, digits: int = 0) -> str:
    """Format a number with thousands separators.

    >>> number(1_234_567), number(0.125, 2), number(None)
    ('1\\u202f234\\u202f567', '0.12', '–')
    """
    return DASH if value is None else f"{value:,.{digits}f}".replace(",", THIN)


def credit(value: float | None) -> str:
    """Format an amount of cobblestones; None becomes a dash.

    >>> credit(1234.5), credit(3.14159), credit(0.0023), credit(0.0)
    ('1\u202f234', '3.14', '< 0.01', '0')
    """
    if value is None or value == 0.0 or value >= 100.0:
        return number(value)
    return number(value, 2) if value >= 0.01 else "< 0.01"


def rate(value: float | None) -> str:
    """Format a rate with as many significant digits as it has.

    >>> rate(1234.5), rate(12.34), rate(0.5), rate(0.0)
    ('1\\u202f234', '12.3', '0.50', '0')
    """
    if value is None or value == 0:
        return DASH if value is None else "0"
    return number(value, 0 if value >= 100 else 1 if value >= 10 else 2)


def percent(fraction: float | None, digits: int = 0) -> str:
    """Format a fraction as a percentage; None becomes a dash.

    >>> percent(0.256), percent(None)
    ('26 %', '–')
    """
    return DASH if fraction is None else formatting.percent(fraction, digits)


def quantity(value: float | None, unit: str) -> str:
    """Format a large quantity with an SI prefix and two digits, or without decimals.

    >>> quantity(8.54e9, "B"), quantity(2.5e12, "flop/s"), quantity(12.0, "B"), quantity(999.7e3, "B")
    ('8.5 GB', '2.5 Tflop/s', '12 B', '1 MB')
    """
    if value is None:
        return DASH
    step = 0
    while abs(value) >= LEAST_NEXT and step < len(UNITS) - 1:
        value, step = value / 1000.0, step + 1
    text = f"{value:.2g}" if abs(value) < LEAST_WHOLE else f"{value:.0f}"
    return f"{text} {UNITS[step]}{unit}"


def plural(count: float, one: str, many: str = "") -> str:
    """Format a count with its noun.

    >>> plural(1, "host"), plural(2, "host"), plural(0, "batch", "batches")
    ('1 host', '2 hosts', '0 batches')
    """
    return f"{number(count)} {one if count == 1 else many or one + 's'}"
