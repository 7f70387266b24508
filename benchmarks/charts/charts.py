"""Selects the charts and the figures in each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.charts.results import Answered, Asked, Results, along

REFILL_STEPS = {
    "full": "a new worker fills its array",
    "steady": "steady refill after sending",
    "round": "periodic full refill",
    "after_sends_full": "a new worker, with dead rows",
}
COSTS = {
    "one job": Asked(),
    "one job, 10,000 slots": Asked(slots=10_000),
    "one job, 10,000,000 waiting": Asked(waiting_jobs=10_000_000),
    "one job, at half load": Asked(load=0.5),
    "eight jobs": Asked(jobs_per_request=8),
}


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a chart: a name, and a value for each position on the x axis."""

    name: str
    x: Sequence[float]
    y: Sequence[float]


@dataclass(frozen=True, slots=True)
class Curves:
    """A line chart. The y axis starts at 0."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    logarithmic: bool = False  # the x axis

    @property
    def worth_drawing(self) -> bool:
        return any(len(series.x) > 1 for series in self.series)


@dataclass(frozen=True, slots=True)
class Bars:
    """A bar chart with one stacked bar per row."""

    title: str
    x_label: str
    rows: Sequence[str]
    parts: Mapping[str, Sequence[float]]

    @property
    def worth_drawing(self) -> bool:
        return len(self.rows) > 1


Chart = Curves | Bars
Figure = Callable[[Answered], float]


def charts_of(results: Results) -> dict[str, Chart]:
    """Return all charts with enough points, by file name."""
    charts: dict[str, Chart] = {
        "cost": _cost(results),
        "slots": _rate(results, "slots", "Throughput and the size of the job array", "slots per worker"),
        "backlog": _rate(results, "waiting_jobs", "Throughput and backlog", "waiting jobs", logarithmic=True),
        "connections": _connections(results),
        "jobs": _jobs(results),
        "latency": _latency(results),
        "refill": _refill(results),
        "submit": _submit(results),
    }
    return {name: chart for name, chart in charts.items() if chart.worth_drawing}


def _curve(results: Results, parameter: str, name: str, figure: Figure) -> Series:
    x, answers = along(results.dispatch, parameter)
    return Series(name, x, [figure(answer) for answer in answers])


def _rate(results: Results, parameter: str, title: str, x_label: str, *, logarithmic: bool = False) -> Curves:
    series = _curve(results, parameter, "full rate", lambda answer: answer.requests_per_s)
    return Curves(title, x_label, "requests per second", [series], logarithmic=logarithmic)


def _connections(results: Results) -> Curves:
    """Chart CPU time instead of rates, because other load on the machine affects it less."""
    series = [
        _curve(results, "connections", "request workers", lambda answer: answer.workers_cpu_us_per_request),
        _curve(results, "connections", "PostgreSQL", lambda answer: answer.postgres_cpu_us_per_request),
    ]
    title = "CPU time per request and concurrency"
    return Curves(title, "connections without pause", "microseconds per request", series)


def _jobs(results: Results) -> Curves:
    series = _curve(results, "jobs_per_request", "CPU time", lambda answer: answer.cpu_us_per_job)
    return Curves("CPU time per job and jobs per request", "jobs per request", "microseconds per job", [series])


def _latency(results: Results) -> Curves:
    _, answers = along(results.dispatch, "load")
    x = [answer.requests_per_s for answer in answers]
    series = [
        Series("99th percentile latency", x, [answer.p99_ms for answer in answers]),
        Series("median latency", x, [answer.p50_ms for answer in answers]),
    ]
    return Curves("Latency and load", "requests per second", "milliseconds", series)


def _cost(results: Results) -> Bars:
    rows = [name for name, asked in COSTS.items() if asked in results.dispatch]
    answers = [results.dispatch[COSTS[name]] for name in rows]
    parts = {
        "request workers": [answer.workers_cpu_us_per_request for answer in answers],
        "background process": [answer.background_cpu_us_per_request for answer in answers],
        "PostgreSQL": [answer.postgres_cpu_us_per_request for answer in answers],
    }
    return Bars("CPU time per request", "microseconds per request", rows, parts)


def _refill(results: Results) -> Curves:
    """Chart the smallest array, because the smallest backlog cannot fill the largest."""
    slots = min((asked.slots for asked in results.refill), default=0)
    series = []
    for step, name in REFILL_STEPS.items():
        points = sorted(
            (asked.waiting_jobs, answer.cpu_us_per_slot)
            for asked, answer in results.refill.items()
            if (asked.step, asked.slots) == (step, slots)
        )
        series.append(Series(name, [x for x, _ in points], [y for _, y in points]))
    y_label = "microseconds of CPU per slot filled"
    return Curves(f"Refill of {slots:,} slots and backlog", "waiting jobs", y_label, series, logarithmic=True)


def _submit(results: Results) -> Curves:
    series = []
    for through in sorted({asked.through for asked in results.submit}):
        points = sorted((asked.jobs, answer) for asked, answer in results.submit.items() if asked.through == through)
        series.append(Series(f"through the {through}", [x for x, _ in points], [y.seconds for _, y in points]))
    return Curves("Submitting a batch", "jobs in the batch", "seconds to commit", series)
