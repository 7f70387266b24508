"""The accuracy of forecasts on simulated populations: a small version of the acceptance gates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from batch_estimator.estimate import estimate
from batch_estimator.publish import Forecast
from batch_estimator.snapshot import BatchSnapshot
from tests.unit.batch_estimator.worlds import World

WORLDS = 40


@dataclass(frozen=True, slots=True)
class Scored:
    forecast: Forecast
    naive_at: float
    ended_at: float
    bound_s: float


@pytest.fixture(scope="module")
def scored() -> list[Scored]:
    """Return every checkpoint of every simulated world."""
    found = []
    for seed in range(WORLDS):
        world = World(seed)
        for at in world.checkpoints():
            snapshot = world.snapshot(at)
            found.append(Scored(estimate(snapshot), naive_of(snapshot), world.ended_at, world.bound_s))
    return found


def naive_of(snapshot: BatchSnapshot) -> float:
    """Return the elapsed time divided by the fraction done."""
    return float((snapshot.now - snapshot.submitted_at) / np.mean(~snapshot.jobs.is_open))


def pinball(at: float, ended_at: float, share: float) -> float:
    return share * (ended_at - at) if ended_at >= at else (1.0 - share) * (at - ended_at)


def test_median_error_is_small(scored: list[Scored]) -> None:
    assert np.median([abs(each.forecast.q50_at - each.ended_at) / each.ended_at for each in scored]) < 0.17


def test_median_is_unbiased(scored: list[Scored]) -> None:
    assert -0.08 < np.median([(each.forecast.q50_at - each.ended_at) / each.ended_at for each in scored]) < 0.08


def test_90_percent_end_before_q90(scored: list[Scored]) -> None:
    assert 0.8 < np.mean([each.ended_at <= each.forecast.q90_at for each in scored]) < 0.97


def test_10_percent_end_before_q10(scored: list[Scored]) -> None:
    assert 0.02 < np.mean([each.ended_at <= each.forecast.q10_at for each in scored]) < 0.25


def test_50_percent_end_before_q50(scored: list[Scored]) -> None:
    assert 0.37 < np.mean([each.ended_at <= each.forecast.q50_at for each in scored]) < 0.65


def test_loss_is_a_third_of_naive_extrapolation(scored: list[Scored]) -> None:
    ours = sum(
        (
            pinball(f.q10_at, each.ended_at, 0.1)
            + pinball(f.q50_at, each.ended_at, 0.5)
            + pinball(f.q90_at, each.ended_at, 0.9)
        )
        / each.bound_s
        for each in scored
        for f in [each.forecast]
    )
    naive = sum(
        sum(pinball(each.naive_at, each.ended_at, p) for p in (0.1, 0.5, 0.9)) / each.bound_s for each in scored
    )

    assert ours < naive / 3.0
