"""The drawn profiles of simulated volunteers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demo.load.jobs import Profile, draw_profiles

ORDINARY = Profile(1, "a@x", ncpus=1, flop_per_s=1e9, stretch=1.0)


def test_profiles_depend_on_the_seed_only() -> None:
    assert draw_profiles(50, seed=3) == draw_profiles(50, seed=3)
    assert draw_profiles(50, seed=3) != draw_profiles(50, seed=4)


def test_more_profiles_begin_with_the_same_ones() -> None:
    assert draw_profiles(60, seed=3)[:20] == draw_profiles(20, seed=3)


@given(st.integers(0, 100), st.integers(0, 2**32))
def test_every_member_is_one_a_server_could_meet(count: int, seed: int) -> None:
    profiles = draw_profiles(count, seed=seed)

    assert [profile.number for profile in profiles] == list(range(1, count + 1))
    assert len({profile.email for profile in profiles}) == count
    for profile in profiles:
        assert profile.ncpus in (1, 2, 4)
        assert 2.5e8 <= profile.flop_per_s <= 6e9
        assert profile.stretch > 0
        for fraction in (profile.error_fraction, profile.vanish_fraction, profile.garbage_fraction):
            assert 0.0 <= fraction <= 1.0


@given(st.integers(0, 2**32))
def test_trouble_comes_in_fixed_shares(seed: int) -> None:
    profiles = draw_profiles(60, seed=seed)

    assert [p.number for p in profiles if p.error_fraction > 0] == [12, 24, 36, 48, 60]
    assert [p.number for p in profiles if p.vanish_fraction > 0.5] == [7, 22, 37, 52]
    assert [p.number for p in profiles if p.garbage_fraction > 0] == [11, 31, 51]


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "ordinary"),
        ({"flop_per_s": 2e9}, "fast"),
        ({"flop_per_s": 9.9e8}, "slow"),
        ({"error_fraction": 0.4}, "faulty"),
        ({"vanish_fraction": 0.8, "error_fraction": 0.4}, "leaver"),
        ({"garbage_fraction": 0.5, "vanish_fraction": 0.8}, "cheat"),
    ],
)
def test_the_kind_is_the_worst_that_can_be_said(changes: dict[str, Any], kind: str) -> None:
    assert replace(ORDINARY, **changes).kind == kind
