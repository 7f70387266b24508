"""Puts the estimator together."""

from __future__ import annotations

from collections.abc import Callable

from batch_estimator.ports import Forecasts, ForecastTables, Ports
from batch_estimator.preview import Previewer
from batch_estimator.service import Estimator, RunFit, in_a_thread
from domain.clock import Clock
from domain.settings import EstimatorSettings, Settings


def build(
    ports: Ports, settings: Callable[[], EstimatorSettings], clock: Clock, *, run_fit: RunFit = in_a_thread
) -> Estimator:
    """The estimator. `settings()` gives those of the moment; `run_fit` says where the arithmetic is done."""
    return Estimator(ports, settings, clock, run_fit)


def build_previewer(
    tables: ForecastTables,
    forecasts: Forecasts,
    settings: Settings,
    clock: Clock,
    *,
    run_fit: RunFit = in_a_thread,
) -> Previewer:
    """What forecasts batches before they are submitted."""
    return Previewer(tables, forecasts, settings, clock, run_fit)
