"""Tests that forecasts are stored, published, scored at the batch's end, and thinned out, on every store."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.batches import Batch
from domain.forecasting import MOVED_S
from domain.forecasts import (
    Accuracy,
    AppAccuracy,
    Change,
    EndedBatch,
    ForecastHealth,
    ForecastHold,
    ForecastPoint,
    ForecastRecord,
    HoldKind,
    Method,
    Score,
    Terms,
    Trigger,
)
from domain.history import month_of
from domain.settings import EstimatorSettings
from domain.units import DAY_S, HOUR_S, AppId, BatchId, HostId, Instant, Seconds, later
from tests.builders import NOW, a_job_class, an_app
from tests.conformance.test_history import move, settle
from tests.stores import Store
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

TERMS = Terms(3, 1, Seconds(60.0), 0.02, 0.03, 0.5, Seconds(7200.0), -0.25, Seconds(18000.0), Seconds(600.0))
HOLDS = (ForecastHold(HoldKind.OVERDUE, 2, 0.75, (HostId(7),), "2 instances on 1 host are overdue"),)


def a_record(batch: Batch, made_at: float = NOW, **changes: Any) -> ForecastRecord:
    """Return a forecast by the timer that keeps the published completion."""
    values: dict[str, Any] = {
        "batch_id": batch.batch_id,
        "made_at": Instant(made_at),
        "trigger": Trigger.TIMER,
        "q10_at": Instant(made_at + 1000.0),
        "q50_at": Instant(made_at + 2000.0),
        "q90_at": Instant(made_at + 4000.0),
        "method": Method.WARM,
        "method_because": "from the record",
        "spread": 1.0,
        "completion_at": Instant(made_at + 5000.0),
        "change": Change.HELD,
        "because": "near enough",
        "jobs_total": batch.counts.jobs_total,
        "jobs_validated": 0,
        "jobs_failed": 0,
        "terms": TERMS,
        "holds": HOLDS,
    }
    return ForecastRecord(**(values | changes))


def a_score(batch_id: BatchId, ended_at: float, progress: float = 0.5) -> Score:
    return Score(batch_id, progress, Instant(ended_at), False, True, True, -0.125, 0.25, 0.0625, needed_spread=1.5)


def an_accuracy(app_id: AppId, spread: float = 1.5) -> AppAccuracy:
    return AppAccuracy(app_id, NOW, Accuracy(1, 0.0, 1.0, 1.0, 0.125, 0.25, -0.125, 0.0625), spread, "too narrow")


async def made_ats(store: Store, batch: Batch) -> list[float]:
    return [one.made_at - NOW for one in await store.forecasts.series(batch.batch_id, limit=10_000)]


async def validate_one(store: Store, batch: Batch, *, at: Instant = NOW) -> None:
    """Make one more job of the batch valid."""
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent))
    await settle(store, at)


async def the_ended(store: Store) -> EndedBatch:
    [ended] = await store.forecasts.ended(9)
    return ended


async def test_a_forecast_is_kept_as_it_was_made(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    made = a_record(batch, checkpoint_fraction=0.5, flag="far", method=Method.FALLBACK, spread=1.25)

    assert await store.forecasts.publish(made)

    assert list(await store.forecasts.series(batch.batch_id, limit=9)) == [made]
    assert await store.forecasts.last([batch.batch_id, BatchId(99)]) == {batch.batch_id: made}


async def test_a_forecast_may_have_no_terms(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    made = a_record(batch, terms=None, holds=())

    await store.forecasts.publish(made)

    assert list(await store.forecasts.series(batch.batch_id, limit=9)) == [made]


async def test_what_is_published_is_on_the_batch(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.forecasts.publish(a_record(batch))

    shown = await store.views.batch(batch.batch_id)

    assert (shown.completion_q50_at, shown.completion_q90_at) == (NOW + 2000.0, NOW + 4000.0)
    assert shown.completion_at == NOW + 5000.0


async def test_unpublished_quantiles_leave_only_the_completion(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    made = a_record(batch)
    await store.forecasts.publish(made)

    assert await store.forecasts.publish(made, told=False)

    shown = await store.views.batch(batch.batch_id)
    assert (shown.completion_at, shown.completion_q50_at, shown.completion_q90_at) == (made.completion_at, None, None)


async def test_the_feeder_sees_what_is_published(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.forecasts.publish(a_record(batch))

    [ready] = await store.waiting.ready_batches(9)

    assert ready.completion_at == NOW + 5000.0


async def test_nothing_is_published_of_a_batch_that_is_over_or_unknown(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)

    assert not await store.forecasts.publish(a_record(batch))
    assert not await store.forecasts.publish(a_record(replace(batch, batch_id=BatchId(4711))))
    assert (await store.views.batch(batch.batch_id)).completion_at is None
    assert await store.forecasts.standing(batch.batch_id) is None
    assert list(await store.forecasts.series(batch.batch_id, limit=9)) == []


async def test_the_series_is_in_order_of_time_and_ends_with_the_last(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    for minutes in range(5):
        await store.forecasts.publish(a_record(batch, NOW + 60.0 * minutes))

    assert [one.made_at - NOW for one in await store.forecasts.series(batch.batch_id, limit=2)] == [180.0, 240.0]


async def test_curve_has_first_forecast_of_each_span_and_the_last(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=4)
    assert list(await store.forecasts.curve(batch.batch_id, spans=4)) == []
    for minutes in (0, 1, 2, 5, 7, 8):
        await store.forecasts.publish(a_record(batch, NOW + 60.0 * minutes, jobs_validated=minutes // 4, jobs_failed=1))
        last = (await store.forecasts.curve(batch.batch_id, spans=1))[-1]
        assert last.made_at == NOW + 60.0 * minutes

    found = await store.forecasts.curve(batch.batch_id, spans=4)

    assert [(one.made_at - NOW) / 60.0 for one in found] == [0.0, 2.0, 5.0, 7.0, 8.0]
    assert found[-1] == ForecastPoint(later(NOW, 480.0), later(NOW, 2480.0), later(NOW, 4480.0), Method.WARM, 0.75)


async def test_ends_of_jobs_stay_when_they_move_to_the_history(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=4)

    async def ends(most: int) -> list[float]:
        return [(at - NOW) / 60.0 for at in await store.forecasts.job_ends(batch.batch_id, most=most)]

    for minutes in (1.0, 2.0, 7.0, 9.0):
        assert minutes not in await ends(100)  # an open job has no end
        await validate_one(store, batch, at=later(NOW, 60.0 * minutes))
    assert await ends(100) == [1.0, 2.0, 7.0, 9.0]
    await move(store)
    assert await ends(100) == [1.0, 2.0, 7.0, 9.0]
    assert len(await ends(1)) < 4


async def test_the_later_of_two_forecasts_of_one_instant_stays(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.forecasts.publish(a_record(batch, because="first"))
    await store.forecasts.publish(a_record(batch, because="second"))

    [only] = await store.forecasts.series(batch.batch_id, limit=9)

    assert only.because == "second"


async def test_ages_tell_who_was_never_forecast_and_who_not_lately(store: Store) -> None:
    never, lately, long_ago = [await a_submitted_batch(store, jobs=2) for _ in range(3)]
    aborted = await a_submitted_batch(store, jobs=2)
    await store.submissions.abort_batch(aborted.batch_id, now=NOW)
    await store.forecasts.publish(a_record(lately, NOW + 100.0))
    await store.forecasts.publish(a_record(long_ago, NOW))

    ages = await store.forecasts.ages(now=later(NOW, 159.0), settings=EstimatorSettings())

    assert [(age.batch_id, age.made_at, age.completion_at) for age in ages] == [
        (never.batch_id, None, None),
        (long_ago.batch_id, NOW, NOW + 5000.0),
    ]


@pytest.mark.parametrize("remaining_s", [0.0, 5000.0, 20_000.0, 200_000.0])
async def test_only_batches_whose_pause_or_timer_is_over_are_looked_at(store: Store, remaining_s: float) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.forecasts.publish(a_record(batch, completion_at=later(NOW, remaining_s)))
    waits_s = min(900.0, max(60.0, remaining_s / 100))

    early, due = [
        await store.forecasts.ages(now=later(NOW, after_s), settings=EstimatorSettings())
        for after_s in (waits_s - 1.0, waits_s)
    ]

    assert (len(early), len(due)) == (0, 1)
    assert due[0].wait_s(EstimatorSettings()) == waits_s


async def due_after(store: Store, after_s: float) -> list[BatchId]:
    now, settings = later(NOW, after_s), EstimatorSettings()
    return [
        age.batch_id
        for age in await store.forecasts.ages(now=now, settings=settings)
        if age.due_at(now, settings) <= now
    ]


async def test_one_percent_of_the_jobs_is_due_after_the_pause(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=150)
    for _ in range(5):
        await validate_one(store, batch)
    await store.forecasts.publish(a_record(batch, jobs_validated=5, completion_at=later(NOW, DAY_S)))

    await validate_one(store, batch)
    assert (await due_after(store, 800.0), await due_after(store, 864.0)) == ([], [batch.batch_id])
    await validate_one(store, batch)
    assert (await due_after(store, 59.0), await due_after(store, 60.0)) == ([], [batch.batch_id])


async def test_batch_is_due_when_its_expected_end_passes(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    ends = {"q10_at": later(NOW, 100.0), "q50_at": later(NOW, 200.0), "completion_at": later(NOW, DAY_S)}
    await store.forecasts.publish(a_record(batch, **ends))

    found = [await store.forecasts.ages(now=later(NOW, at_s), settings=EstimatorSettings()) for at_s in (199.0, 200.0)]
    assert [[age.q50_at for age in ages] for ages in found] == [[], [NOW + 200.0]]
    standing = await store.forecasts.standing(batch.batch_id)
    assert standing is not None and standing.age.q50_at == NOW + 200.0


async def test_batch_is_due_once_when_its_last_instance_was_sent(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2)
    await store.forecasts.publish(a_record(batch, completion_at=later(NOW, DAY_S)))
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store))
    assert await due_after(store, 899.0) == []

    await a_sent_instance(store, batch.batch_id, await a_registered_host(store))

    assert (await due_after(store, 59.0), await due_after(store, 60.0)) == ([], [batch.batch_id])
    standing = await store.forecasts.standing(batch.batch_id)
    assert standing is not None and standing.age.is_sent
    sent = replace(TERMS, sending_s=Seconds(0.0))
    for terms in (sent, None):  # of the model, and without it
        await store.forecasts.publish(a_record(batch, completion_at=later(NOW, DAY_S), terms=terms))
        assert await due_after(store, 899.0) == []


async def test_batch_is_due_after_the_pause_when_jobs_are_retried(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2)
    await store.forecasts.publish(a_record(batch, jobs_failed=1, completion_at=later(NOW, DAY_S)))

    assert (await due_after(store, 59.0), await due_after(store, 60.0)) == ([], [batch.batch_id])


async def test_latest_forecast_tells_the_last_move(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    made = a_record(batch)
    await store.forecasts.publish(made)
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, 60.0))

    assert await store.forecasts.last([batch.batch_id]) == {batch.batch_id: replace(made, moved_at=later(NOW, 60.0))}
    assert list(await store.forecasts.series(batch.batch_id, limit=9)) == [made]


async def test_moved_batch_is_due_once_it_has_its_new_place(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.forecasts.publish(a_record(batch, completion_at=later(NOW, DAY_S)))

    assert await due_after(store, 800.0) == []
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, 60.0))
    assert (await due_after(store, 59.0 + MOVED_S), await due_after(store, 60.0 + MOVED_S)) == ([], [batch.batch_id])
    standing = await store.forecasts.standing(batch.batch_id)
    assert standing is not None and standing.age.moved_at == NOW + 60.0
    await store.forecasts.publish(a_record(batch, NOW + 60.0 + MOVED_S, completion_at=later(NOW, DAY_S)))
    assert await due_after(store, 800.0) == []
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, 200.0))
    await validate_one(store, batch)
    assert (await due_after(store, 199.0 + MOVED_S), await due_after(store, 200.0 + MOVED_S)) == ([], [batch.batch_id])
    await store.ordering_rules.set_moved(batch.batch_id, later(NOW, 2000.0))
    assert (await due_after(store, 989.0), await due_after(store, 990.0)) == ([], [batch.batch_id])


async def test_of_two_forecasts_from_one_standing_first_stays(store: Store) -> None:
    """A claim is lost with its connection, while its former holder continues."""
    batch = await a_submitted_batch(store, jobs=3)
    standing = await store.forecasts.standing(batch.batch_id)
    assert standing is not None
    first, second = [a_record(batch, NOW + after_s, checkpoint_fraction=0.5) for after_s in (1.0, 2.0)]

    assert await store.forecasts.publish(first, since=standing.age)
    assert not await store.forecasts.publish(second, since=standing.age)

    assert await made_ats(store, batch) == [1.0]
    again = await store.forecasts.standing(batch.batch_id)
    assert again is not None and await store.forecasts.publish(second, since=again.age)


async def test_standing_has_last_checkpoint_of_model_forecasts(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.forecasts.publish(a_record(batch, checkpoint_fraction=0.1))
    await store.forecasts.publish(a_record(batch, NOW + 1.0, checkpoint_fraction=0.5, method=Method.FALLBACK))

    standing = await store.forecasts.standing(batch.batch_id)

    assert standing is not None and standing.checkpoint_fraction == 0.1


async def test_a_batch_is_dirty_when_jobs_are_over_since(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await store.forecasts.publish(a_record(batch))
    assert [age.dirty for age in await store.forecasts.ages(now=later(NOW, 60.0), settings=EstimatorSettings())] == [
        False
    ]

    await validate_one(store, batch)

    [age] = await store.forecasts.ages(now=later(NOW, 60.0), settings=EstimatorSettings())
    assert (age.jobs_over_then, age.jobs_over, age.dirty) == (0, 1, True)
    await store.forecasts.publish(a_record(batch, NOW + 1.0, jobs_validated=1))
    [age] = await store.forecasts.ages(now=later(NOW, 61.0), settings=EstimatorSettings())
    assert (age.jobs_over_then, age.dirty) == (1, False)


async def test_standing_is_batch_with_bounds_and_app_spread(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2, job_class=a_job_class(max_instances=7))
    standing = await store.forecasts.standing(batch.batch_id)

    assert standing is not None
    assert standing.batch == await store.views.batch(batch.batch_id)
    assert (standing.delay_bound_s, standing.least_spare_instances, standing.spread) == (7 * DAY_S, 6, 1.0)
    assert (standing.age.made_at, standing.age.dirty) == (None, False)
    assert await store.forecasts.standing(BatchId(4711)) is None


async def test_claimed_batch_is_exclusive_until_released(store: Store) -> None:
    batch_id = BatchId(5)
    async with (
        store.forecasts.claim(batch_id) as mine,
        store.forecasts.claim(batch_id) as second,
        store.forecasts.claim(BatchId(6)) as other,
    ):
        assert (mine, second, other) == (True, False, True)
    async with store.forecasts.claim(batch_id) as again:
        assert again


async def test_active_batch_keeps_a_day_of_forecasts_and_few_older(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2)
    for hour in range(49):
        change = Change.MOVED if hour == 3 else Change.HELD
        checkpoint = 0.1 if hour == 8 else None
        made = a_record(batch, NOW + hour * HOUR_S, change=change, checkpoint_fraction=checkpoint)
        await store.forecasts.publish(made)

    hours = [made_at / HOUR_S for made_at in await made_ats(store, batch)]

    parts = {(NOW + hour * HOUR_S) // (6 * HOUR_S) for hour in range(24)}
    first_of_parts = {
        min(hour for hour in range(24) if (NOW + hour * HOUR_S) // (6 * HOUR_S) == part) for part in parts
    }
    assert hours == sorted({*first_of_parts, 3, 8, *range(24, 49)})


async def test_an_ended_batch_is_found_once_with_its_checkpoints(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.forecasts.publish(a_record(batch, checkpoint_fraction=0.1, method=Method.FALLBACK))
    await store.forecasts.publish(a_record(batch, NOW + 1.0, checkpoint_fraction=0.5, spread=1.5))
    await store.forecasts.publish(a_record(batch, NOW + 2.0))
    assert list(await store.forecasts.ended(9)) == []

    await validate_one(store, batch, at=later(NOW, 3600.0))
    ended = await the_ended(store)

    assert (ended.batch.batch_id, ended.batch.ended_at, ended.delay_bound_s) == (
        batch.batch_id,
        NOW + 3600.0,
        7 * DAY_S,
    )
    [kept] = ended.kept
    assert (kept.progress_fraction, kept.made_at, kept.q90_at, kept.spread) == (0.5, NOW + 1.0, NOW + 4001.0, 1.5)
    assert await store.forecasts.finish(ended, [], None)
    assert await store.forecasts.last([ended.batch.batch_id]) == {}  # also if it is reopened
    assert list(await store.forecasts.ended(9)) == []
    assert not await store.forecasts.finish(ended, [], None)


async def test_scores_and_accuracy_are_kept_with_the_end(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.forecasts.publish(a_record(batch))
    await validate_one(store, batch)
    scores = [a_score(batch.batch_id, NOW, progress) for progress in (0.1, 0.5)]

    await store.forecasts.finish(await the_ended(store), scores, an_accuracy(batch.app_id))

    assert list(await store.forecasts.scores(batch.app_id, 9)) == scores
    assert await store.forecasts.accuracies() == {batch.app_id: an_accuracy(batch.app_id)}
    another = await a_submitted_batch(store, jobs=1)
    standing = await store.forecasts.standing(another.batch_id)
    assert standing is not None and standing.spread == 1.5


async def test_the_scores_of_the_batches_that_ended_last_come_first(store: Store) -> None:
    found = []
    for number in range(3):
        batch = await a_submitted_batch(store, jobs=1)
        await store.forecasts.publish(a_record(batch))
        await validate_one(store, batch, at=later(NOW, 100.0 * number))
        ended = await the_ended(store)
        assert ended.batch.ended_at is not None
        await store.forecasts.finish(ended, [a_score(batch.batch_id, ended.batch.ended_at)], None)
        found.append(batch.batch_id)

    assert [one.batch_id for one in await store.forecasts.scores(batch.app_id, 2)] == found[:0:-1]
    assert await store.forecasts.accuracies() == {}


async def test_ended_batch_keeps_thinned_forecasts_without_terms(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    begin = (NOW // (6 * HOUR_S) + 1) * 6 * HOUR_S
    for minutes in range(0, 60, 10):
        change = Change.PASSED if minutes == 30 else Change.HELD
        checkpoint = 0.9 if minutes == 40 else None
        await store.forecasts.publish(
            a_record(batch, begin + 60.0 * minutes, change=change, checkpoint_fraction=checkpoint)
        )
    await validate_one(store, batch, at=Instant(begin + HOUR_S))

    await store.forecasts.finish(await the_ended(store), [], None)

    left = await store.forecasts.series(batch.batch_id, limit=99)
    assert [(one.made_at - begin) / 60.0 for one in left] == [0.0, 30.0, 40.0]
    assert {(one.terms, one.holds) for one in left} == {(None, ())}


async def test_purge_deletes_forecasts_of_month_and_keeps_scores(store: Store) -> None:
    batch, active = [await a_submitted_batch(store, jobs=1) for _ in range(2)]
    for one in (batch, active):
        await store.forecasts.publish(a_record(one))
    await validate_one(store, batch)
    ended = await the_ended(store)
    await store.forecasts.finish(ended, [a_score(batch.batch_id, NOW)], None)

    assert (await move(store)).jobs == 1
    await store.history.purge_month(month_of(NOW), now=later(NOW, DAY_S))

    assert await made_ats(store, batch) == []
    assert await made_ats(store, active) == [0.0]
    assert len(await store.forecasts.scores(batch.app_id, 9)) == 1


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_ended_batches_than_asked_for(store: Store, limit: int) -> None:
    for _ in range(3):
        batch = await a_submitted_batch(store, jobs=1)
        await store.forecasts.publish(a_record(batch))
        await store.submissions.abort_batch(batch.batch_id, now=NOW)

    assert len(await store.forecasts.ended(limit)) == limit


async def test_health_counts_active_batches_by_forecast_age(store: Store) -> None:
    never, early, late, ended = [await a_submitted_batch(store, jobs=1) for _ in range(4)]
    for batch, made_at in ((early, NOW), (early, NOW + 10.0), (late, NOW + 70.0), (ended, NOW + 99.0)):
        await store.forecasts.publish(a_record(batch, made_at))
    await store.submissions.abort_batch(ended.batch_id, now=later(NOW, 100.0))
    await store.applications.add_app(an_app(name="another"))

    first, other = await store.forecasts.health()

    assert first == ForecastHealth(never.app_id, "pi", 3, 1, later(NOW, 10.0), later(NOW, 70.0), None)
    assert (other.app_name, other.active_batches, other.never_forecast) == ("another", 0, 0)
    assert (other.oldest_at, other.latest_at, other.accuracy) == (None, None, None)


async def test_health_says_how_good_an_apps_forecasts_were(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.forecasts.publish(a_record(batch))
    await validate_one(store, batch)
    await store.forecasts.finish(await the_ended(store), [a_score(batch.batch_id, NOW)], an_accuracy(batch.app_id))

    [found] = await store.forecasts.health()

    assert found == ForecastHealth(batch.app_id, "pi", 0, 0, None, None, an_accuracy(batch.app_id))
