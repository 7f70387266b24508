"""The same cases come to the same, here, on processes and on a Dask cluster."""

from __future__ import annotations

import pytest
from distributed import LocalCluster

from administration.simulating import duties
from domain.errors import InvalidInputError
from simulator.run import Case, Ran
from simulator.scenario import read_scenario
from simulator.sweep import cases_of, run_here, run_on_dask, run_on_processes, seldom
from tests.unit.simulator.test_run import tiny


class Told:
    def __init__(self) -> None:
        self.places: list[int] = []
        self.ended: list[int] = []

    def moved(self, place: int, at: float) -> None:
        self.places.append(place)

    def over(self, place: int) -> None:
        self.ended.append(place)


def cases() -> list[Case]:
    return cases_of(tiny(), rules=("fixed", "clairvoyant"), seeds=(1, 2), settings={})


def test_rules_without_copies_of_last_jobs_have_none_unless_asked() -> None:
    def fractions(**settings: object) -> list[object]:
        rules = ("muster", "fixed", "fixed+copies", "proposal", "accelerated")
        made = cases_of(tiny(), rules=rules, seeds=(1,), settings=settings)
        return [case.settings.get("lifecycle.tail_overhead_fraction") for case in made]

    assert fractions() == [None, 0.0, None, 0.0, None]
    assert fractions(**{"lifecycle.tail_overhead_fraction": 0.1}) == [0.1] * 5


def test_a_scenario_in_which_nobody_submits_anything_is_refused() -> None:
    with pytest.raises(
        InvalidInputError, match=r"scenario: expected at least one \[\[batch\]\] table, or a workload log"
    ):
        cases_of(read_scenario("small", {"batch": []}), rules=("muster",), seeds=(1,), settings={})


def test_processes_do_what_is_done_here() -> None:
    told, elsewhere = Told(), Told()
    kept: dict[int, Ran] = {}
    here = run_here(cases(), duties, told, kept.__setitem__)
    assert [kept[place] for place in range(4)] == here
    kept.clear()
    there = run_on_processes(cases(), duties, elsewhere, kept.__setitem__, processes=2)

    assert here == there == [kept[place] for place in range(4)]
    assert told.ended == [0, 1, 2, 3]
    assert sorted(elsewhere.ended) == [0, 1, 2, 3]
    assert set(elsewhere.places) == {0, 1}


@pytest.mark.filterwarnings("ignore")  # of a cluster's own coming and going
def test_a_cluster_does_what_is_done_here() -> None:
    told, kept = Told(), dict[int, Ran]()
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        there = run_on_dask(cases(), duties, told, kept.__setitem__, address=cluster.scheduler_address)

    assert there == run_here(cases(), duties, Told())
    assert [kept[place] for place in range(len(there))] == there
    assert sorted(told.ended) == [0, 1, 2, 3]


def test_who_watches_hears_a_few_times_a_day() -> None:
    heard: list[float] = []
    tell = seldom(heard.append)
    for hour in range(49):
        tell(3600.0 * hour)  # type: ignore[arg-type]

    assert heard == [3600.0 * hour for hour in (0, 6, 12, 18, 24, 30, 36, 42, 48)]
