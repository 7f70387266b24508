"""What a monitoring system reads of forecasts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from aiohttp.test_utils import make_mocked_request

from domain.errors import UnavailableError
from domain.forecasts import Accuracy, AppAccuracy, ForecastHealth
from domain.units import AppId, later
from operations.metrics import KEPT_S, Metrics, exposition, forecast_gauges
from store.memory import MemoryStore
from store.memory.forecasts import MemoryForecasts
from tests.builders import NOW
from tests.unit.batch_estimator.projects import an_estimator
from tests.unit.jobs.projects import HandClock
from tests.worlds import a_submitted_batch

FOUND = Accuracy(40, 0.1, 0.5, 0.875, 0.125, 0.25, -0.0625, 0.375)
SCORED = ForecastHealth(
    AppId(1), 'pi "fast"', 3, 1, later(NOW, -900.0), later(NOW, -60.0), AppAccuracy(AppId(1), NOW, FOUND, 1.5, "kept")
)
NEW = ForecastHealth(AppId(2), "new", 0, 0, None, None, None)


def test_coverage_error_and_age_are_told_of_each_app() -> None:
    lines = exposition(forecast_gauges([SCORED, NEW], NOW)).splitlines()

    assert [line for line in lines if line.startswith("muster_")] == [
        'muster_forecast_active_batches{app="pi \\"fast\\""} 3.0',
        'muster_forecast_active_batches{app="new"} 0.0',
        'muster_forecast_never_forecast_batches{app="pi \\"fast\\""} 1.0',
        'muster_forecast_never_forecast_batches{app="new"} 0.0',
        'muster_forecast_oldest_age_seconds{app="pi \\"fast\\""} 900.0',
        'muster_forecast_latest_age_seconds{app="pi \\"fast\\""} 60.0',
        'muster_forecast_scored_batches{app="pi \\"fast\\""} 40.0',
        'muster_forecast_coverage_ratio{app="pi \\"fast\\"",quantile="0.1"} 0.1',
        'muster_forecast_coverage_ratio{app="pi \\"fast\\"",quantile="0.5"} 0.5',
        'muster_forecast_coverage_ratio{app="pi \\"fast\\"",quantile="0.9"} 0.875',
        'muster_forecast_median_error_ratio{app="pi \\"fast\\""} 0.125',
        'muster_forecast_median_remaining_error_ratio{app="pi \\"fast\\""} 0.25',
        'muster_forecast_bias_ratio{app="pi \\"fast\\""} -0.0625',
        'muster_forecast_pinball_bounds{app="pi \\"fast\\""} 0.375',
        'muster_forecast_spread{app="pi \\"fast\\""} 1.5',
    ]


def test_every_metric_says_what_it_is_before_its_samples() -> None:
    lines = exposition(forecast_gauges([SCORED], NOW)).splitlines()

    names = [line.split("{")[0] for line in lines if not line.startswith("#")]
    helped = [line.split()[2] for line in lines if line.startswith("# HELP")]
    assert helped == [line.split()[2] for line in lines if line.startswith("# TYPE")] == list(dict.fromkeys(names))


async def test_an_answer_serves_for_a_while() -> None:
    store, clock = MemoryStore(), HandClock()
    await a_submitted_batch(store, jobs=2)
    metrics = Metrics(store.forecasts, clock)
    before = await metrics.text()

    await an_estimator(store, clock).run_once()
    clock.time = later(NOW, KEPT_S - 1.0)
    meanwhile = await metrics.text()
    clock.time = later(NOW, KEPT_S)

    assert 'muster_forecast_never_forecast_batches{app="pi"} 1.0' in before.splitlines()
    assert meanwhile == before
    assert 'muster_forecast_oldest_age_seconds{app="pi"} 10.0' in (await metrics.text()).splitlines()


class NoForecasts(MemoryForecasts):
    async def health(self) -> Sequence[ForecastHealth]:
        raise UnavailableError("the database does not serve")


@pytest.mark.parametrize("away", [False, True])
async def test_the_reply_is_text_or_says_what_is_missing(away: bool) -> None:
    store = MemoryStore()
    forecasts = NoForecasts(store.forecasts._registry, store.forecasts._work) if away else store.forecasts

    reply = await Metrics(forecasts, HandClock()).show(make_mocked_request("GET", "/metrics"))

    assert reply.status == (503 if away else 200)
    assert reply.content_type == "text/plain"
    assert (reply.text == "the database does not serve\n") is away
