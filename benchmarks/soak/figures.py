"""Computes the growth of memory and tables under constant load. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from benchmarks.running import rounded

ENDS = 6  # the first and the last sixth of the samples are compared
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Table:
    """A table's state at one moment. `index_bytes` is by index name."""

    live: int
    dead: int
    table_bytes: int
    index_bytes: Mapping[str, int]

    @property
    def whole_bytes(self) -> int:
        """Return the size of the table with its indexes, in bytes."""
        return self.table_bytes + sum(self.index_bytes.values())

    @property
    def dead_fraction(self) -> float:
        """Return the fraction of rows that are dead, 0 for an empty table.

        >>> Table(live=300, dead=100, table_bytes=0, index_bytes={}).dead_fraction
        0.25
        """
        return self.dead / (self.live + self.dead) if self.dead else 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One interval of the load, and the state of the processes and the database at its end.

    `rss_mib` is by process name; `refill_s` is None if no refill was logged in the interval.
    """

    at_s: float
    requests: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    without_work: int
    failed: int
    unsettled: int
    rss_mib: Mapping[str, float]
    postgres_private_mib: float
    database_mib: float
    refill_s: float | None
    tables: Mapping[str, Table]

    @property
    def python_rss_mib(self) -> float:
        return sum(self.rss_mib.values())


def summary(samples: Sequence[Sample]) -> dict[str, object]:
    """Return the run's figures, except those of the comparisons made afterwards.

    First and last values are medians over the first and the last sixth of the samples, so that a single disturbance
    does not count as growth.
    """
    requests = sum(sample.requests for sample in samples)
    p99_first_ms, p99_last_ms = first_and_last([sample.p99_ms for sample in samples])
    rss_first_mib, rss_last_mib = first_and_last([sample.python_rss_mib for sample in samples])
    refills_s = [sample.refill_s for sample in samples if sample.refill_s is not None]
    return {
        "minutes": round(samples[-1].at_s / 60.0, 2),
        "requests": requests,
        "requests_per_s": rounded(median(sample.requests_per_s for sample in samples)),
        "p50_ms": rounded(median(sample.p50_ms for sample in samples)),
        "p99_ms": rounded(median(sample.p99_ms for sample in samples)),
        "p99_first_ms": rounded(p99_first_ms),
        "p99_last_ms": rounded(p99_last_ms),
        "p99_growth": rounded(p99_last_ms / p99_first_ms),
        "rss_first_mib": rounded(rss_first_mib),
        "rss_last_mib": rounded(rss_last_mib),
        "rss_growth_mib_per_hour": rounded(growth_mib_per_hour(samples)),
        "no_work_fraction": rounded(sum(sample.without_work + sample.failed for sample in samples) / max(1, requests)),
        "failed": sum(sample.failed for sample in samples),
        "unsettled_most": max(sample.unsettled for sample in samples),
        "refill_s": rounded(median(refills_s)) if refills_s else None,
        "refill_worst_s": rounded(max(refills_s)) if refills_s else None,
    }


def first_and_last(values: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the first and the last sixth of the values, each with at least one value.

    >>> first_and_last([5.0, 9.0, 6.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 8.0, 10.0])
    (7.0, 9.0)
    """
    count = max(1, len(values) // ENDS)
    return median(values[:count]), median(values[-count:])


def growth_mib_per_hour(samples: Sequence[Sample]) -> float:
    """Return the total memory growth of all Python processes in the run's second half, when caches are warm.

    slope = median over all pairs i < j of (y_j - y_i) / (x_j - x_i)   (Theil and Sen); 0 for a single sample.
    400 MiB after 0 s, 420 after 1800 s and 430 after 3600 s give 40, 30 and 20 MiB per hour; the growth is 30.
    """
    half = samples[len(samples) // 2 :] if len(samples) > 3 else samples
    slopes = [(b.python_rss_mib - a.python_rss_mib) / (b.at_s - a.at_s) for a, b in combinations(half, 2)]
    return 3600.0 * median(slopes) if slopes else 0.0


def bloat(
    samples: Sequence[Sample], last: Mapping[str, Table], compact: Mapping[str, Table]
) -> dict[str, dict[str, float]]:
    """Return each table's bloat: its size relative to freshly rewritten rows.

    `last` is the state after the run, `compact` that of the same rows rewritten. `ratio` is the ratio of their sizes
    with indexes; for an empty table it is meaningless, and `mib_most` is the relevant figure.
    """
    return {
        name: {
            "mib": rounded(table.whole_bytes / MIB),
            "compact_mib": rounded(compact[name].whole_bytes / MIB),
            "ratio": rounded(table.whole_bytes / compact[name].whole_bytes),
            "mib_most": rounded(max(sample.tables[name].whole_bytes for sample in samples) / MIB),
            "dead_fraction": rounded(table.dead_fraction),
            "dead_fraction_most": rounded(max(sample.tables[name].dead_fraction for sample in samples)),
        }
        for name, table in last.items()
    }


def bloat_ratio(last: Mapping[str, Table], compact: Mapping[str, Table]) -> float:
    """Return the bloat of all tables together.

    >>> left = {"host": Table(9, 1, 6000, {"host_pkey": 3000}), "job_todo": Table(0, 9, 900, {})}
    >>> bloat_ratio(left, {"host": Table(9, 0, 5000, {"host_pkey": 2500}), "job_todo": Table(0, 0, 0, {})})
    1.32
    """
    return rounded(sum(t.whole_bytes for t in last.values()) / sum(t.whole_bytes for t in compact.values()))
