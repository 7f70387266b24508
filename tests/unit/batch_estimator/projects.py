"""The estimator on a project in memory, with a clock set by hand and stores that can fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from batch_estimator.ports import Forecasts, ForecastTables, Table
from batch_estimator.service import Estimator, in_line
from domain.errors import UnavailableError
from domain.forecasting import BatchTables
from domain.forecasts import AppAccuracy, EndedBatch, ForecastAge, ForecastRecord, Score
from domain.settings import EstimatorSettings, Settings
from domain.units import AppId, BatchId, Instant
from tests.conformance.test_history import settle
from tests.memory import MemoryStore
from tests.memory.files import MemoryForecasts
from tests.stores import Store
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_report, a_sent_instance, report

SETTINGS = EstimatorSettings()


class FailingTables:
    """The tables of a store that raise for some batches."""

    def __init__(self, store: Store, failing: dict[BatchId, Exception]) -> None:
        self._inner = store.forecasting
        self.failing = failing
        self.of_app = store.forecasting.of_app

    async def of_batch(self, batch_id: BatchId, *, now: Instant) -> BatchTables[Table] | None:
        if batch_id in self.failing:
            raise self.failing[batch_id]
        return await self._inner.of_batch(batch_id, now=now)


class FailingForecasts(MemoryForecasts):
    """Forecasts of a memory store; some batches cannot be stored, and then the store may be unavailable."""

    failing: dict[BatchId, Exception]
    away = False

    @classmethod
    def of(cls, store: MemoryStore, failing: dict[BatchId, Exception]) -> FailingForecasts:
        made = cls(store.forecasts._registry, store.forecasts._work)
        made.failing = failing
        return made

    async def publish(self, record: ForecastRecord, *, told: bool = True, since: ForecastAge | None = None) -> bool:
        if record.batch_id in self.failing:
            raise self.failing[record.batch_id]
        return await super().publish(record, told=told, since=since)

    async def finish(self, ended: EndedBatch, scores: Sequence[Score], accuracy: AppAccuracy | None) -> bool:
        if ended.batch.batch_id in self.failing:
            raise self.failing[ended.batch.batch_id]
        return await super().finish(ended, scores, accuracy)

    async def accuracies(self) -> Mapping[AppId, AppAccuracy]:
        if self.away:
            raise UnavailableError("away")
        return await super().accuracies()


def an_estimator(
    store: Store,
    clock: HandClock,
    *,
    tables: ForecastTables | None = None,
    forecasts: Forecasts | None = None,
    settings: EstimatorSettings = SETTINGS,
) -> Estimator:
    return Estimator(
        tables or store.forecasting,
        forecasts or store.forecasts,
        lambda: Settings(estimator=settings),
        clock,
        run_fit=in_line,
    )


async def validate_one(store: Store, batch_id: BatchId, clock: HandClock) -> None:
    """A new host completes one more job of the batch, valid now."""
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch_id, host, sent_at=Instant(clock.time - 3600.0))
    await report(store, host, a_report(sent))
    await settle(store, clock.time)
