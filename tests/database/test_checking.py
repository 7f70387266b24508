"""Tests that an inspection finds damage, and reports nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from domain.checking import KnownFile, StoredOutput
from domain.jobs import Output
from domain.units import InstanceId
from store.checking import QUESTIONS, CheckingSession
from store.postgres import open_store
from store.queries import load
from tests.builders import NOW, a_job_class
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

VALID = """
    UPDATE instance SET state = 'valid' WHERE instance_id = 1;
    UPDATE job SET state = 'valid', canonical_instance_id = 1, ended_at = 1 WHERE job_id = 1;
    DELETE FROM job_todo;
"""
FINISHED = """
    SELECT add_finished_month('2027-01', 1.79e9, 1.82e9);
    INSERT INTO finished_job (
        job_id, batch_id, job_class_id, state, command_line, copies, hr_class, ended_at, batch_ended_at
    )
    SELECT job_id, batch_id, job_class_id, 'cancelled', '', 0, 0, 1.8e9, 1.8e9 FROM job WHERE job_id = 2;
"""
CREDIT = """
    UPDATE instance SET credit = 5 WHERE instance_id = 1;
    INSERT INTO team (name, founder_id, created_at) VALUES ('owls', 1, 0);
    INSERT INTO participation (volunteer_id, team_id, joined_at) VALUES (1, 1, 0);
    INSERT INTO credit (kind, id, total, average, at)
    VALUES ('host', 1, 5, 0, 0), ('volunteer', 1, 5.0000001, 0, 0), ('team', 1, 7, 0, 0);
"""
PURGED = "INSERT INTO finished_month (month, starts_at, ends_at, purged_at) VALUES ('2026-01', 1, 2, 3);"
DAMAGE = [  # damage, check, finding
    (
        "UPDATE job SET state = 'cancelled', ended_at = 1 WHERE job_id = 2",
        "jobs that are over",
        "job 2: it is cancelled and 1",
    ),
    (
        f"{VALID} UPDATE instance SET state = 'invalid' WHERE instance_id = 1",
        "jobs that are over",
        "job 1: it is valid by",
    ),
    (
        f"{VALID} UPDATE job SET state = 'cancelled', canonical_instance_id = NULL WHERE job_id = 1",
        "jobs that are over",
        "job 1: it is canc",
    ),
    ("DELETE FROM instance WHERE job_id = 2", "jobs that are open", "job 2: it is open, and nothing of it is unsent"),
    (
        "UPDATE batch SET state = 'aborted', ended_at = 1",
        "jobs that are open",
        "job 1: it is open, and its batch 1 is abo",
    ),
    ("DELETE FROM job_todo", "jobs that are open", "job 1: its instance 1 is reported, but not marked for validation"),
    (FINISHED, "nothing is there twice", "job 2: it exists 2 times"),
    (
        f"{VALID} UPDATE job SET state = 'valid', canonical_instance_id = 1, ended_at = 1",
        "nothing is there twice",
        "instance",
    ),
    ("DELETE FROM job WHERE job_id = 2", "batches", "batch 1: it has 2 jobs of 3"),
    (
        "UPDATE batch SET state = 'complete', ended_at = 1",
        "batches",
        "batch 1: it is complete, and 3 of its jobs are open",
    ),
    ("UPDATE job SET state = 'failed', failure = ' ', ended_at = 1", "batches", "batch 1: it is active, and none of"),
    (
        "UPDATE job SET state = 'failed', failure = ' ', ended_at = 1 WHERE job_id = 2",
        "batches",
        "batch 1: 1 jobs of it fai",
    ),
    ("DELETE FROM upload", "outputs of results", "instance 1: it is reported, and its output out is missing"),
    ("DELETE FROM job WHERE job_id = 1", "rows without an owner", "instance 1: there is no job 1"),
    (
        "DELETE FROM instance WHERE instance_id = 1",
        "rows without an owner",
        "upload pi_1_1_1_r0: there is no instance 1",
    ),
    (
        "UPDATE instance SET shard = 9 WHERE job_id = 2",
        "rows without an owner",
        "instance 2: it is not of the batch, class",
    ),
    (
        "UPDATE instance SET host_id = 99 WHERE instance_id = 1",
        "rows without an owner",
        "instance 1: there is no host 99",
    ),
    ("INSERT INTO job_todo VALUES (99, 1)", "rows without an owner", "mark of job 99: there is no such job"),
    (
        "INSERT INTO instance_stderr VALUES (99, '')",
        "rows without an owner",
        "standard error of instance 99: there is no",
    ),
    ("UPDATE batch SET logical_end_at = 'NaN'", "logical times and usage", "batch 1: its logical times are"),
    ("UPDATE batch SET refunded_s = charged_s + 1", "logical times and usage", "batch 1: its logical times are"),
    (
        "UPDATE submitter SET logical_at = 'infinity'",
        "logical times and usage",
        "submitter 1: its logical time is Infinity",
    ),
    (
        f"{CREDIT} UPDATE credit SET total = 6 WHERE kind = 'host'",
        "credit",
        "host 1: its credit is 6.000, and its results",
    ),
    (f"{CREDIT} DELETE FROM credit WHERE kind = 'volunteer'", "credit", "volunteer 1: its credit is 0.000, and its"),
    (
        f"{CREDIT} UPDATE credit SET total = 4 WHERE kind = 'team'",
        "credit",
        "team 1: its credit is 4.000, and its results",
    ),
    (
        f"{CREDIT} {PURGED} UPDATE credit SET total = 4",
        "credit",
        "host 1: its credit is 4.000, and its results earned at",
    ),
    ("UPDATE batch_count SET sent = sent + 1", "counters", "batch 1: counted"),
]


@pytest.fixture
async def project(dsn: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """Create a batch of three jobs; the first one's instance is reported, with its output."""
    store = await open_store(dsn, min_size=1, max_size=2)
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3, job_class=a_job_class(outputs=(Output("out", 100),)))
    sent = await a_sent_instance(store, batch.batch_id, host)
    assert (sent.instance_id, sent.job_id) == (1, 1)
    await store.uploads.record_upload(InstanceId(1), name="pi_1_1_1_r0", nbytes=1, md5="0" * 32, completed_at=NOW)
    await report(store, host, a_report(sent))
    await store.close()
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


async def findings(session: CheckingSession) -> dict[str, list[str]]:
    return {question: [str(one) for one in await session.ask(question, limit=10)] for question in session.questions}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("", id="as granted"),
        pytest.param(f"{PURGED} UPDATE credit SET total = 9", id="of purged results"),
        pytest.param(
            "UPDATE participation SET joined_at = 1e12; UPDATE credit SET total = 0 WHERE kind = 'team'", id="new"
        ),
        pytest.param("DELETE FROM host; DELETE FROM credit WHERE kind = 'host'", id="of a deleted host"),
    ],
)
async def test_credit_that_results_explain_is_no_finding(
    project: asyncpg.Connection[asyncpg.Record], change: str
) -> None:
    await project.execute("SET session_replication_role = replica")
    await project.execute(f"{CREDIT} {change}")
    assert await CheckingSession(project).ask("credit", limit=10) == []


async def test_an_inspection_finds_what_was_damaged(project: asyncpg.Connection[asyncpg.Record]) -> None:
    session = CheckingSession(project)
    assert await findings(session) == {question: [] for question in QUESTIONS}

    for damage, question, said in DAMAGE:
        transaction = project.transaction()
        await transaction.start()
        await project.execute("SET session_replication_role = replica")  # without checking foreign keys
        await project.execute(damage)
        found = await findings(session)
        await transaction.rollback()
        assert any(one.startswith(said) for one in found[question]), (damage, found)

    assert await findings(session) == {question: [] for question in QUESTIONS}


async def test_a_batch_may_have_taken_more_than_it_was_charged(project: asyncpg.Connection[asyncpg.Record]) -> None:
    await project.execute("UPDATE batch SET refunded_s = -1")

    assert (await findings(CheckingSession(project)))["logical times and usage"] == []


async def test_a_report_may_wait_for_the_others_of_its_quorum(project: asyncpg.Connection[asyncpg.Record]) -> None:
    await project.execute("UPDATE job_class SET quorum = 2")
    await project.execute(
        "INSERT INTO instance (job_id, batch_id, job_class_id, shard, created_at) VALUES (1, 1, 1, 1, 1)"
    )
    await project.execute("DELETE FROM job_todo")

    assert (await findings(CheckingSession(project)))["jobs that are open"] == []


async def test_outputs_and_files_are_known(project: asyncpg.Connection[asyncpg.Record]) -> None:
    session = CheckingSession(project)
    expected = [StoredOutput(InstanceId(1), "pi_1_1_1_r0", 1, "0" * 32)]

    assert [one async for page in session.outputs(limit=1) for one in page] == expected
    files = [(name, InstanceId(n)) for name, n in (("pi_1_1_1_r0", 1), ("pi_1_1_1_r1", 1), ("pi_1_1_9_r0", 9))]
    assert sorted(await session.known(files), key=lambda one: one.name) == [
        KnownFile("pi_1_1_1_r0", "reported", 1, reported_success=True, md5="0" * 32),
        KnownFile("pi_1_1_1_r1", "reported", None, reported_success=True),
        KnownFile("pi_1_1_9_r0", None, None),
    ]


async def test_outputs_of_the_history_are_known(project: asyncpg.Connection[asyncpg.Record]) -> None:
    await project.execute(f"{VALID} UPDATE batch SET state = 'aborted', ended_at = 1.8e9")
    await project.execute("SELECT add_finished_month('2027-01', 1.79e9, 1.82e9)")
    await project.fetch(load("finish_instances"), [1], 1.8e9)
    await project.execute(load("finish_jobs"), [1], 1.8e9)
    session = CheckingSession(project)

    assert [one.name async for page in session.outputs(limit=1) for one in page] == ["pi_1_1_1_r0"]
    assert await session.known([("pi_1_1_1_r0", InstanceId(1))]) == [
        KnownFile("pi_1_1_1_r0", "valid", 1, reported_success=True, md5="0" * 32)
    ]
    found = await findings(session)
    assert (found["outputs of results"], found["jobs that are over"], found["nothing is there twice"]) == ([], [], [])
