from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from domain.errors import InvalidInputError
from domain.units import DAY_S, HOUR_S
from simulator.population import FIRST_CALLS_S, Arrivals, GpuKind, HostPopulation, Presence
from simulator.population_fields import USUAL, parse_population
from simulator.scenario import MONDAY
from simulator.traits import Traits
from tests.facts import missing

WEIBULL: dict[str, object] = {"law": "weibull", "shape": 1, "scale_hours": 1}
HUNDRED = HostPopulation((Arrivals(100),))
THOUSAND = HostPopulation((Arrivals(1000),))


def traits_of(population: HostPopulation, seed: int = 1, *, days: float = 30.0) -> list[Traits]:
    return population.traits(seed, starts_at=MONDAY, horizon_s=days * DAY_S)


def test_the_same_seed_gives_the_same_computers() -> None:
    assert traits_of(HUNDRED, 3) == traits_of(HUNDRED, 3)
    assert traits_of(HUNDRED, 3) != traits_of(HUNDRED, 4)


def test_availability_is_independent_of_other_hosts() -> None:
    population = replace(HUNDRED, presences=USUAL)
    first, second = traits_of(population)[:2]
    alone, _ = population.availability(second, 1)
    population.availability(first, 1)[0].worked_s(MONDAY + 20 * DAY_S)
    after, _ = population.availability(second, 1)

    assert [alone.worked_s(MONDAY + day * DAY_S) for day in range(20)] == [
        after.worked_s(MONDAY + day * DAY_S) for day in range(20)
    ]


def test_first_calls_are_spread_over_the_first_hours() -> None:
    phases = [(one.first_call_at - MONDAY) / FIRST_CALLS_S for one in traits_of(THOUSAND)]

    assert 0.0 <= min(phases) < 0.01 < 0.99 < max(phases) < 1.0
    assert np.mean(phases) == pytest.approx(0.5, abs=0.03)


def test_who_leaves_is_replaced_so_that_as_many_take_part() -> None:
    stays = traits_of(HostPopulation((Arrivals(500, mean_stay_s=5 * DAY_S, replaced=True),)))

    assert len(stays) == pytest.approx(500 * (1 + 30 / 5), rel=0.1)
    for day in (1, 15, 29):
        at = MONDAY + day * DAY_S
        assert sum(one.joins_at <= at < one.leaves_at for one in stays) == 500


def test_a_flash_crowd_joins_late_and_leaves_soon() -> None:
    crowd = HostPopulation((Arrivals(50), Arrivals(300, at_s=10 * DAY_S, over_s=6 * HOUR_S, mean_stay_s=2 * DAY_S)))
    stays = traits_of(crowd)

    assert len(stays) == 350
    assert [one.number for one in stays] == list(range(1, 351))
    assert sum(one.joins_at == MONDAY for one in stays) == 50
    assert {10} == {int((one.joins_at - MONDAY) / DAY_S) for one in stays if one.joins_at > MONDAY}


def test_unreliable_and_silent_hosts_match_their_fractions() -> None:
    some = replace(THOUSAND, unreliable_hosts_fraction=0.2, silent_hosts_fraction=0.05)
    all_hosts = traits_of(some)

    assert sum(one.error_fraction == 0.3 for one in all_hosts) == pytest.approx(200, abs=40)
    assert sum(one.loss_fraction == 1.0 for one in all_hosts) == pytest.approx(50, abs=25)
    assert {one.loss_fraction for one in all_hosts} == {0.05, 1.0}


def test_gpus_are_as_many_as_asked_for() -> None:
    some = replace(THOUSAND, gpus=(GpuKind(0.3, "NVIDIA", 1, 4e12, 0.5, 6e9), GpuKind(0.1, "ATI", 2, 3e12, 0.0, 4e9)))
    gpus = [one.gpu for one in traits_of(some) if one.gpu is not None]

    assert sum(gpu.type == "NVIDIA" for gpu in gpus) == pytest.approx(300, abs=45)
    assert {gpu.peak_flop_per_s for gpu in gpus if gpu.type == "ATI"} == {3e12}


def test_people_may_have_several_computers() -> None:
    keys = {one.authenticator for one in traits_of(replace(THOUSAND, hosts_per_volunteer=4.0))}

    assert 200 < len(keys) <= 250
    assert len({one.authenticator for one in traits_of(THOUSAND)}) == 1000


def test_people_may_live_in_a_few_time_zones_only() -> None:
    near = parse_population({"hosts": 1000, "time_zones_hours": 1.5}, folder=Path())
    alone = parse_population({"hosts": 1000, "time_zones_hours": 0}, folder=Path())
    world = parse_population({"hosts": 1000}, folder=Path())
    zones = [one.timezone_s / HOUR_S for one in traits_of(near)]

    assert {one.timezone_s for one in traits_of(alone)} == {0.0}
    assert (min(zones), max(zones)) == (-1.5, 1.375)
    assert [8.0 * zone for zone in zones] == [one.timezone_s / HOUR_S for one in traits_of(world)]
    assert [replace(one, timezone_s=0.0) for one in traits_of(world)] == traits_of(
        alone
    )  # everything else is unchanged


def test_a_computer_that_nothing_is_said_of_is_always_on() -> None:
    some = replace(HUNDRED, presences=(Presence(),))
    availability, fraction = some.availability(traits_of(some)[0], 1)

    assert fraction == 1.0
    assert availability.worked_s(MONDAY + DAY_S) == DAY_S


def test_each_seed_has_new_volunteers_every_time() -> None:
    once, again = (HUNDRED.volunteers(1, starts_at=MONDAY, horizon_s=DAY_S) for _ in range(2))

    assert [one.next_event(MONDAY) for one in once] == [one.next_event(MONDAY) for one in again]
    assert all(one is not other for one, other in zip(once, again, strict=True))


def test_a_table_says_what_it_says_and_the_rest_is_usual() -> None:
    found = parse_population(
        {
            "hosts": 7,
            "computers": "einstein",
            "loss_fraction": 0.1,
            "mean_stay_days": 20,
            "arrivals": [{"hosts": 5, "at_hours": 48}],
            "platforms": {"x86_64-pc-linux-gnu": 1.0},
            "presence": [
                {
                    "on": {"law": "weibull", "shape": 0.5, "scale_hours": 2},
                    "off": {"law": "hyperexponential", "fractions": [0.5, 0.5], "means_hours": [1, 9]},
                    "hours": {"from": 8, "hours": 10},
                }
            ],
        },
        folder=Path(),
    )

    assert found.arrivals == (
        Arrivals(7, mean_stay_s=20 * DAY_S, replaced=True),
        Arrivals(5, at_s=2 * DAY_S, mean_stay_s=math.inf),
    )
    assert found.loss_fraction == 0.1
    assert found.presences[0].process.fraction == pytest.approx(4.0 / 9.0)
    assert found.error_fraction == HUNDRED.error_fraction


def test_a_path_to_a_table_counts_from_the_scenarios_folder(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("computers,avg_cores_per_computer,gflops_per_core\n5,3,2\n", encoding="utf-8")
    found = parse_population({"hosts": 20, "computers": "mine.csv"}, folder=tmp_path)

    assert {one.ncpus for one in traits_of(found)} == {3}


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"hosts": 2.5}, ("population.hosts:", "whole", "1 to 1000000", "2.5")),
        ({"loss_fraction": 1.5}, ("population.loss_fraction:", "0 to 1", "1.5")),
        ({"share_fraction": 0}, ("population.share_fraction:", "above 0", "at most 1", "0.0")),
        ({"computers": "amiga"}, ("population.computers:", "seti", "einstein", "lhc", "CSV", "'amiga'")),
        ({"colour": "blue"}, ("population.colour:", "hosts")),
        (
            {"arrivals": [{"hosts": 1}]},
            ("population.arrivals[0].at_hours:", "at least 0", "no value"),
        ),
        ({"gpus": [{"share": 0.7}, {"share": 0.6}]}, ("population.gpus:", "sum", "at most 1")),
        ({"presence": [{"on": {"law": "weibull"}}]}, ("population.presence[0]:", "`on`", "`off`")),
        (
            {"presence": [{"on": {"law": "pareto"}, "off": {}}]},
            ("population.presence[0].on.law:", "weibull"),
        ),
        (
            {"presence": [{"hours": {"from": 30, "hours": 1}}]},
            ("population.presence[0].hours.from:", "0 to less than 24"),
        ),
        (
            {"presence": [{"on": {"law": "hyperexponential", "fractions": [0.5], "means_hours": [1]}, "off": {}}]},
            ("population.presence[0].on.fractions:", "means_hours", "sum", "1", "[0.5]"),
        ),
        (
            {"presence": [{"on": {**WEIBULL, "shape": 0.001}, "off": WEIBULL}]},
            ("population.presence[0].on.shape:", "0.1 to 20", "0.001"),
        ),
        (
            {"presence": [{"on": WEIBULL, "off": {"law": "lognormal", "median_hours": 1, "sigma": 100}}]},
            ("population.presence[0].off.sigma:", "0 to 5", "100.0"),
        ),
        (
            {"presence": [{"on": WEIBULL, "off": WEIBULL, "spread_sigma": 500}]},
            ("population.presence[0].spread_sigma:", "0 to 5", "500.0"),
        ),
        (
            {"presence": [{"on": {**WEIBULL, "mean_hours": 3}, "off": WEIBULL}]},
            ("population.presence[0].on.mean_hours:", "law", "scale_hours", "shape", "unknown"),
        ),
        (
            {"presence": [{"on": {"law": "hyperexponential", "fractions": [1], "means_hours": [True]}, "off": {}}]},
            ("population.presence[0].on.means_hours:", "above 0", "[True]"),
        ),
        (
            {"presence": [{"on": {**WEIBULL, "scale_hours": 1e-6}, "off": WEIBULL}]},
            ("population.presence[0].on:", "60 s to 10 years", "315360000 s", "0.0036"),
        ),
        (
            {"presence": [{"on": WEIBULL, "off": {"law": "exponential", "mean_hours": 1e300}}]},
            ("population.presence[0].off:", "60 s to 10 years", "315360000 s"),
        ),
        ({"presence": [{"share": 0}]}, ("population.presence[0].share:", "above 0", "0")),
        (
            {"presence": [{"hours": {"from": 8, "hours": 30}}]},
            ("population.presence[0].hours.hours:", "0 to 24"),
        ),
        ({"stretch_sigma": 500}, ("population.stretch_sigma:", "0 to 5", "500.0")),
        ({"size_sigma": 500}, ("population.size_sigma:", "0 to 5", "500.0")),
        ({"buffer_sigma": math.nan}, ("population.buffer_sigma:", "at least 0", "nan")),
        ({"gpus": [{"share": 0.1, "sigma": 500}]}, ("population.gpus[0].sigma:", "0 to 5", "500.0")),
        ({"gpus": [{"share": 0.1, "type": ""}]}, ("population.gpus[0].type:", "''")),
        ({"platforms": {"": 1.0}}, ("population.platforms:", "''")),
        ({"time_zones_hours": 13}, ("population.time_zones_hours:", "0 to 12", "13.0")),
        ({"lost_jobs": "gone"}, ("population.lost_jobs:", "stalled", "forgotten", "'gone'")),
        ({"hosts": True}, ("population.hosts:", "whole", "1 to 1000000", "True")),
        ({"loss_fraction": math.inf}, ("population.loss_fraction:", "at least 0", "inf")),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_population({"hosts": 10, **change}, folder=Path())

    assert not missing(str(caught.value), *facts)
