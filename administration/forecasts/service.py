"""Forecasts as JSON objects, for the command line and the API. Reads alone."""

from __future__ import annotations

from typing import Protocol

from administration.forecasts.shown import forecasts_as_json, health_as_json
from administration.ports import Views
from batch_estimator.ports import Forecasts
from domain.clock import Clock
from domain.units import BatchId


class ForecastStore(Protocol):
    @property
    def views(self) -> Views: ...
    @property
    def forecasts(self) -> Forecasts: ...


class ForecastViews:
    """What is known of when batches end."""

    def __init__(self, store: ForecastStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of_batch(self, batch_id: BatchId, *, limit: int) -> dict[str, object]:
        """The last `limit` forecasts of a batch in order of time. Raises NotFoundError."""
        batch = await self._store.views.batch(batch_id)
        records = await self._store.forecasts.series(batch_id, limit=limit)
        accuracy = (await self._store.forecasts.accuracies()).get(batch.app_id)
        app = await self._store.views.app_name(batch.app_id)
        return forecasts_as_json(batch, records, accuracy, app=app, now=self._clock.now())

    async def health(self) -> list[dict[str, object]]:
        """How forecasting goes, app by app."""
        now = self._clock.now()
        return [health_as_json(one, now=now) for one in await self._store.forecasts.health()]
