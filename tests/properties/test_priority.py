"""Logical time is fair for any submissions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.units import Flop, FlopPerSecond, Instant
from priority.logical_time import charge_batch

flop = st.floats(0, 1e22)
pool = st.floats(1e6, 1e18)
share = st.floats(0, 1)
instant = st.floats(0, 4e9)
rules = st.sampled_from(["design", "wfq"])


@given(flop, pool, share, instant, instant, rules)
def test_batch_has_a_finite_place_and_advances_its_submitter(
    batch_flop: float, pool_flop_per_s: float, share_fraction: float, logical_at: float, now: float, rule: str
) -> None:
    times = charge_batch(
        logical_at=Instant(logical_at),
        now=Instant(now),
        batch_flop=Flop(batch_flop),
        pool_flop_per_s=FlopPerSecond(pool_flop_per_s),
        share_fraction=share_fraction,
        rule=rule,
    )
    assert times.logical_start_at == max(logical_at, now)
    assert times.logical_start_at <= times.logical_end_at <= times.submitter_logical_at
    assert math.isfinite(times.submitter_logical_at)


@given(st.lists(st.floats(1e12, 1e18), min_size=1, max_size=10), st.floats(0.01, 1), rules)
def test_a_submitter_pays_for_the_sum_however_it_is_split(parts: list[float], share_fraction: float, rule: str) -> None:
    now = Instant(0.0)
    logical_at = now
    for part in parts:
        logical_at = charge_batch(
            logical_at=logical_at,
            now=now,
            batch_flop=Flop(part),
            pool_flop_per_s=FlopPerSecond(1e12),
            share_fraction=share_fraction,
            rule=rule,
        ).submitter_logical_at
    assert logical_at == pytest.approx(sum(parts) / 1e12 / share_fraction)
