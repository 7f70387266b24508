"""Forecasts against results: late counts as late regardless of the horizon, and the width is reported."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Mapping

import pytest

from domain.batches import QoS
from domain.units import BatchId, Instant
from simulator.metrics import coverage_fraction, forecast_quality, promise_ratio
from simulator.recording import Followed, PublishedForecast

END = Instant(1000.0)


def a_batch(promised_at: float | None, *ends: float, jobs: int = 2) -> Followed:
    promised = None if promised_at is None else Instant(promised_at)
    return Followed(
        BatchId(1), "b", QoS.AFAP, "ada", Instant(0.0), jobs, ended_at=array("d", ends), promised_at=promised
    )


@pytest.mark.parametrize(
    ("batches", "fraction"),
    [
        ([a_batch(400.0, 100.0, 400.0)], 1.0),
        ([a_batch(399.0, 100.0, 400.0)], 0.0),
        ([a_batch(400.0, 100.0, 300.0), a_batch(999.0, 100.0)], 0.5),  # unfinished and late
        ([a_batch(400.0, 100.0, 300.0), a_batch(1000.0, 100.0)], 1.0),  # may still be in time
        ([a_batch(400.0, 100.0, 300.0), a_batch(None, 100.0)], 1.0),  # without a promise
        ([a_batch(2000.0, 100.0)], None),
        ([], None),
    ],
)
def test_batches_are_late_by_what_was_promised_at_half(batches: list[Followed], fraction: float | None) -> None:
    assert coverage_fraction(batches, END) == fraction


def test_promises_use_finished_batches_from_half_on() -> None:
    three_times, half = a_batch(400.0, 200.0, 100.0), a_batch(150.0, 100.0, 200.0)

    assert promise_ratio([three_times]) == 3.0
    assert promise_ratio([three_times, half, a_batch(900.0, 100.0), a_batch(None, 1.0, 2.0)]) == 1.75


def test_without_a_second_half_there_is_nothing_to_measure() -> None:
    assert promise_ratio([a_batch(400.0, 100.0, jobs=1), a_batch(400.0, 100.0, 100.0)]) is None


def forecast_batch(*forecasts: tuple[float, float] | None, over: int = 10) -> Followed:
    """Ten jobs that end at 100, 200, ...; (made at, q50) with q10 and q90 50 s before and after; None: withdrawn."""
    batch = a_batch(None, *(100.0 * (n + 1) for n in range(over)), jobs=10)
    for one in forecasts:
        if one is None:
            batch.forecasts.append((Instant(batch.forecasts[-1][0] + 1.0), None))
            continue
        made_at, q50 = one
        shown = PublishedForecast(Instant(made_at), Instant(q50 - 50.0), Instant(q50), Instant(q50 + 50.0))
        batch.forecasts.append((Instant(made_at), shown))
    return batch


def quality(batch: Followed) -> Mapping[str, Mapping[str, float]]:
    """Return the tables of one batch, without empty ones."""
    return defaultdict(dict, forecast_quality([batch], END))


def coverages(found: Mapping[str, Mapping[str, float]], percent: str) -> tuple[float, ...]:
    return tuple(found[f"forecast_{name}_coverage"][percent] for name in ("q10", "q50", "q90"))


def test_forecasts_are_measured_by_progress() -> None:
    found = quality(forecast_batch((0.0, 2000.0), (450.0, 1250.0), (950.0, 1020.0)))

    assert found["forecast_ratio"]["0"] == 2.0
    assert found["forecast_ratio"]["10"] == pytest.approx((2000.0 - 100.0) / 900.0)
    assert found["forecast_ratio"]["50"] == pytest.approx(750.0 / 500.0)
    assert found["forecast_error"]["50"] == pytest.approx(0.5)
    assert "99" not in found["forecast_ratio"]  # nothing is left then
    assert (
        found["forecast_q10_coverage"]["90"],
        found["forecast_q50_coverage"]["90"],
        found["forecast_q90_coverage"]["90"],
    ) == (1.0, 1.0, 1.0)
    assert (
        found["forecast_q10_coverage"]["99"],
        found["forecast_q50_coverage"]["99"],
        found["forecast_q90_coverage"]["99"],
    ) == (0.0, 1.0, 1.0)


def test_late_first_forecast_does_not_count_as_initial() -> None:
    found = quality(forecast_batch((150.0, 2000.0)))

    assert "0" not in found["forecast_ratio"]
    assert "10" not in found["forecast_ratio"]
    assert "25" in found["forecast_ratio"]


def test_a_withdrawn_forecast_is_not_measured() -> None:
    found = quality(forecast_batch((0.0, 2000.0), (250.0, 1500.0), None))

    assert sorted(found["forecast_ratio"]) == ["0", "10"]


def test_an_unfinished_batch_counts_in_coverage_alone() -> None:
    found = quality(forecast_batch((0.0, 940.0), over=6))

    assert found["forecast_ratio"] == {} and found["forecast_error"] == {}
    assert (
        found["forecast_q10_coverage"]["50"],
        found["forecast_q50_coverage"]["50"],
        found["forecast_q90_coverage"]["50"],
    ) == (0.0, 0.0, 0.0)
    assert quality(forecast_batch((0.0, 2000.0), over=6))["forecast_q90_coverage"] == {}


def test_a_batch_without_a_forecast_is_not_measured() -> None:
    found = quality(forecast_batch())

    assert (found["forecast_error"], found["forecast_ratio"], found["forecast_q10_coverage"]) == ({}, {}, {})
