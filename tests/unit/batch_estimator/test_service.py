"""Batches are forecast when due, and one failing batch does not stop the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from batch_estimator.estimate import NoForecastError
from batch_estimator.selfcheck import TRY_AGAIN_S
from batch_estimator.service import MOST_AT_ONCE, RefitOutcome, RefitPass, RefitReport, trigger_of
from domain.batches import QoS, complete_at
from domain.errors import NotFoundError, UnavailableError
from domain.forecasting import MOVED_S, NEVER_MOVED, counted_since
from domain.forecasts import Change, ForecastAge, ForecastRecord, ForecastState, Method, Trigger, batch_state
from domain.settings import EstimatorSettings
from domain.units import DAY_S, HOUR_S, MINUTE_S, BatchId, Instant, Seconds, later
from tests.builders import NOW
from tests.facts import missing
from tests.memory import MemoryStore
from tests.stores import Store
from tests.unit.batch_estimator.projects import FailingForecasts, FailingTables, an_estimator, validate_one
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_sent_instance, a_submitted_batch


async def the_last(store: Store, batch_id: BatchId) -> ForecastRecord:
    return (await store.forecasts.last([batch_id]))[batch_id]


async def hosts_that_ask(store: Store) -> None:
    """Hosts that request work; without them a batch has no finite forecast."""
    for _ in range(30):
        await a_registered_host(store, last_rpc_at=NOW)


def outcomes(made: RefitPass) -> list[tuple[BatchId, RefitOutcome]]:
    return [(one.batch_id, one.outcome) for one in made.done]


async def test_a_new_batch_is_forecast_at_once_and_then_left_alone() -> None:
    store, clock = MemoryStore(), HandClock()
    await hosts_that_ask(store)
    batch = await a_submitted_batch(store, jobs=5)
    estimator = an_estimator(store, clock)

    first, second = await estimator.run_once(), await estimator.run_once()

    assert outcomes(first) == [(batch.batch_id, RefitOutcome.CHANGED)]
    assert second == RefitPass()
    made = await the_last(store, batch.batch_id)
    assert (made.trigger, made.method, made.change) == (Trigger.SUBMISSION, Method.APRIORI, Change.FIRST)
    shown = await store.views.batch(batch.batch_id)
    assert shown.completion_at == made.completion_at == made.q90_at > NOW
    assert (shown.completion_q50_at, shown.completion_q90_at) == (None, None)
    assert batch_state(shown, made) is ForecastState.FIRST_RESULTS


async def test_first_results_bring_the_first_shown_forecast() -> None:
    store, clock = MemoryStore(), HandClock()
    await hosts_that_ask(store)
    batch = await a_submitted_batch(store, jobs=5)
    estimator = an_estimator(store, clock)
    await estimator.run_once()

    for _ in range(3):
        await validate_one(store, batch.batch_id, clock)
    clock.time = later(NOW, 900.0)
    await estimator.run_once()

    made, shown = await the_last(store, batch.batch_id), await store.views.batch(batch.batch_id)
    assert made.method is Method.COLD
    assert (shown.completion_q50_at, shown.completion_q90_at) == (made.q50_at, made.q90_at)
    assert batch_state(shown, made) is ForecastState.SHOWN


async def test_forecast_falls_soon_after_a_move() -> None:
    """Ten of 300 jobs are sent in two hours; then the batch is moved to the first place, and one is sent per second."""
    store, clock = MemoryStore(), HandClock()
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(30)]
    batch = await a_submitted_batch(store, jobs=300)
    estimator = an_estimator(store, clock)
    for number in range(10):
        clock.time = later(clock.time, 720.0)
        await a_sent_instance(store, batch.batch_id, hosts[number], sent_at=clock.time)
        await estimator.run_once()
    before, effective_at = await the_last(store, batch.batch_id), later(clock.time, MINUTE_S)
    await store.ordering_rules.set_moved(batch.batch_id, effective_at)

    made = []
    for second in range(150):
        clock.time = later(clock.time, 1.0)
        if second >= 60:
            await a_sent_instance(store, batch.batch_id, hosts[second % 30], sent_at=clock.time)
        made += [one.record for one in (await estimator.run_once()).done if one.record is not None]

    after = made[0]
    assert after.made_at == effective_at + MOVED_S
    assert before.terms is not None and after.terms is not None
    assert after.terms.sending_s < 600.0 < HOUR_S < before.terms.sending_s
    assert after.q50_at - after.made_at < before.q50_at - before.made_at
    assert len(made) == 1


async def test_repeated_moves_keep_forecasts_and_their_rate() -> None:
    """A script moves a batch every minute. One of its 900 jobs is sent every five seconds, after ten in two hours."""
    store, clock = MemoryStore(), HandClock()
    hosts = [await a_registered_host(store, last_rpc_at=NOW) for _ in range(30)]
    batch = await a_submitted_batch(store, jobs=900)
    estimator, sent = an_estimator(store, clock), 10
    for number in range(sent):
        clock.time = later(clock.time, 720.0)
        await a_sent_instance(store, batch.batch_id, hosts[number], sent_at=clock.time)
    await estimator.run_once()
    first, made = await the_last(store, batch.batch_id), []

    for step in range(500):
        if step % 12 == 0:
            await store.ordering_rules.set_moved(batch.batch_id, later(clock.time, MINUTE_S))
        clock.time = later(clock.time, 5.0)
        await a_sent_instance(store, batch.batch_id, hosts[step % 30], sent_at=clock.time)
        sent += 1
        made += [(one.record, 900 - sent) for one in (await estimator.run_once()).done if one.record is not None]

    timer_s = EstimatorSettings().timer_s
    assert [record.made_at - first.made_at for record, _ in made] == [timer_s, 2 * timer_s]
    rates = [unsent / record.terms.sending_s for record, unsent in made if record.terms is not None]
    assert rates == pytest.approx([0.2, 0.2], rel=0.25)


def test_unmoved_batch_counts_all_dispatches() -> None:
    for after_s in (0.0, MINUTE_S, 30 * DAY_S):
        assert counted_since(None, later(NOW, after_s), submitted_at=NOW) == NEVER_MOVED


async def test_a_validation_counts_after_its_pause_and_not_before() -> None:
    store, clock = MemoryStore(), HandClock()
    await hosts_that_ask(store)
    batch = await a_submitted_batch(store, jobs=250)
    estimator = an_estimator(store, clock, settings=EstimatorSettings(timer_s=Seconds(30 * DAY_S)))
    for _ in range(2):
        await validate_one(store, batch.batch_id, clock)
    await estimator.run_once()
    made = await the_last(store, batch.batch_id)
    pause_s = 0.01 * (made.completion_at - NOW)
    assert 60.0 < pause_s < 30 * DAY_S

    clock.time = later(NOW, pause_s - 1.0)
    await validate_one(store, batch.batch_id, clock)
    too_soon = await estimator.run_once()
    clock.time = later(NOW, pause_s)
    in_time = await estimator.run_once()

    assert (len(too_soon.done), len(in_time.done)) == (0, 1)
    assert (await the_last(store, batch.batch_id)).trigger is Trigger.VALIDATION
    assert (await the_last(store, batch.batch_id)).jobs_validated == 3


async def test_without_a_validation_the_timer_makes_the_next() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=5)
    estimator = an_estimator(store, clock)
    await estimator.run_once()

    clock.time = later(NOW, 899.0)
    assert (await estimator.run_once()).done == ()
    clock.time = later(NOW, 900.0)
    [done] = (await estimator.run_once()).done

    assert (done.outcome, done.record) == (RefitOutcome.HELD, await the_last(store, batch.batch_id))
    assert done.record is not None and done.record.trigger is Trigger.TIMER


async def test_a_new_process_goes_on_where_the_last_one_was() -> None:
    store, clock = MemoryStore(), HandClock()
    await a_submitted_batch(store, jobs=5)
    await an_estimator(store, clock).run_once()

    clock.time = later(NOW, 10.0)
    assert (await an_estimator(store, clock).run_once()).done == ()


async def test_the_longest_ago_comes_first_and_a_step_has_an_end() -> None:
    store, clock = MemoryStore(), HandClock()
    batches = [await a_submitted_batch(store, jobs=1) for _ in range(MOST_AT_ONCE + 1)]
    estimator = an_estimator(store, clock)

    first = await estimator.run_once()
    second = await estimator.run_once()

    assert (len(first.done), first.more) == (MOST_AT_ONCE, True)
    assert ([one.batch_id for one in second.done], second.more) == ([batches[-1].batch_id], False)


@pytest.mark.parametrize(
    ("error", "because"),
    [
        (NoForecastError("no finite quantile"), "no finite quantile"),
        (ZeroDivisionError("by nothing"), "ZeroDivisionError: by nothing"),
    ],
)
async def test_model_failure_falls_back_and_others_continue(error: Exception, because: str) -> None:
    store, clock = MemoryStore(), HandClock()
    bad, good = [await a_submitted_batch(store, jobs=2) for _ in range(2)]
    estimator = an_estimator(store, clock, tables=FailingTables(store, {bad.batch_id: error}))

    with capture_logs() as lines:
        made = await estimator.run_once()

    assert outcomes(made) == [(bad.batch_id, RefitOutcome.CHANGED), (good.batch_id, RefitOutcome.CHANGED)]
    assert made.fallbacks == 1
    record = await the_last(store, bad.batch_id)
    assert (record.method, record.method_because) == (Method.FALLBACK, because)
    assert record.q10_at == record.q50_at == record.q90_at == record.completion_at == NOW + 7 * DAY_S
    assert record.flag == f"no forecast: {because}"
    [told] = [line for line in lines if line["event"] == "forecast falls back"]
    assert (told["batch_id"], told["because"]) == (bad.batch_id, because)


async def test_a_fallback_is_never_earlier_than_what_was_published() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=2)
    failing: dict[BatchId, Exception] = {}
    estimator = an_estimator(store, clock, tables=FailingTables(store, failing))
    await estimator.run_once()
    published = await the_last(store, batch.batch_id)
    assert published.completion_at > later(NOW, 7 * DAY_S + 900.0)

    failing[batch.batch_id] = NoForecastError("no")
    clock.time = later(NOW, 900.0)
    await estimator.run_once()

    instead = await the_last(store, batch.batch_id)
    assert (instead.q90_at, instead.completion_at) == (published.completion_at, published.completion_at)


async def test_fallback_withdraws_published_quantiles() -> None:
    store, clock = MemoryStore(), HandClock()
    await hosts_that_ask(store)
    batch = await a_submitted_batch(store, jobs=5)
    for _ in range(3):
        await validate_one(store, batch.batch_id, clock)
    failing: dict[BatchId, Exception] = {}
    estimator = an_estimator(store, clock, tables=FailingTables(store, failing))
    await estimator.run_once()
    before = await store.views.batch(batch.batch_id)

    failing[batch.batch_id] = NoForecastError("no")
    clock.time = later(NOW, 900.0)
    await estimator.run_once()

    after = await store.views.batch(batch.batch_id)
    assert before.completion_q50_at is not None and before.completion_q90_at is not None
    assert before.completion_at is not None and after.completion_at == later(NOW, 900.0 + 7 * DAY_S)
    assert (after.completion_q50_at, after.completion_q90_at) == (None, None)


async def test_unstored_forecast_is_retried_and_others_continue() -> None:
    store, clock = MemoryStore(), HandClock()
    bad, good = [await a_submitted_batch(store, jobs=2) for _ in range(2)]
    forecasts = FailingForecasts.of(store, {bad.batch_id: RuntimeError("no room")})
    estimator = an_estimator(store, clock, forecasts=forecasts)

    first, second = await estimator.run_once(), await estimator.run_once()
    clock.time = later(NOW, TRY_AGAIN_S)
    forecasts.failing.clear()
    third = await estimator.run_once()

    assert outcomes(first) == [(bad.batch_id, RefitOutcome.FAILED), (good.batch_id, RefitOutcome.CHANGED)]
    assert outcomes(second) == []
    assert (bad.batch_id, RefitOutcome.CHANGED) in outcomes(third)


async def test_a_database_that_is_away_ends_the_pass() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=2)
    away = FailingTables(store, {batch.batch_id: UnavailableError("away")})
    forecasts = FailingForecasts.of(store, {})
    forecasts.away = True

    with pytest.raises(UnavailableError, match="away"):
        await an_estimator(store, clock, tables=away, forecasts=forecasts).run_once()

    assert (await an_estimator(store, clock).run_once()).count(RefitOutcome.CHANGED) == 1


async def test_slow_read_falls_back_and_others_continue() -> None:
    store, clock = MemoryStore(), HandClock()
    bad, good = [await a_submitted_batch(store, jobs=2) for _ in range(2)]
    failing: dict[BatchId, Exception] = {bad.batch_id: UnavailableError("the database is unavailable: COPY took 60 s")}
    estimator = an_estimator(store, clock, tables=FailingTables(store, failing))

    made = await estimator.run_once()

    assert (made.fallbacks, made.count(RefitOutcome.CHANGED)) == (1, 2)
    assert (await the_last(store, bad.batch_id)).method_because == "the database is unavailable: COPY took 60 s"
    assert (await the_last(store, good.batch_id)).method is Method.APRIORI


async def test_a_batch_the_database_does_not_serve_is_laid_aside() -> None:
    store, clock = MemoryStore(), HandClock()
    bad, good = [await a_submitted_batch(store, jobs=2) for _ in range(2)]
    forecasts = FailingForecasts.of(store, {bad.batch_id: UnavailableError("its row is locked")})
    estimator = an_estimator(store, clock, forecasts=forecasts)

    first, second = await estimator.run_once(), await estimator.run_once()

    assert outcomes(first) == [(bad.batch_id, RefitOutcome.FAILED), (good.batch_id, RefitOutcome.CHANGED)]
    assert outcomes(second) == []


async def test_two_database_failures_end_the_pass() -> None:
    store, clock = MemoryStore(), HandClock()
    one, other, good = [await a_submitted_batch(store, jobs=2) for _ in range(3)]
    full = UnavailableError("the disk is full")
    forecasts = FailingForecasts.of(store, {one.batch_id: full, other.batch_id: full})
    estimator = an_estimator(store, clock, forecasts=forecasts)

    with pytest.raises(UnavailableError, match="the disk is full"):
        await estimator.run_once()
    following = await estimator.run_once()

    assert outcomes(following) == [(good.batch_id, RefitOutcome.CHANGED)]


async def test_a_batch_another_process_has_is_left_to_it() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=2)

    async with store.forecasts.claim(batch.batch_id):
        made = await an_estimator(store, clock).run_once()

    assert outcomes(made) == [(batch.batch_id, RefitOutcome.ELSEWHERE)]
    assert await store.forecasts.last([batch.batch_id]) == {}


async def test_batch_just_forecast_elsewhere_is_skipped() -> None:
    store, clock = MemoryStore(), HandClock()
    first, second = [await a_submitted_batch(store, jobs=2) for _ in range(2)]
    other = an_estimator(store, clock)

    class Overtaken(FailingTables):
        """While the first batch is read, another process does all of them."""

        async def of_batch(self, batch_id: BatchId, *, now: Instant):  # type: ignore[no-untyped-def]
            await other.run_one(second.batch_id)
            return await super().of_batch(batch_id, now=now)

    made = await an_estimator(store, clock, tables=Overtaken(store, {})).run_once()

    assert outcomes(made) == [(first.batch_id, RefitOutcome.CHANGED), (second.batch_id, RefitOutcome.ELSEWHERE)]
    assert len(await store.forecasts.series(second.batch_id, limit=9)) == 1


async def test_a_batch_that_ends_meanwhile_is_over() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=2)

    class Ending(FailingTables):
        async def of_batch(self, batch_id: BatchId, *, now: Instant):  # type: ignore[no-untyped-def]
            found = await super().of_batch(batch_id, now=now)
            await store.submissions.abort_batch(batch_id, now=now)
            return found

    made = await an_estimator(store, clock, tables=Ending(store, {})).run_once()

    assert outcomes(made) == [(batch.batch_id, RefitOutcome.OVER)]
    assert await store.forecasts.last([batch.batch_id]) == {}


async def test_every_active_batch_can_be_forecast_on_demand() -> None:
    store, clock = MemoryStore(), HandClock()
    batches = [await a_submitted_batch(store, jobs=2) for _ in range(3)]
    estimator = an_estimator(store, clock)
    await estimator.run_once()
    told: list[tuple[BatchId, int, int]] = []

    def note(done: RefitReport, so_far: int, of: int) -> None:
        told.append((done.batch_id, so_far, of))

    clock.time = later(NOW, 1.0)
    made = await estimator.run_all(note)

    assert told == [(batch.batch_id, number + 1, 3) for number, batch in enumerate(batches)]
    assert {one.record.trigger for one in made.done if one.record is not None} == {Trigger.MANUAL}
    assert made.count(RefitOutcome.HELD) == 3


async def test_only_an_active_batch_can_be_forecast_on_demand() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=2)
    estimator = an_estimator(store, clock)

    assert outcomes(await estimator.run_one(batch.batch_id)) == [(batch.batch_id, RefitOutcome.CHANGED)]
    with pytest.raises(NotFoundError, match="no active batch 4711"):
        await estimator.run_one(BatchId(4711))


async def test_change_is_logged_with_reason_and_kept_value_at_debug() -> None:
    store, clock = MemoryStore(), HandClock()
    await hosts_that_ask(store)
    batch = await a_submitted_batch(store, jobs=2)
    estimator = an_estimator(store, clock)

    with capture_logs() as lines:
        await estimator.run_one(batch.batch_id)
        await estimator.run_one(batch.batch_id)

    assert [(line["event"], line["log_level"]) for line in lines] == [
        ("completion published", "info"),
        ("completion held", "debug"),
    ]
    assert not missing(lines[0]["because"], "first estimate:", "no valid result yet")


async def test_published_value_never_bounds_future_instances() -> None:
    """Otherwise each C(B) would delay the next one, without end."""
    store, clock = MemoryStore(), HandClock()
    for _ in range(3):
        await a_registered_host(store, last_rpc_at=NOW)
    batch = await a_submitted_batch(store, jobs=200, qos=QoS.LONG_DEADLINE)
    estimator = an_estimator(store, clock)

    await estimator.run_one(batch.batch_id)
    first = await the_last(store, batch.batch_id)
    for _ in range(5):
        await estimator.run_one(batch.batch_id)
        again = await the_last(store, batch.batch_id)

    assert again.change is Change.HELD
    assert (again.q50_at, again.q90_at) == (first.q50_at, first.q90_at)
    standing = await store.forecasts.standing(batch.batch_id)
    assert standing is not None and standing.delay_bound_s == 7 * DAY_S < first.q90_at - NOW


@pytest.mark.parametrize(
    ("qos", "asked"),
    [
        (QoS.THROUGHPUT, None),
        (QoS.SHORT_DEADLINE, "deadline"),
        (QoS.LONG_DEADLINE, "published"),
        (QoS.AFAP, None),  # until 5 jobs are validated
    ],
)
async def test_each_kind_of_batch_is_scheduled_by_its_promise(qos: QoS, asked: str | None) -> None:
    store, clock = MemoryStore(), HandClock()
    await hosts_that_ask(store)
    deadline_at = later(NOW, 60.0) if qos is QoS.SHORT_DEADLINE else None
    batch = await a_submitted_batch(store, jobs=100, qos=qos, deadline_at=deadline_at)
    await an_estimator(store, clock).run_once()
    made = await the_last(store, batch.batch_id)

    [ready] = await store.waiting.ready_batches(9)

    expected = {"deadline": deadline_at, "published": made.completion_at, None: None}[asked]
    assert complete_at(ready, Seconds(7 * DAY_S)) == complete_at(ready, None) == expected
    assert (ready.completion_q50_at, ready.completion_q90_at) == (None, None)


async def test_afap_batch_has_an_estimate_after_five_valid_jobs() -> None:
    store, clock = MemoryStore(), HandClock()
    batch = await a_submitted_batch(store, jobs=20, qos=QoS.AFAP)
    estimator = an_estimator(store, clock)
    for _ in range(4):
        await validate_one(store, batch.batch_id, clock)
    await estimator.run_one(batch.batch_id)
    [before] = await store.waiting.ready_batches(9)

    await validate_one(store, batch.batch_id, clock)
    [after] = await store.waiting.ready_batches(9)

    assert (complete_at(before, None), before.completion_at) == (None, after.completion_at)
    assert complete_at(after, None) == after.completion_at == (await the_last(store, batch.batch_id)).completion_at


SETTINGS = EstimatorSettings()


def an_age(*, left_s: float = HOUR_S, dirty: bool) -> ForecastAge:
    return ForecastAge(BatchId(1), NOW, Instant(NOW + left_s), 5, 6 if dirty else 5, 1000)


def due_s(*, left_s: float, dirty: bool, settings: EstimatorSettings = SETTINGS) -> float:
    return an_age(left_s=left_s, dirty=dirty).due_at(NOW, settings) - NOW


def test_a_batch_never_estimated_is_due_at_once() -> None:
    assert ForecastAge(BatchId(1), None, None, 0, 0, 1).due_at(NOW, SETTINGS) == NOW


def test_each_doubling_of_the_first_results_is_due_at_once() -> None:
    def wait_s(before: int, after: int) -> float:
        return ForecastAge(BatchId(1), NOW, Instant(NOW + HOUR_S), before, after, 1000).due_at(NOW, SETTINGS) - NOW

    assert [wait_s(*ended) for ended in ((0, 1), (1, 2), (5, 9), (5, 10), (63, 126), (64, 128))] == [
        0.0,
        0.0,
        MINUTE_S,
        0.0,
        0.0,
        MINUTE_S,
    ]


def test_a_validation_counts_after_a_minute() -> None:
    assert due_s(left_s=HOUR_S, dirty=True) == MINUTE_S


def test_long_batch_waits_for_one_percent_validations() -> None:
    assert due_s(left_s=10 * HOUR_S, dirty=True) == 360.0


def test_one_percent_of_the_jobs_is_forecast_after_a_minute() -> None:
    def wait_s(ended: int, jobs: int) -> float:
        return (
            ForecastAge(BatchId(1), NOW, Instant(NOW + 30 * HOUR_S), 100, 100 + ended, jobs).due_at(NOW, SETTINGS) - NOW
        )

    assert [wait_s(*one) for one in ((89, 9000), (90, 9000), (1, 50))] == [15 * MINUTE_S, MINUTE_S, MINUTE_S]


def test_moved_batch_is_forecast_once_at_its_new_place() -> None:
    moved_at = later(NOW, 60.0)
    before = ForecastAge(BatchId(1), NOW, Instant(NOW + 30 * HOUR_S), 5, 5, 9000, moved_at)

    assert before.due_at(NOW, SETTINGS) == moved_at + MOVED_S
    assert replace(before, jobs_over=100).due_at(NOW, SETTINGS) == moved_at + MOVED_S
    assert replace(before, moved_at=later(NOW, 900.0)).due_at(NOW, SETTINGS) == NOW + 15 * MINUTE_S
    assert replace(before, made_at=later(moved_at, MOVED_S)).due_at(NOW, SETTINGS) == moved_at + MOVED_S + 15 * MINUTE_S


def test_batch_that_has_not_ended_as_expected_is_due() -> None:
    expected = replace(an_age(dirty=False), q50_at=later(NOW, 200.0))

    assert expected.due_at(NOW, SETTINGS) == NOW + 200.0
    assert replace(expected, q50_at=later(NOW, 20.0)).due_at(NOW, SETTINGS) == NOW + MINUTE_S
    assert replace(expected, q50_at=later(NOW, HOUR_S)).due_at(NOW, SETTINGS) == NOW + 15 * MINUTE_S


def test_batch_whose_last_instance_was_sent_is_due() -> None:
    sent = replace(an_age(dirty=False), is_sent=True)

    assert sent.due_at(NOW, SETTINGS) == NOW + MINUTE_S
    assert replace(sent, moved_at=later(NOW, 600.0)).due_at(NOW, SETTINGS) == NOW + 600.0 + MOVED_S


def test_no_batch_waits_longer_than_a_quarter_of_an_hour() -> None:
    assert due_s(left_s=30 * DAY_S, dirty=True) == 15 * MINUTE_S
    assert due_s(left_s=HOUR_S, dirty=False) == 15 * MINUTE_S


def test_a_dirty_batch_whose_estimate_has_passed_waits_a_minute() -> None:
    assert due_s(left_s=-DAY_S, dirty=True) == MINUTE_S


def test_the_pause_and_the_timer_are_settings() -> None:
    quick = EstimatorSettings(pause_s=Seconds(2.0), timer_s=Seconds(7.0))

    assert due_s(left_s=60.0, dirty=True, settings=quick) == 2.0
    assert due_s(left_s=DAY_S, dirty=True, settings=quick) == due_s(left_s=60.0, dirty=False, settings=quick) == 7.0


def test_a_forecast_says_what_it_was_made_by() -> None:
    assert trigger_of(ForecastAge(BatchId(1), None, None, 0, 0, 1)) is Trigger.SUBMISSION
    assert trigger_of(an_age(dirty=True)) is Trigger.VALIDATION
    assert trigger_of(an_age(dirty=False)) is Trigger.TIMER
