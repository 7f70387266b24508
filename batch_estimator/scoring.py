"""When a batch ends its forecasts are scored, and its app's next ones made wider or narrower if they must be."""

from __future__ import annotations

import structlog

from batch_estimator.aside import TRY_AGAIN_S, Aside
from batch_estimator.ports import Forecasts
from batch_estimator.selfcheck import CHECKPOINTS, MOST_BATCHES, accuracy, adapted_spread, scores_of
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.forecasts import AppAccuracy, EndedBatch, Score

LIMIT = 100  # batches in one step

log = structlog.get_logger("batch_estimator")


class SelfCheck:
    """Scores what ended since it was forecast; which it finds again when it is broken off."""

    def __init__(self, forecasts: Forecasts, clock: Clock) -> None:
        self._forecasts = forecasts
        self._clock = clock
        self._aside = Aside(forecasts, clock)

    async def run_once(self) -> int:
        """Score up to 100 batches; returns how many ended."""
        found = await self._forecasts.ended(LIMIT + len(self._aside))
        ended = [one for one in found if not self._aside.has(one.batch.batch_id)][:LIMIT]
        for one in ended:
            try:
                await self._finished(one)
            except Exception as error:
                await self._aside.failed(one.batch.batch_id, error)
                log.exception("batch not let go of", batch_id=one.batch.batch_id, try_again_in_s=TRY_AGAIN_S)
            else:
                self._aside.passed(one.batch.batch_id)
        return len(ended)

    async def _finished(self, one: EndedBatch) -> None:
        """Scored, or at least not met again."""
        try:
            await self._finish(one)
        except UnavailableError:
            raise
        except Exception:
            log.exception("batch not scored", batch_id=one.batch.batch_id)
            await self._forecasts.finish(one, [], None)

    async def _finish(self, ended: EndedBatch) -> None:
        scores = scores_of(ended)
        noted = await self._noted(ended, scores) if scores else None
        if await self._forecasts.finish(ended, scores, noted) and noted is not None:
            log.info(
                "forecasts scored",
                batch_id=ended.batch.batch_id,
                errors={one.progress_fraction: round(one.error_fraction, 3) for one in scores},
                app_id=noted.app_id,
                coverage_q90=round(noted.accuracy.coverage_q90, 3),
                spread=noted.spread,
                because=noted.spread_because,
            )

    async def _noted(self, ended: EndedBatch, scores: list[Score]) -> AppAccuracy | None:
        """The app's accuracy with these scores, and the spread that follows from them."""
        app_id = ended.batch.app_id
        before = await self._forecasts.scores(app_id, MOST_BATCHES * len(CHECKPOINTS))
        known = (await self._forecasts.accuracies()).get(app_id)
        together = [*scores, *before]
        found = accuracy(together)
        if found is None:
            return None
        spread, because = adapted_spread(1.0 if known is None else known.spread, together)
        return AppAccuracy(app_id, self._clock.now(), found, spread, because)
