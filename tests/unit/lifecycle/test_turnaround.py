"""References of turnarounds, and samples of time-outs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.settings import LifecycleSettings
from domain.units import DAY_S, Instant, Seconds
from lifecycle.turnaround import (
    LEAST_S,
    censored_sample,
    grace_s,
    least_outage_s,
    returned_sample,
    timeout_at,
    yardstick_s,
)
from tests.builders import NOW


def test_reference_is_batch_median_or_own_runtime() -> None:
    runtime_s, usual_s = Seconds(3600.0), Seconds(7200.0)

    assert yardstick_s(tight=False, est_runtime_s=runtime_s, median_turnaround_s=usual_s) == usual_s
    assert yardstick_s(tight=True, est_runtime_s=runtime_s, median_turnaround_s=usual_s) == runtime_s


def test_before_anything_has_come_back_the_runtime_stands_in() -> None:
    assert yardstick_s(tight=False, est_runtime_s=Seconds(60.0), median_turnaround_s=None) == 60.0


def test_a_turnaround_of_nothing_still_has_a_logarithm() -> None:
    assert returned_sample(0.0, yardstick_s=Seconds(0.0)) == 0.0
    assert returned_sample(0.0, yardstick_s=Seconds(100.0)) == math.log(LEAST_S / 100.0)


def test_instance_given_up_at_due_date_counts_the_full_interval() -> None:
    hour = Seconds(3600.0)
    sample = censored_sample(sent_at=Instant(0.0), due_at=Instant(20 * hour), now=Instant(19 * hour), yardstick_s=hour)
    assert sample == math.log(20.0)


@given(
    given_s=st.floats(0.0, 1e7),
    silent_s=st.floats(0.0, 1e7),
    usual_s=st.floats(0.0, 1e7),
)
def test_time_out_counts_at_least_the_full_interval(given_s: float, silent_s: float, usual_s: float) -> None:
    sample = censored_sample(
        sent_at=Instant(0.0),
        due_at=Instant(given_s),
        now=Instant(silent_s),
        yardstick_s=Seconds(usual_s),
    )
    ratio = math.exp(sample)
    runtime_s = max(1.0, usual_s)
    assert ratio >= 10.0 * (1 - 1e-12)
    assert ratio * runtime_s >= max(given_s, silent_s) * (1 - 1e-9)
    assert ratio <= max(10.0, max(given_s, silent_s) / runtime_s) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("interval_s", "expected_s"),
    [
        (36_000.0, 3600.0),  # 10 h: a tenth
        (1800.0, 300.0),  # half an hour: at least 5 min
        (30 * DAY_S, DAY_S),  # a month: at most a day
        (3000.0, 300.0),
        (10 * DAY_S, DAY_S),
    ],
)
def test_grace_is_a_tenth_of_the_interval_within_its_bounds(interval_s: float, expected_s: float) -> None:
    due_at = Instant(NOW + interval_s)
    assert grace_s(NOW, due_at, LifecycleSettings()) == pytest.approx(expected_s)
    assert timeout_at(NOW, due_at, LifecycleSettings()) == pytest.approx(due_at + expected_s)


def test_the_most_grace_wins_over_the_least() -> None:
    settings = LifecycleSettings(min_grace_s=DAY_S, max_grace_s=Seconds(DAY_S / 2))
    assert grace_s(NOW, Instant(NOW + 100.0), settings) == 43_200.0


def test_a_silence_is_an_outage_from_the_setting_on() -> None:
    assert least_outage_s(LifecycleSettings()) == 600.0
    assert least_outage_s(LifecycleSettings(outage_s=Seconds(60.0))) == 60.0


def test_sweeps_that_are_far_apart_are_no_outage() -> None:
    assert least_outage_s(LifecycleSettings(sweep_interval_s=Seconds(500.0))) == 1500.0
