"""Lists the differences between expected and computed figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ROUNDING = 1e-9  # relative: binary fractions need more than a decimal tolerance
MISSING = "nothing"


@dataclass(frozen=True, slots=True)
class Within:
    """A computed value whose figures have a tolerance of their own."""

    value: Any
    tolerance: float


@dataclass(frozen=True, slots=True)
class Checked:
    """A computed value with its own comparison: equal ranks may be in any order."""

    value: Any
    accepts: Callable[[Any], bool]


def differences(expected: Any, computed: Any, tolerance: float, where: str = "") -> list[str]:
    """Return every difference in words. Only expected figures are compared."""
    return list(_differences(expected, computed, tolerance, where))


def _differences(expected: Any, computed: Any, tolerance: float, where: str) -> Iterator[str]:
    if isinstance(computed, Within):
        yield from _differences(expected, computed.value, computed.tolerance, where)
    elif isinstance(computed, Checked):
        if not computed.accepts(expected):
            yield _said(where, expected, computed.value)
    elif isinstance(expected, Mapping) and isinstance(computed, Mapping):
        for key, value in expected.items():
            yield from _differences(value, computed.get(key, MISSING), tolerance, f"{where}.{key}".lstrip("."))
    elif _is_list(expected) and _is_list(computed):
        if len(expected) != len(computed):
            yield _said(where, expected, computed)
            return
        for place, (one, other) in enumerate(zip(expected, computed, strict=True)):
            yield from _differences(one, other, tolerance, f"{where}[{place}]")
    elif not _same(expected, computed, tolerance):
        yield _said(where, expected, computed)


def _same(expected: Any, computed: Any, tolerance: float) -> bool:
    numbers = [one for one in (expected, computed) if isinstance(one, (int, float)) and not isinstance(one, bool)]
    if len(numbers) == 2:
        return close(expected, computed, tolerance)
    return type(expected) is type(computed) and bool(expected == computed)


def close(expected: float, computed: float, tolerance: float) -> bool:
    if expected == computed:
        return True
    if not (math.isfinite(expected) and math.isfinite(computed)):
        return False
    return abs(expected - computed) <= tolerance + ROUNDING * max(1.0, abs(expected), abs(computed))


def same_text(expected: Any, computed: Any, tolerance: float) -> bool:
    """Compare printed figures: numbers within the tolerance; "", None and "inf" exactly."""
    try:
        return (
            close(float(expected), float(computed), tolerance)
            if "inf" not in (expected, computed)
            else (expected == computed)
        )
    except (TypeError, ValueError):
        return bool(expected == computed)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _said(where: str, expected: Any, computed: Any) -> str:
    return f"{where}: expected {expected!r}, computed {computed!r}"
