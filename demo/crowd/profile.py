"""What kind of computer and owner a crowd volunteer is. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Profile:
    """One volunteer of the crowd.

    `flop_per_s` is what the host claims and, but for `stretch`, delivers: a job takes
    fpops_est / flop_per_s * stretch seconds. The fractions say how often a job ends with an error,
    is never heard of again, or comes back with wrong content.
    """

    number: int
    email: str
    ncpus: int
    flop_per_s: float
    stretch: float
    error_fraction: float = 0.0
    vanish_fraction: float = 0.0
    garbage_fraction: float = 0.0

    @property
    def kind(self) -> str:
        """One word for tables."""
        if self.garbage_fraction > 0:
            return "cheat"
        if self.vanish_fraction > 0.5:
            return "leaver"
        if self.error_fraction > 0:
            return "faulty"
        return "fast" if self.flop_per_s >= 2e9 else "slow" if self.flop_per_s < 1e9 else "ordinary"


def draw_profiles(count: int, *, seed: int) -> list[Profile]:
    """A mixed crowd: log-normal speeds, one in twelve faulty, one in fifteen leaves, one in twenty cheats.

    Of the others, one reply in 250 is the last that is heard of: enough for lost jobs, not an exodus.

    >>> [p.kind for p in draw_profiles(40, seed=1)].count("cheat")
    2
    """
    draw = random.Random(seed)  # noqa: S311  a repeatable crowd, not a secret
    profiles = []
    for number in range(1, count + 1):
        trouble = {
            "error_fraction": 0.4 if number % 12 == 0 else 0.0,
            "vanish_fraction": 0.8 if number % 15 == 7 else 0.004,
            "garbage_fraction": 0.5 if number % 20 == 11 else 0.0,
        }
        profiles.append(
            Profile(
                number,
                f"volunteer{number}@crowd.invalid",
                ncpus=draw.choice((1, 1, 2, 4)),
                flop_per_s=min(6e9, max(2.5e8, 1.2e9 * draw.lognormvariate(0.0, 0.6))),
                stretch=draw.lognormvariate(0.0, 0.25),
                **trouble,
            )
        )
    return profiles
