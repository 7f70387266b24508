"""Rows of forecasts and their scores to and from values. Pure."""

from __future__ import annotations

import asyncpg
import msgspec

from domain.forecasts import (
    Accuracy,
    AppAccuracy,
    Change,
    ForecastAge,
    ForecastHealth,
    ForecastHold,
    ForecastRecord,
    ForecastStanding,
    KeptForecast,
    Method,
    Score,
    Terms,
    Trigger,
)
from store import rows
from store.rows import encoded

Row = asyncpg.Record


def age(row: Row) -> ForecastAge:
    return ForecastAge(
        row["batch_id"], row["made_at"], row["completion_at"], row["jobs_over_then"] or 0, row["jobs_over"]
    )


def standing(row: Row) -> ForecastStanding:
    batch = rows.batch(row)
    over = batch.counts.jobs_validated + batch.counts.jobs_failed
    made = ForecastAge(batch.batch_id, row["made_at"], batch.completion_at, row["jobs_over_then"] or 0, over)
    spread = 1.0 if row["spread"] is None else row["spread"]
    return ForecastStanding(
        batch, made, row["delay_bound_s"], row["least_spare_instances"], spread, row["checkpoint_fraction"]
    )


def record(row: Row) -> ForecastRecord:
    return ForecastRecord(
        row["batch_id"],
        row["made_at"],
        Trigger(row["trigger"]),
        row["q10_at"],
        row["q50_at"],
        row["q90_at"],
        Method(row["method"]),
        row["method_because"],
        row["spread"],
        row["completion_at"],
        Change(row["change"]),
        row["because"],
        row["jobs_total"],
        row["jobs_validated"],
        row["jobs_failed"],
        checkpoint_fraction=row["checkpoint_fraction"],
        at_risk=row["at_risk"],
        flag=row["flag"],
        terms=None if row["terms"] is None else msgspec.json.decode(row["terms"], type=Terms),
        holds=msgspec.json.decode(row["holds"], type=tuple[ForecastHold, ...]),
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


def kept(row: Row) -> KeptForecast:
    return KeptForecast(
        row["batch_id"],
        row["checkpoint_fraction"],
        row["made_at"],
        row["q10_at"],
        row["q50_at"],
        row["q90_at"],
        row["spread"],
    )


def score(row: Row) -> Score:
    return Score(
        row["batch_id"],
        row["progress_fraction"],
        row["ended_at"],
        row["below_q10"],
        row["below_q50"],
        row["below_q90"],
        row["error_fraction"],
        row["remaining_error_fraction"],
        row["pinball"],
        row["needed_spread"],
    )


def accuracy(row: Row) -> AppAccuracy:
    found = Accuracy(
        row["batches"],
        row["coverage_q10"],
        row["coverage_q50"],
        row["coverage_q90"],
        row["median_error_fraction"],
        row["median_remaining_error_fraction"],
        row["bias_fraction"],
        row["pinball"],
    )
    return AppAccuracy(row["app_id"], row["scored_at"], found, row["spread"], row["spread_because"])


def health(row: Row) -> ForecastHealth:
    return ForecastHealth(
        row["app_id"],
        row["app_name"],
        row["active_batches"],
        row["never_forecast"],
        row["oldest_at"],
        row["latest_at"],
        None if row["scored_at"] is None else accuracy(row),
    )
