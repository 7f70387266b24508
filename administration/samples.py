"""Reads samples of the project's figures: a part of the time axis, in the shortest step that goes back so far."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from domain.errors import InvalidInputError
from domain.refusals import RefusalCode
from domain.samples import MOST_SAMPLES, REFUSED, SERIES, Sample, Window, at_most, step_of, window_of, with_gaps
from domain.units import Instant
from muster_client import shapes
from store.insight import PostgresSamples

NAMES = frozenset(
    {name for name in SERIES if not name.startswith(REFUSED)} | {f"{REFUSED}{one.value}" for one in RefusalCode}
)


@dataclass(frozen=True, slots=True)
class Sampled:
    """Samples in chronological order, `step_s` apart. An empty sample is a gap."""

    step_s: int
    samples: Sequence[Sample]

    def names(self, prefix: str) -> list[str]:
        """Return the names of figures with this prefix, those with the largest sums first."""
        sums: dict[str, float] = {}
        for one in self.samples:
            for name, value in one.figures.items():
                if name.startswith(prefix):
                    sums[name] = sums.get(name, 0.0) + value
        return sorted(sums, key=lambda name: (-sums[name], name))

    def values(self, name: str) -> list[float | None]:
        """Return a figure over time. A refusal that a sample lacks did not occur."""
        absent = 0.0 if name.startswith(REFUSED) else None
        return [one.figures.get(name, absent if one.figures else None) for one in self.samples]


async def sampled(samples: PostgresSamples, window: Window, now: Instant, *, most: int = MOST_SAMPLES) -> Sampled:
    """Return at most about `most` samples of the window. Raises UnavailableError."""
    step = step_of(window, now)
    found = await samples.between(step, window.from_at, window.to_at)
    thin, step = at_most(found, step, most, window.length_s)
    return Sampled(step, with_gaps(thin, step))


async def samples_shown(
    samples: PostgresSamples, series: str, name: str, ends: tuple[float | None, float | None], now: Instant
) -> shapes.SamplesShown:
    """Return named figures, all if `series` is empty. Raises InvalidInputError and UnavailableError."""
    window = window_of(name, *ends, now)
    asked = [one for one in series.split(",") if one]
    _check(asked)
    found = await sampled(samples, window, now)
    return {
        "from_at": window.from_at,
        "to_at": window.to_at,
        "step_s": found.step_s,
        "at": [one.at for one in found.samples],
        "series": {one: found.values(one) for one in asked or found.names("")},
    }


def _check(asked: Collection[str]) -> None:
    for name in asked:
        if name not in NAMES:
            raise InvalidInputError("series", f"names separated by commas, out of {', '.join(SERIES)}", name)
