"""Measures, every 15 s, what all nodes have in common: unsent work, forecasts, ranking, the database.

The background process runs these queries, so that requests for /metrics never do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

import structlog

from administration.attention.service import AttentionViews
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.forecasts import Accuracy, ForecastHealth
from domain.units import Instant, Seconds
from runtime.metrics import catalogue as metric
from runtime.metrics.catalogue import MetricSample
from store.postgres import PostgresStore

ASK_EVERY_S = Seconds(15.0)
KEPT_S = Seconds(60.0)  # a value that could not be refreshed is reported for this long
MOST_BATCHES = 20  # number of batches reported individually, first in order
RUNS_LOOKED_AT = 50  # number of ranking runs read: a day's refreshes of the cut points, and the full run before them

log = structlog.get_logger()


class Cluster:
    """Queries the database and keeps the last values. `database_up`: the last round succeeded."""

    def __init__(self, store: PostgresStore, attention: AttentionViews, clock: Clock) -> None:
        self._store = store
        self._attention = attention
        self._clock = clock
        self._kept: dict[str, tuple[Instant, list[MetricSample]]] = {}
        self.database_up = False

    async def ask_once(self) -> None:
        """Run all queries once. If a query fails, its last value is kept for a while."""
        self.database_up = True
        for name, ask in {**QUERIES, "attention": self._needs}.items():
            now = self._clock.now()
            try:
                self._kept[name] = (now, list(await ask(self._store, now)))
            except UnavailableError as error:
                self.database_up = False
                log.warning("not measured", what=name, why=str(error))
                return

    async def run(self) -> None:
        """Run the queries forever."""
        while True:
            try:
                await self.ask_once()
            except Exception:
                log.exception("not measured")
            await self._clock.sleep(ASK_EVERY_S)

    async def _needs(self, _store: PostgresStore, _now: Instant) -> Iterable[MetricSample]:
        counts = (await self._attention.now()).counts
        return [metric.ATTENTION.of(kind.value, value=count) for kind, count in counts.items()]

    def samples(self) -> Iterator[MetricSample]:
        """Return the last values that are not too old."""
        yield metric.DATABASE_UP.of(value=self.database_up)
        now = self._clock.now()
        for at, samples in self._kept.values():
            if now - at <= KEPT_S:
                yield from samples


async def _queue(store: PostgresStore, _now: Instant) -> Iterable[MetricSample]:
    samples: list[MetricSample] = []
    for total in await store.listings.totals():
        labels = (total.app, total.qos.value)
        samples += [
            metric.QUEUED_BATCHES.of(*labels, value=total.batches),
            metric.HELD_BATCHES.of(*labels, value=total.held),
            metric.QUEUED.of(*labels, value=total.unsent),
            metric.IN_PROGRESS.of(*labels, value=total.in_progress),
        ]
    return samples


async def _batches(store: PostgresStore, now: Instant) -> Iterable[MetricSample]:
    samples: list[MetricSample] = []
    for one in await store.insight.waiting_batches(MOST_BATCHES):
        label = str(one.batch.batch_id)
        samples += [
            metric.BATCH_UNSENT.of(label, value=one.batch.counts.unsent),
            metric.BATCH_RETRIES.of(label, value=one.retries_unsent),
            metric.BATCH_AGE.of(label, value=max(0.0, now - one.batch.created_at)),
        ]
    return samples


async def _ranking(store: PostgresStore, now: Instant) -> Iterable[MetricSample]:
    run = next((run for run in await store.generations.runs(RUNS_LOOKED_AT) if run.full), None)
    if run is None:
        return ()
    return (
        metric.RANKING_AGE.of(value=max(0.0, now - run.started_at)),
        metric.RANKING_SECONDS.of(value=run.seconds),
        metric.RANKED_ROWS.of(value=run.ranked),
    )


async def _forecasts(store: PostgresStore, now: Instant) -> Iterable[MetricSample]:
    return of_forecasts(await store.forecasts.health(), now)


async def _database(store: PostgresStore, now: Instant) -> Iterable[MetricSample]:
    found, signed_in = await store.figures.database(now), await store.figures.web_sessions(now)
    return (
        metric.DATABASE_BYTES.of(value=found.size_bytes),
        metric.OLDEST_TRANSACTION.of(value=found.oldest_s),
        *(metric.DATABASE_SESSIONS.of(state, value=n) for state, n in sorted(found.sessions.items())),
        *(metric.WEB_SESSIONS.of(kind, value=n) for kind, n in sorted(signed_in.items())),
    )


QUERIES: Mapping[str, Callable[[PostgresStore, Instant], Awaitable[Iterable[MetricSample]]]] = {
    "queue": _queue,
    "batches": _batches,
    "ranking": _ranking,
    "forecasts": _forecasts,
    "database": _database,
}


def of_forecasts(apps: Sequence[ForecastHealth], now: Instant) -> Iterator[MetricSample]:
    """Return forecast metrics as of `now`. An app without scored batches has no accuracy."""
    for app in apps:
        name = app.app_name
        yield metric.ACTIVE_BATCHES.of(name, value=app.active_batches)
        yield metric.NEVER_FORECAST.of(name, value=app.never_forecast)
        for age, at in ((metric.OLDEST_FORECAST, app.oldest_at), (metric.LATEST_FORECAST, app.latest_at)):
            if at is not None:
                yield age.of(name, value=max(0.0, now - at))
        if app.accuracy is not None:
            yield from _of_accuracy(name, app.accuracy.accuracy, app.accuracy.spread)


def _of_accuracy(name: str, found: Accuracy, spread: float) -> Iterator[MetricSample]:
    yield metric.SCORED_BATCHES.of(name, value=found.batches)
    yield metric.COVERAGE.of(name, "0.1", value=found.coverage_q10)
    yield metric.COVERAGE.of(name, "0.5", value=found.coverage_q50)
    yield metric.COVERAGE.of(name, "0.9", value=found.coverage_q90)
    yield metric.MEDIAN_ERROR.of(name, value=found.median_error_fraction)
    yield metric.REMAINING_ERROR.of(name, value=found.median_remaining_error_fraction)
    yield metric.BIAS.of(name, value=found.bias_fraction)
    yield metric.PINBALL.of(name, value=found.pinball)
    yield metric.SPREAD.of(name, value=spread)
