"""Progress of the process that runs a simulation."""

from __future__ import annotations

import json
from io import StringIO

from administration.simulations.process import ProgressWriter
from simulator.run import Case
from simulator.scenario import read_scenario


def test_progress_is_the_share_of_ended_jobs() -> None:
    scenario, out = read_scenario("small", {}), StringIO()
    jobs = sum(plan.jobs for plan in scenario.batches)
    progress = ProgressWriter([Case(scenario, seed, "muster") for seed in (1, 2)], out)

    progress.moved(0, scenario.starts_at)
    progress.count_jobs(0, jobs // 2)
    progress.count_jobs(0, jobs // 2)  # no news
    progress.over(0)
    progress.over(1)

    told = [json.loads(line)["done_fraction"] for line in out.getvalue().splitlines()]
    assert [round(one, 2) for one in told] == [0.25, 0.5, 1.0]
