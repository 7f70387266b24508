"""Measured hosts: the same for every seed, with the measured on fraction."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.units import DAY_S, Seconds
from simulator.population import FIRST_CALLS_S, MeasuredHost, MeasuredPopulation, presence
from simulator.scenario import MONDAY
from simulator.traits import Traits

HOST = MeasuredHost(4, 2e9, 8e9, 5e10, "linux", "Linux", owner=7, stretch=2.0, on_fraction=0.4, buffer_s=Seconds(DAY_S))
MANY = MeasuredPopulation.of(tuple(replace(HOST, ncpus=1 + number % 8, owner=number) for number in range(200)))


def traits_of(seed: int) -> list[Traits]:
    return MANY.traits(seed, starts_at=MONDAY, horizon_s=30 * DAY_S)


def test_seeds_change_call_times_but_not_hosts() -> None:
    one, other = traits_of(1), traits_of(2)

    assert [replace(each, first_call_at=MONDAY) for each in one] == [
        replace(each, first_call_at=MONDAY) for each in other
    ]
    assert [each.first_call_at for each in one] != [each.first_call_at for each in other]
    assert all(MONDAY <= each.first_call_at < MONDAY + FIRST_CALLS_S for each in one)


def test_a_computer_has_the_traits_that_were_measured() -> None:
    first = traits_of(1)[3]

    assert (first.ncpus, first.flop_per_s_of(2.0, 0.0), first.platform) == (4, 2e9, "linux")
    assert (first.buffer.full_s, first.share, first.authenticator) == (DAY_S, 1.0, f"{3:032x}")
    assert MANY.platforms == {"linux": 1.0}


@pytest.mark.parametrize("fraction", [0.1, 0.4, 0.9])
def test_a_computer_is_on_for_the_measured_share_of_time(fraction: float) -> None:
    population = MeasuredPopulation.of(tuple(replace(HOST, on_fraction=fraction) for _ in range(200)))
    days = 100 * DAY_S
    on_s = [
        population.availability(traits, 1)[0].worked_s(MONDAY + days)
        for traits in population.traits(1, starts_at=MONDAY, horizon_s=days)
    ]

    assert sum(on_s) / (200 * days) == pytest.approx(fraction, abs=0.03)
    assert presence(fraction).fraction == pytest.approx(fraction)


def test_a_computer_has_its_share_labels_and_next_call() -> None:
    population = MeasuredPopulation.of((replace(HOST, share=0.25, labels=("lab",), asks_after_s=60.0),))
    [traits] = population.traits(1, starts_at=MONDAY, horizon_s=DAY_S)

    assert (traits.share, traits.labels, traits.asks_from_at) == (0.25, ("lab",), MONDAY + 60.0)


def test_short_buffer_has_no_additional_work() -> None:
    short = MeasuredPopulation.of((replace(HOST, buffer_s=Seconds(0.0)),))
    [traits] = short.traits(1, starts_at=MONDAY, horizon_s=DAY_S)

    assert (traits.buffer.min_s, traits.buffer.additional_s) == (0.0, 0.0)
