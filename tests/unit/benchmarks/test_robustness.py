"""The robustness benchmark: plan, ratios paired by population and seed, medians, worst cases, kept runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.robustness.__main__ import main, numbers_of, pair_of, variant_of, whole_populations
from benchmarks.robustness.columns import COLUMNS, Value, median_of, summary_of
from benchmarks.robustness.kept import KeptRuns
from benchmarks.robustness.plan import HALVES, Planned, contestants_of, plan_of
from benchmarks.robustness.running import unkept
from benchmarks.robustness.table import Outcome
from domain.errors import InvalidInputError
from simulator.metrics import Figures
from simulator.run import Ran

BY_KEY = {column.key: column for column in COLUMNS}
HOURS = {"muster": 5.0, "accelerated": 10.0, "fixed": 40.0, "clairvoyant": 2.0, "late": 20.0}


def figures_of(planned: Planned) -> Figures:
    """Return AFAP makespans by contestant, each seed a tenth longer."""
    span_s = 3600.0 * HOURS[planned.contestant.name] * (1.0 + 0.1 * planned.seed)
    return Figures(afap_makespan_s=span_s, makespan_s={"afap": span_s}, instances_per_job=1.25, batches_unfinished=0.0)


def planned_of(*populations: int, seeds: int = 2, late: bool = False) -> list[Planned]:
    variants = {"late": {"deadline.min_slack_s": 43200.0}} if late else {}
    contestants = contestants_of(("muster", "fixed"), {}, variants)
    return plan_of(populations, contestants, range(1, seeds + 1))


def test_halves_are_odd_and_even_and_share_nothing() -> None:
    assert set(HALVES["tuning"]).isdisjoint(HALVES["unseen"])
    assert len({*HALVES["tuning"], *HALVES["unseen"]}) >= 24


def test_contestants_include_what_figures_are_divided_by() -> None:
    every = contestants_of(("muster",), {"deadline.p_late": 1.0}, {"b": {"deadline.p_afap": 0.5}})

    assert [one.name for one in every] == ["muster", "b", "accelerated", "clairvoyant"]
    assert every[1].settings == {"deadline.p_late": 1.0, "deadline.p_afap": 0.5}
    assert every[2].settings == {}


@pytest.mark.parametrize(
    ("rules", "settings", "variants"),
    [
        (("nothing",), {}, {}),
        (("muster",), {"deadline.nothing": 1}, {}),
        (("muster",), {"deadline.rule": "fixed"}, {}),
        (("muster",), {}, {"accelerated": {"deadline.p_late": 1.0}}),
    ],
)
def test_contestants_that_cannot_be_are_refused(
    rules: tuple[str, ...], settings: dict[str, object], variants: dict[str, dict[str, object]]
) -> None:
    with pytest.raises(InvalidInputError):
        contestants_of(rules, settings, variants)


def test_every_contestant_runs_every_population_and_seed() -> None:
    planned = planned_of(1, 3, late=True)

    assert len(planned) == 2 * 2 * 5
    assert [one.population for one in planned] == [1] * 10 + [3] * 10
    assert {one.case.settings.get("deadline.min_slack_s") for one in planned if one.contestant.name == "late"} == {
        43200.0
    }


def test_fixed_with_copies_is_a_run_of_its_own(tmp_path: Path) -> None:
    """Kept apart from `fixed`, which makes no copies."""
    contestants = contestants_of(("fixed", "fixed+copies"), {}, {})
    planned = plan_of((1,), contestants, (1,))

    assert len(unkept([one.case for one in planned], KeptRuns(tmp_path))) == len(planned) == 4


def test_ratios_are_paired_by_population_and_seed() -> None:
    outcome = Outcome([(one, Ran(figures_of(one))) for one in planned_of(1, 3, late=True)])
    by_name = {name: outcome.by_population(BY_KEY["afap"], name) for name in outcome.contestants}

    assert outcome.contestants == ["muster", "fixed", "late", "accelerated"]
    assert {name: values[3] for name, values in by_name.items()} == {
        "muster": Value(0.5),
        "fixed": Value(4.0),
        "late": Value(2.0),
        "accelerated": Value(1.0),
    }
    assert outcome.by_population(BY_KEY["bound"], "muster") == {1: Value(2.5), 3: Value(2.5)}


def test_a_batch_not_over_makes_a_ratio_a_lower_bound() -> None:
    runs = []
    for one in planned_of(1, seeds=1):
        figures = figures_of(one)
        if one.contestant.name == "muster":
            figures = replace(figures, cut_short=("afap",), batches_unfinished=1.0)
        runs.append((one, Ran(figures)))
    outcome = Outcome(runs)

    assert outcome.by_population(BY_KEY["afap"], "muster") == {1: Value(0.5, more=True)}
    assert "| > 0.50; > 0.50 (1) | 4.00; 4.00 (1) | 1.00; 1.00 (1) |" in outcome.table()
    assert "did not finish" in outcome.table()


def test_two_batches_not_over_give_no_ratio() -> None:
    planned = planned_of(1, seeds=1)
    outcome = Outcome([(one, Ran(replace(figures_of(one), cut_short=("afap",)))) for one in planned])

    assert outcome.by_population(BY_KEY["afap"], "muster") == {1: None}


def test_instances_are_divided_by_their_allowance() -> None:
    """Population 1 loses 5.6 % and 6.2 % fail: 1 / (1 - .056 - .062) + .2 instances per job are acceptable."""
    planned = planned_of(1, seeds=1)
    population = planned[0].case.scenario.population
    outcome = Outcome([(one, Ran(figures_of(one))) for one in planned])
    expected = 1.25 / (1.0 / (1.0 - population.loss_fraction - population.error_fraction) + 0.2)

    found = outcome.by_population(BY_KEY["instances"], "muster")[1]
    assert found is not None
    assert found.value == pytest.approx(expected)


def test_the_worst_population_is_the_longest_or_the_farthest_off() -> None:
    longest = summary_of(BY_KEY["afap"], {1: Value(0.5), 3: Value(0.4, more=True), 5: Value(0.9), 7: None})
    farthest = summary_of(BY_KEY["q90_coverage"], {1: Value(1.0), 3: Value(0.5), 5: Value(0.9)})
    least = summary_of(BY_KEY["use_fraction"], {1: Value(1.1), 3: Value(0.8), 5: Value(0.9)})

    assert longest is not None
    assert farthest is not None
    assert least is not None
    assert (longest.middle, longest.worst_population, longest.populations) == (Value(0.9), 3, 3)
    assert (farthest.worst_population, least.worst_population) == (3, 3)
    assert farthest.middle.value == pytest.approx(0.8)


def test_forecast_columns_are_means_over_progress() -> None:
    """Only known values at a progress count; the first forecast is that at 0 %."""
    runs = []
    for one in planned_of(1, seeds=1):
        quality = {"forecast_q90_coverage": {"0": 0.0, "10": 1.0, "50": 0.5}, "forecast_ratio": {"0": 7.0, "10": 2.0}}
        jobs = 300.0 if one.contestant.name == "muster" else 400.0
        runs.append((one, Ran(replace(figures_of(one), saturated_jobs_per_day=jobs, **quality))))  # type: ignore[arg-type]
    outcome = Outcome(runs)

    assert outcome.by_population(BY_KEY["q90_coverage"], "muster") == {1: Value(0.75)}
    assert outcome.by_population(BY_KEY["first_forecast"], "muster") == {1: Value(7.0)}
    assert outcome.by_population(BY_KEY["error_10"], "muster") == {1: None}
    assert outcome.by_population(BY_KEY["saturated_jobs_per_day"], "muster") == {1: Value(0.75)}


def test_medians_of_even_counts_are_means_of_the_middle() -> None:
    assert median_of([Value(1.0), Value(2.0), Value(4.0), Value(9.0, more=True)]) == Value(3.0)
    assert median_of([Value(1.0, less=True), Value(2.0)]) == Value(1.5, less=True)


def test_options_are_read() -> None:
    assert numbers_of("1,5-7,5") == [1, 5, 6, 7]
    with pytest.raises(argparse.ArgumentTypeError):
        numbers_of("1-x")
    with pytest.raises(argparse.ArgumentTypeError):
        pair_of("deadline.min_slack_s")
    with pytest.raises(argparse.ArgumentTypeError):
        variant_of("deadline.p_late=1")


def test_only_complete_populations_are_reported(tmp_path: Path) -> None:
    planned = planned_of(1, 3)
    kept = KeptRuns(tmp_path)
    for one in planned[:-1]:
        kept.keep(one.case, Ran(figures_of(one)))

    assert {one.population for one, _ in whole_populations(planned, kept)} == {1}


def test_a_command_goes_on_with_the_runs_that_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned = planned_of(1, 3, seeds=1)
    kept = KeptRuns(tmp_path)
    for one in planned:
        kept.keep(one.case, Ran(figures_of(one)))

    status = main(
        ["--populations", "1,3", "--seeds", "1", "--rules", "muster,fixed", "--json", "--runs", str(tmp_path)]
    )
    told = json.loads(capsys.readouterr().out)

    assert status == 0
    assert told["conditions"]["missing"] == []
    assert told["columns"]["muster"]["afap"] == {
        "middle": {"value": 0.5},
        "worst": {"value": 0.5},
        "worst_population": 1,
        "populations": 2,
    }
    assert told["populations"]["3"]["scenario"]["name"] == "robustness-3"
    assert len(told["runs"]) == len(planned)
    assert told["runs"][0]["figures"]["instances_per_job"] == 1.25
