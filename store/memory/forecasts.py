"""Stores completion forecasts in memory, publishes them with their batch, and scores them."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from domain.batches import BatchState
from domain.forecasting import is_moving
from domain.forecasts import (
    PART_S,
    THIN_AFTER_S,
    AppAccuracy,
    Change,
    EndedBatch,
    ForecastAge,
    ForecastRecord,
    ForecastStanding,
    KeptForecast,
    Method,
    Score,
    ended_part_s,
)
from domain.settings import EstimatorSettings
from domain.units import AppId, BatchId, Instant, Seconds
from store.memory.registry import Registry
from store.memory.rows import StoredBatch
from store.memory.work import OnTables, Work

NOT_SCORED = frozenset((Method.COMPLETE, Method.FALLBACK))


class MemoryForecasts(OnTables):
    def __init__(self, registry: Registry, work: Work) -> None:
        super().__init__(registry, work)
        self._last: dict[BatchId, tuple[Instant, int]] = {}  # for unscored batches: made_at, finished jobs
        self._claimed: set[BatchId] = set()
        self._scores: dict[AppId, list[Score]] = {}
        self._accuracies: dict[AppId, AppAccuracy] = {}

    async def ages(self, *, now: Instant, settings: EstimatorSettings) -> Sequence[ForecastAge]:
        active = (self._age(batch) for batch in self._work.batches.values() if batch.state is BatchState.ACTIVE)
        due = [
            age
            for age in active
            if age.made_at is None
            or (age.made_at <= now - age.wait_s(settings) and not is_moving(age.moved_at, now))
            or age.due_at(now, settings) <= now
        ]
        return sorted(due, key=lambda age: (-math.inf if age.made_at is None else age.made_at, age.batch_id))

    def _age(self, batch: StoredBatch) -> ForecastAge:
        made_at, over_then = self._last.get(batch.batch_id, (None, 0))
        over = batch.counts.jobs_validated + batch.counts.jobs_failed
        terms = next(
            (one.terms for one in self._work.forecasts.get(batch.batch_id, ()) if one.made_at == made_at), None
        )
        return ForecastAge(
            batch.batch_id,
            made_at,
            batch.completion_at,
            over_then,
            over,
            batch.counts.jobs_total,
            batch.moved_at,
            batch.completion_q50_at,
            is_sent=batch.counts.unsent == 0 and terms is not None and terms.sending_s > 0.0,
        )

    @asynccontextmanager
    async def claim(self, batch_id: BatchId) -> AsyncIterator[bool]:
        if batch_id in self._claimed:
            yield False
            return
        self._claimed.add(batch_id)
        try:
            yield True
        finally:
            self._claimed.discard(batch_id)

    async def standing(self, batch_id: BatchId) -> ForecastStanding | None:
        batch = self._work.batches.get(batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE:
            return None
        accuracy = self._accuracies.get(batch.new.app_id)
        return ForecastStanding(
            batch.as_batch(),
            self._age(batch),
            _delay_bound_s(batch),
            min(one.max_instances - one.quorum for one in batch.classes),
            1.0 if accuracy is None else accuracy.spread,
            max((kept.progress_fraction for kept in self._kept(batch_id)), default=None),
        )

    async def publish(self, record: ForecastRecord, *, told: bool = True, since: ForecastAge | None = None) -> bool:
        batch = self._work.batches.get(record.batch_id)
        if batch is None or batch.state is not BatchState.ACTIVE:
            return False
        if since is not None and self._last.get(batch.batch_id, (None, 0))[0] != since.made_at:
            return False
        batch.completion_at = record.completion_at
        batch.completion_q50_at = record.q50_at if told else None
        batch.completion_q90_at = record.q90_at if told else None
        thin_to = record.made_at - THIN_AFTER_S
        before = self._work.forecasts.get(record.batch_id, [])
        kept = _thinned(before, PART_S, Instant(thin_to - PART_S), Instant(thin_to))
        kept = [one for one in kept if one.made_at != record.made_at]
        self._work.forecasts[record.batch_id] = sorted([*kept, record], key=lambda one: one.made_at)
        self._last[record.batch_id] = (record.made_at, record.jobs_validated + record.jobs_failed)
        return True

    async def ended(self, limit: int) -> Sequence[EndedBatch]:
        batches = (self._work.batches[batch_id] for batch_id in sorted(self._last))
        ended = [batch for batch in batches if batch.ended_at is not None][:limit]
        return [EndedBatch(batch.as_batch(), _delay_bound_s(batch), self._kept(batch.batch_id)) for batch in ended]

    def _kept(self, batch_id: BatchId) -> tuple[KeptForecast, ...]:
        found = [
            KeptForecast(batch_id, one.checkpoint_fraction, one.made_at, one.q10_at, one.q50_at, one.q90_at, one.spread)
            for one in self._work.forecasts.get(batch_id, ())
            if one.checkpoint_fraction is not None and one.method not in NOT_SCORED
        ]
        return tuple(sorted(found, key=lambda one: one.progress_fraction))

    async def scores(self, app_id: AppId, limit: int) -> Sequence[Score]:
        def order(one: Score) -> tuple[float, int, float]:
            return (-one.ended_at, -one.batch_id, one.progress_fraction)

        return sorted(self._scores.get(app_id, ()), key=order)[:limit]

    async def finish(self, ended: EndedBatch, scores: Sequence[Score], accuracy: AppAccuracy | None) -> bool:
        batch = ended.batch
        if self._last.pop(batch.batch_id, None) is None:
            return False
        everything = Instant(-math.inf), Instant(math.inf)
        kept = _thinned(self._work.forecasts.get(batch.batch_id, []), ended_part_s(batch), *everything)
        self._work.forecasts[batch.batch_id] = [replace(one, terms=None, holds=()) for one in kept]
        self._scores.setdefault(batch.app_id, []).extend(scores)
        if accuracy is not None:
            self._accuracies[accuracy.app_id] = accuracy
        return True

    async def accuracies(self) -> Mapping[AppId, AppAccuracy]:
        return dict(self._accuracies)


def _delay_bound_s(batch: StoredBatch) -> Seconds:
    return Seconds(max(one.delay_bound_s for one in batch.classes))


def _thinned(
    forecasts: Sequence[ForecastRecord], part_s: Seconds, from_at: Instant, to_at: Instant
) -> list[ForecastRecord]:
    """Thin out the unchanged forecasts between two instants, keeping the first in each interval."""

    def goes(one: ForecastRecord) -> bool:
        if one.change is not Change.HELD or one.checkpoint_fraction is not None or not from_at <= one.made_at < to_at:
            return False
        begins_at = math.floor(one.made_at / part_s) * part_s
        return any(begins_at <= earlier.made_at < one.made_at for earlier in forecasts)

    return [one for one in forecasts if not goes(one)]
