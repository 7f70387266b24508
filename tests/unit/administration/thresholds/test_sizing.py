"""The size of a simulation that takes about a minute."""

from __future__ import annotations

from typing import Any

import pytest

from administration.thresholds.sizing import ENOUGH_S, LEAST_HOSTS, ReplayCost, slower_of
from domain.units import Instant
from domain.views import Simulation, SimulationState

SIZE: dict[str, Any] = {"seeds": 2, "days": 3.0}


@pytest.mark.parametrize("active", [1, 12, 240, 20_000])
@pytest.mark.parametrize("jobs_open", [1, 12_909, 1_000_000])
def test_offered_size_takes_a_minute_or_has_few_hosts(active: int, jobs_open: int) -> None:
    cost = ReplayCost(active, jobs_open)

    hosts = cost.hosts_within(ENOUGH_S, **SIZE)

    assert 1 <= hosts <= active
    assert cost.seconds(hosts=hosts, **SIZE) <= ENOUGH_S or hosts <= LEAST_HOSTS
    assert hosts == active or cost.seconds(hosts=hosts + 1, **SIZE) > ENOUGH_S


def test_slower_machine_gets_fewer_hosts() -> None:
    quick, slow = (ReplayCost(240, 5000, slower) for slower in (1.0, 1.5))

    assert slow.hosts_within(ENOUGH_S, **SIZE) < quick.hosts_within(ENOUGH_S, **SIZE)


@pytest.mark.parametrize(
    ("state", "asked", "slower"),
    [
        (SimulationState.DONE, {"scenario": "recent", "cpu_s": 50.0}, 2.0),
        (SimulationState.DONE, {"scenario": "recent"}, None),
        (SimulationState.DONE, {"scenario": "small", "cpu_s": 50.0}, None),
        (SimulationState.CANCELLED, {"scenario": "recent", "cpu_s": 50.0}, None),
    ],
)
def test_finished_simulation_tells_the_speed(
    state: SimulationState, asked: dict[str, object], slower: float | None
) -> None:
    past = Simulation(1, Instant(0.0), "ada", asked, state, Instant(100.0), 1.0)

    assert slower_of(past) == slower
