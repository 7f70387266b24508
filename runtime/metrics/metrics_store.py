"""The metrics store: one small file of readings per process of a node, aggregated into Prometheus text formats."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

import msgspec
import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from domain.units import Instant
from runtime.metrics.catalogue import BY_NAME, Across, Metric, MetricKind, MetricSample, Value

FRESH_S = 15.0  # a process without a reading for this long has ended or hangs, so its gauges are dropped

Key: TypeAlias = tuple[str, tuple[str, ...]]


class MetricReading(msgspec.Struct, frozen=True, array_like=True):
    """The measurements of one process: (metric, labels, value) of each sample."""

    process: str
    at: float
    samples: tuple[tuple[str, tuple[str, ...], Value], ...]


def reading(process: str, at: Instant, samples: Iterable[MetricSample], earlier: Mapping[Key, Value]) -> MetricReading:
    """Return a process's samples, including the counts of earlier processes with the same name.

    So counters never decrease when a process is restarted.
    """
    found: dict[Key, Value] = {(sample.metric.name, sample.labels): sample.value for sample in samples}
    for key, value in earlier.items():
        found[key] = _added(found[key], value) if key in found else value
    return MetricReading(process, at, tuple((name, labels, value) for (name, labels), value in found.items()))


def counts(earlier: MetricReading) -> dict[Key, Value]:
    """Return a reading's counters, which the next process continues. Gauges are not continued."""
    return {
        (name, labels): value
        for name, labels, value in earlier.samples
        if name in BY_NAME and BY_NAME[name].kind is not MetricKind.GAUGE
    }


def together(readings: Sequence[MetricReading], now: Instant) -> dict[Metric, dict[tuple[str, ...], Value]]:
    """Return all metrics with samples, in the catalogue's order, with their values by label.

    The counters of an ended process are kept; its gauges are omitted.
    """
    found: dict[Metric, dict[tuple[str, ...], Value]] = {}
    for one in sorted(readings, key=lambda one: one.process):
        fresh = now - one.at <= FRESH_S
        for name, labels, value in one.samples:
            metric = BY_NAME.get(name)  # processes of another version may have other metrics
            if metric is None or (metric.kind is MetricKind.GAUGE and not fresh):
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
    if len(left) != len(right):  # buckets from another version
        return left
    return tuple(a + b for a, b in zip(left, right, strict=True))


log = structlog.get_logger()


class OwnBoard:
    """The metrics store of a single process, in memory: each process's last reading by name."""

    def __init__(self) -> None:
        self._readings: dict[str, MetricReading] = {}

    def put(self, reading: MetricReading) -> None:
        self._readings[reading.process] = reading

    def last(self, process: str) -> MetricReading | None:
        return self._readings.get(process)

    def all(self) -> Sequence[MetricReading]:
        return list(self._readings.values())


class FolderBoard:
    """One file per process in a directory, replaced atomically."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, reading: MetricReading) -> None:
        """Write the reading. A full or missing directory is logged and otherwise ignored."""
        path = self._path(reading.process)
        new = path.with_suffix(".new")
        try:
            new.write_bytes(msgspec.json.encode(reading))
            new.replace(path)
        except OSError as error:
            log.warning("measurements not written", path=str(path), why=str(error))

    def last(self, process: str) -> MetricReading | None:
        return _read(self._path(process))

    def all(self) -> Sequence[MetricReading]:
        found = [_read(path) for path in sorted(self._folder.glob("*.json"))]
        return [one for one in found if one is not None]

    def _path(self, process: str) -> Path:
        return self._folder / f"{process.replace(' ', '-')}.json"


MetricsStore: TypeAlias = OwnBoard | FolderBoard


def _read(path: Path) -> MetricReading | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=MetricReading)
    return None


Values = Mapping[tuple[str, ...], Value]


def exposition(readings: Sequence[MetricReading], now: Instant, accept: str = "") -> tuple[bytes, str]:
    """Return the text and its content type: OpenMetrics if the client accepts it, otherwise the plain format.

    >>> from runtime.metrics.catalogue import JOBS_SENT
    >>> taken = MetricReading("worker 0", 0.0, ((JOBS_SENT.name, (), (3.0,)),))
    >>> print(exposition([taken], Instant(0.0))[0].decode(), end="")
    # HELP muster_jobs_sent_total Instances sent to hosts.
    # TYPE muster_jobs_sent_total counter
    muster_jobs_sent_total 3.0
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(together(readings, now)))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collected(Collector):
    """Passes readings to the Prometheus library."""

    def __init__(self, found: Mapping[Metric, Values]) -> None:
        self._found = found

    def collect(self) -> Iterator[Family]:
        for metric, values in self._found.items():
            yield _family(metric, values)


def _family(metric: Metric, values: Values) -> Family:
    labels = metric.shown_labels
    if metric.kind is MetricKind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.meaning, labels=labels)
        for shown, value in values.items():
            histogram.add_metric(shown, _buckets(metric.bounds, value[:-1]), value[-1])
        return histogram
    make = CounterMetricFamily if metric.kind is MetricKind.COUNTER else GaugeMetricFamily
    family = make(metric.name, metric.meaning, labels=labels)
    for shown, value in values.items():
        family.add_metric(shown, value[0])
    return family


def _buckets(bounds: Sequence[float], counted: Sequence[float]) -> list[tuple[str, float]]:
    """Return the cumulative count up to each bound.

    >>> _buckets((0.1, 1.0), (3.0, 2.0, 1.0))
    [('0.1', 3.0), ('1.0', 5.0), ('+Inf', 6.0)]
    """
    ends = [*(repr(bound) for bound in bounds), "+Inf"]
    return list(zip(ends, accumulate(counted), strict=True))
