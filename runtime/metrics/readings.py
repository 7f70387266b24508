"""What do a node's processes come to together? Each one's last reading, added up. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from domain.units import Instant
from runtime.metrics.catalogue import BY_NAME
from runtime.metrics.kinds import Across, Kind, Metric, Sample, Value

FRESH_S = 15.0  # a process that has not reported for so long is gone, or stuck: what it held is nobody's

Key: TypeAlias = tuple[str, tuple[str, ...]]


class Reading(msgspec.Struct, frozen=True, array_like=True):
    """What one process measured: (metric, labels, value) of each sample."""

    process: str
    at: float
    samples: tuple[tuple[str, tuple[str, ...], Value], ...]


def reading(process: str, at: Instant, samples: Iterable[Sample], earlier: Mapping[Key, Value]) -> Reading:
    """A process's samples, what processes of the same name counted before it added to its own counts.

    So a count never goes down when a process dies and is started again.
    """
    found: dict[Key, Value] = {(sample.metric.name, sample.labels): sample.value for sample in samples}
    for key, value in earlier.items():
        found[key] = _added(found[key], value) if key in found else value
    return Reading(process, at, tuple((name, labels, value) for (name, labels), value in found.items()))


def counts(earlier: Reading) -> dict[Key, Value]:
    """What of a reading goes on counting in the process that follows; gauges do not."""
    return {
        (name, labels): value
        for name, labels, value in earlier.samples
        if name in BY_NAME and BY_NAME[name].kind is not Kind.GAUGE
    }


def together(readings: Sequence[Reading], now: Instant) -> dict[Metric, dict[tuple[str, ...], Value]]:
    """Every metric that has samples, in the catalogue's order, with its values by label.

    Counts of a process that is gone stay; its gauges are left out.
    """
    found: dict[Metric, dict[tuple[str, ...], Value]] = {}
    for one in sorted(readings, key=lambda one: one.process):
        fresh = now - one.at <= FRESH_S
        for name, labels, value in one.samples:
            metric = BY_NAME.get(name)  # another version's processes may measure something else
            if metric is None or (metric.kind is Kind.GAUGE and not fresh):
                continue
            shown = (*labels, one.process) if metric.across is Across.EACH else labels
            values = found.setdefault(metric, {})
            values[shown] = _put_together(metric, values.get(shown), value)
    return {metric: found[metric] for metric in BY_NAME.values() if metric in found}


def _put_together(metric: Metric, before: Value | None, value: Value) -> Value:
    if before is None:
        return value
    return tuple(map(max, before, value)) if metric.across is Across.MOST else _added(before, value)


def _added(left: Value, right: Value) -> Value:
    if len(left) != len(right):  # another version's buckets
        return left
    return tuple(a + b for a, b in zip(left, right, strict=True))
