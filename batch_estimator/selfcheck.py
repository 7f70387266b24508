"""Scores forecasts when their batches end, and widens or narrows the app's later forecasts. docs/formulas.md.

Forecasts at 10, 50 and 90 % of a batch's jobs are kept; an app's scores determine whether `spread` must change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import structlog

from batch_estimator.ports import Forecasts
from domain.batches import BatchState
from domain.clock import Clock
from domain.errors import UnavailableError
from domain.forecasts import Accuracy, AppAccuracy, EndedBatch, KeptForecast, Score
from domain.formatting import percent
from domain.units import BatchId, Instant, Seconds

CHECKPOINTS = (0.1, 0.5, 0.9)
LEAST_BATCHES = 30
MOST_BATCHES = 100  # older batches describe hosts that may have left
LEAST_COVERAGE, MOST_COVERAGE = 0.75, 0.98
WANTED_COVERAGE = 0.9
LEAST_SPREAD, MOST_SPREAD = 0.5, 4.0
LEAST_STEP = 1e-3
ROUNDING = 1e-9  # 0.1 * 30 is slightly above 3


def checkpoint_passed(before: float | None, over: int, *, jobs_total: int) -> float | None:
    """Return the last checkpoint reached by the share of ended jobs; None if `before` had already reached it.

    >>> checkpoint_passed(0.1, 5, jobs_total=10), checkpoint_passed(0.5, 6, jobs_total=10)
    (0.5, None)
    """
    reached = [share for share in CHECKPOINTS if math.ceil(share * jobs_total - ROUNDING) <= over]
    return reached[-1] if reached and reached[-1] > (before or 0.0) else None


def scores_of(ended: EndedBatch) -> list[Score]:
    """Return the scores of a batch's forecasts; aborted batches and forecasts made after the end have none."""
    batch = ended.batch
    if batch.state is not BatchState.COMPLETE or batch.ended_at is None:
        return []
    return [
        score(kept, submitted_at=batch.created_at, ended_at=batch.ended_at, delay_bound_s=ended.delay_bound_s)
        for kept in ended.kept
        if kept.made_at < batch.ended_at
    ]


def score(kept: KeptForecast, *, submitted_at: Instant, ended_at: Instant, delay_bound_s: Seconds) -> Score:
    """Score a kept forecast against the actual end. Raises ValueError if the batch ended before the forecast.

    pinball(q, a) = a (T - q) if T >= q else (1 - a) (q - T).

    >>> kept = KeptForecast(1, 0.5, Instant(100.0), Instant(150.0), Instant(200.0), Instant(400.0))
    >>> got = score(kept, submitted_at=Instant(0.0), ended_at=Instant(250.0), delay_bound_s=Seconds(100.0))
    >>> got.below_q50, got.below_q90, got.error_fraction, round(got.pinball, 3), round(got.needed_spread, 3)
    (False, True, -0.2, 0.167, 0.369)
    """
    if ended_at <= kept.made_at:
        raise ValueError(f"batch {kept.batch_id} ended at {ended_at}, before its forecast of {kept.made_at}")
    loss = sum(
        part * (ended_at - at) if ended_at >= at else (1.0 - part) * (at - ended_at)
        for part, at in ((0.1, kept.q10_at), (0.5, kept.q50_at), (0.9, kept.q90_at))
    )
    late_s = kept.q50_at - ended_at
    return Score(
        kept.batch_id,
        kept.progress_fraction,
        ended_at,
        ended_at <= kept.q10_at,
        ended_at <= kept.q50_at,
        ended_at <= kept.q90_at,
        late_s / max(ended_at - submitted_at, 1.0),
        late_s / (ended_at - kept.made_at),
        loss / 3.0 / delay_bound_s,
        _needed_spread(kept, ended_at),
    )


def accuracy(scores: Sequence[Score]) -> Accuracy | None:
    """Return the accuracy over an app's last 100 scored batches; None if there are none."""
    scores = _recent(scores)
    if not scores:
        return None
    errors = np.array([each.error_fraction for each in scores])
    remaining = np.array([each.remaining_error_fraction for each in scores])
    return Accuracy(
        len({each.batch_id for each in scores}),
        float(np.mean([each.below_q10 for each in scores])),
        float(np.mean([each.below_q50 for each in scores])),
        float(np.mean([each.below_q90 for each in scores])),
        float(np.median(np.abs(errors))),
        float(np.median(np.abs(remaining))),
        float(np.median(errors)),
        float(np.mean([each.pinball for each in scores])),
    )


def adapted_spread(spread: float, scores: Sequence[Score]) -> tuple[float, str]:
    """Return the new spread and the reason; it changes only when coverage has drifted.

    If, over the last 30 to 100 batches, less than 75 % or more than 98 % of the ends were before q90, it becomes the
    spread that would have covered 90 %, clamped to [0.5, 4].

    >>> adapted_spread(1.0, [])
    (1.0, '0 batches scored, at least 30 are needed')
    """
    recent = _recent(scores)
    batches = len({each.batch_id for each in recent})
    if batches < LEAST_BATCHES:
        return spread, f"{batches} {'batch' if batches == 1 else 'batches'} scored, at least {LEAST_BATCHES} are needed"
    coverage = float(np.mean([each.below_q90 for each in recent]))
    seen = f"{percent(coverage)} of {batches} batches ended by q90"
    if LEAST_COVERAGE <= coverage <= MOST_COVERAGE:
        return spread, f"{seen}: kept"
    needed = float(np.quantile([each.needed_spread for each in recent], WANTED_COVERAGE))
    new = float(np.clip(needed, LEAST_SPREAD, MOST_SPREAD))
    if abs(new - spread) < LEAST_STEP:
        return spread, f"{seen}: unchanged, at its limit"
    return new, f"{seen}: from {spread:.2f} to {new:.2f}"


def _needed_spread(kept: KeptForecast, ended_at: Instant) -> float:
    """Solve (q50 - made) ((q90 - made) / (q50 - made))^s = end - made for s, with the quantiles at spread 1."""
    median_s = max(kept.q50_at - kept.made_at, 1.0)
    high_s = max(kept.q90_at - kept.made_at, median_s * (1.0 + LEAST_STEP))
    at_one = np.log(high_s / median_s) / kept.spread
    return float(np.log((ended_at - kept.made_at) / median_s) / at_one)


def _recent(scores: Sequence[Score]) -> list[Score]:
    """Return the scores of the batches that ended most recently."""
    ends = {each.batch_id: each.ended_at for each in scores}
    last = set(sorted(ends, key=lambda batch_id: (-ends[batch_id], batch_id))[:MOST_BATCHES])
    return [each for each in scores if each.batch_id in last]


LIMIT = 100  # batches per step
TRY_AGAIN_S = Seconds(900.0)

log = structlog.get_logger("batch_estimator")


class BackOff:
    """Skips a failed batch for 15 minutes, because otherwise it would come first in every pass and delay the rest."""

    def __init__(self, forecasts: Forecasts, clock: Clock) -> None:
        self._forecasts = forecasts
        self._clock = clock
        self._until: dict[BatchId, float] = {}  # monotonic time
        self._refused: BatchId | None = None  # the last batch the database failed for, if none succeeded since

    def __len__(self) -> int:
        return len(self._until)

    def has(self, batch_id: BatchId) -> bool:
        return self._until.get(batch_id, -math.inf) > self._clock.monotonic()

    def passed(self, batch_id: BatchId) -> None:
        """Record that the batch was forecast successfully."""
        self._until.pop(batch_id, None)
        self._refused = None

    async def failed(self, batch_id: BatchId, error: Exception) -> None:
        """Back off from the batch. Distinguishes a failing batch from a failing database.

        Raises `error` if the database fails for two different batches in a row, or does not answer a trivial query.
        """
        self._until[batch_id] = self._clock.monotonic() + TRY_AGAIN_S
        if not isinstance(error, UnavailableError):
            return
        before, self._refused = self._refused, batch_id
        if before not in (None, batch_id):
            self._refused = None
            raise error
        await self.answers()

    async def answers(self) -> None:
        """Check that the database responds. Raises UnavailableError if it does not, because every batch would fail."""
        await self._forecasts.accuracies()


class SelfCheck:
    """Scores batches that ended since their last forecast. Interrupted work is repeated."""

    def __init__(self, forecasts: Forecasts, clock: Clock) -> None:
        self._forecasts = forecasts
        self._clock = clock
        self._back_off = BackOff(forecasts, clock)

    async def run_once(self) -> int:
        """Score up to 100 ended batches and return their number."""
        found = await self._forecasts.ended(LIMIT + len(self._back_off))
        ended = [one for one in found if not self._back_off.has(one.batch.batch_id)][:LIMIT]
        for one in ended:
            try:
                await self._finished(one)
            except Exception as error:
                await self._back_off.failed(one.batch.batch_id, error)
                log.exception("batch not released", batch_id=one.batch.batch_id, try_again_in_s=TRY_AGAIN_S)
            else:
                self._back_off.passed(one.batch.batch_id)
        return len(ended)

    async def _finished(self, one: EndedBatch) -> None:
        """Score the batch, or back off from it on failure."""
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
        """Return the app's accuracy with these scores included, and the resulting spread."""
        app_id = ended.batch.app_id
        before = await self._forecasts.scores(app_id, MOST_BATCHES * len(CHECKPOINTS))
        known = (await self._forecasts.accuracies()).get(app_id)
        together = [*scores, *before]
        found = accuracy(together)
        if found is None:
            return None
        spread, because = adapted_spread(1.0 if known is None else known.spread, together)
        return AppAccuracy(app_id, self._clock.now(), found, spread, because)
