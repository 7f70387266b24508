"""Samples keep their sums when they are thinned, and a window is drawn from the shortest step that goes back so far."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import InvalidInputError
from domain.samples import (
    KEPT_S,
    LATEST_AT,
    MOST_SAMPLES,
    RANGES_S,
    Sample,
    Window,
    at_most,
    step_of,
    thinned,
    with_gaps,
)
from domain.samples import window_of as window
from domain.units import Instant, later
from tests.builders import NOW

PLACES = st.sets(st.integers(0, 500), min_size=1)


def samples_at(places: set[int], step_s: int) -> list[Sample]:
    return [Sample(Instant(float(place * step_s)), {"requests": float(place)}) for place in sorted(places)]


@given(PLACES)
def test_thinning_keeps_the_mean_and_one_sample_per_step(places: set[int]) -> None:
    fine = samples_at(places, 10)
    coarse = thinned(fine, 60)

    groups = {one.at: [fine_one for fine_one in fine if fine_one.at // 60 == one.at // 60] for one in coarse}
    assert len(groups) == len(coarse) and sum(map(len, groups.values())) == len(fine)
    for one in coarse:
        assert one.at % 60 == 0
        values = [fine_one.figures["requests"] for fine_one in groups[one.at]]
        assert one.figures["requests"] == pytest.approx(sum(values) / len(values))


def test_absent_refusals_count_as_zero_and_others_do_not() -> None:
    fine = [Sample(Instant(0.0), {"refused.disk": 3.0, "hosts": 9.0}), Sample(Instant(10.0)), Sample(Instant(20.0))]

    assert thinned(fine, 60) == [Sample(Instant(0.0), {"refused.disk": 1.0, "hosts": 9.0})]


def test_no_step_has_more_samples_than_a_query_returns() -> None:
    assert all(kept_s / step + 2 <= MOST_SAMPLES for step, kept_s in KEPT_S.items())
    assert all(coarse % fine == 0 for fine, coarse in pairwise(KEPT_S))


@pytest.mark.parametrize(("name", "step"), list(zip(RANGES_S, KEPT_S, strict=True)))
def test_each_range_has_its_step(name: str, step: int) -> None:
    assert step_of(window(name, None, None, NOW), NOW) == step


def test_a_part_is_drawn_from_the_finest_samples_that_exist() -> None:
    ago = [(300.0, 10), (7200.0, 60), (2 * 86400.0, 600), (9e6, 21_600), (9e8, 21_600)]

    for ago_s, step in ago:
        assert step_of(Window(later(NOW, -ago_s), later(NOW, 60.0 - ago_s)), NOW) == step


@given(PLACES, st.integers(10, 400))
def test_charts_have_at_most_so_many_points(places: set[int], most: int) -> None:
    found, step = at_most(samples_at(places, 10), 10, most, 5010.0)

    assert len(found) <= most + 1
    assert step % 10 == 0 and all(one.at % step == 0 for one in found)


@given(PLACES)
def test_a_gap_is_one_empty_sample(places: set[int]) -> None:
    given_ones = samples_at(places, 10)
    shown = with_gaps(given_ones, 10.0)

    assert [one for one in shown if one.figures] == given_ones
    assert all(b.at - a.at <= 20.0 for a, b in pairwise(shown) if a.figures)
    assert not any(not a.figures and not b.figures for a, b in pairwise(shown))


@pytest.mark.parametrize(
    ("name", "from_at", "to_at", "field"),
    [
        ("decade", None, None, "range"),
        ("", 5.0, None, "to_at"),
        ("hour", None, 5.0, "from_at"),
        ("", 9.0, 9.0, "to_at"),
        ("", LATEST_AT, 0.0, "to_at"),
    ],
)
def test_impossible_windows_are_refused_by_field(
    name: str, from_at: float | None, to_at: float | None, field: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        window(name, from_at, to_at, NOW)
    assert refused.value.field == field
