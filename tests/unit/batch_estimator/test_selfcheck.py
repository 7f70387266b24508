"""Scores of forecasts, and the resulting spread."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from batch_estimator.publish import stretched_s
from batch_estimator.selfcheck import LEAST_BATCHES, TRY_AGAIN_S, SelfCheck, accuracy, adapted_spread, score
from domain.batches import Batch
from domain.errors import UnavailableError
from domain.forecasts import ForecastRecord, KeptForecast, Method, Score
from domain.units import AppId, BatchId, Instant, Seconds, later
from tests.builders import NOW
from tests.conformance.test_forecasts import a_record
from tests.facts import missing
from tests.memory import MemoryStore
from tests.memory.files import MemoryForecasts
from tests.unit.batch_estimator.projects import FailingForecasts, an_estimator, validate_one
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_submitted_batch

BOUND_S = Seconds(1000.0)


def a_kept(batch: int = 1, spread: float = 1.0) -> KeptForecast:
    """Made at 1000: 10 % by 1050, 50 % by 1100, 90 % by 1400."""
    high_s = stretched_s(400.0, 100.0, spread)
    return KeptForecast(
        BatchId(batch), 0.5, Instant(1000.0), Instant(1050.0), Instant(1100.0), Instant(1000.0 + high_s), spread
    )


def a_score(ended_at: float, batch: int = 1, spread: float = 1.0) -> Score:
    return score(a_kept(batch, spread), submitted_at=Instant(0.0), ended_at=Instant(ended_at), delay_bound_s=BOUND_S)


def scores(ends: list[float], spread: float = 1.0) -> list[Score]:
    return [a_score(ended_at, number, spread) for number, ended_at in enumerate(ends)]


def test_a_score_says_below_which_quantiles_the_end_lay() -> None:
    one = a_score(1080.0)

    assert (one.below_q10, one.below_q50, one.below_q90) == (False, True, True)


def test_errors_are_of_the_makespan_and_of_what_was_left() -> None:
    one = a_score(1250.0)

    assert one.error_fraction == pytest.approx(-150.0 / 1250.0)
    assert one.remaining_error_fraction == pytest.approx(-150.0 / 250.0)


def test_a_forecast_made_after_the_end_cannot_be_scored() -> None:
    with pytest.raises(ValueError, match="batch 1 ended at 900"):
        a_score(900.0)


def test_the_needed_spread_would_have_put_q90_on_the_end() -> None:
    one = a_score(1900.0)

    assert stretched_s(400.0, 100.0, one.needed_spread) == pytest.approx(900.0)


def test_accuracy_of_nothing_is_nothing() -> None:
    assert accuracy([]) is None


def test_accuracy_gives_coverage_and_median_errors() -> None:
    found = accuracy(scores([1040.0, 1090.0, 1200.0, 1500.0]))

    assert found is not None
    assert (found.batches, found.coverage_q10, found.coverage_q50, found.coverage_q90) == (4, 0.25, 0.5, 0.75)
    assert found.median_error_fraction == pytest.approx((60 / 1040 + 100 / 1200) / 2)


def test_spread_waits_for_thirty_batches() -> None:
    assert adapted_spread(1.0, scores([2000.0] * 29))[0] == 1.0


def test_spread_is_kept_while_coverage_is_near_nine_tenths() -> None:
    spread, because = adapted_spread(1.0, scores([1200.0] * 27 + [2000.0] * 5))

    assert (spread, missing(because, "84 % of 32 batches", "kept")) == (1.0, [])


def test_spread_grows_until_nine_in_ten_would_have_been_covered() -> None:
    ends = [1200.0] * 20 + [1900.0] * 20
    spread, because = adapted_spread(1.0, scores(ends))

    assert not missing(because, "50 % of 40 batches", f"from 1.00 to {spread:.2f}")
    assert sum(1000.0 + stretched_s(400.0, 100.0, spread) >= ended_at - 1e-6 for ended_at in ends) >= 36


def test_spread_shrinks_when_all_is_covered_by_far() -> None:
    spread, _ = adapted_spread(1.0, scores([1200.0] * 60))

    assert spread == pytest.approx(0.5)


def test_forecasts_made_at_another_spread_ask_for_the_same_one() -> None:
    narrow, wide = adapted_spread(1.0, scores([1900.0] * 40)), adapted_spread(1.4, scores([1900.0] * 40, spread=1.4))

    assert narrow[0] == pytest.approx(wide[0])


def test_only_the_batches_that_ended_last_count() -> None:
    old = scores([1900.0] * 100)
    new = [a_score(2000.0 - number / 100, 1000 + number) for number in range(100)]

    assert "100 batches" in adapted_spread(1.0, [*old, *new])[1]


async def an_ended_batch(store: MemoryStore, clock: HandClock, *, lasts_s: float) -> Batch:
    """Forecast at its middle to end in 1000 s, in 4000 s at the latest; its actual end is after `lasts_s`."""
    batch = await a_submitted_batch(store, jobs=1, created_at=clock.time)
    made: ForecastRecord = a_record(
        batch,
        clock.time,
        q10_at=later(clock.time, 500.0),
        q50_at=later(clock.time, 1000.0),
        q90_at=later(clock.time, 4000.0),
        checkpoint_fraction=0.5,
    )
    await store.forecasts.publish(made)
    clock.time = later(clock.time, lasts_s)
    await validate_one(store, batch.batch_id, clock)
    return batch


async def test_a_batch_that_ends_scores_its_forecasts_once() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await an_ended_batch(store, clock, lasts_s=2000.0)
    self_check = SelfCheck(store.forecasts, clock)

    assert [await self_check.run_once(), await self_check.run_once()] == [1, 0]

    [score] = await store.forecasts.scores(batch.app_id, 9)
    assert (score.below_q50, score.below_q90, score.error_fraction) == (False, True, -0.5)
    accuracy = (await store.forecasts.accuracies())[batch.app_id]
    assert (accuracy.accuracy.batches, accuracy.accuracy.coverage_q90) == (1, 1.0)
    assert (accuracy.spread, missing(accuracy.spread_because, "1 batch", "at least 30")) == (1.0, [])


async def test_an_aborted_batch_is_not_scored_and_not_met_again() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=2)
    await an_estimator(store, clock).run_once()
    await store.submissions.abort_batch(batch.batch_id, now=NOW)

    made = [await SelfCheck(store.forecasts, clock).run_once() for _ in range(2)]

    assert made == [1, 0]
    assert list(await store.forecasts.scores(batch.app_id, 9)) == []
    assert await store.forecasts.accuracies() == {}


async def test_a_fallback_is_not_scored() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=1)
    await store.forecasts.publish(a_record(batch, method=Method.FALLBACK, checkpoint_fraction=0.5))
    clock.time = later(NOW, 3600.0)
    await validate_one(store, batch.batch_id, clock)

    await SelfCheck(store.forecasts, clock).run_once()

    assert list(await store.forecasts.scores(batch.app_id, 9)) == []


async def test_forecasts_that_were_too_narrow_make_the_next_ones_wider() -> None:
    store, clock = MemoryStore(), HandClock()
    self_check = SelfCheck(store.forecasts, clock)
    for _ in range(LEAST_BATCHES):
        batch = await an_ended_batch(store, clock, lasts_s=8000.0)
        await self_check.run_once()

    accuracy = (await store.forecasts.accuracies())[batch.app_id]
    assert accuracy.spread == pytest.approx(1.5)  # ln 8 / ln 4
    assert not missing(accuracy.spread_because, "0 % of 30 batches", "from 1.00 to 1.50")
    following = await a_submitted_batch(store, jobs=1, created_at=clock.time)
    await an_estimator(store, clock).run_once()
    assert (await store.forecasts.last([following.batch_id]))[following.batch_id].spread == accuracy.spread


class UnreadableScores(MemoryForecasts):
    """The scores cannot be read the first time."""

    failures = 1

    async def scores(self, app_id: AppId, limit: int) -> Sequence[Score]:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("no scores")
        return await super().scores(app_id, limit)


async def test_unscorable_batch_is_logged_and_others_continue() -> None:
    store, clock = MemoryStore(), HandClock()
    store.forecasts = UnreadableScores(store.forecasts._registry, store.forecasts._work)
    first, second = [await an_ended_batch(store, clock, lasts_s=2000.0) for _ in range(2)]
    self_check = SelfCheck(store.forecasts, clock)

    with capture_logs() as lines:
        assert [await self_check.run_once(), await self_check.run_once()] == [2, 0]

    assert [(line["event"], line["batch_id"]) for line in lines] == [
        ("batch not scored", first.batch_id),
        ("forecasts scored", second.batch_id),
    ]


@pytest.mark.parametrize("error", [ValueError("no such column"), UnavailableError("its row is locked")])
async def test_unreleased_batch_stops_no_score_or_forecast(error: Exception) -> None:
    store, clock = MemoryStore(), HandClock()
    stuck, scored = [await an_ended_batch(store, clock, lasts_s=2000.0) for _ in range(2)]
    active = await a_submitted_batch(store, jobs=2)
    forecasts = FailingForecasts.of(store, {stuck.batch_id: error})
    forecasts._last, forecasts._scores = store.forecasts._last, store.forecasts._scores
    estimator = an_estimator(store, clock, forecasts=forecasts)

    made = [await estimator.run_once() for _ in range(2)]

    assert [one.ended for one in made] == [2, 0]
    assert [score.batch_id for score in await forecasts.scores(scored.app_id, 9)] == [scored.batch_id]
    assert [done.batch_id for done in made[0].done] == [active.batch_id]
    forecasts.failing.clear()
    clock.time = later(clock.time, TRY_AGAIN_S)
    assert (await estimator.run_once()).ended == 1
