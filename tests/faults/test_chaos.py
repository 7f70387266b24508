"""A few rounds of chaos, always the same ones: `make chaos SCHEDULES=200` runs many."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.deployment import deployed
from tests.chaos.rounds import run_round
from tests.chaos.schedule import Fault, Schedule, draw_schedule

VOLUNTEERS, LOAD_S = 60, 4.0
SHORT = [
    Schedule(1, (Fault("kill worker", 1.0, 0.0, 0.5), Fault("clients doubled", 2.0, 3.0, 0.5))),
    Schedule(2, (Fault("kill database", 1.5, 0.5, 0.5), Fault("clients cut", 3.0, 0.5, 0.5))),
    Schedule(4, (Fault("sync slow", 0.5, 2.0, 0.5), Fault("sync deadly", 3.0, 0.5, 0.5))),
    Schedule(3, (Fault("clock forward", 1.0, 2.0, 0.9), Fault("kill all workers", 3.0, 0.0, 0.5))),
]
LONG_FREEZES = [
    Schedule(4, (Fault("freeze background", 1.0, 36.0, 0.5), Fault("clients doubled", 2.0, 3.0, 0.5))),
    Schedule(5, (Fault("freeze node", 1.5, 36.0, 0.5), Fault("kill database session", 3.0, 0.0, 0.5))),
    Schedule(6, (Fault("freeze worker", 1.0, 36.0, 0.5), Fault("kill background", 3.0, 0.0, 0.5))),
]


def test_a_seed_always_draws_the_same_schedule() -> None:
    assert [draw_schedule(seed) for seed in range(50)] == [draw_schedule(seed) for seed in range(50)]
    assert len({draw_schedule(seed).faults for seed in range(50)}) == 50


@pytest.mark.faults
@pytest.mark.parametrize(
    "schedules",
    [pytest.param(SHORT, id="short"), pytest.param(LONG_FREEZES, id="long freezes")],
)
async def test_no_acknowledged_work_is_lost_or_doubled(keys_dir: Path, schedules: list[Schedule]) -> None:
    async with deployed(keys_dir, VOLUNTEERS) as made:
        for schedule in schedules:
            done = await run_round(made, schedule, load_s=LOAD_S)
            verdict = done.verdict
            assert (verdict.lost, verdict.doubled, verdict.wrong) == ([], [], []), f"{schedule}\n{made.node.log_file}"
            assert len(done.told.reports) > VOLUNTEERS / 2
            assert len(done.told.outputs) > VOLUNTEERS / 2
