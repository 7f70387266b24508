"""How far is a submitter, group or service level from its target over recent windows? Pure.

Maui's fair-share: usage is a percentage of what was delivered in the last windows, older ones counting less.
Windows are aligned to the epoch: window number = floor(instant / interval).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import InvalidInputError
from domain.units import Instant, Seconds
from domain.usage import LEAST_USAGE

STAR_POINTS = 5.0  # off target by more than this, in percentage points
MOST_WINDOWS = 24


class TargetMode(StrEnum):
    PLAIN = ""
    FLOOR = "+"  # only being below counts
    CEILING = "-"  # only being above counts
    CAP = "%"  # no priority; nothing starts that would exceed it, relative to what was delivered
    HARD_CAP = "^"  # the same in absolute usage


@dataclass(frozen=True, slots=True)
class Target:
    """A target in percent of what is delivered (HARD_CAP: in usage), and what it means."""

    amount: float
    mode: TargetMode = TargetMode.PLAIN


def parse_target(text: str) -> Target:
    """A target as Maui writes it. Raises InvalidInputError.

    >>> parse_target("12.5+")
    Target(amount=12.5, mode=<TargetMode.FLOOR: '+'>)
    """
    found = re.fullmatch(r"\s*([0-9]{1,18}(?:\.[0-9]{0,18})?)\s*([-+%^]?)\s*", text)
    if found is None:
        raise InvalidInputError("target", "a percentage with one of + - % ^ or nothing behind it", text)
    return Target(float(found[1]), TargetMode(found[2]))


def window_of(at: Instant, interval_s: Seconds) -> int:
    """Number of the window an instant lies in.

    >>> window_of(Instant(400_000.0), Seconds(172_800.0))
    2
    """
    return int(at // interval_s)


def window_weights(decay: float, windows: int) -> list[float]:
    """What each window counts, newest first: decay^n.

    >>> window_weights(0.5, 4)
    [1.0, 0.5, 0.25, 0.125]
    """
    return [decay**age for age in range(windows)]


def window_percents(decay: float, windows: int) -> list[float]:
    """The same in percent, as the guide's table of decay factors has it.

    >>> window_percents(0.5, 3)
    [100.0, 50.0, 25.0]
    """
    return [100.0 * weight for weight in window_weights(decay, windows)]


def newest_first(usage: Mapping[int, float], newest: int, depth: int) -> list[float]:
    """Usage by window number as a list of `depth` windows, the newest first.

    >>> newest_first({7: 2.0, 5: 1.0}, 7, 3)
    [2.0, 0.0, 1.0]
    """
    return [usage.get(newest - age, 0.0) for age in range(depth)]


def used_fraction(used: Sequence[float], total: Sequence[float], *, decay: float, depth: int | None = None) -> float:
    """sum(used[n] * decay^n) / sum(total[n] * decay^n), n = 0 the newest window, n < depth. 0 for no total.

    >>> round(used_fraction([60, 0, 10, 50], [110, 125, 100, 150], decay=0.5, depth=4), 6)
    0.317919
    """
    windows = len(total) if depth is None else min(depth, len(total))
    weights = window_weights(decay, windows)
    whole = sum(amount * weight for amount, weight in zip(total, weights, strict=False))
    own = sum(amount * weight for amount, weight in zip(used, weights, strict=False))
    return own / whole if whole >= LEAST_USAGE else 0.0


def used_percent(shares: Sequence[float], total: Sequence[float], *, decay: float) -> float:
    """The same from each window's percentage, to two decimals as `diagnose -f` prints it.

    >>> used_percent([12.0, 6.0, 2.0], [20.0, 40.0, 160.0], decay=0.25)
    8.0
    """
    used = [percent * amount for percent, amount in zip(shares, total, strict=False)]
    return round(used_fraction(used, total, decay=decay), 2)


def delta(target: Target | None, percent: float, *, relative: bool = False) -> float:
    """Target less usage in percentage points; no target: 0. With `relative`: 1 - usage / target.

    A floor counts only while usage is below, a ceiling only while it is above, a cap never.

    >>> delta(Target(50.0), 45.0), delta(Target(10.0, TargetMode.FLOOR), 25.0)
    (5.0, 0.0)
    """
    if target is None or target.mode in {TargetMode.CAP, TargetMode.HARD_CAP}:
        return 0.0
    off = target.amount - percent
    if relative:
        off = 1.0 - percent / target.amount if target.amount > 0.0 else 0.0
    if target.mode is TargetMode.FLOOR:
        return max(0.0, off)
    if target.mode is TargetMode.CEILING:
        return min(0.0, off)
    return off


def starred(target: Target | None, percent: float) -> bool:
    """Whether usage is off its target by more than 5 points: either side, below a floor, above a ceiling.

    >>> starred(Target(13.0), 18.0), starred(Target(13.0), 18.01), starred(Target(13.0, TargetMode.FLOOR), 20.0)
    (False, True, False)
    """
    if target is None:
        return False
    off = round(percent - target.amount, 9)
    if target.mode is TargetMode.FLOOR:
        return off < -STAR_POINTS
    if target.mode is TargetMode.PLAIN:
        return abs(off) > STAR_POINTS
    return off > STAR_POINTS


def over_cap(target: Target | None, *, used: float, delivered: float, request: float, others_wait: bool) -> str | None:
    """Why a cap bars a start that would use `request` more, or None. A cap binds only while others wait.

    >>> over_cap(Target(10.0, TargetMode.CAP), used=9.0, delivered=90.0, request=1.0, others_wait=True)
    '11 % of what is delivered would exceed the cap of 10 %'
    """
    if target is None or not others_wait or target.mode not in {TargetMode.CAP, TargetMode.HARD_CAP}:
        return None
    if target.mode is TargetMode.HARD_CAP:
        over = used + request > target.amount
        return f"usage of {used + request:g} would exceed the cap of {target.amount:g}" if over else None
    whole = delivered + request
    percent = 100.0 * (used + request) / whole if whole > 0.0 else 0.0
    if percent <= target.amount:
        return None
    return f"{percent:.3g} % of what is delivered would exceed the cap of {target.amount:g} %"
