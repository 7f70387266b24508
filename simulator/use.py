"""Computes which part of the processors' time ran jobs while work waited, by day. Pure.

Whether work waits is looked at every SAMPLE_S: an interval counts if unsent instances that a CPU can run were there at
both its ends. GPUs are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from domain.units import DAY_S, HOUR_S, Instant
from simulator.ports import Volunteer

SAMPLE_S = HOUR_S


@dataclass(frozen=True, slots=True)
class WorkSample:
    """Whether unsent instances waited at this instant."""

    at: Instant
    waits: bool


@dataclass(frozen=True, slots=True)
class ProcessorUse:
    """Fractions of the share of the processors that were on; None for a day on which work never waited."""

    by_day: tuple[float | None, ...] = ()
    fraction: float | None = None


def processor_use(samples: Sequence[WorkSample], volunteers: Iterable[Volunteer], ended_at: Instant) -> ProcessorUse:
    """The use of all volunteers' CPUs, `samples` being from the start of the run on."""
    if not samples or not any(sample.waits for sample in samples):
        return ProcessorUse()
    edges = np.array([*(sample.at for sample in samples), max(ended_at, samples[-1].at)])
    waits = np.array([*(sample.waits for sample in samples), samples[-1].waits])
    waiting = waits[:-1] & waits[1:]
    available_s = np.zeros(len(edges) - 1)
    used_s = np.zeros(len(edges) - 1)
    for volunteer in volunteers:
        available_until_s, used_until_s = volunteer.processor_use_s(edges)
        available_s += np.diff(available_until_s)
        used_s += np.diff(used_until_s)
    days = ((edges[:-1] - edges[0]) // DAY_S).astype(int)
    available_by_day = np.bincount(days, available_s * waiting)
    used_by_day = np.bincount(days, used_s * waiting)
    return ProcessorUse(
        tuple(_part(used, available) for used, available in zip(used_by_day, available_by_day, strict=True)),
        _part(used_by_day.sum(), available_by_day.sum()),
    )


def _part(used_s: float, available_s: float) -> float | None:
    return float(used_s / available_s) if available_s > 0.0 else None
