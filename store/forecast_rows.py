"""Rows of forecasts and their scores to and from values. Pure."""

from __future__ import annotations

import asyncpg
import msgspec

from domain.forecasts import (
    Accuracy,
    AppAccuracy,
    ForecastAge,
    ForecastHealth,
    ForecastHold,
    ForecastRecord,
    ForecastStanding,
    KeptForecast,
    Score,
    Terms,
)
from store import rows
from store.rows import encoded, mapper

Row = asyncpg.Record

age = mapper(ForecastAge, jobs_over_then=lambda row: row["jobs_over_then"] or 0)
record = mapper(
    ForecastRecord,
    terms=lambda row: None if row["terms"] is None else msgspec.json.decode(row["terms"], type=Terms),
    holds=lambda row: msgspec.json.decode(row["holds"], type=tuple[ForecastHold, ...]),
)
kept = mapper(KeptForecast, progress_fraction="checkpoint_fraction")
score = mapper(Score)
accuracy = mapper(AppAccuracy, accuracy=mapper(Accuracy))
health = mapper(ForecastHealth, accuracy=lambda row: None if row["scored_at"] is None else accuracy(row))


def standing(row: Row) -> ForecastStanding:
    batch = rows.batch(row)
    over = batch.counts.jobs_validated + batch.counts.jobs_failed
    made = ForecastAge(batch.batch_id, row["made_at"], batch.completion_at, row["jobs_over_then"] or 0, over)
    spread = 1.0 if row["spread"] is None else row["spread"]
    return ForecastStanding(
        batch, made, row["delay_bound_s"], row["least_spare_instances"], spread, row["checkpoint_fraction"]
    )


def record_columns(made: ForecastRecord) -> tuple[object, ...]:
    """The arguments of sql/forecasts.sql (insert_forecast)."""
    return (
        made.batch_id,
        made.made_at,
        made.trigger,
        made.q10_at,
        made.q50_at,
        made.q90_at,
        made.method,
        made.method_because,
        made.spread,
        made.completion_at,
        made.change,
        made.because,
        made.jobs_total,
        made.jobs_validated,
        made.jobs_failed,
        made.checkpoint_fraction,
        made.at_risk,
        made.flag,
        None if made.terms is None else encoded(made.terms),
        encoded(made.holds),
    )
