"""Forecasts batches that are due, one at a time, and publishes changes.

For each batch: 1 claim it, so that no other process forecasts it; 2 read its state; 3 build its snapshot; 4 fit the
model, or use the fallback with a reason; 5 store the forecast and publish C(B). All state is in the database, except
the back-off from failed batches.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import structlog

from batch_estimator.estimate import NoForecastError, estimate
from batch_estimator.filling import snapshot_of
from batch_estimator.ports import Forecasts, ForecastTables, Result, RunFit, Table
from batch_estimator.publish import Forecast, fallback, most_spent_of, recorded
from batch_estimator.selfcheck import TRY_AGAIN_S, BackOff, SelfCheck
from domain.clock import Clock
from domain.errors import NotFoundError, UnavailableError
from domain.forecasting import BatchTables
from domain.forecasts import (
    Change,
    ForecastAge,
    ForecastRecord,
    ForecastStanding,
    ForecastState,
    Method,
    Trigger,
    state_of,
)
from domain.settings import Settings
from domain.units import BatchId, Instant


def trigger_of(age: ForecastAge) -> Trigger:
    """Return why a batch became due."""
    if age.made_at is None:
        return Trigger.SUBMISSION
    return Trigger.VALIDATION if age.dirty else Trigger.TIMER


MOST_AT_ONCE = 100  # batches per step, after which the periodic task checks that it still holds its lock
ANY_TIME = Instant(math.inf)

log = structlog.get_logger("batch_estimator")


async def in_line(fit: Callable[[], Result]) -> Result:
    """Run immediately in this thread, for tests and for the simulator's virtual time."""
    return fit()


async def in_a_thread(fit: Callable[[], Result]) -> Result:
    """Run in a separate thread, so that other tasks on the event loop continue."""
    return await asyncio.to_thread(fit)


class RefitOutcome(StrEnum):
    """The result of forecasting a batch."""

    CHANGED = "changed"  # C(B) changed
    HELD = "held"
    ELSEWHERE = "elsewhere"  # another process forecasts it, or has just done so
    OVER = "over"
    FAILED = "failed"  # nothing could be stored


@dataclass(frozen=True, slots=True)
class RefitReport:
    """The result for one batch. `record` is set if a forecast was stored."""

    batch_id: BatchId
    outcome: RefitOutcome
    record: ForecastRecord | None = None


@dataclass(frozen=True, slots=True)
class RefitPass:
    """The result of one step. `more` means that further batches are already due."""

    done: tuple[RefitReport, ...] = ()
    ended: int = 0  # ended batches that were scored, or found aborted
    more: bool = False

    def count(self, outcome: RefitOutcome) -> int:
        return sum(one.outcome is outcome for one in self.done)

    @property
    def fallbacks(self) -> int:
        return sum(one.record is not None and one.record.method is Method.FALLBACK for one in self.done)


Progress = Callable[[RefitReport, int, int], None]  # the finished batch, the number of finished batches, the total


def in_silence(done: RefitReport, so_far: int, of: int) -> None:
    """Ignore progress."""


class Estimator:
    """Forecasts batches. Several processes can run it safely, because batches are claimed one by one.

    `settings()` returns the current settings; `run_fit` runs the computation.
    """

    def __init__(
        self,
        tables: ForecastTables,
        forecasts: Forecasts,
        settings: Callable[[], Settings],
        clock: Clock,
        *,
        run_fit: RunFit = in_a_thread,
    ) -> None:
        self._tables = tables
        self._forecasts = forecasts
        self._settings = settings
        self._clock = clock
        self._run_fit = run_fit
        self._self_check = SelfCheck(forecasts, clock)
        self._back_off = BackOff(forecasts, clock)

    async def run_once(self) -> RefitPass:
        """Forecast due batches, oldest forecast first; score ended batches."""
        settings, now = self._settings().estimator, self._clock.now()
        ages = await self._forecasts.ages(now=now, settings=settings)
        due = [age for age in ages if age.due_at(now, settings) <= now and not self._back_off.has(age.batch_id)]
        done = [await self._forecast(age.batch_id, trigger_of(age)) for age in due[:MOST_AT_ONCE]]
        return RefitPass(tuple(done), await self._self_check.run_once(), more=len(due) > MOST_AT_ONCE)

    async def run_all(self, report: Progress = in_silence) -> RefitPass:
        """Forecast all active batches now, due or not; score ended batches."""
        ages = await self._forecasts.ages(now=ANY_TIME, settings=self._settings().estimator)
        done = await self._each([age.batch_id for age in ages], report)
        return RefitPass(tuple(done), await self._self_check.run_once())

    async def run_one(self, batch_id: BatchId, report: Progress = in_silence) -> RefitPass:
        """Forecast one batch now. Raises NotFoundError unless it is active."""
        if await self._forecasts.standing(batch_id) is None:
            raise NotFoundError("active batch", batch_id)
        return RefitPass(tuple(await self._each([batch_id], report)))

    async def _each(self, batch_ids: Sequence[BatchId], report: Progress) -> list[RefitReport]:
        done: list[RefitReport] = []
        for batch_id in batch_ids:
            done.append(await self._forecast(batch_id, Trigger.MANUAL))
            report(done[-1], len(done), len(batch_ids))
        return done

    async def _forecast(self, batch_id: BatchId, trigger: Trigger) -> RefitReport:
        """Forecast one batch. A failure does not stop other batches, unless the database is unavailable."""
        try:
            async with self._forecasts.claim(batch_id) as mine:
                done = await self._claimed(batch_id, trigger) if mine else RefitReport(batch_id, RefitOutcome.ELSEWHERE)
        except Exception as error:
            await self._back_off.failed(batch_id, error)
            log.exception("no forecast kept", batch_id=batch_id, try_again_in_s=TRY_AGAIN_S)
            return RefitReport(batch_id, RefitOutcome.FAILED)
        self._back_off.passed(batch_id)
        return done

    async def _claimed(self, batch_id: BatchId, trigger: Trigger) -> RefitReport:
        standing, now = await self._forecasts.standing(batch_id), self._clock.now()
        if standing is None:
            return RefitReport(batch_id, RefitOutcome.OVER)
        settings = self._settings().estimator
        if trigger is not Trigger.MANUAL and standing.age.due_at(now, settings) > now:
            return RefitReport(batch_id, RefitOutcome.ELSEWHERE)
        record = await self._made(standing, trigger, now)
        if record is None:
            return RefitReport(batch_id, RefitOutcome.OVER)
        if not await self._publish(record, standing):
            is_over = await self._forecasts.standing(batch_id) is None
            return RefitReport(batch_id, RefitOutcome.OVER if is_over else RefitOutcome.ELSEWHERE)
        _tell(record)
        return RefitReport(
            batch_id, RefitOutcome.HELD if record.change is Change.HELD else RefitOutcome.CHANGED, record
        )

    async def _publish(self, record: ForecastRecord, standing: ForecastStanding) -> bool:
        shown = state_of(record, standing.delay_bound_s) is ForecastState.SHOWN
        return await self._forecasts.publish(record, told=shown, since=standing.age)

    async def _made(self, standing: ForecastStanding, trigger: Trigger, now: Instant) -> ForecastRecord | None:
        """Return the forecast, or the fallback; None if the batch has just ended."""
        batch = standing.batch
        try:
            tables = await self._tables.of_batch(batch.batch_id, now=now)
            if tables is None:
                return None
            fit = partial(_fitted, tables, now, self._settings(), standing.spread)
            forecast, most_spent = await self._run_fit(fit)
            return recorded(forecast, standing, trigger, most_spent=most_spent)
        except UnavailableError as error:
            await self._back_off.answers()  # only this batch could not be read
            because = str(error)
        except NoForecastError as error:
            because = str(error)
        except Exception as error:
            log.exception("model failed", batch_id=batch.batch_id)
            because = f"{type(error).__name__}: {error}"
        log.warning("forecast falls back", batch_id=batch.batch_id, because=because)
        instead = fallback(
            now=now, delay_bound_s=standing.delay_bound_s, previous_at=batch.completion_at, because=because
        )
        return recorded(instead, standing, trigger, most_spent=0)


def _fitted(tables: BatchTables[Table], now: Instant, settings: Settings, spread: float) -> tuple[Forecast, int]:
    """Return the forecast, and the largest number of surplus instances any job has. Slow for a large batch."""
    snapshot = snapshot_of(tables, now, settings)
    return estimate(snapshot, spread=spread), most_spent_of(snapshot)


def _tell(record: ForecastRecord) -> None:
    """Log a changed C(B) at info level and an unchanged C(B) at debug level."""
    tell = log.debug if record.change is Change.HELD else log.info
    tell(
        "completion " + ("held" if record.change is Change.HELD else "published"),
        batch_id=record.batch_id,
        completion_at=record.completion_at,
        change=record.change.value,
        because=record.because,
        q50_at=record.q50_at,
        q90_at=record.q90_at,
        method=record.method.value,
        trigger=record.trigger.value,
        jobs_over=record.jobs_validated + record.jobs_failed,
        jobs_total=record.jobs_total,
        flag=record.flag,
    )
