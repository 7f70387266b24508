"""Defines samples of the project's figures over time: steps, ranges and thinning. Pure.

Samples are kept for an hour every 10 s, for a day every minute, for a week every 10 min,
for a month every hour, and for a year every 6 hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from domain.errors import InvalidInputError
from domain.units import DAY_S, HOUR_S, Instant, Seconds

KEPT_S: Mapping[int, float] = {10: HOUR_S, 60: DAY_S, 600: 7 * DAY_S, 3600: 31 * DAY_S, 21_600: 366 * DAY_S}  # by step
STEPS_S = tuple(KEPT_S)
RANGES_S: Mapping[str, float] = {
    "hour": HOUR_S,
    "day": DAY_S,
    "week": 7 * DAY_S,
    "month": 31 * DAY_S,
    "year": 366 * DAY_S,
}
LATEST_AT = 253_402_300_799.0  # end of the year 9999
MOST_SAMPLES = 2_000  # more than the samples of any step
REFUSED = "refused."  # prefix of the rates of refusals, followed by their code; absent is zero
SERIES = {  # what the figures mean
    "requests": "scheduler requests per second",
    "sent": "instances sent per second",
    "reports": "results reported per second",
    "failed": "scheduler requests that were refused or failed with an error status, per second",
    "busy": "seconds that workers spent on scheduler requests, per second",
    "batches": "active batches",
    "jobs_open": "unfinished jobs of active batches",
    "unsent": "unsent instances of active batches",
    "in_progress": "instances of active batches with hosts",
    "hosts": "hosts with a request in the last 24 hours, counted every 10 minutes",
    f"{REFUSED}CODE": "times per second that jobs were refused with this code",
}


@dataclass(frozen=True, slots=True)
class Sample:
    """The means of figures over a step that starts at `at`, by name."""

    at: Instant
    figures: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a time axis. `name` is its range, "" if its ends were chosen."""

    from_at: Instant
    to_at: Instant
    name: str = ""

    @property
    def length_s(self) -> Seconds:
        return Seconds(self.to_at - self.from_at)


def window_of(name: str, from_at: float | None, to_at: float | None, now: Instant) -> Window:
    """Return the range before now, or the part between two instants. Raises InvalidInputError.

    >>> window_of("day", None, None, Instant(100_000.0))
    Window(from_at=13600.0, to_at=100000.0, name='day')
    >>> window_of("", 50.0, 80.0, Instant(100.0))
    Window(from_at=50.0, to_at=80.0, name='')
    """
    if from_at is None and to_at is None:
        if name not in RANGES_S:
            raise InvalidInputError("range", f"one of {', '.join(RANGES_S)}", name)
        return Window(Instant(now - RANGES_S[name]), now, name)
    if from_at is None or to_at is None:
        raise InvalidInputError("from_at" if from_at is None else "to_at", "an instant beside the other end", "none")
    if not from_at < to_at:
        raise InvalidInputError("to_at", f"an instant after {from_at:.0f}", f"{to_at:.0f}")
    return Window(Instant(from_at), Instant(to_at))


def step_of(window: Window, now: Instant) -> int:
    """Return the shortest step whose samples go back to the start of the window.

    >>> [step_of(window_of(name, None, None, Instant(0.0)), Instant(0.0)) for name in RANGES_S]
    [10, 60, 600, 3600, 21600]
    """
    return next((step for step, kept_s in KEPT_S.items() if window.from_at >= now - kept_s), STEPS_S[-1])


def thinned(samples: Iterable[Sample], step_s: float) -> list[Sample]:
    """Return one sample per step: the means of samples in chronological order.

    A figure that some samples lack is the mean of the others; a refusal that they lack did not occur.

    >>> thinned([Sample(Instant(60.0), {"hosts": 2.0}), Sample(Instant(70.0), {"hosts": 4.0, "refused.disk": 1.0})], 60)
    [Sample(at=60.0, figures={'hosts': 3.0, 'refused.disk': 0.5})]
    """
    made = []
    for place, group in groupby(samples, lambda one: one.at // step_s):
        parts = [one.figures for one in group]
        values: dict[str, list[float]] = {}
        for part in parts:
            for name, value in part.items():
                values.setdefault(name, []).append(value)
        means = {
            name: sum(found) / (len(parts) if name.startswith(REFUSED) else len(found))
            for name, found in values.items()
        }
        made.append(Sample(Instant(place * step_s), means))
    return made


def at_most(samples: Sequence[Sample], step_s: int, most: int, length_s: float) -> tuple[list[Sample], int]:
    """Return samples of a period of this length, at most about `most` of them, and their step.

    >>> at_most([], 60, 400, 86400.0)
    ([], 240)
    """
    step = step_s
    while length_s / step > most:
        step *= 2
    return (list(samples) if step == step_s else thinned(samples, step)), step


def with_gaps(samples: Sequence[Sample], step_s: float) -> list[Sample]:
    """Return the samples with an empty one where some are missing, so that charts show the gap.

    >>> [one.at for one in with_gaps([Sample(Instant(0.0)), Sample(Instant(10.0)), Sample(Instant(60.0))], 10.0)]
    [0.0, 10.0, 20.0, 60.0]
    """
    found: list[Sample] = []
    for one in samples:
        if found and one.at - found[-1].at > 2.5 * step_s:
            found.append(Sample(Instant(found[-1].at + step_s)))
        found.append(one)
    return found
