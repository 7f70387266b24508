"""Metrics of forecasts."""

from __future__ import annotations

from domain.forecasts import Accuracy, AppAccuracy, ForecastHealth
from domain.units import AppId, later
from runtime.metrics.cluster import of_forecasts
from runtime.metrics.metrics_store import exposition, reading
from tests.builders import NOW

FOUND = Accuracy(40, 0.1, 0.5, 0.875, 0.125, 0.25, -0.0625, 0.375)
SCORED = ForecastHealth(
    AppId(1), 'pi "fast"', 3, 1, later(NOW, -900.0), later(NOW, -60.0), AppAccuracy(AppId(1), NOW, FOUND, 1.5, "kept")
)
NEW = ForecastHealth(AppId(2), "new", 0, 0, None, None, None)


def test_forecast_metrics_are_reported_per_app() -> None:
    taken = reading("background", NOW, of_forecasts([SCORED, NEW], NOW), {})

    lines = exposition([taken], NOW)[0].decode().splitlines()

    assert [line for line in lines if line.startswith("muster_")] == [
        'muster_forecast_active_batches{app="pi \\"fast\\""} 3.0',
        'muster_forecast_active_batches{app="new"} 0.0',
        'muster_forecast_never_forecast_batches{app="pi \\"fast\\""} 1.0',
        'muster_forecast_never_forecast_batches{app="new"} 0.0',
        'muster_forecast_oldest_age_seconds{app="pi \\"fast\\""} 900.0',
        'muster_forecast_latest_age_seconds{app="pi \\"fast\\""} 60.0',
        'muster_forecast_scored_batches{app="pi \\"fast\\""} 40.0',
        'muster_forecast_coverage_ratio{app="pi \\"fast\\"",forecast_quantile="0.1"} 0.1',
        'muster_forecast_coverage_ratio{app="pi \\"fast\\"",forecast_quantile="0.5"} 0.5',
        'muster_forecast_coverage_ratio{app="pi \\"fast\\"",forecast_quantile="0.9"} 0.875',
        'muster_forecast_median_error_ratio{app="pi \\"fast\\""} 0.125',
        'muster_forecast_median_remaining_error_ratio{app="pi \\"fast\\""} 0.25',
        'muster_forecast_bias_ratio{app="pi \\"fast\\""} -0.0625',
        'muster_forecast_pinball_bounds{app="pi \\"fast\\""} 0.375',
        'muster_forecast_spread{app="pi \\"fast\\""} 1.5',
    ]
