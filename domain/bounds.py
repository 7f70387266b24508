"""Valid ranges for numbers in user input, and declarations of settings fields. Pure.

A number outside its range is rejected with an error that names the field, the range and the value. The ranges far
exceed any project's needs; they keep sums finite and every instant a valid date, even over a million jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

from domain.errors import InvalidInputError
from domain.units import DAY_S, Seconds

LONGEST_S: Final = Seconds(3650 * DAY_S)
FURTHEST_S: Final = Seconds(36_500 * DAY_S)  # maximum time until a deadline
MOST_WHOLE: Final = 2**31 - 1  # maximum of a PostgreSQL integer column
MOST_BYTES: Final = 1e15


@dataclass(frozen=True, slots=True)
class Bound:
    """A closed range. Both ends are valid values.

    >>> Bound(1.0, 1e21).expected
    'a number from 1 to 1e+21'
    """

    low: float
    high: float

    @property
    def expected(self) -> str:
        return f"a number from {written(self.low)} to {written(self.high)}"

    def has(self, value: float) -> bool:
        """Return whether the value is in the range; always False for NaN."""
        return self.low <= value <= self.high

    def nearest(self, value: float) -> float:
        """Clamp the value to the range; NaN becomes the upper end.

        >>> Bound(1.0, 10.0).nearest(1e300), Bound(1.0, 10.0).nearest(0.0), Bound(1.0, 10.0).nearest(float("nan"))
        (10.0, 1.0, 10.0)
        """
        if value <= self.low:
            return self.low
        return value if value < self.high else self.high


BOUNDS: Final[Mapping[str, Bound]] = MappingProxyType(
    {
        # a job, docs/reference/batch-file.md
        "fpops_est": Bound(1.0, 1e21),  # 1e12 flop/s for 30 years
        "fpops_bound": Bound(1.0, 1e24),
        "memory_bytes": Bound(0.0, MOST_BYTES),
        "disk_bytes": Bound(0.0, MOST_BYTES),
        "delay_bound_s": Bound(1.0, LONGEST_S),
        "ncpus": Bound(0.001, 4096.0),
        "tolerance": Bound(1e-300, 1.0),
        # a batch
        "deadline_s": Bound(1.0, FURTHEST_S),
        # a plan class
        "plan_class.ncpus": Bound(0.0, 4096.0),
        "gpu_count": Bound(0.001, 64.0),
        "min_gpu_ram_bytes": Bound(0.0, MOST_BYTES),
        "min_driver_version": Bound(0.0, MOST_WHOLE),
        "min_host_ncpus": Bound(1.0, 4096.0),
        "min_host_ram_bytes": Bound(0.0, MOST_BYTES),
        "cpu_speed_fraction": Bound(1e-6, 1e6),
        "gpu_speed_fraction": Bound(1e-6, 1e6),
        # accounts, grants and limits
        "shares": Bound(0.0, 1e9),
        "granted_su": Bound(0.0, 1e15),
        "period_s": Bound(60.0, LONGEST_S),
        "soft": Bound(0.0, 1e15),
        "hard": Bound(0.0, 1e15),
    }
)


def in_bounds(name: str, value: float, *, field: str = "") -> float:
    """Return the value if it is within the bound `name`. Raises InvalidInputError naming `field`, or `name` without it.

    >>> in_bounds("shares", 2.5)
    2.5
    >>> in_bounds("shares", 1e300)
    Traceback (most recent call last):
    domain.errors.InvalidInputError: shares: expected a number from 0 to 1000000000, got 1e+300
    """
    bound = BOUNDS[name]
    if not bound.has(value):
        raise InvalidInputError(field or name, bound.expected, value)
    return value


def written(number: float) -> str:
    """Format a number for messages: integers of up to 15 digits without an exponent.

    >>> written(315360000.0), written(1e21), written(0.001)
    ('315360000', '1e+21', '0.001')
    """
    if isfinite(number) and number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return f"{number:g}"


# ---- declarations of settings fields


def knob(
    default: Any,
    meaning: str,
    *,
    low: float | None = None,
    high: float | None = None,
    pattern: str = r"[\s\S]*",
    expected: str = "text",
    names: tuple[str, ...] = (),
) -> Any:
    """Declare a settings field with its default, its meaning and its closed range.

    If `high` is omitted, the maximum is LONGEST_S for a float and MOST_WHOLE for an integer. A string must match all of
    `pattern`, which `expected` describes in words. `names`: the values that it can take, if they are few.
    """
    if high is None and isinstance(default, (int, float)) and not isinstance(default, bool):
        high = LONGEST_S if isinstance(default, float) else MOST_WHOLE
    metadata = {"meaning": meaning, "low": low, "high": high, "pattern": pattern, "expected": expected, "names": names}
    return field(default=default, metadata=metadata)


def one_of(default: str, meaning: str, *names: str) -> Any:
    """Declare a settings field that takes one of `names`; its meaning lists them."""
    return knob(default, meaning, pattern="|".join(names), expected="one of " + ", ".join(names), names=names)


def name_of_setting(key: str, known: Iterable[str]) -> str:
    """Return the "expected" part of an unknown setting's error, with the closest of the `known` names.

    >>> name_of_setting("deadline.p_tigth", ["deadline.p_tight", "feeder.slots"])
    'the name of a setting (see `muster setting list`), perhaps deadline.p_tight'
    >>> name_of_setting("colour", ["deadline.p_tight", "feeder.slots"])
    'the name of a setting (see `muster setting list`)'
    """
    expected = "the name of a setting (see `muster setting list`)"
    known = list(known)
    near = get_close_matches(key, known, n=3, cutoff=0.8)
    near = near or [one for one in known if key and one.partition(".")[2] == key]
    return f"{expected}, perhaps {' or '.join(near)}" if near else expected
