"""The system clock."""

from __future__ import annotations

import time

from domain.clock import SystemClock


def test_now_is_the_wall_clock() -> None:
    before_ns = time.time_ns()
    now = SystemClock().now()

    assert before_ns / 1e9 - 1e-3 <= now <= time.time_ns() / 1e9 + 1e-3


def test_monotonic_does_not_go_backward() -> None:
    clock = SystemClock()

    readings = [clock.monotonic() for _ in range(100)]

    assert readings == sorted(readings)


async def test_a_sleep_of_nothing_returns() -> None:
    await SystemClock().sleep(0.0)
