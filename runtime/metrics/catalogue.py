"""Every metric: name, kind, labels, meaning, and how values of a node's processes are combined. docs/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

# One number; of a histogram the count in each bucket (the last one beyond all bounds) and then the sum.
Value: TypeAlias = tuple[float, ...]


class MetricKind(StrEnum):
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
    kind: MetricKind
    meaning: str
    labels: tuple[str, ...] = ()
    across: Across = Across.SUM
    bounds: tuple[float, ...] = ()

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """Its labels as they are told."""
        return (*self.labels, "process") if self.across is Across.EACH else self.labels

    def of(self, *labels: str, value: float) -> MetricSample:
        """A sample that is one number.

        >>> Metric("muster_x", MetricKind.GAUGE, "An x.", ("app",)).of("pi", value=2).value
        (2.0,)
        """
        assert len(labels) == len(self.labels), self.name
        return MetricSample(self, labels, (float(value),))

    def counted(self, *labels: str, buckets: Iterable[float], total: float) -> MetricSample:
        """A sample of a histogram: how many in each bucket, and the sum of all."""
        value = (*map(float, buckets), float(total))
        assert len(value) == len(self.bounds) + 2, self.name
        return MetricSample(self, labels, value)


@dataclass(frozen=True, slots=True)
class MetricSample:
    """What a metric came to, for one set of labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: Value


Source: TypeAlias = Callable[[], Iterable[MetricSample]]


LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
GROUP_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # and 64, the most there are


def _counter(name: str, meaning: str, *labels: str, across: Across = Across.SUM) -> Metric:
    return Metric(f"muster_{name}_total", MetricKind.COUNTER, meaning, labels, across)


def _gauge(name: str, meaning: str, *labels: str, across: Across = Across.SUM) -> Metric:
    return Metric(f"muster_{name}", MetricKind.GAUGE, meaning, labels, across)


def _histogram(name: str, meaning: str, bounds: tuple[float, ...], *labels: str) -> Metric:
    return Metric(f"muster_{name}", MetricKind.HISTOGRAM, meaning, labels, bounds=bounds)


# ------------------------------------------------------------ requests of clients
REQUESTS = _counter("requests", "Requests of clients, by HTTP status.", "status")
JOBS_SENT = _counter("jobs_sent", "Jobs given to hosts.")
JOBS_RESENT = _counter("jobs_resent", "Jobs that hosts had lost and were given once more.")
RESULTS_REPORTED = _counter("results_reported", "Results that hosts reported.")
REFUSALS = _counter("refusals", "Kinds of job refused to a host while it was answered, by reason.", "code")
TRICKLES = _counter("trickles", "Trickle messages of running apps, kept or by why they were dropped.", "fate")
REQUEST_SECONDS = _histogram("request_seconds", "Time to answer a request of a client.", LATENCY_S)
PAGES = _counter("pages", "Other HTTP requests, by area and class of status.", "area", "status")
PAGE_SECONDS = _counter("page_seconds", "Time spent on other HTTP requests, by area.", "area")

# ------------------------------------------------------------ the job array
ARRAY_CAPACITY = _gauge("array_capacity_slots", "Slots the job arrays of the workers may have.")
ARRAY_SLOTS = _gauge(
    "array_slots", "Slots filled with jobs that could go to this kind of processor.", "app", "processor_type"
)
ARRAY_URGENT = _gauge("array_urgent_slots", "Slots filled with retries and other urgent jobs.")
UNRUNNABLE = _gauge("unrunnable_groups", "Groups of jobs that every host refused and that were set aside.")
REFILLS = _counter("refills", "Refills that placed something.")
REFILL_SECONDS = _histogram("refill_seconds", "Time taken by refills that placed something.", LATENCY_S)
REFILLED = _counter("refilled_slots", "Slots filled by refills.")
REFILL_FAILURES = _counter("refill_failures", "Refills that raised an error.")
REFILL_AGE = _gauge(
    "refill_age_seconds", "Time since the last refill of the worker that waits longest.", across=Across.MOST
)

# ------------------------------------------------------------ percentiles and forecasts
CUT_POINTS_AGE = _gauge(
    "cut_points_age_seconds", "Age of what hosts are ranked by.", "app", "processor_type", across=Across.MOST
)
RANKING_AGE = _gauge("ranking_age_seconds", "Time since the last full run of the host statistics.", across=Across.MOST)
RANKING_SECONDS = _gauge("ranking_run_seconds", "How long that run took.", across=Across.MOST)
RANKED_ROWS = _gauge("ranked_rows", "Pairs of host and app version that it ranked.", across=Across.MOST)


def _forecast(name: str, meaning: str, *labels: str) -> Metric:
    return _gauge(f"forecast_{name}", meaning, "app", *labels, across=Across.MOST)


ACTIVE_BATCHES = _forecast("active_batches", "Active batches.")
NEVER_FORECAST = _forecast("never_forecast_batches", "Active batches without a forecast.")
OLDEST_FORECAST = _forecast("oldest_age_seconds", "Age of the oldest last forecast.")
LATEST_FORECAST = _forecast("latest_age_seconds", "Age of the latest forecast.")
SCORED_BATCHES = _forecast("scored_batches", "Ended batches that say how good forecasts are.")
COVERAGE = _forecast("coverage_ratio", "Share of scored ends not after the quantile.", "quantile")
MEDIAN_ERROR = _forecast("median_error_ratio", "Median error of q50, of the whole time.")
REMAINING_ERROR = _forecast("median_remaining_error_ratio", "Median error of q50, of the time that was left.")
BIAS = _forecast("bias_ratio", "Median of q50 less the end, of the whole time.")
PINBALL = _forecast("pinball_bounds", "Mean pinball loss, in delay bounds.")
SPREAD = _forecast("spread", "How much the next forecasts are stretched.")

# ------------------------------------------------------------ work that waits
QUEUED_BATCHES = _gauge("queue_batches", "Active batches.", "app", "qos", across=Across.MOST)
HELD_BATCHES = _gauge("queue_held_batches", "Active batches that a limit holds.", "app", "qos", across=Across.MOST)
QUEUED = _gauge("queue_unsent_instances", "Unsent instances of active batches.", "app", "qos", across=Across.MOST)
IN_PROGRESS = _gauge("queue_in_progress_instances", "Instances that hosts have.", "app", "qos", across=Across.MOST)
BATCH_UNSENT = _gauge(
    "batch_unsent_instances",
    "Unsent instances of the batches that are first in the order.",
    "batch",
    across=Across.MOST,
)
BATCH_RETRIES = _gauge("batch_unsent_retries", "How many of them are retries.", "batch", across=Across.MOST)
BATCH_AGE = _gauge("batch_age_seconds", "Time since these batches were submitted.", "batch", across=Across.MOST)

# ------------------------------------------------------------ background duties
DUTY_RUNS = _counter("duty_runs", "Rounds of a background duty that were done.", "duty")
DUTY_FAILURES = _counter("duty_failures", "Rounds that failed.", "duty")
DUTY_LAST = _gauge(
    "duty_last_run_timestamp_seconds", "When this node last did a round of the duty.", "duty", across=Across.MOST
)
DUTY_SECONDS = _gauge("duty_last_run_seconds", "How long that round took.", "duty", across=Across.MOST)
DUTY_MINE = _gauge("duty_mine", "1 where this node does the duty.", "duty", across=Across.MOST)
DUTY_OVERDUE = _gauge(
    "duty_overdue_seconds",
    "How long ago a round of the duty should have been done by any node; 0 in time.",
    "duty",
    across=Across.MOST,
)

# ------------------------------------------------------------ the database
DATABASE_UP = _gauge("database_up", "1 while the process reaches the database.", across=Across.EACH)
ROUND_TRIP = _gauge("database_round_trip_seconds", "Time of the last simple query.", across=Across.EACH)
POOL = _gauge("database_pool_connections", "Connections of the pool, by state: idle or busy.", "state")
POOL_MOST = _gauge("database_pool_most_connections", "Connections the pools may have.")
CALLS = _counter("database_calls", "Statements and transactions through the pool.")
GROUPS = _histogram(
    "database_group_size", "Requests that shared one round trip (read) or transaction (write).", GROUP_SIZES, "kind"
)
GROUP_WAITING = _gauge("database_group_waiting", "Requests that wait for the next group.", "kind")
LANES = _gauge("database_group_connections", "Connections that groups run on.", "kind")
LOCKS_SILENT = _gauge(
    "database_locks_silent_seconds",
    "Time since the connection that holds a worker's shards last answered.",
    across=Across.EACH,
)
SHARDS = _gauge("shards", "Shards of the work that this node's workers hold, of 64.")
DATABASE_SESSIONS = _gauge("database_sessions", "Sessions in the database, by state.", "state", across=Across.MOST)
DATABASE_BYTES = _gauge("database_size_bytes", "Size of the database.", across=Across.MOST)
OLDEST_TRANSACTION = _gauge(
    "database_oldest_transaction_seconds", "Age of the oldest open transaction.", across=Across.MOST
)
WEB_SESSIONS = _gauge("web_sessions", "People who are signed in, by kind.", "kind", across=Across.MOST)

# ------------------------------------------------------------ processes
SERVING = _gauge("serving", "1 while the worker hands out work.", across=Across.EACH)
CLOCK_OFFSET = _gauge("clock_offset_seconds", "This node's clock less the database's.", across=Across.EACH)
PROCESS_UP = _gauge("process_up", "1 while the process runs and is ready.", "name")
RESTARTS = _counter("process_restarts", "How often the process died and was started again.", "name")
STARTED = _gauge("process_start_timestamp_seconds", "When the process was started.", across=Across.EACH)
CPU = _counter("process_cpu_seconds", "Processor time the process used.", across=Across.EACH)
MEMORY = _gauge("process_resident_bytes", "Memory the process occupies.", across=Across.EACH)
LOOP_LAG = _gauge("event_loop_lag_seconds", "How late the process came to its last measurement.", across=Across.EACH)
BUILD = _gauge("build_info", "1, with the version as a label.", "version", across=Across.MOST)

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
BY_NAME = {metric.name: metric for metric in METRICS}
