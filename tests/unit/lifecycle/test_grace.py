"""How long silence of a host is borne, and when silence of the project is an outage."""

from __future__ import annotations

import pytest

from domain.settings import LifecycleSettings
from domain.units import DAY_S, Instant, Seconds
from lifecycle.grace import grace_s, least_outage_s, timeout_at
from tests.builders import NOW


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
