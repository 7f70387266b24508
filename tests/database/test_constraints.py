"""Tests that the CHECKs of the instance table allow exactly what the life-cycle allows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product

import asyncpg
import pytest

from domain.jobs import InstanceState, JobState
from lifecycle.states import SHAPES

INSERT = """
    INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at, state, host_id, volunteer_id,
                          app_version_id, sent_at, due_at, timeout_at, reported_at)
    VALUES ($1, 1, 1, 0, 0, $2, $3, $3, $3, $4, $5, $5, $6)
"""


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    opened = await asyncpg.connect(dsn)
    yield opened
    await opened.close()


async def is_allowed(
    connection: asyncpg.Connection[asyncpg.Record], state: str, *, sent: bool, reported: bool, job_id: int = 1
) -> bool:
    host_id, sent_at, due_at = (1, 10.0, 20.0) if sent else (None, None, None)
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute(INSERT, job_id, state, host_id, sent_at, due_at, 15.0 if reported else None)
    except asyncpg.CheckViolationError:
        return False
    finally:
        await transaction.rollback()
    return True


@pytest.mark.parametrize("state", list(InstanceState))
async def test_a_state_has_exactly_the_instants_its_shape_says(
    connection: asyncpg.Connection[asyncpg.Record], state: InstanceState
) -> None:
    shape = SHAPES[state]
    for sent, reported in product((False, True), repeat=2):
        expected = sent == shape.sent and shape.reported in (None, reported)
        assert await is_allowed(connection, state, sent=sent, reported=reported) is expected, (sent, reported)


async def test_a_state_of_no_name_is_refused(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    assert not await is_allowed(connection, "lost", sent=True, reported=False)


@pytest.mark.parametrize(
    ("sent_at", "due_at", "timeout_at"),
    [
        pytest.param(10.0, 10.0, 20.0, id="due when it was sent"),
        pytest.param(10.0, 20.0, 19.0, id="timed out before it is due"),
    ],
)
async def test_instants_out_of_order_are_refused(
    connection: asyncpg.Connection[asyncpg.Record], sent_at: float, due_at: float, timeout_at: float
) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(
            "INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at, state, host_id, volunteer_id, "
            "app_version_id, sent_at, due_at, timeout_at) VALUES (1, 1, 1, 0, 0, 'in_progress', 1, 1, 1, $1, $2, $3)",
            sent_at,
            due_at,
            timeout_at,
        )


@pytest.mark.parametrize("host_id", [1, 2])
async def test_volunteer_has_one_nth_instance_of_a_job(
    connection: asyncpg.Connection[asyncpg.Record], host_id: int
) -> None:
    insert = (
        "INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at, state, host_id, volunteer_id, "
        "app_version_id, sent_at, due_at, timeout_at) VALUES (1, 1, 1, 0, 0, 'in_progress', $1, 1, 1, 1, 2, 3)"
    )
    await connection.execute(insert, 1)
    with pytest.raises(asyncpg.UniqueViolationError) as violation:
        await connection.execute(insert, host_id)
    assert violation.value.constraint_name == "instance_job_volunteer"


async def test_a_job_may_have_many_unsent_instances(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    for _ in range(3):
        await connection.execute(INSERT, 1, "unsent", None, None, None, None)
    assert await connection.fetchval("SELECT count(*) FROM instance WHERE job_id = 1") == 3


@pytest.mark.parametrize("state", list(JobState))
async def test_a_job_ends_with_what_its_state_needs(
    connection: asyncpg.Connection[asyncpg.Record], state: JobState
) -> None:
    await connection.execute("ALTER TABLE job DROP CONSTRAINT job_batch_id_fkey, DROP CONSTRAINT job_job_class_id_fkey")
    for canonical, failure, ended_at in product((None, 7), (None, "gave up"), (None, 9.0)):
        expected = (
            (canonical is not None) is (state is JobState.VALID)
            and (failure is not None) is (state is JobState.FAILED)
            and (ended_at is None) is (state is JobState.OPEN)
        )
        insert = connection.execute(
            "INSERT INTO job (batch_id, job_class_id, state, canonical_instance_id, failure, ended_at) "
            "VALUES (1, 1, $1, $2, $3, $4)",
            state,
            canonical,
            failure,
            ended_at,
        )
        if expected:
            await insert
        else:
            with pytest.raises(asyncpg.CheckViolationError):
                await insert
