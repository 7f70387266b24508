"""Settings in every combination: what is run for them, what is refused, and what no other beats."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.errors import InvalidInputError
from simulator.frontier import Swept, Tried, frontier
from simulator.grid import MOST_COMBINATIONS, Axis, combinations, grid_of
from simulator.metrics import Figures
from simulator.report import CLAIRVOYANT, Comparison
from simulator.run import Ran
from tests.unit.simulator.test_run import tiny

P_AFAP: Axis = ("deadline.p_afap", [0.3, 0.9])
COPIES: Axis = ("lifecycle.tail_overhead_fraction", [0, 0.25])


def reached(hours: float, price: float, hurried: float | None = 0.1) -> Figures:
    return Figures(afap_makespan_s=3600.0 * hours, instances_per_job=price, deadline_mode_fraction=hurried)


def test_every_rule_is_run_in_every_combination_and_the_bound_once() -> None:
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
    ("axes", "settings", "says"),
    [
        ([("deadline.p_afab", [1])], {}, "deadline.p_afab: expected the name of a setting"),
        ([("deadline.p_afap", [])], {}, "--sweep: expected values of deadline.p_afap, got 'none'"),
        ([("deadline.p_afap", [0.5, 2])], {}, "deadline.p_afap: expected a number from 0 to 1, got 2"),
        ([("deadline.p_afap", [1, 0.5, 1.0])], {}, "--sweep: expected each value of deadline.p_afap once, got 1.0"),
        ([P_AFAP, COPIES, P_AFAP], {}, "--sweep: expected each setting once, got 'deadline.p_afap'"),
        ([P_AFAP], {"deadline.p_afap": 0.5}, "--sweep: expected settings that --set does not give"),
        ([("deadline.rule", ["fixed"])], {}, "--sweep: expected settings other than deadline.rule: --rule is for that"),
        (
            [("deadline.p_afap", list(range(30))), ("deadline.p_late", list(range(20)))],
            {},
            f"--sweep: expected at most {MOST_COMBINATIONS} combinations, got '30 x 20 = 600'",
        ),
    ],
)
def test_what_cannot_be_swept_is_named(axes: list[Axis], settings: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        grid_of(tiny(), axes, rules=("muster",), seeds=(1,), settings=settings)

    assert says in str(refused.value)


def test_settings_of_the_scenario_may_be_swept() -> None:
    assert len(combinations([P_AFAP], {"deadline.p_afap": 0.5})) == 2


def test_the_bound_alone_has_nothing_to_sweep() -> None:
    with pytest.raises(InvalidInputError, match="a --rule that goes by settings beside clairvoyant"):
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
        ([replace(reached(20, 1.1), cut_short=("afap",)), reached(30, 1.1)], {1}),  # it takes nobody knows how long
    ],
)
def test_whom_none_beats_in_one_figure_without_being_worse_in_another_is_on_the_frontier(
    every: list[Figures], marked: set[int]
) -> None:
    assert frontier(every) == marked


def test_the_object_has_an_entry_per_combination_and_the_frontier_of_the_first_rule() -> None:
    tried = [
        Tried({"deadline.p_afap": p_afap}, Comparison("small", 3, {"muster": ours, "fixed": reached(9, 1.0)}))
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
