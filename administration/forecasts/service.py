"""Returns forecasts, previews and forecast accuracy as JSON, for the command line and the API. Read-only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from administration.show import forecast_as_json, quantiles_as_json, shown
from administration.stopped import Stopped, stopped_of
from batch_estimator.preview import BatchPreview
from domain.batches import Batch
from domain.clock import Clock
from domain.forecasting import PlannedBatch
from domain.forecasts import (
    AppAccuracy,
    ForecastHealth,
    ForecastRecord,
    ForecastState,
    HoldKind,
    batch_state,
    is_provisional,
    risk_of,
)
from domain.insight import WorkAhead
from domain.units import BatchId, Instant
from muster_client import shapes
from store.postgres import PostgresStore


@dataclass(frozen=True, slots=True)
class BatchEnd:
    """What pages, replies and commands show of a batch's end. An end that `forecast_state` hides is None.

    `provisional`: it rests on few jobs, because the batch was moved or resumed shortly before.
    """

    forecast_state: ForecastState
    completion_q50_at: Instant | None
    completion_q90_at: Instant | None
    at_risk: shapes.RiskShown | None
    provisional: bool = False


MUCH = 0.1  # share of the uncertainty that unsent instances may have if a batch only waits for results


def waits_for_results(last: ForecastRecord | None, left_s: float) -> bool:
    """Return whether a batch waits for results only: its unsent instances have less than MUCH of the uncertainty of its
    latest forecast, and are sent until its deadline. `left_s`: until then.
    """
    if last is None or last.terms is None or not last.holds:
        return False
    if any(one.kind in (HoldKind.NOT_SENT, HoldKind.RETRIES) and one.doubt_fraction >= MUCH for one in last.holds):
        return False
    return not 0.0 < left_s < last.terms.sending_s


def end_of(batch: Batch, last: ForecastRecord | None, stopped: Stopped, now: Instant) -> BatchEnd:
    """Decide what is shown of a batch's end, from its latest forecast and what stops batches. A pause hides the end,
    not the risk.

    `last` is None before the first forecast, also of a reopened batch.
    """
    state = batch_state(batch, last)
    if state is ForecastState.ENDED:
        return BatchEnd(state, batch.completion_q50_at, batch.completion_q90_at, None)
    risk = risk_of(batch.deadline_at, last, now)
    at_risk = None if risk is None else shown(shapes.RiskShown, risk)
    state = stopped.state_of(batch) or state
    if state is not ForecastState.SHOWN:  # a reopened batch has the end that was expected before
        provisional = state is ForecastState.FAR and is_provisional(batch, last)
        return BatchEnd(state, None, None, at_risk, provisional)
    return BatchEnd(state, batch.completion_q50_at, batch.completion_q90_at, at_risk, is_provisional(batch, last))


def forecasts_as_json(
    batch: Batch,
    records: Sequence[ForecastRecord],
    last: ForecastRecord | None,
    accuracy: AppAccuracy | None,
    *,
    app: str,
    now: Instant,
    stopped: Stopped,
) -> shapes.ForecastsShown:
    """Return a batch's progress, published forecast, all forecasts in chronological order, and the app's accuracy.

    `last` is the latest forecast since the batch was submitted or reopened.
    """
    return shown(
        shapes.ForecastsShown,
        end_of(batch, last, stopped, now),
        batch,
        batch.counts,
        computed_at=now,
        app=app,
        forecasts=[forecast_as_json(record) for record in records],
        accuracy=None if accuracy is None else accuracy_as_json(accuracy),
    )


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


def preview_as_json(
    preview: BatchPreview, planned: PlannedBatch, ahead: WorkAhead, start: str, unable: str = ""
) -> shapes.PreviewShown:
    """Return a preview as JSON, with the keys of a forecast.

    `start`, `unable`: when its jobs are sent, and why none of the latest hosts can run them, in words.
    """
    forecast = preview.forecast
    return shown(
        shapes.PreviewShown,
        preview,
        planned,
        forecast,
        computed_at=forecast.now,
        forecast_state=preview.state.value,
        unable=unable,
        method_because=forecast.because,
        unsent_ahead=ahead.unsent,
        batches_ahead=ahead.batches,
        first_ahead=[shown(shapes.BatchAhead, one, unsent=one.counts.unsent) for one in ahead.first],
        start=start,
        **quantiles_as_json(forecast),
    )


class ForecastViews:
    """Forecasts of batches and apps."""

    def __init__(self, store: PostgresStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of_batch(self, batch_id: BatchId, *, limit: int, stopped: Stopped | None = None) -> shapes.ForecastsShown:
        """Return the last `limit` forecasts of a batch in chronological order. Raises NotFoundError."""
        batch = await self._store.views.batch(batch_id)
        records = await self._store.forecasts.series(batch_id, limit=limit)
        last = (await self._store.forecasts.last([batch_id])).get(batch_id)
        accuracy = (await self._store.forecasts.accuracies()).get(batch.app_id)
        app = await self._store.views.app_name(batch.app_id)
        stopped = stopped or await stopped_of(self._store, self._clock)
        return forecasts_as_json(batch, records, last, accuracy, app=app, now=self._clock.now(), stopped=stopped)

    async def health(self) -> list[shapes.AppForecastsShown]:
        """Return the health of each app's forecasts."""
        now = self._clock.now()
        return [health_as_json(health, now=now) for health in await self._store.forecasts.health()]
