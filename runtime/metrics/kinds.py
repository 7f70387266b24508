"""What a metric is: its name, kind, labels and meaning, and how the processes of a node are put together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

# One number; of a histogram the count in each bucket (the last one beyond all bounds) and then the sum.
Value: TypeAlias = tuple[float, ...]


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Across(StrEnum):
    """What several processes' numbers come to."""

    SUM = "sum"
    MOST = "most"
    EACH = "each"  # told apart by the label `process`


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `bounds` are the upper ends of a histogram's buckets, but for the last one, which has none."""

    name: str
    kind: Kind
    meaning: str
    labels: tuple[str, ...] = ()
    across: Across = Across.SUM
    bounds: tuple[float, ...] = ()

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """Its labels as they are told."""
        return (*self.labels, "process") if self.across is Across.EACH else self.labels

    def of(self, *labels: str, value: float) -> Sample:
        """A sample that is one number.

        >>> Metric("muster_x", Kind.GAUGE, "An x.", ("app",)).of("pi", value=2).value
        (2.0,)
        """
        assert len(labels) == len(self.labels), self.name
        return Sample(self, labels, (float(value),))

    def counted(self, *labels: str, buckets: Iterable[float], total: float) -> Sample:
        """A sample of a histogram: how many in each bucket, and the sum of all."""
        value = (*map(float, buckets), float(total))
        assert len(value) == len(self.bounds) + 2, self.name
        return Sample(self, labels, value)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a metric came to, for one set of labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: Value


Source: TypeAlias = Callable[[], Iterable[Sample]]
