from __future__ import annotations

from simulator.fate import Fate
from simulator.processors import Task
from simulator.receiving import task_of
from tests.unit.simulator.machines import at, traits
from wire.messages import AppVersionElement, ResultElement, WorkunitElement


def a_task(fate: Fate, *, ncpus: float = 1.0) -> Task:
    """Of 1e9 flop, for a computer of 2 CPUs of 1 Gflop/s each, of which the server believes 2 Gflop/s."""
    return task_of(
        ResultElement("a_1", "a", at(9.0), "linux", 1),
        WorkunitElement("a", "pi", 1e9, 1e15, 1e9, 1e9),
        AppVersionElement("pi", 1, "linux", avg_ncpus=ncpus, flop_per_s=2e9),
        traits=traits(ncpus=2),
        fate=fate,
    )


def test_how_long_a_job_takes_and_what_its_client_takes_it_for() -> None:
    plain = a_task(Fate(1.0, lost=False, fails=False, fails_after=0.5, garbage=False))
    long = a_task(Fate(3.0, lost=False, fails=False, fails_after=0.5, garbage=False))
    wide = a_task(Fate(1.0, lost=False, fails=False, fails_after=0.5, garbage=False), ncpus=8.0)

    assert (plain.true_s, plain.left_s, plain.estimate_s) == (1.0, 1.0, 0.5)
    assert (long.true_s, long.estimate_s) == (3.0, 0.5)  # nobody knows its size before
    assert (wide.true_s, wide.ncpus) == (0.5, 2.0)


def test_a_job_that_fails_ends_before_its_end() -> None:
    task = a_task(Fate(1.0, lost=False, fails=True, fails_after=0.25, garbage=False))

    assert (task.true_s, task.left_s, task.fails) == (1.0, 0.25, True)
