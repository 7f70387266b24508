"""Cases give the same figures in any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

from administration.simulations.process import simulated_tasks
from domain.errors import InvalidInputError
from simulator.run import Case, Ran, run_case
from simulator.scenario import FileScenario, read_scenario
from simulator.sweep import cases_of, compared, run_here, unwatched
from tests.facts import states

# Infrequent periodic tasks: they would take most of the time.
TINY = {
    "population.hosts": 12,
    "days": 12,
    "settings": {
        "estimator.pause_s": 43200,
        "estimator.timer_s": 43200,
        "lifecycle.sweep_interval_s": 900,
        "ordering.interval_s": 21600,
    },
    "submitter": [{"name": "ada"}],
    "batch": [
        {"name": "survey", "submitter": "ada", "qos": "throughput", "jobs": 30, "fpops_est": 1e13},
        {"name": "rush", "submitter": "ada", "qos": "afap", "at_hours": 24, "jobs": 20, "fpops_est": 1e13},
    ],
}
PRINT_A_RUN = """
import json
from tests.unit.simulator.test_run import a_comparison
print(json.dumps(a_comparison()))
"""


def tiny() -> FileScenario:
    return read_scenario("small", TINY)


def a_comparison() -> dict[str, object]:
    """Compare two rules and the bound."""
    cases = cases_of(tiny(), rules=("muster", "accelerated", "clairvoyant"), seeds=(1,), settings={})
    return compared(cases, run_here(cases, simulated_tasks, _Nobody())).as_json()


@cache
def ran_fixed() -> Ran:
    [case] = cases_of(tiny(), rules=("fixed",), seeds=(1,), settings={})
    return run_case(case, simulated_tasks, unwatched)


def test_forgotten_jobs_are_resent() -> None:
    def instances_per_job(**lost: object) -> float:
        changes = {**TINY, "population.loss_fraction": 0.3, "population.error_fraction": 0.0, **lost}
        (case,) = cases_of(read_scenario("small", changes), rules=("fixed",), seeds=(1,), settings={})
        figures = run_case(case, simulated_tasks, unwatched).figures
        assert figures.instances_per_job is not None
        return figures.instances_per_job

    assert instances_per_job() > 1.1
    assert instances_per_job(**{"population.lost_jobs": "forgotten"}) == 1.0


class _Nobody:
    def moved(self, place: int, at: float) -> None: ...

    def over(self, place: int) -> None: ...


def test_figures_are_independent_of_the_hash_seed() -> None:
    """Neither rule is faster than the clairvoyant bound."""
    found = {
        subprocess.run(
            [sys.executable, "-c", PRINT_A_RUN],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "4242")
    }

    [printed] = found
    rules = json.loads(printed)["rules"]
    bound, *others = (rules[rule]["afap_makespan_s"] for rule in ("clairvoyant", "muster", "accelerated"))
    assert 0 < bound < min(others)


def test_settings_of_a_case_change_the_run() -> None:
    one = run_case(Case(tiny(), 1, "muster", {"deadline.min_slack_s": 36000.0}), simulated_tasks, unwatched)
    other = run_case(Case(tiny(), 1, "muster"), simulated_tasks, unwatched)

    assert one.figures != other.figures


def test_fixed_with_copies_copies_last_jobs() -> None:
    """Fixed due dates detect a lost job after seven days; a copy ends it sooner."""
    [case] = cases_of(tiny(), rules=("fixed+copies",), seeds=(1,), settings={})
    plain, copies = ran_fixed().figures, run_case(case, simulated_tasks, unwatched).figures
    plain_s, copies_s = plain.makespan("throughput"), copies.makespan("throughput")

    assert plain.tight_fraction == copies.tight_fraction == 0.0
    assert plain_s is not None and copies_s is not None and copies_s < 0.7 * plain_s


def test_an_unknown_rule_is_refused() -> None:
    with states(InvalidInputError, "rule:", "muster, proposal, fixed, accelerated", "'luck'"):
        run_case(Case(tiny(), 1, "luck"), simulated_tasks, unwatched)


def test_ends_of_afap_batches_are_per_job() -> None:
    ran = ran_fixed()

    assert list(ran.ends_s) == ["rush"]
    assert len(ran.ends_s["rush"]) <= 20
    assert max(ran.ends_s["rush"]) > 0
