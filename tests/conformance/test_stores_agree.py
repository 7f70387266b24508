"""Tests that the memory store and PostgreSQL agree after any sequence of steps."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.conformance.lives import KINDS, OFTEN, Life, Step
from tests.memory import MemoryStore
from tests.pg import opened_store
from tests.stores import Store

NUMBERS = st.integers(0, 200)
STEPS = st.builds(Step, st.sampled_from([*KINDS, *OFTEN]), NUMBERS, NUMBERS, NUMBERS)
A_START = [Step("submit", 4, 0, 0), Step("submit", 2, 1, 1), Step("dispatch", 0, 0, 2), Step("dispatch", 2, 1, 3)]


async def live(one: Store, other: Store, steps: list[Step]) -> None:
    life = Life(one, other)
    await life.begin()
    for number, step in enumerate([*A_START, *steps]):
        await life.do(step)
        if number % 10 == 9:
            await life.compare(life.hosts)
    await life.compare(life.hosts)


@seed(20270115)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=40))
async def test_two_memory_stores_show_the_same_and_keep_their_counters(steps: list[Step]) -> None:
    await live(MemoryStore(), MemoryStore(), steps)


@pytest.mark.database
@seed(20270115)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEPS, max_size=40))
async def test_memory_and_postgresql_show_the_same(steps: list[Step]) -> None:
    async with opened_store() as postgres:
        await live(MemoryStore(), postgres, steps)
