"""Summarizes the repeats: computes medians, and decides which repeats are void. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.running import rounded

MOST_GENERATOR_FRACTION = 0.9  # of a core
MOST_ECHO_GAIN = 1.05  # with 50 % more clients


@dataclass(frozen=True, slots=True)
class Repeat:
    """One round of echo and dispatch. `full_requests_per_s` is the dispatch rate without a rate limit."""

    echo_requests_per_s: float
    echo_more_requests_per_s: float
    full_requests_per_s: float
    requests_per_s: float
    jobs_per_s: float
    p50_ms: float
    p99_ms: float
    no_work_fraction: float
    failed: float
    cpu_us_per_request: float  # of workers, background process, PostgreSQL and front end; not of the load generator
    workers_cpu_us_per_request: float
    python_cpu_us_per_request: float  # of workers and background process
    background_cpu_us_per_request: float  # mostly the validator
    postgres_cpu_us_per_request: float
    front_cpu_us_per_request: float  # 0 without a front end
    echo_cpu_us_per_request: float
    generator_cpu_fraction: float
    unsettled_left: float  # jobs not yet validated when the load ended
    rss_mib_per_worker: float
    reference_us: float

    @property
    def ratio_to_echo(self) -> float:
        return self.full_requests_per_s / self.echo_requests_per_s

    @property
    def void_because(self) -> str:
        """Return why the repeat is void, empty if it is valid.

        >>> even = dict.fromkeys(Repeat.__slots__, 0.1)
        >>> Repeat(**even).void_because
        ''
        >>> Repeat(**{**even, "echo_more_requests_per_s": 0.2}).void_because
        '50 % more clients raise the echo rate by 100 %'
        """
        if self.generator_cpu_fraction > MOST_GENERATOR_FRACTION:
            return f"the load generator used {self.generator_cpu_fraction:.0%} of a core".replace("%", " %")
        gain = self.echo_more_requests_per_s / self.echo_requests_per_s
        if gain > MOST_ECHO_GAIN:
            return f"50 % more clients raise the echo rate by {100 * (gain - 1):.0f} %"
        return ""


def summary(repeats: Sequence[Repeat]) -> dict[str, object]:
    """Return the median of each figure over the valid repeats, or over all repeats if none is valid.

    `reference_ratio` is the ratio of the 99th percentile latency to a fixed operation timed in the same repeats.
    """
    counting = [repeat for repeat in repeats if not repeat.void_because]
    used = counting or repeats
    rows = [{**asdict(repeat), "ratio_to_echo": repeat.ratio_to_echo} for repeat in used]
    medians: dict[str, object] = {name: rounded(median(row[name] for row in rows)) for name in rows[0]}
    medians["no_work_fraction"] = rounded(max(repeat.no_work_fraction for repeat in used))
    medians["failed"] = sum(repeat.failed for repeat in repeats)
    medians["rss_mib_per_worker"] = rounded(max(repeat.rss_mib_per_worker for repeat in repeats))
    medians["reference_ratio"] = rounded(median(1000.0 * repeat.p99_ms / repeat.reference_us for repeat in used))
    medians["repeats"] = len(repeats)
    medians["void_repeats"] = [repeat.void_because for repeat in repeats if repeat.void_because]
    return medians


def table(figures: Mapping[str, object]) -> str:
    """Return the figures as text, one per line."""
    return "\n".join(f"{name:30} {_shown(value)}" for name, value in figures.items())


def _shown(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "; ".join(map(str, value)) or "none"
    return f"{value:,.10g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
