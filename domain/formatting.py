"""Formats durations, sizes and percentages for people. Only this module converts seconds and bytes to words. Pure.

The console's script formats live durations in the same way; a test compares the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import inf, isfinite, isnan
from typing import Any

from domain.units import DAY_S, HOUR_S, MINUTE_S

SECONDS_MOST = 120  # longer durations are shown in minutes
_PLACE = re.compile(r"\{(\d+):(length|when)\}")


def in_words(seconds: float) -> str:
    """Format a duration in its largest suitable unit and the next smaller unit.

    >>> [in_words(s) for s in (0.25, 40.0, 90.0, 330.0, 5400.0, 86400.0, 200_000.0, -61.4)]
    ['250 ms', '40 s', '90 s', '5 min 30 s', '1 h 30 min', '1 d', '2 d 8 h', '-61 s']
    >>> in_words(float("inf")), in_words(float("nan"))
    ('an infinite time', 'an unknown time')
    >>> in_words(0.0071), in_words(0.0), in_words(0.9999)
    ('7.1 ms', '0 s', '1 s')
    """
    if not isfinite(seconds):
        return "an unknown time" if isnan(seconds) else "an infinite time"
    if seconds < 0:
        return f"-{in_words(-seconds)}"
    if 0.0 < seconds < 0.9995:
        return f"{1000.0 * seconds:.0f} ms" if seconds >= 0.01 else f"{1000.0 * seconds:.2g} ms"
    whole = int(seconds + 0.5)
    if whole < SECONDS_MOST:
        return f"{whole} s" if whole >= 10 else f"{seconds:.2g} s"
    if whole < HOUR_S:
        count, rest = divmod(whole, 60)
        return f"{count} min {rest} s" if rest else f"{count} min"
    minutes = int(seconds + 30.0) // 60  # not from `whole`, which is rounded
    if minutes < 1440:
        count, rest = divmod(minutes, 60)
        return f"{count} h {rest} min" if rest else f"{count} h"
    count, rest = divmod(int(seconds + 1800.0) // 3600, 24)
    return f"{count} d {rest} h" if rest else f"{count} d"


def roughly(seconds: float) -> str:
    """Format a duration, rounded to whole units of the larger one if there are at least ten of it.

    >>> [roughly(s) for s in (858.0, 330.0, 5400.0, 42_780.0, 200_000.0, 40.0)]
    ['14 min', '5 min 30 s', '1 h 30 min', '12 h', '2 d 8 h', '40 s']
    """
    unit_s = next((one for one in (DAY_S, HOUR_S, MINUTE_S) if 10.0 * one <= seconds < inf), None)
    return in_words(seconds if unit_s is None else round(seconds / unit_s) * unit_s)


def age_in_words(seconds: float) -> str:
    """Format an age in whole seconds, or roughly if it is longer.

    >>> [age_in_words(s) for s in (-3.0, 0.019, 1.9, 858.0)]
    ['less than 1 s', 'less than 1 s', '2 s', '14 min']
    """
    return roughly(round(seconds)) if seconds >= 1.0 else "less than 1 s"


def exactly(seconds: float) -> str:
    """Format a duration without rounding, in all its units.

    >>> exactly(90_061.0), exactly(28_800.5), exactly(60.0)
    ('1 d 1 h 1 min 1 s', '8 h 0.5 s', '60 s')
    """
    if not isfinite(seconds):
        return in_words(seconds)
    words, rest = ["-"] if seconds < 0 else [], round(abs(seconds), 3)
    if rest >= SECONDS_MOST:
        for unit_s, unit in ((DAY_S, "d"), (HOUR_S, "h"), (MINUTE_S, "min")):
            count, rest = divmod(rest, unit_s)
            if count:
                words.append(f"{count:.0f} {unit}")
    rest = round(rest, 3)
    return " ".join([*words, f"{rest:g} s"] if rest or not words else words)


def told(sentence: str, *terms: Any) -> str:  # Any: values for the placeholders
    """Fill in a sentence's placeholders. `{0:length}` formats seconds as a duration, `{0:when}` as a time from now.

    Different durations that would be rounded to the same words are written without rounding.

    >>> told("host {0} needs {1:length}, job allows {2:length}", "ada", 90_000.0, 3600)
    'host ada needs 1 d 1 h, job allows 1 h'
    >>> told("silent for {0:length}, at most {1:length}", 28_801.0, 28_800.0)
    'silent for 8 h 1 s, at most 8 h'
    >>> told("the target is {0:when}", 300.0), told("the target is {0:when}", -300.0)
    ('the target is in 5 min', 'the target is 5 min ago')
    """
    plain, places = _parsed(sentence)
    if not places:
        return sentence.format(*terms)
    given = list(terms)
    for place, kind in places.items():
        given[place] = _placed(kind, terms[place], in_words)
    if len(places) > 1 and len({given[place] for place in places}) < len({terms[place] for place in places}):
        for place, kind in places.items():
            given[place] = _placed(kind, terms[place], exactly)
    return plain.format(*given)


def _placed(kind: str, seconds: float, words: Callable[[float], str]) -> str:
    if kind == "length":
        return words(seconds)
    return f"in {words(seconds)}" if seconds >= 0.0 else f"{age_in_words(-seconds)} ago"


@cache
def _parsed(sentence: str) -> tuple[str, Mapping[int, str]]:
    """Return the sentence with plain placeholders, and those of durations by kind. Cached: sentences are few."""
    places = {int(place): kind for place, kind in _PLACE.findall(sentence)}
    return _PLACE.sub(r"{\1}", sentence), places


# ---- sizes

PREFIXES = ("", "k", "M", "G", "T", "P", "E")
THOUSAND = 1000.0


FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(value: object) -> object:
    """Return a cell of a CSV file: text that a spreadsheet would run as a formula gets an apostrophe in front.

    >>> inert("=1+1"), inert("\\t=1"), inert("ada"), inert(-5)
    ("'=1+1", "'\\t=1", 'ada', -5)
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def percent(fraction: float, digits: int = 0) -> str:
    """Format a fraction as a percentage. Only a whole is 100 %.

    >>> percent(0.256), percent(0.0049, 1), percent(0.999), percent(0.9999, 1), percent(1.0)
    ('26 %', '0.5 %', '99 %', '99.9 %', '100 %')
    """
    most = 100.0 - 10.0**-digits
    return f"{min(100.0 * fraction, most) if fraction < 1.0 else 100.0 * fraction:.{digits}f} %"


def size_in_words(nbytes: float) -> str:
    """Format a number of bytes in powers of 1000, with four significant digits.

    >>> size_in_words(15032385536), size_in_words(2e9), size_in_words(999_999), size_in_words(12), size_in_words(-5e6)
    ('15.03 GB', '2 GB', '1 MB', '12 B', '-5 MB')
    """
    step, value = 0, float(nbytes)
    while step < len(PREFIXES) - 1 and abs(float(f"{value:.4g}")) >= THOUSAND:
        value, step = value / THOUSAND, step + 1
    digits = f"{value:.4g}" if abs(value) < THOUSAND else f"{value:.0f}"
    return f"{digits} {PREFIXES[step]}B"


def both_in_words(one: float, other: float) -> tuple[str, str]:
    """Format two sizes for comparison. Uses bytes if rounding would make different sizes look equal.

    >>> both_in_words(4e9, 2.5e9), both_in_words(4_000_000_001, 4e9)
    (('4 GB', '2.5 GB'), ('4,000,000,001 B', '4,000,000,000 B'))
    """
    words = size_in_words(one), size_in_words(other)
    return words if words[0] != words[1] or one == other else (f"{one:,.0f} B", f"{other:,.0f} B")
