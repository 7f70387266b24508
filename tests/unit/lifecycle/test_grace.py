"""How long silence is borne, and what an outage does to due dates."""

from __future__ import annotations

import pytest

from domain.settings import LifecycleSettings
from domain.units import DAY_S, Instant, Seconds
from lifecycle.grace import grace_s, outage_shift_s, timeout_at
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


def test_an_outage_moves_due_dates_by_its_whole_length() -> None:
    assert outage_shift_s(Instant(NOW - 601.0), NOW, LifecycleSettings()) == 601.0
    assert outage_shift_s(Instant(NOW - 600.0), NOW, LifecycleSettings()) == 600.0


def test_a_short_absence_moves_nothing() -> None:
    assert outage_shift_s(Instant(NOW - 599.0), NOW, LifecycleSettings()) == 0.0


def test_a_clock_that_went_back_moves_nothing() -> None:
    assert outage_shift_s(Instant(NOW + 5000.0), NOW, LifecycleSettings()) == 0.0


def test_a_project_that_never_ran_had_no_outage() -> None:
    assert outage_shift_s(None, NOW, LifecycleSettings()) == 0.0
