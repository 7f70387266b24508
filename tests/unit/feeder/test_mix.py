from __future__ import annotations

import pytest

from domain.apps import CPU, NVIDIA
from domain.units import Seconds
from feeder.mix import MIX_HALF_LIFE_S, RequestMix


def test_a_request_counts_half_after_the_half_life() -> None:
    mix = RequestMix()
    mix.note([CPU, NVIDIA], now_s=Seconds(5000.0))
    later_s = Seconds(5000.0 + MIX_HALF_LIFE_S)
    mix.note([CPU], now_s=later_s)
    assert mix.weights(now_s=later_s) == pytest.approx({CPU: 1.5, NVIDIA: 0.5})


def test_years_without_requests_do_no_harm() -> None:
    mix = RequestMix()
    mix.note([NVIDIA], now_s=Seconds(0.0))
    assert mix.weights(now_s=Seconds(1e9))[NVIDIA] == pytest.approx(0.0)
    mix.note([CPU], now_s=Seconds(1e9))
    assert mix.weights(now_s=Seconds(1e9)) == pytest.approx({CPU: 1.0})
