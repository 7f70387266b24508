"""Availability and decaying sums."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.hosts import STATS_HALF_LIFE_S, DecayedSums
from domain.units import Instant
from tests.builders import NOW, a_host

VALUES = st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=20)


def sums_of(values: list[float]) -> DecayedSums:
    return DecayedSums(float(len(values)), sum(values), sum(x * x for x in values), NOW)


def test_availability_is_of_the_time_the_host_is_on() -> None:
    host = a_host(on_fraction=0.5, active_fraction=0.8, gpu_active_fraction=0.4)

    assert host.cpu_availability_fraction == pytest.approx(0.4)
    assert host.gpu_availability_fraction == pytest.approx(0.2)


@pytest.mark.parametrize(("half_lives", "left"), [(0, 1.0), (1, 0.5), (2, 0.25), (10, 2.0**-10)])
def test_a_half_life_takes_half_of_every_sum(half_lives: int, left: float) -> None:
    sums = DecayedSums(4.0, 8.0, 20.0, NOW)

    later = sums.at_time(Instant(NOW + half_lives * STATS_HALF_LIFE_S))

    assert (later.n, later.total, later.total_sq) == pytest.approx((4.0 * left, 8.0 * left, 20.0 * left))


@given(VALUES, st.floats(0.0, 200 * 86400.0))
def test_forgetting_does_not_change_the_mean(values: list[float], after_s: float) -> None:
    sums = sums_of(values)
    later = sums.at_time(Instant(NOW + after_s))

    assert later.mean == pytest.approx(sums.mean, abs=1e-9)


@given(VALUES, st.floats(-1e7, 1e7), st.floats(0.0, 1e7))
def test_reading_twice_is_reading_once_at_the_later_instant(values: list[float], first_s: float, more_s: float) -> None:
    sums, middle = sums_of(values), Instant(NOW + first_s)
    end = Instant(max(NOW, middle) + more_s)

    twice, once = sums.at_time(middle).at_time(end), sums.at_time(end)

    assert (twice.n, twice.total, twice.total_sq) == pytest.approx((once.n, once.total, once.total_sq), abs=1e-9)


def test_sums_do_not_grow_when_read_before_their_stamp() -> None:
    assert DecayedSums(4.0, 8.0, 20.0, NOW).at_time(Instant(NOW - 1e6)).n == 4.0


def test_decay_over_centuries_ends_at_nothing() -> None:
    assert DecayedSums(4.0, 8.0, 20.0, Instant(0.0)).at_time(Instant(1e11)).n == 0.0


@given(VALUES)
def test_mean_is_that_of_the_values(values: list[float]) -> None:
    assert sums_of(values).mean == pytest.approx(sum(values) / len(values), abs=1e-9)


def test_no_sample_has_mean_zero() -> None:
    assert DecayedSums().mean == 0.0
