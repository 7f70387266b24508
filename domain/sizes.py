"""How people say how many bytes that is: the one place where sizes become words. Pure."""

from __future__ import annotations

PREFIXES = ("", "k", "M", "G", "T", "P", "E")
THOUSAND = 1000.0


def in_words(nbytes: float) -> str:
    """A number of bytes with its unit, powers of a thousand, as exact as people read it: four digits.

    >>> in_words(15032385536), in_words(2e9), in_words(999_999), in_words(12), in_words(-5e6)
    ('15.03 GB', '2 GB', '1 MB', '12 B', '-5 MB')
    """
    step, value = 0, float(nbytes)
    while step < len(PREFIXES) - 1 and abs(float(f"{value:.4g}")) >= THOUSAND:
        value, step = value / THOUSAND, step + 1
    digits = f"{value:.4g}" if abs(value) < THOUSAND else f"{value:.0f}"
    return f"{digits} {PREFIXES[step]}B"


def both_in_words(one: float, other: float) -> tuple[str, str]:
    """Two that are compared: byte by byte where they would read alike and are not.

    >>> both_in_words(4e9, 2.5e9), both_in_words(4_000_000_001, 4e9)
    (('4 GB', '2.5 GB'), ('4,000,000,001 B', '4,000,000,000 B'))
    """
    words = in_words(one), in_words(other)
    return words if words[0] != words[1] or one == other else (f"{one:,.0f} B", f"{other:,.0f} B")
