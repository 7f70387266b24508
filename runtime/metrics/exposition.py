"""What is measured, in the text formats of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from domain.units import Instant
from runtime.metrics.kinds import Kind, Metric, Value
from runtime.metrics.readings import Reading, together

Values = Mapping[tuple[str, ...], Value]


def exposition(readings: Sequence[Reading], now: Instant, accept: str = "") -> tuple[bytes, str]:
    """The text and its content type: OpenMetrics for who accepts that, else the plain format.

    >>> from runtime.metrics.catalogue import JOBS_SENT
    >>> taken = Reading("worker 0", 0.0, ((JOBS_SENT.name, (), (3.0,)),))
    >>> print(exposition([taken], Instant(0.0))[0].decode(), end="")
    # HELP muster_jobs_sent_total Jobs given to hosts.
    # TYPE muster_jobs_sent_total counter
    muster_jobs_sent_total 3.0
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(together(readings, now)))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Collected(Collector):
    """Hands to the library what was measured."""

    def __init__(self, found: Mapping[Metric, Values]) -> None:
        self._found = found

    def collect(self) -> Iterator[Family]:
        for metric, values in self._found.items():
            yield _family(metric, values)


def _family(metric: Metric, values: Values) -> Family:
    labels = metric.shown_labels
    if metric.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(metric.name, metric.meaning, labels=labels)
        for shown, value in values.items():
            histogram.add_metric(shown, _buckets(metric.bounds, value[:-1]), value[-1])
        return histogram
    make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
    family = make(metric.name, metric.meaning, labels=labels)
    for shown, value in values.items():
        family.add_metric(shown, value[0])
    return family


def _buckets(bounds: Sequence[float], counted: Sequence[float]) -> list[tuple[str, float]]:
    """Counts up to each bound.

    >>> _buckets((0.1, 1.0), (3.0, 2.0, 1.0))
    [('0.1', 3.0), ('1.0', 5.0), ('+Inf', 6.0)]
    """
    ends = [*(repr(bound) for bound in bounds), "+Inf"]
    return list(zip(ends, accumulate(counted), strict=True))
