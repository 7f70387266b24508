"""The forecast before submission equals the one right after it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batch_estimator.preview import BatchPreview, Previewer, preview_of
from batch_estimator.publish import Forecast
from batch_estimator.sending import sending_of
from batch_estimator.service import in_line
from batch_estimator.snapshot import InstanceStanding as S
from domain.batches import QoS
from domain.errors import NotFoundError
from domain.forecasting import PlannedBatch, SendPlace
from domain.forecasts import DeadlineRisk, ForecastState, HoldKind, Method
from domain.settings import Settings
from domain.units import DAY_S, HOUR_S, AppId, Flop, Seconds, later
from tests.builders import NOW, a_job_class
from tests.memory import MemoryStore
from tests.unit.batch_estimator.projects import an_estimator, validate_one
from tests.unit.batch_estimator.snapshots import NOW as SNAPSHOT_NOW
from tests.unit.batch_estimator.snapshots import Sent, a_snapshot
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_registered_host, a_submitted_batch

PLANNED = PlannedBatch(AppId(1), QoS.AFAP, Seconds(DAY_S), {(Flop(1e12), 1): 30, (Flop(2e12), 1): 10})


async def a_store(hosts: int = 20, *, jobs: int = 10, valid: int = 5) -> MemoryStore:
    """Return a store with a batch on some hosts; some of its jobs are valid, the others unsent."""
    store = MemoryStore()
    for _ in range(hosts):
        await a_registered_host(store, last_rpc_at=NOW)
    batch = await a_submitted_batch(store, jobs=jobs)
    for _ in range(valid):
        await validate_one(store, batch.batch_id, HandClock())
    return store


async def previewed(store: MemoryStore, planned: PlannedBatch = PLANNED) -> BatchPreview:
    previewer = Previewer(store.forecasting, store.forecasts, Settings(), HandClock(), run_fit=in_line)
    return await previewer.preview(planned)


async def test_every_job_waits_to_be_sent() -> None:
    preview = await previewed(await a_store())

    assert preview.forecast.terms is not None and preview.forecast.terms.jobs_open == PLANNED.jobs_total == 40
    assert [(hold.kind, hold.slots) for hold in preview.forecast.holds] == [(HoldKind.NOT_SENT, 40)]
    assert NOW < preview.forecast.q50_at < preview.forecast.q90_at == preview.completion_at
    assert preview.at_risk is None


async def test_it_says_what_the_first_forecast_after_submission_says() -> None:
    store, clock = await a_store(jobs=5), HandClock()
    jobs = a_job_class(fpops_est_flop=1e12, delay_bound_s=DAY_S)
    preview = await previewed(store, replace(PLANNED, qos=QoS.THROUGHPUT, jobs_of={(Flop(1e12), 1): 12}))

    batch = await a_submitted_batch(store, jobs=12, job_class=jobs)
    [done] = (await an_estimator(store, clock).run_one(batch.batch_id)).done

    assert done.record is not None
    assert (done.record.q50_at, done.record.q90_at) == (preview.forecast.q50_at, preview.forecast.q90_at)
    assert done.record.completion_at == preview.completion_at


async def test_work_ahead_is_included_as_in_the_first_forecast() -> None:
    store, clock = await a_store(jobs=900), HandClock()
    jobs = a_job_class(fpops_est_flop=1e12, delay_bound_s=DAY_S)
    planned = replace(PLANNED, qos=QoS.THROUGHPUT, jobs_of={(Flop(1e12), 1): 12})
    last_place = SendPlace(planned.qos, None, False, 1_000_000, 0.0)
    alone, behind = await previewed(store, planned), await previewed(store, replace(planned, place=last_place))

    batch = await a_submitted_batch(store, jobs=12, job_class=jobs)
    [done] = (await an_estimator(store, clock).run_one(batch.batch_id)).done

    assert done.record is not None
    assert behind.forecast.q90_at == done.record.q90_at > alone.forecast.q90_at


async def test_batch_of_a_new_app_is_forecast_from_its_size() -> None:
    store = MemoryStore()
    await a_registered_host(store, last_rpc_at=NOW)
    app_id = (await a_submitted_batch(store, jobs=1)).app_id

    small = await previewed(store, replace(PLANNED, app_id=app_id))
    large = await previewed(store, replace(PLANNED, app_id=app_id, jobs_of={(Flop(1e15), 1): 40}))

    assert small.forecast.method is large.forecast.method is Method.APRIORI
    assert large.forecast.q50_at > later(small.forecast.q50_at, HOUR_S)


def test_infeasible_deadline_is_at_risk() -> None:
    short = replace(PLANNED, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0))
    in_a_day = later(NOW, DAY_S)
    warm = Forecast(NOW, in_a_day, in_a_day, in_a_day, Method.WARM, "from the record")

    assert preview_of(short, warm).at_risk == DeadlineRisk(later(NOW, 60.0), Seconds(DAY_S - 60.0), 1.0, missed=False)
    assert preview_of(replace(short, deadline_at=later(NOW, 2 * DAY_S)), warm).at_risk is None


async def test_without_results_no_number_is_shown() -> None:
    """The app's turnarounds are unknown: the preview says so, without a statement on the deadline."""
    short = replace(PLANNED, qos=QoS.SHORT_DEADLINE, deadline_at=later(NOW, 60.0))

    preview = await previewed(await a_store(valid=0), short)

    assert (preview.state, preview.at_risk) == (ForecastState.FIRST_RESULTS, None)


async def test_each_job_takes_the_instances_of_its_quorum() -> None:
    planned = replace(PLANNED, jobs_of={(Flop(1e12), 1): 30, (Flop(1e12), 2): 10})

    preview = await previewed(await a_store(), planned)

    assert [(hold.kind, hold.slots) for hold in preview.forecast.holds] == [(HoldKind.NOT_SENT, 50)]


async def test_an_unknown_app_is_named() -> None:
    with pytest.raises(NotFoundError, match="app 99"):
        await previewed(await a_store(), replace(PLANNED, app_id=AppId(99)))


def test_a_batch_submitted_this_moment_is_sent_at_the_usual_rate() -> None:
    """The rate does not depend on the batch: one instance at a time for every second of 1000 hosts."""
    snapshot = a_snapshot([Sent(0, S.UNSENT, created_h=0.0)], submitted_at=SNAPSHOT_NOW, active_hosts=1000)

    sending = sending_of(snapshot, to_send=5000.0, turnaround_s=10 * HOUR_S, lasts_s=12 * HOUR_S)

    assert sending.rate_per_s == pytest.approx(500 / (10 * HOUR_S))


def test_what_fills_the_hosts_in_the_first_minutes_is_no_rate() -> None:
    sent = [Sent(job, S.IN_PROGRESS, job + 1, sent_h=0.007 - job / 36_000, created_h=0.01) for job in range(200)]
    snapshot = a_snapshot(sent, submitted_at=later(SNAPSHOT_NOW, -36.0), active_hosts=1000)

    assert sending_of(snapshot, to_send=5000.0, turnaround_s=10 * HOUR_S, lasts_s=12 * HOUR_S).rate_per_s < 200 / 360.0
