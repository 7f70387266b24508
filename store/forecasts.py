"""Stores completion forecasts in PostgreSQL, publishes them with their batch, and scores them when it ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from domain.forecasting import MOVED_S
from domain.forecasts import (
    COLLECTED_FRACTION,
    FIRST_JOBS,
    PART_S,
    THIN_AFTER_S,
    Accuracy,
    AppAccuracy,
    EndedBatch,
    ForecastAge,
    ForecastHealth,
    ForecastHold,
    ForecastPoint,
    ForecastRecord,
    ForecastStanding,
    KeptForecast,
    Score,
    Terms,
    ended_part_s,
)
from domain.settings import EstimatorSettings
from domain.units import AppId, BatchId, Instant
from store import rows
from store.locks import BatchClaims
from store.pool import Connection, Database, OnDatabase
from store.queries import load
from store.rows import columns_of, encoded, mapper, values_of

LOCK_WAIT_MS = "2000"  # maximum wait for a batch's row, which may be locked by another writer


class PostgresForecasts(OnDatabase):
    """Implements batch_estimator's Forecasts. Its owner must close it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._claims = BatchClaims(database.dsn)

    async def ages(self, *, now: Instant, settings: EstimatorSettings) -> Sequence[ForecastAge]:
        waits = (settings.pause_s, settings.timer_s, COLLECTED_FRACTION, FIRST_JOBS, MOVED_S)
        return [_age(row) for row in await self._database.fetch("forecast_ages", now, *waits)]

    def claim(self, batch_id: BatchId) -> AbstractAsyncContextManager[bool]:
        return self._claims.claim(batch_id)

    async def standing(self, batch_id: BatchId) -> ForecastStanding | None:
        row = await self._database.fetch_one("forecast_standing", batch_id)
        return None if row is None else _standing(row)

    async def publish(self, record: ForecastRecord, *, told: bool = True, since: ForecastAge | None = None) -> bool:
        quantiles = (record.q50_at, record.q90_at) if told else (None, None)
        published = (record.batch_id, record.completion_at, *quantiles)
        thin_to = record.made_at - THIN_AFTER_S

        async def write(connection: Connection) -> bool:
            await connection.execute(load("limit_lock_wait"), LOCK_WAIT_MS)
            await connection.execute(
                load("lock_batches"), [record.batch_id]
            )  # the lock first, so that other writers' changes are visible
            if since is not None:
                last_at = await connection.fetchval(load("forecast_made_at"), record.batch_id)
                if last_at != since.made_at:
                    return False
            if await connection.fetchval(load("publish_completion"), *published) is None:
                return False
            thinned = (record.batch_id, record.made_at, thin_to - PART_S, thin_to, PART_S)
            await connection.execute(load("thin_forecasts"), *thinned)
            await connection.execute(load("insert_forecast"), *_record_values(record))
            return True

        return await self._database.in_transaction(write)

    async def ended(self, limit: int) -> Sequence[EndedBatch]:
        found = await self._database.fetch("ended_forecasts", limit)
        kept: dict[BatchId, list[KeptForecast]] = defaultdict(list)
        if found:
            for row in await self._database.fetch("checkpoint_forecasts", [row["batch_id"] for row in found]):
                kept[row["batch_id"]].append(_kept(row))
        return [EndedBatch(rows.batch(row), row["delay_bound_s"], tuple(kept[row["batch_id"]])) for row in found]

    async def scores(self, app_id: AppId, limit: int) -> Sequence[Score]:
        return [_score(row) for row in await self._database.fetch("forecast_scores", app_id, limit)]

    async def finish(self, ended: EndedBatch, scores: Sequence[Score], accuracy: AppAccuracy | None) -> bool:
        async def write(connection: Connection) -> bool:
            await connection.execute(load("limit_lock_wait"), LOCK_WAIT_MS)
            if await connection.fetchval(load("forget_forecast_age"), ended.batch.batch_id) is None:
                return False
            await _finish(connection, ended, scores)
            if accuracy is not None:
                await _note_accuracy(connection, accuracy)
            return True

        return await self._database.in_transaction(write)

    async def accuracies(self) -> Mapping[AppId, AppAccuracy]:
        found = [_accuracy(row) for row in await self._database.fetch("app_forecasts")]
        return {one.app_id: one for one in found}

    async def health(self) -> Sequence[ForecastHealth]:
        return [_health(row) for row in await self._database.fetch("forecast_health")]

    async def last(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, ForecastRecord]:
        found = await self._database.fetch("last_forecasts", list(dict.fromkeys(batch_ids)))
        return {row["batch_id"]: _record(row, row["moved_at"]) for row in found}

    async def series(self, batch_id: BatchId, *, limit: int) -> Sequence[ForecastRecord]:
        found = await self._database.fetch("list_forecasts", batch_id, limit)
        return [_record(row) for row in reversed(found)]

    async def curve(self, batch_id: BatchId, *, spans: int) -> Sequence[ForecastPoint]:
        return [_point(row) for row in await self._database.fetch("forecast_curve", batch_id, spans)]

    async def job_ends(self, batch_id: BatchId, *, most: int) -> Sequence[Instant]:
        """Return the ends of an ended batch's jobs in order: of about `most` evenly spaced jobs if it is large."""
        return [row["ended_at"] for row in await self._database.fetch("job_ends", batch_id, most)]

    async def close(self) -> None:
        """Release all claims."""
        await self._claims.close()


async def _finish(connection: Connection, ended: EndedBatch, scores: Sequence[Score]) -> None:
    batch = ended.batch
    await connection.execute(load("thin_ended_forecasts"), batch.batch_id, ended_part_s(batch))
    await connection.execute(load("drop_forecast_terms"), batch.batch_id)
    await connection.execute(
        load("insert_forecast_scores"),
        batch.batch_id,
        batch.app_id,
        batch.ended_at,
        *_score_columns(scores),
    )


async def _note_accuracy(connection: Connection, noted: AppAccuracy) -> None:
    scored = (noted.app_id, noted.scored_at, *_accuracy_values(noted.accuracy), noted.spread, noted.spread_because)
    await connection.execute(load("upsert_app_forecast"), *scored)


# ---- rows

_score_columns = columns_of(
    "progress_fraction below_q10 below_q50 below_q90 error_fraction remaining_error_fraction pinball needed_spread"
)
_accuracy_values = values_of(
    "batches coverage_q10 coverage_q50 coverage_q90 median_error_fraction median_remaining_error_fraction bias_fraction"
    " pinball"
)
_record_values = values_of(
    "batch_id made_at trigger q10_at q50_at q90_at method method_because spread completion_at change because jobs_total"
    " jobs_validated jobs_failed checkpoint_fraction flag terms holds",
    terms=lambda made: None if made.terms is None else encoded(made.terms),
    holds=lambda made: encoded(made.holds),
)
_age = mapper(ForecastAge, jobs_over_then=lambda row: row["jobs_over_then"] or 0)
_record = mapper(
    ForecastRecord,
    left_out=["moved_at"],
    terms=lambda row: None if row["terms"] is None else msgspec.json.decode(row["terms"], type=Terms),
    holds=lambda row: msgspec.json.decode(row["holds"], type=tuple[ForecastHold, ...]),
)
_kept = mapper(KeptForecast, progress_fraction="checkpoint_fraction")
_score = mapper(Score)
_point = mapper(ForecastPoint)
_accuracy = mapper(AppAccuracy, accuracy=mapper(Accuracy))
_health = mapper(ForecastHealth, accuracy=lambda row: None if row["scored_at"] is None else _accuracy(row))


def _standing(row: rows.Row) -> ForecastStanding:
    batch = rows.batch(row)
    over = batch.counts.jobs_validated + batch.counts.jobs_failed
    made = ForecastAge(
        batch.batch_id,
        row["made_at"],
        batch.completion_at,
        row["jobs_over_then"] or 0,
        over,
        batch.counts.jobs_total,
        row["moved_at"],
        batch.completion_q50_at,
        row["is_sent"],
    )
    spread = 1.0 if row["spread"] is None else row["spread"]
    return ForecastStanding(
        batch, made, row["delay_bound_s"], row["least_spare_instances"], spread, row["checkpoint_fraction"]
    )
