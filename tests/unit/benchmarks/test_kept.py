"""Runs are kept on disk until the code that made them changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.robustness.kept import KeptRuns, digest_of, digest_of_files, loaded_modules
from benchmarks.robustness.plan import MUSTER
from benchmarks.robustness.running import run_all, unkept
from domain.deadline_rules import CLAIRVOYANT
from domain.settings import Settings
from simulator.metrics import Figures
from simulator.run import Case, Ran
from simulator.services import PACE
from tests.unit.simulator.test_run import tiny


class Counted(KeptRuns):
    """Counts how often something was kept."""

    kept = 0

    def keep(self, case: Case, ran: Ran) -> None:
        self.kept += 1
        super().keep(case, ran)


def test_a_run_is_made_once_and_found_again_by_the_next_command(tmp_path: Path) -> None:
    bound = Case(tiny(), 1, CLAIRVOYANT)
    first, then, fresh = Counted(tmp_path), Counted(tmp_path), Counted(tmp_path, again=True)
    ran = run_all([bound, replace(bound, seed=2), bound], first, processes=1)

    assert (first.kept, len(list(tmp_path.glob("*/*.run")))) == (2, 2)
    assert ran[0] == ran[2] != ran[1]
    assert run_all([bound], then, processes=1) == ran[:1]
    assert then.kept == 0
    assert run_all([bound, bound], fresh, processes=1) == [ran[0], ran[0]]
    assert fresh.kept == 1


def test_what_was_kept_before_it_was_broken_off_is_not_run_again(tmp_path: Path) -> None:
    cases = [Case(tiny(), seed, MUSTER) for seed in (1, 2)]
    KeptRuns(tmp_path).keep(cases[0], Ran(Figures()))

    assert unkept(cases, KeptRuns(tmp_path)) == cases[1:]


def test_another_scenario_seed_rule_or_setting_is_another_case() -> None:
    one = Case(tiny(), 1, MUSTER)
    paced = next(iter(PACE))
    others = [
        replace(one, seed=2),
        replace(one, rule="fixed"),
        replace(one, settings={"deadline.p_afap": 0.99}),
        replace(one, settings={paced: Settings().as_mapping()[paced]}),  # modules of the simulation itself do
        replace(one, scenario=replace(one.scenario, delay_bound_s=one.scenario.delay_bound_s * 2)),  # type: ignore[arg-type]
        replace(one, rule=CLAIRVOYANT),
    ]

    assert len({digest_of(case) for case in (one, *others)}) == len(others) + 1
    assert digest_of(replace(one, rule=CLAIRVOYANT)) == digest_of(
        replace(one, rule=CLAIRVOYANT, settings={"deadline.p_afap": 0.99})
    )


def test_kept_runs_are_of_the_code_as_it_is(tmp_path: Path) -> None:
    names = {path.relative_to(Path(__file__).parents[3]).as_posix() for path in loaded_modules()}
    file = tmp_path / "rule.py"
    file.write_text("LATE = 1\n")
    before = digest_of_files([file])
    file.write_text("LATE = 2\n")

    assert {
        "scheduler/deadline/prompt.py",
        "domain/settings.py",
        "simulator/engine.py",
        "store/memory/__init__.py",
    } <= names
    assert not names & {"simulator/report.py", "benchmarks/robustness/kept.py"}
    assert digest_of_files([file]) != before
