"""Returns forecasts, previews and forecast accuracy as JSON, for the command line and the API. Read-only."""

from __future__ import annotations

from collections.abc import Sequence

from administration.show import forecast_as_json, quantiles_as_json, shown
from batch_estimator.preview import BatchPreview
from domain.batches import Batch
from domain.clock import Clock
from domain.forecasting import PlannedBatch
from domain.forecasts import AppAccuracy, ForecastHealth, ForecastRecord, batch_state, risk_of
from domain.units import BatchId, Instant
from muster_client import shapes
from store.postgres import PostgresStore


def forecasts_as_json(
    batch: Batch, records: Sequence[ForecastRecord], accuracy: AppAccuracy | None, *, app: str, now: Instant
) -> shapes.ForecastsShown:
    """Return a batch's progress, published forecast, all forecasts in chronological order, and the app's accuracy."""
    last = records[-1] if records else None
    return shown(
        shapes.ForecastsShown,
        batch,
        batch.counts,
        computed_at=now,
        app=app,
        forecast_state=batch_state(batch, last).value,
        at_risk=risk_as_json(batch, last, now=now),
        forecasts=[forecast_as_json(record) for record in records],
        accuracy=None if accuracy is None else accuracy_as_json(accuracy),
    )


def risk_as_json(batch: Batch, last: ForecastRecord | None, *, now: Instant) -> shapes.RiskShown | None:
    """Return the risk of an active batch's deadline by its latest forecast, or None."""
    risk = risk_of(batch.deadline_at, last, now) if batch.ended_at is None else None
    return None if risk is None else shown(shapes.RiskShown, risk)


def accuracy_as_json(noted: AppAccuracy) -> shapes.AccuracyShown:
    """Return coverage over ended batches, errors as fractions, and the spread of the next forecasts with its reason."""
    return shown(shapes.AccuracyShown, noted, noted.accuracy)


def health_as_json(health: ForecastHealth, *, now: Instant) -> shapes.AppForecastsShown:
    """Return the ages of the latest forecasts of an app's active batches, and the app's accuracy."""
    return shown(
        shapes.AppForecastsShown,
        health,
        app=health.app_name,
        oldest_age_s=None if health.oldest_at is None else now - health.oldest_at,
        latest_age_s=None if health.latest_at is None else now - health.latest_at,
        accuracy=None if health.accuracy is None else accuracy_as_json(health.accuracy),
    )


def preview_as_json(preview: BatchPreview, planned: PlannedBatch) -> shapes.PreviewShown:
    """Return a preview as JSON, with the keys of a forecast."""
    forecast = preview.forecast
    return shown(
        shapes.PreviewShown,
        preview,
        planned,
        forecast,
        computed_at=forecast.now,
        forecast_state=preview.state.value,
        method_because=forecast.because,
        **quantiles_as_json(forecast),
    )


class ForecastViews:
    """Forecasts of batches and apps."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of_batch(self, batch_id: BatchId, *, limit: int) -> shapes.ForecastsShown:
        """Return the last `limit` forecasts of a batch in chronological order. Raises NotFoundError."""
        batch = await self._store.views.batch(batch_id)
        records = await self._store.forecasts.series(batch_id, limit=limit)
        accuracy = (await self._store.forecasts.accuracies()).get(batch.app_id)
        app = await self._store.views.app_name(batch.app_id)
        return forecasts_as_json(batch, records, accuracy, app=app, now=self._clock.now())

    async def health(self) -> list[shapes.AppForecastsShown]:
        """Return the health of each app's forecasts."""
        now = self._clock.now()
        return [health_as_json(health, now=now) for health in await self._store.forecasts.health()]
