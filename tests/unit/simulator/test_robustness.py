"""Drawn populations are valid scenarios, repeatable, in range, and spread over every range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.units import DAY_S, HOUR_S
from simulator.population_fields import parse_population
from simulator.robustness import (
    DIMENSIONS,
    MOST_ERROR,
    MOST_LOSS,
    MOST_NUMBER,
    PARTS,
    _places,
    drawn_scenario,
    on_fraction,
    population_number,
)
from simulator.scenario import read_scenario

numbers = st.integers(1, MOST_NUMBER)
HALF = range(1, 25, 2)


@given(numbers)
@settings(max_examples=60, deadline=None)
def test_every_drawn_population_is_a_valid_scenario(number: int) -> None:
    """Reading checks every field, that batches begin before the end, and that some host can run each."""
    scenario = read_scenario(f"robustness:{number}")
    population = scenario.population

    assert scenario.name == f"robustness-{number}"
    assert 20 <= population.arrivals[0].hosts <= 2000
    assert 0.0 <= population.loss_fraction <= MOST_LOSS
    assert 0.0 <= population.error_fraction <= MOST_ERROR
    assert 0.3 <= population.share <= 1.0
    assert 0.0 <= population.buffer_sigma <= 1.0
    assert 2.0 <= scenario.delay_bound_s / DAY_S <= 10.0
    assert scenario.horizon_s / DAY_S <= 90.0
    assert 0.05 < on_fraction(population) <= 1.0
    assert {QoS.AFAP, QoS.THROUGHPUT} <= {batch.qos for batch in scenario.batches}
    assert sum(batch.jobs for batch in scenario.batches) < 5000


@given(numbers)
@settings(max_examples=30, deadline=None)
def test_the_same_number_draws_the_same_scenario(number: int) -> None:
    assert drawn_scenario(number) == drawn_scenario(number)
    assert read_scenario(f"robustness:{number}") == read_scenario(f"robustness:{number}")


@given(st.integers(0, 10_000), st.sampled_from([0, 1]))
@settings(max_examples=30, deadline=None)
def test_six_populations_of_a_half_cover_every_range(block: int, half: int) -> None:
    rows = range(block * PARTS, (block + 1) * PARTS)
    places = [_places(2 * row + (1 if half else 2)) for row in rows]

    for name in DIMENSIONS:
        assert sorted(int(place[name] * PARTS) for place in places) == list(range(PARTS))


def test_halves_share_no_population() -> None:
    odd, even = ([drawn_scenario(number + shift)["population"] for number in HALF] for shift in (0, 1))

    assert all(one not in even for one in odd)


def test_a_half_has_every_kind_of_batch_and_population() -> None:
    scenarios = [read_scenario(f"robustness:{number}") for number in HALF]
    populations = [one.population for one in scenarios]

    assert {batch.qos for one in scenarios for batch in one.batches} == set(QoS)
    assert any(one.gpus for one in populations)
    assert any(one.presences[0].hours for one in populations)
    assert any(on_fraction(one) == 1.0 for one in populations)
    assert any(len(one.arrivals) > 1 for one in populations)
    assert any(one.arrivals[0].mean_stay_s < 60 * DAY_S for one in populations)
    assert any(one.arrivals[0].hosts > 500 for one in populations)
    assert any(one.loss_fraction > 0.2 for one in populations)
    assert min(batch.fpops_est for one in scenarios for batch in one.batches) < HOUR_S * 1.67e9


@pytest.mark.parametrize("name", ["robustness:", "robustness:0", "robustness:-1", "robustness:x", "robustness:9999999"])
def test_a_wrong_number_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="robustness:NUMBER"):
        read_scenario(name)


def test_other_names_have_no_number() -> None:
    assert population_number("small") is None
    assert population_number("robustness") is None


def test_values_of_a_drawn_scenario_can_be_changed() -> None:
    assert read_scenario("robustness:3", {"population.loss_fraction": 0.25}).population.loss_fraction == 0.25


def test_speed_sigma_spreads_benchmarks() -> None:
    alike = parse_population({"hosts": 300}, folder=Path())
    spread = parse_population({"hosts": 300, "speed_sigma": 0.8}, folder=Path())
    speeds = [
        sorted(
            one.flop_per_s for one in population.traits(1, starts_at=read_scenario("small").starts_at, horizon_s=1.0)
        )
        for population in (alike, spread)
    ]

    assert speeds[1][-10] / speeds[1][10] > 2.0 * speeds[0][-10] / speeds[0][10]
