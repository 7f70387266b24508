"""The store in memory stands for PostgreSQL in simulations: on both, everybody is given the same."""

from __future__ import annotations

import pytest

from domain.dispatch import Assignment
from simulator.engine import Engine
from simulator.run import warnings_only
from simulator.services import AnyStore
from store.memory import MemoryStore
from tests.pg import opened_store
from tests.unit.simulator.rig import PlainScenario, a_batch, no_more_duties

pytestmark = pytest.mark.database

SCENARIO = PlainScenario(
    hosts=12,
    batches=[
        a_batch("rush", jobs=30),
        a_batch("census", qos="long_deadline", jobs=20, submitter="bob", quorum=2),
        a_batch("bulk", qos="throughput", jobs=40),
    ],
    lost_fraction=0.1,
)


async def dispatches(store: AnyStore) -> list[Assignment]:
    engine = Engine(
        SCENARIO,
        7,
        store=lambda clock: store,
        settings={},
        more_duties=no_more_duties,
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

    assert len(in_memory) >= 110
    assert on_postgres == in_memory
