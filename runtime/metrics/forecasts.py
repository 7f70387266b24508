"""How forecasting goes, app by app. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from domain.forecasts import Accuracy, ForecastHealth
from domain.units import Instant
from runtime.metrics import catalogue as metric
from runtime.metrics.kinds import Sample


def of_forecasts(apps: Sequence[ForecastHealth], now: Instant) -> Iterator[Sample]:
    """What is known of forecasts at `now`. An app of which no batch was scored has no accuracy."""
    for app in apps:
        name = app.app_name
        yield metric.ACTIVE_BATCHES.of(name, value=app.active_batches)
        yield metric.NEVER_FORECAST.of(name, value=app.never_forecast)
        for age, at in ((metric.OLDEST_FORECAST, app.oldest_at), (metric.LATEST_FORECAST, app.latest_at)):
            if at is not None:
                yield age.of(name, value=max(0.0, now - at))
        if app.accuracy is not None:
            yield from _of_accuracy(name, app.accuracy.accuracy, app.accuracy.spread)


def _of_accuracy(name: str, found: Accuracy, spread: float) -> Iterator[Sample]:
    yield metric.SCORED_BATCHES.of(name, value=found.batches)
    yield metric.COVERAGE.of(name, "0.1", value=found.coverage_q10)
    yield metric.COVERAGE.of(name, "0.5", value=found.coverage_q50)
    yield metric.COVERAGE.of(name, "0.9", value=found.coverage_q90)
    yield metric.MEDIAN_ERROR.of(name, value=found.median_error_fraction)
    yield metric.REMAINING_ERROR.of(name, value=found.median_remaining_error_fraction)
    yield metric.BIAS.of(name, value=found.bias_fraction)
    yield metric.PINBALL.of(name, value=found.pinball)
    yield metric.SPREAD.of(name, value=spread)
