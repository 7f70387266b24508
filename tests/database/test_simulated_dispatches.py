"""Tests that the in-memory store matches PostgreSQL in simulations: the same dispatches, due dates and reasons, with
all periodic tasks, losses, errors, a quorum and an outage.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from administration.simulations.process import simulated_tasks
from domain.dispatch import Assignment
from domain.units import DAY_S, HOUR_S, Instant
from simulator.engine import Engine
from simulator.ports import Outage, Scenario
from simulator.run import warnings_only
from simulator.scenario import parse_scenario
from simulator.services import AnyStore
from tests.memory import MemoryStore
from tests.pg import opened_store
from tests.unit.simulator.rig import START, PlainScenario, a_batch

pytestmark = pytest.mark.database

SCENARIO = PlainScenario(
    hosts=12,
    batches=[
        a_batch("rush", jobs=30, delay_bound_s=DAY_S),
        a_batch("census", qos="long_deadline", jobs=20, submitter="bob", quorum=2, delay_bound_s=DAY_S),
        a_batch("bulk", qos="throughput", jobs=40, delay_bound_s=DAY_S),
        a_batch("soon", qos="short_deadline", jobs=20, deadline_s=2 * DAY_S, delay_bound_s=DAY_S),
    ],
    outages=[Outage(Instant(START + 20 * HOUR_S), Instant(START + 30 * HOUR_S))],
    lost_fraction=0.1,
    error_fraction=0.05,
)


# Clients as in simulations: they are off at times, compute in deadline mode, lose jobs and return wrong results.
PEOPLE = parse_scenario(
    {
        "days": 1,
        "delay_bound_days": 1,
        "population": {
            "hosts": 6,
            "loss_fraction": 0.1,
            "error_fraction": 0.05,
            "garbage_fraction": 0.05,
            "gpus": [{"share": 0.3}],
        },
        "app": [{"name": "app", "gpu_types": ["NVIDIA"]}],
        "batch": [
            {"name": "bulk", "qos": "throughput", "jobs": 24, "fpops_est": 2e13},
            {"name": "census", "qos": "long_deadline", "jobs": 8, "fpops_est": 2e13, "quorum": 2, "submitter": "bob"},
            {"name": "rush", "qos": "afap", "jobs": 12, "fpops_est": 2e13, "at_hours": 8},
        ],
    },
    folder=Path(),
)


async def dispatches(store: AnyStore, scenario: Scenario = SCENARIO, rule: str = "muster") -> list[Assignment]:
    engine = Engine(
        scenario,
        7,
        store=lambda clock: store,
        # a round of periodic tasks costs PostgreSQL as much as a request
        settings={"lifecycle.sweep_interval_s": 1800.0, "deadline.rule": rule},
        more_tasks=simulated_tasks,
        watch=lambda at: None,
        sequence=True,
    )
    with warnings_only():
        await engine.run()
    assert engine.record.sequence is not None
    return engine.record.sequence


async def test_the_stores_give_the_same_sequence_of_dispatches() -> None:
    async with opened_store() as store:
        on_postgres = await dispatches(store)

    in_memory = await dispatches(MemoryStore())

    assert len(in_memory) >= 130
    assert on_postgres == in_memory
    assert {one.tight for one in in_memory} == {True, False}


@pytest.mark.parametrize("rule", ["muster", "accelerated"])
async def test_stores_give_same_dispatches_under_each_rule(rule: str) -> None:
    async with opened_store() as store:
        on_postgres = await dispatches(store, PEOPLE, rule)

    in_memory = await dispatches(MemoryStore(), PEOPLE, rule)

    assert len(in_memory) >= 40
    assert on_postgres == in_memory
    assert {one.tight for one in in_memory} >= {rule == "muster"}
