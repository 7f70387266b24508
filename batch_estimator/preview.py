"""Forecasts a batch before its submission, with the model's state in which no instance has been sent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import structlog

from batch_estimator.estimate import NoForecastError, estimate
from batch_estimator.filling import snapshot_of
from batch_estimator.ports import Forecasts, ForecastTables, RunFit, Table
from batch_estimator.publish import Forecast, fallback, publication
from batch_estimator.service import in_a_thread
from batch_estimator.snapshot import BatchSnapshot
from domain.batches import QoS
from domain.clock import Clock
from domain.errors import NotFoundError
from domain.forecasting import INSTANCE_FIELDS, JOB_FIELDS, AppTables, BatchTables, BatchTerms, PlannedBatch
from domain.forecasts import DeadlineRisk, ForecastState, forecast_state, risk_of
from domain.settings import Settings
from domain.units import BatchId, Instant

PLANNED = BatchId(0)  # no batch has this id

log = structlog.get_logger("batch_estimator")


@dataclass(frozen=True, slots=True)
class BatchPreview:
    """The values that would be published if a batch was submitted now: C(B), and the risk of missing its deadline."""

    forecast: Forecast
    completion_at: Instant
    because: str
    state: ForecastState
    at_risk: DeadlineRisk | None


class Previewer:
    """Previews batches, using stored statistics about the app's hosts. Writes nothing."""

    def __init__(
        self,
        tables: ForecastTables,
        forecasts: Forecasts,
        settings: Settings,
        clock: Clock,
        *,
        run_fit: RunFit = in_a_thread,
    ) -> None:
        self._tables = tables
        self._settings = settings
        self._forecasts = forecasts
        self._clock = clock
        self._run_fit = run_fit

    async def preview(self, planned: PlannedBatch) -> BatchPreview:
        """Return the forecast that the batch would get if submitted now. Raises NotFoundError for an unknown app."""
        now = self._clock.now()
        tables = await self._tables.of_app(planned.app_id, planned.place, now=now)
        if tables is None:
            raise NotFoundError("app", planned.app_id)
        known = (await self._forecasts.accuracies()).get(planned.app_id)
        spread = 1.0 if known is None else known.spread
        forecast = await self._run_fit(_fit(planned, tables, now, spread, self._settings))
        return preview_of(planned, forecast)


def _fit(
    planned: PlannedBatch, tables: AppTables[Table], now: Instant, spread: float, settings: Settings
) -> Callable[[], Forecast]:
    def fit() -> Forecast:
        try:
            return estimate(hypothetical(planned, tables, now, settings), spread=spread)
        except NoForecastError as error:
            log.warning("preview falls back", app_id=planned.app_id, because=str(error))
            return fallback(now=now, delay_bound_s=planned.delay_bound_s, previous_at=None, because=str(error))

    return fit


def preview_of(planned: PlannedBatch, forecast: Forecast) -> BatchPreview:
    """Return what a batch's first forecast would publish. Pure.

    >>> from domain.forecasts import Method
    >>> from domain.units import AppId, Seconds
    >>> short = PlannedBatch(AppId(1), QoS.SHORT_DEADLINE, Seconds(7200.0), {}, deadline_at=Instant(86400.0))
    >>> late = Forecast(Instant(0.0), Instant(0.0), Instant(0.0), Instant(172800.0), Method.WARM, "from the record")
    >>> preview_of(short, late).at_risk.late_by_s
    86400.0
    """
    published = publication(
        forecast,
        previous_at=None,
        long_deadline=planned.qos is QoS.LONG_DEADLINE,
        delay_bound_s=planned.delay_bound_s,
        last_first_dispatch_at=None,
    )
    state = forecast_state(forecast.method, forecast.q90_at - forecast.now, planned.delay_bound_s)
    risk = risk_of(planned.deadline_at, forecast, forecast.now)
    return BatchPreview(forecast, published.completion_at, published.because, state, risk)


def hypothetical(planned: PlannedBatch, tables: AppTables[Table], now: Instant, settings: Settings) -> BatchSnapshot:
    """Return the snapshot of the batch right after submission: all jobs open, nothing sent. Pure."""
    jobs = np.zeros(planned.jobs_total, [(name, kind) for name, kind in JOB_FIELDS])
    jobs["job_id"] = np.arange(1, len(jobs) + 1)
    flop, quorum = zip(*planned.jobs_of, strict=True)
    counts = list(planned.jobs_of.values())
    jobs["fpops_est_flop"], jobs["needed"] = np.repeat(flop, counts), np.repeat(quorum, counts)
    jobs["is_open"] = True
    terms = BatchTerms(
        PLANNED,
        planned.app_id,
        now,
        planned.delay_bound_s,
        planned.qos,
        tables.active_hosts,
        tables.median_flop_per_s,
        tables.active_processors,
        tables.ahead,
        tables.ahead_of_others,
        tables.flop_of_others,
        first_from=tables.first_from,
        withdrawn=tables.withdrawn,
    )
    nothing_sent = np.zeros(0, [(name, kind) for name, kind in INSTANCE_FIELDS])
    of_batch = BatchTables(
        terms, jobs, nothing_sent, tables.havs, tables.others, tables.others_weight, tables.sent, tables.sent_weight
    )
    return snapshot_of(of_batch, now, settings)
