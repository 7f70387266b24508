"""Tests the estimator with real validations on PostgreSQL: it forecasts within its debounce time, once per cluster."""

from __future__ import annotations

import asyncio
import math
from contextlib import suppress

import asyncpg

from batch_estimator.ports import Table
from batch_estimator.service import Estimator, RefitOutcome
from domain.batches import Batch
from domain.errors import UnavailableError
from domain.forecasting import BatchTables
from domain.forecasts import ForecastAge, ForecastRecord, Method, Trigger
from domain.settings import EstimatorSettings, Settings
from domain.units import BatchId, Instant, later
from runtime.periodic_tasks import PeriodicTask
from store.locks import BatchClaims, DutyLocks
from store.postgres import PostgresStore, open_store
from store.queries import load
from tests.builders import NOW, a_job_class
from tests.pg import opened_store
from tests.unit.batch_estimator.projects import validate_one
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_sent_instance, a_submitted_batch

SETTINGS = EstimatorSettings()


def an_estimator(store: PostgresStore, clock: HandClock) -> Estimator:
    """Return an estimator as in the background process, computing in a thread."""
    return Estimator(store.forecasting, store.forecasts, lambda: Settings(estimator=SETTINGS), clock)


async def a_batch(store: PostgresStore, jobs: int = 10) -> Batch:
    """Create a batch of small jobs on 30 active hosts: done within hours."""
    for _ in range(30):
        await a_registered_host(store, last_rpc_at=NOW)
    return await a_submitted_batch(store, jobs=jobs, job_class=a_job_class(fpops_est_flop=1e12, delay_bound_s=7200.0))


async def the_last(store: PostgresStore, batch_id: BatchId) -> ForecastRecord:
    return (await store.forecasts.last([batch_id]))[batch_id]


async def test_validation_is_in_forecast_after_debounce(store: PostgresStore) -> None:
    """Runs each round of the task as in `muster up`; the clock advances as the task sleeps."""
    clock, locks = HandClock(), DutyLocks(store._database.dsn)
    estimator = an_estimator(store, clock)
    duty = PeriodicTask("estimator", estimator.run_once, locks=locks, clock=clock, interval_s=lambda: SETTINGS.look_s)
    batch = await a_batch(store)

    async def validated() -> tuple[float, ForecastRecord]:
        """Validate a job, and return when that was, with the next forecast."""
        before = await the_last(store, batch.batch_id)
        await clock.sleep(10.0)
        await validate_one(store, batch.batch_id, clock)
        at = clock.time
        while (made := await the_last(store, batch.batch_id)).made_at == before.made_at:
            await clock.sleep(await duty.step())
            assert clock.time < later(before.made_at, SETTINGS.timer_s), "not by the validation"
        return at, made

    await clock.sleep(await duty.step())
    first = await the_last(store, batch.batch_id)
    assert (first.trigger, first.made_at) == (Trigger.SUBMISSION, NOW)
    for _ in range(2):  # the first results are forecast at once
        at, made = await validated()
        assert at <= made.made_at <= at + SETTINGS.look_s
    assert (made.trigger, made.jobs_validated, made.method) == (Trigger.VALIDATION, 2, Method.APRIORI)
    shown = await store.views.batch(batch.batch_id)
    assert (shown.completion_q50_at, shown.completion_at) == (None, made.completion_at)

    at, third = await validated()

    debounce_s = ForecastAge(batch.batch_id, made.made_at, made.completion_at, 2, 3, batch.counts.jobs_total).wait_s(
        SETTINGS
    )
    assert SETTINGS.pause_s <= debounce_s < SETTINGS.timer_s
    assert at < made.made_at + debounce_s <= third.made_at < made.made_at + debounce_s + 2 * SETTINGS.look_s
    await locks.close()


async def test_two_processes_share_a_pass_and_forecast_each_batch_once() -> None:
    clock = HandClock()
    async with opened_store() as one:
        other = await open_store(one._database.dsn, min_size=1, max_size=2)
        batches = [await a_submitted_batch(one, jobs=3) for _ in range(6)]

        passes = await asyncio.gather(an_estimator(one, clock).run_once(), an_estimator(other, clock).run_once())

        changed = [done.batch_id for made in passes for done in made.done if done.outcome is RefitOutcome.CHANGED]
        assert sorted(changed) == [batch.batch_id for batch in batches]
        await other.close()


async def test_locked_batch_does_not_stop_others(store: PostgresStore) -> None:
    clock = HandClock()
    locked, free = [await a_submitted_batch(store, jobs=2) for _ in range(2)]
    connection = await asyncpg.connect(store._database.dsn)
    async with connection.transaction():
        await connection.execute("SELECT FROM batch WHERE batch_id = $1 FOR UPDATE", locked.batch_id)

        made = await an_estimator(store, clock).run_once()

    await connection.close()
    assert [(done.batch_id, done.outcome) for done in made.done] == [
        (locked.batch_id, RefitOutcome.FAILED),
        (free.batch_id, RefitOutcome.CHANGED),
    ]


async def test_a_claim_is_gone_with_its_process(dsn: str) -> None:
    one, other = BatchClaims(dsn), BatchClaims(dsn)
    claimed = one.claim(BatchId(7))
    assert await claimed.__aenter__()
    async with other.claim(BatchId(7)) as taken:
        assert not taken

    await one.close()

    async with other.claim(BatchId(7)) as taken:
        assert taken
        await claimed.__aexit__(None, None, None)
    await other.close()


async def test_a_restarted_process_goes_on_where_it_was(store: PostgresStore) -> None:
    clock = HandClock()
    batch = await a_batch(store)
    for _ in range(2):
        await validate_one(store, batch.batch_id, clock)
    await an_estimator(store, clock).run_once()
    made = await the_last(store, batch.batch_id)
    await validate_one(store, batch.batch_id, clock)

    pause_s = ForecastAge(batch.batch_id, made.made_at, made.completion_at, 2, 3, batch.counts.jobs_total).wait_s(
        SETTINGS
    )
    clock.time = later(made.made_at, pause_s - 1.0)
    assert (await an_estimator(store, clock).run_once()).done == ()
    clock.time = later(clock.time, 1.0)
    [done] = (await an_estimator(store, clock).run_once()).done
    assert done.record is not None and done.record.trigger is Trigger.VALIDATION


async def test_a_batch_is_forecast_to_its_end_and_scored(store: PostgresStore) -> None:
    clock = HandClock()
    estimator = an_estimator(store, clock)
    batch = await a_batch(store, jobs=4)
    await estimator.run_once()
    while (await store.views.batch(batch.batch_id)).ended_at is None:
        clock.time = Instant(clock.time + SETTINGS.timer_s)
        await validate_one(store, batch.batch_id, clock)
        await estimator.run_once()

    assert [one.jobs_validated for one in await store.forecasts.series(batch.batch_id, limit=9)] == [0, 1, 2, 3]
    scores = await store.forecasts.scores(batch.app_id, 9)
    assert [one.progress_fraction for one in scores] == [0.1, 0.5]
    assert (await store.forecasts.accuracies())[batch.app_id].accuracy.batches == 1
    assert await store.forecasts.ages(now=Instant(math.inf), settings=SETTINGS) == []


async def test_batches_of_app_share_host_sample_for_a_minute(store: PostgresStore) -> None:
    one, other = await a_batch(store), await a_submitted_batch(store, jobs=2)
    assert (await tables_of(store, one, NOW)).terms.active_hosts == 30
    await a_registered_host(store, last_rpc_at=NOW)

    assert (await tables_of(store, other, later(NOW, 59.0))).terms.active_hosts == 30
    assert (await tables_of(store, other, later(NOW, 60.0))).terms.active_hosts == 31


async def test_a_connection_that_is_lost_is_made_again(store: PostgresStore) -> None:
    batch = await a_batch(store)
    await tables_of(store, batch, NOW)
    connection = await asyncpg.connect(store._database.dsn)
    await connection.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()

    with suppress(UnavailableError):  # it may have been noticed already
        await store.forecasting.of_batch(batch.batch_id, now=NOW)
    assert (await tables_of(store, batch, NOW)).jobs.size == 10


async def test_sampled_rows_have_their_page(store: PostgresStore) -> None:
    batch, host = await a_batch(store), await a_registered_host(store, last_rpc_at=NOW)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(3)]
    connection = await asyncpg.connect(store._database.dsn)

    rows = await connection.fetch(load("forecast_sent"), [sent[0].app_version_id], 0, 0.0, 9, 100.0, 1.0)
    await connection.close()

    assert len(rows) == 3 and len({row["page"] for row in rows}) == 1


async def tables_of(store: PostgresStore, batch: Batch, now: Instant) -> BatchTables[Table]:
    found = await store.forecasting.of_batch(batch.batch_id, now=now)
    assert found is not None
    return found
