"""Defines all metrics: name, kind, labels, help text, and aggregation over a node's processes. docs/metrics.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

# One number; for a histogram the count in each bucket (the last one is unbounded), then the sum.
Value: TypeAlias = tuple[float, ...]


class MetricKind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Across(StrEnum):
    """How a metric is aggregated over processes."""

    SUM = "sum"
    MOST = "most"
    EACH = "each"  # separate values, distinguished by the label `process`


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric. `bounds` are the upper bounds of a histogram's buckets, except the last bucket, which has none."""

    name: str
    kind: MetricKind
    meaning: str
    labels: tuple[str, ...] = ()
    across: Across = Across.SUM
    bounds: tuple[float, ...] = ()

    @property
    def shown_labels(self) -> tuple[str, ...]:
        """Return the labels shown in the output."""
        return (*self.labels, "process") if self.across is Across.EACH else self.labels

    def of(self, *labels: str, value: float) -> MetricSample:
        """Return a sample that consists of one number.

        >>> Metric("muster_x", MetricKind.GAUGE, "An x.", ("app",)).of("pi", value=2).value
        (2.0,)
        """
        assert len(labels) == len(self.labels), self.name
        return MetricSample(self, labels, (float(value),))

    def counted(self, *labels: str, buckets: Iterable[float], total: float) -> MetricSample:
        """Return a histogram sample: the count in each bucket, and the sum."""
        value = (*map(float, buckets), float(total))
        assert len(value) == len(self.bounds) + 2, self.name
        return MetricSample(self, labels, value)


@dataclass(frozen=True, slots=True)
class MetricSample:
    """A metric's value for one set of labels."""

    metric: Metric
    labels: tuple[str, ...]
    value: Value


Source: TypeAlias = Callable[[], Iterable[MetricSample]]


LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
GROUP_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # plus 64, the maximum


def _counter(name: str, meaning: str, *labels: str, across: Across = Across.SUM) -> Metric:
    return Metric(f"muster_{name}_total", MetricKind.COUNTER, meaning, labels, across)


def _gauge(name: str, meaning: str, *labels: str, across: Across = Across.SUM) -> Metric:
    return Metric(f"muster_{name}", MetricKind.GAUGE, meaning, labels, across)


def _histogram(name: str, meaning: str, bounds: tuple[float, ...], *labels: str) -> Metric:
    return Metric(f"muster_{name}", MetricKind.HISTOGRAM, meaning, labels, bounds=bounds)


# ------------------------------------------------------------ client requests
REQUESTS = _counter("requests", "Scheduler requests, by HTTP status.", "status")
JOBS_SENT = _counter("jobs_sent", "Instances sent to hosts.")
JOBS_RESENT = _counter("jobs_resent", "Instances sent again after the host lost them.")
RESULTS_REPORTED = _counter("results_reported", "Results reported by hosts.")
REFUSALS = _counter("refusals", "Job classes refused during scheduler requests, by refusal code.", "code")
TRICKLES = _counter("trickles", "Trickle messages, stored or dropped by reason.", "fate")
REQUEST_SECONDS = _histogram("request_seconds", "Duration of scheduler requests.", LATENCY_S)
PAGES = _counter("pages", "Other HTTP requests, by area and class of status.", "area", "status")
PAGE_SECONDS = _counter("page_seconds", "Total duration of other HTTP requests, by area.", "area")
CONSOLE_SECONDS = _histogram("console_page_seconds", "Duration of the console's pages and forms.", LATENCY_S, "page")

# ------------------------------------------------------------ the job array
ARRAY_CAPACITY = _gauge("array_capacity_slots", "Capacity of the workers' job arrays.")
ARRAY_SLOTS = _gauge("array_slots", "Filled slots that this processor type can run.", "app", "processor_type")
ARRAY_URGENT = _gauge("array_urgent_slots", "Slots filled with retries and other urgent jobs.")
UNRUNNABLE = _gauge("unrunnable_groups", "Unschedulable job groups in back-off.")
REFILLS = _counter("refills", "Refills that filled at least one slot.")
REFILL_SECONDS = _histogram("refill_seconds", "Duration of refills that filled at least one slot.", LATENCY_S)
REFILLED = _counter("refilled_slots", "Slots filled by refills.")
REFILL_FAILURES = _counter("refill_failures", "Refills that failed.")
REFILL_AGE = _gauge("refill_age_seconds", "Time since the last refill, maximum over workers.", across=Across.MOST)

# ------------------------------------------------------------ percentiles and forecasts
CUT_POINTS_AGE = _gauge(
    "cut_points_age_seconds", "Age of the percentile cut points.", "app", "processor_type", across=Across.MOST
)
RANKING_AGE = _gauge("ranking_age_seconds", "Time since the last full ranking of hosts.", across=Across.MOST)
RANKING_SECONDS = _gauge("ranking_run_seconds", "Duration of the last full ranking.", across=Across.MOST)
RANKED_ROWS = _gauge("ranked_rows", "Host and app version pairs in the last full ranking.", across=Across.MOST)


def _forecast(name: str, meaning: str, *labels: str) -> Metric:
    return _gauge(f"forecast_{name}", meaning, "app", *labels, across=Across.MOST)


ACTIVE_BATCHES = _forecast("active_batches", "Active batches.")
NEVER_FORECAST = _forecast("never_forecast_batches", "Active batches without a forecast.")
OLDEST_FORECAST = _forecast("oldest_age_seconds", "Age of the latest forecast, maximum over active batches.")
LATEST_FORECAST = _forecast("latest_age_seconds", "Age of the latest forecast of any batch.")
SCORED_BATCHES = _forecast("scored_batches", "Ended batches used to score forecasts.")
COVERAGE = _forecast("coverage_ratio", "Fraction of scored batches that ended by the quantile.", "forecast_quantile")
MEDIAN_ERROR = _forecast("median_error_ratio", "Median error of q50 relative to total duration.")
REMAINING_ERROR = _forecast("median_remaining_error_ratio", "Median error of q50 relative to remaining time.")
BIAS = _forecast("bias_ratio", "Median signed error of q50 relative to total duration; positive if q50 was too late.")
PINBALL = _forecast("pinball_bounds", "Mean pinball loss, in delay bounds.")
SPREAD = _forecast("spread", "Calibration factor applied to the spread of forecasts.")

# ------------------------------------------------------------ waiting work
QUEUED_BATCHES = _gauge("queue_batches", "Active batches.", "app", "qos", across=Across.MOST)
HELD_BATCHES = _gauge("queue_held_batches", "Active batches blocked by a limit.", "app", "qos", across=Across.MOST)
QUEUED = _gauge("queue_unsent_instances", "Unsent instances of active batches.", "app", "qos", across=Across.MOST)
IN_PROGRESS = _gauge("queue_in_progress_instances", "Instances in progress.", "app", "qos", across=Across.MOST)
BATCH_UNSENT = _gauge(
    "batch_unsent_instances",
    "Unsent instances of the first batches in the order.",
    "batch",
    across=Across.MOST,
)
BATCH_RETRIES = _gauge(
    "batch_unsent_retries", "Unsent retries and copies of the first batches in the order.", "batch", across=Across.MOST
)
BATCH_AGE = _gauge(
    "batch_age_seconds", "Time since the first batches in the order were submitted.", "batch", across=Across.MOST
)

ATTENTION = _gauge("attention_items", "Problems that need an operator's attention.", "kind", across=Across.MOST)

# ------------------------------------------------------------ periodic tasks
DUTY_RUNS = _counter("duty_runs", "Successful rounds of a periodic task.", "duty")
DUTY_FAILURES = _counter("duty_failures", "Failed rounds of a periodic task.", "duty")
DUTY_LAST = _gauge(
    "duty_last_run_timestamp_seconds",
    "Time of the task's last successful round on this node.",
    "duty",
    across=Across.MOST,
)
DUTY_SECONDS = _gauge("duty_last_run_seconds", "Duration of the task's last round.", "duty", across=Across.MOST)
DUTY_MINE = _gauge("duty_mine", "1 if this node runs the periodic task.", "duty", across=Across.MOST)
DUTY_OVERDUE = _gauge(
    "duty_overdue_seconds",
    "Time by which the periodic task is overdue in the cluster; 0 if on time.",
    "duty",
    across=Across.MOST,
)

# ------------------------------------------------------------ the database
DATABASE_UP = _gauge("database_up", "1 if the process reaches the database.", across=Across.EACH)
ROUND_TRIP = _gauge("database_round_trip_seconds", "Duration of the process's last probe query.", across=Across.EACH)
POOL = _gauge("database_pool_connections", "Connections of the pool, by state: idle or busy.", "state")
POOL_MOST = _gauge("database_pool_most_connections", "Maximum connections of the pools.")
CALLS = _counter("database_calls", "Statements and transactions run through the pool.")
GROUPS = _histogram(
    "database_group_size", "Requests that shared one round trip (read) or transaction (write).", GROUP_SIZES, "kind"
)
GROUP_WAITING = _gauge("database_group_waiting", "Requests waiting for the next group.", "kind")
LANES = _gauge("database_group_connections", "Connections used by request groups.", "kind")
LOCKS_SILENT = _gauge(
    "database_locks_silent_seconds",
    "Time since a worker's lock connection last answered.",
    across=Across.EACH,
)
SHARDS = _gauge("shards", "Shards held by this node's workers, of 64.")
DATABASE_SESSIONS = _gauge("database_sessions", "Database sessions, by state.", "state", across=Across.MOST)
DATABASE_BYTES = _gauge("database_size_bytes", "Size of the database.", across=Across.MOST)
OLDEST_TRANSACTION = _gauge(
    "database_oldest_transaction_seconds", "Age of the oldest open transaction.", across=Across.MOST
)
WEB_SESSIONS = _gauge("web_sessions", "Signed-in users, by kind.", "kind", across=Across.MOST)

# ------------------------------------------------------------ processes
SERVING = _gauge("serving", "1 if the worker hands out work.", across=Across.EACH)
CLOCK_OFFSET = _gauge("clock_offset_seconds", "This node's clock minus the database's.", across=Across.EACH)
PROCESS_UP = _gauge("process_up", "1 if the process runs and is ready.", "name")
RESTARTS = _counter("process_restarts", "Restarts of the process by the supervisor.", "name")
STARTED = _gauge("process_start_timestamp_seconds", "Start time of the process.", across=Across.EACH)
CPU = _counter("process_cpu_seconds", "CPU time used by the process.", across=Across.EACH)
MEMORY = _gauge("process_resident_bytes", "Resident memory of the process.", across=Across.EACH)
LOOP_LAG = _gauge("event_loop_lag_seconds", "Delay of the process's last measurement.", across=Across.EACH)
BUILD = _gauge("build_info", "1, with the version as a label.", "version", across=Across.MOST)

METRICS: tuple[Metric, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
BY_NAME = {metric.name: metric for metric in METRICS}
