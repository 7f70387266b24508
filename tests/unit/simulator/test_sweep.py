"""Cases give the same results in this process, in a pool, and on a Dask cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest
from distributed import LocalCluster

from administration.simulations.process import simulated_tasks
from domain.deadline_rules import CLAIRVOYANT
from domain.errors import InvalidInputError
from simulator.frontier import Swept, Tried, frontier
from simulator.metrics import Figures
from simulator.report import RuleComparison
from simulator.run import Case, Ran
from simulator.scenario import read_scenario
from simulator.sweep import (
    MOST_COMBINATIONS,
    Axis,
    cases_of,
    combinations,
    grid_of,
    run_here,
    run_on_dask,
    run_on_processes,
    seldom,
)
from tests.facts import missing, states
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
    return cases_of(tiny(), rules=("muster", "clairvoyant"), seeds=(1, 2), settings={})


@pytest.fixture(scope="module")
def here() -> list[Ran]:
    """What the cases come to in this process."""
    told, kept = Told(), dict[int, Ran]()
    ran = run_here(cases(), simulated_tasks, told, kept.__setitem__)
    assert [kept[place] for place in range(4)] == ran
    assert told.ended == [0, 1, 2, 3]
    return ran


def test_rules_without_tail_copies_have_none_by_default() -> None:
    def fractions(**settings: object) -> list[object]:
        rules = ("muster", "fixed", "fixed+copies", "proposal", "accelerated")
        made = cases_of(tiny(), rules=rules, seeds=(1,), settings=settings)
        return [case.settings.get("lifecycle.tail_overhead_fraction") for case in made]

    assert fractions() == [None, 0.0, None, 0.0, None]
    assert fractions(**{"lifecycle.tail_overhead_fraction": 0.1}) == [0.1] * 5


def test_scenario_without_batches_is_refused() -> None:
    with states(InvalidInputError, "scenario:", "[[batch]]", "workload log"):
        cases_of(read_scenario("small", {"batch": []}), rules=("muster",), seeds=(1,), settings={})


def test_processes_do_what_is_done_here(here: list[Ran]) -> None:
    told, kept = Told(), dict[int, Ran]()
    there = run_on_processes(cases(), simulated_tasks, told, kept.__setitem__, processes=2)

    assert here == there == [kept[place] for place in range(4)]
    assert sorted(told.ended) == [0, 1, 2, 3]
    assert set(told.places) == {0, 1}


@pytest.mark.filterwarnings("ignore")  # from the cluster's start and stop
def test_a_cluster_does_what_is_done_here(here: list[Ran]) -> None:
    told, kept = Told(), dict[int, Ran]()
    with LocalCluster(  # type: ignore[no-untyped-call]
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        there = run_on_dask(cases(), simulated_tasks, told, kept.__setitem__, address=cluster.scheduler_address)

    assert here == there == [kept[place] for place in range(4)]
    assert sorted(told.ended) == [0, 1, 2, 3]


def test_who_watches_hears_a_few_times_a_day() -> None:
    heard: list[float] = []
    tell = seldom(heard.append)
    for hour in range(49):
        tell(3600.0 * hour)  # type: ignore[arg-type]

    assert heard == [3600.0 * hour for hour in (0, 6, 12, 18, 24, 30, 36, 42, 48)]


P_AFAP: Axis = ("deadline.p_afap", [0.3, 0.9])
COPIES: Axis = ("lifecycle.tail_overhead_fraction", [0, 0.25])


def reached(hours: float, price: float, hurried: float | None = 0.1) -> Figures:
    return Figures(afap_makespan_s=3600.0 * hours, instances_per_job=price, deadline_mode_fraction=hurried)


def test_rules_run_in_every_combination_and_the_bound_once() -> None:
    rules = ("muster", CLAIRVOYANT, "fixed")
    grid = grid_of(tiny(), [P_AFAP, COPIES], rules=rules, seeds=(1, 2), settings={"deadline.p_late": 0.6})

    assert [(case.rule, case.seed) for case in grid.bound] == [(CLAIRVOYANT, 1), (CLAIRVOYANT, 2)]
    assert [[(case.rule, case.seed) for case in cases] for cases in grid.by_combination] == 4 * [
        [("muster", 1), ("muster", 2), ("fixed", 1), ("fixed", 2)]
    ]
    assert [
        (case.settings["deadline.p_afap"], case.settings["lifecycle.tail_overhead_fraction"])
        for case in grid.cases[2::4]
    ] == [(0.3, 0.0), (0.3, 0.25), (0.9, 0.0), (0.9, 0.25)]
    assert all(case.settings["deadline.p_late"] == 0.6 for case in grid.cases)
    assert grid.by_case[:3] == [{}, {}, {"deadline.p_afap": 0.3, "lifecycle.tail_overhead_fraction": 0.0}]


def test_runs_go_to_the_combinations_they_were_made_of() -> None:
    grid = grid_of(tiny(), [P_AFAP], rules=("muster", CLAIRVOYANT), seeds=(1, 2), settings={})
    ran = [Ran(reached(float(place), 1.0)) for place in range(len(grid.cases))]
    swept = grid.swept(ran)

    assert (swept.scenario, swept.seeds, swept.rules) == ("small", 2, ["muster"])
    assert [one.settings for one in swept.tried] == grid.combinations
    assert [one.afap_makespan_s for one in swept.figures("muster")] == [2.5 * 3600.0, 4.5 * 3600.0]
    assert [one.comparison.rules[CLAIRVOYANT].afap_makespan_s for one in swept.tried] == 2 * [0.5 * 3600.0]


@pytest.mark.parametrize(
    ("axes", "settings", "facts"),
    [
        ([("deadline.p_afab", [1])], {}, ("deadline.p_afab:", "setting")),
        ([("deadline.p_afap", [])], {}, ("--sweep:", "deadline.p_afap", "'none'")),
        ([("deadline.p_afap", [0.5, 2])], {}, ("deadline.p_afap:", "0 to 1", "2")),
        ([("deadline.p_afap", [1, 0.5, 1.0])], {}, ("--sweep:", "deadline.p_afap", "once", "1.0")),
        ([P_AFAP, COPIES, P_AFAP], {}, ("--sweep:", "once", "'deadline.p_afap'")),
        ([P_AFAP], {"deadline.p_afap": 0.5}, ("--sweep:", "--set")),
        ([("deadline.rule", ["fixed"])], {}, ("--sweep:", "deadline.rule", "--rule")),
        (
            [("deadline.p_afap", list(range(30))), ("deadline.p_late", list(range(20)))],
            {},
            ("--sweep:", f"at most {MOST_COMBINATIONS}", "'30 x 20 = 600'"),
        ),
    ],
)
def test_what_cannot_be_swept_is_named(axes: list[Axis], settings: dict[str, object], facts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        grid_of(tiny(), axes, rules=("muster",), seeds=(1,), settings=settings)

    assert not missing(str(refused.value), *facts)


def test_settings_of_the_scenario_may_be_swept() -> None:
    assert len(combinations([P_AFAP], {"deadline.p_afap": 0.5})) == 2


def test_the_bound_alone_has_nothing_to_sweep() -> None:
    with states(InvalidInputError, "--rule", "in addition to clairvoyant"):
        grid_of(tiny(), [P_AFAP], rules=(CLAIRVOYANT,), seeds=(1,), settings={})


@pytest.mark.parametrize(
    ("every", "marked"),
    [
        ([reached(20, 1.1), reached(30, 1.2)], {0}),
        ([reached(20, 1.2), reached(30, 1.1)], {0, 1}),
        ([reached(20, 1.1), reached(20, 1.1)], {0, 1}),
        ([reached(20, 1.1, 0.2), reached(20, 1.1, 0.1)], {1}),
        ([reached(20, 1.1, 0.2), reached(30, 1.2, 0.1), reached(30, 1.3, 0.1)], {0, 1}),
        ([reached(20, 1.1, None), reached(30, 1.2)], {1}),
        ([Figures()], set()),
        ([replace(reached(20, 1.1), cut_short=("afap",)), reached(30, 1.1)], {1}),  # its true duration is unknown
    ],
)
def test_frontier_has_the_undominated_combinations(every: list[Figures], marked: set[int]) -> None:
    assert frontier(every) == marked


def test_json_has_combinations_and_the_frontier() -> None:
    tried = [
        Tried({"deadline.p_afap": p_afap}, RuleComparison("small", 3, {"muster": ours, "fixed": reached(9, 1.0)}))
        for p_afap, ours in ((0.3, reached(20, 1.1)), (0.9, reached(30, 1.2)))
    ]

    assert Swept("small", 3, tried).as_json() == {
        "scenario": "small",
        "seeds": 3,
        "sweep": [
            {
                "settings": {"deadline.p_afap": p_afap},
                "rules": {
                    "muster": {
                        "afap_makespan_s": 3600.0 * hours,
                        "instances_per_job": price,
                        "deadline_mode_fraction": 0.1,
                    },
                    "fixed": {"afap_makespan_s": 32400.0, "instances_per_job": 1.0, "deadline_mode_fraction": 0.1},
                },
                "frontier": marked,
            }
            for p_afap, hours, price, marked in ((0.3, 20, 1.1, True), (0.9, 30, 1.2, False))
        ],
    }
