"""Aborting a batch leaves only its sent work charged to its submitter's logical time."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.units import BatchId, later
from jobs.spec import parse_batch
from jobs.submission import SubmissionPorts, submit
from tests.builders import NOW
from tests.memory import MemoryStore
from tests.unit.jobs.projects import HandClock, KnownFiles
from tests.worlds import a_registered_host, a_registered_version, a_sent_instance

JOBS = 6
sizes = st.floats(1e9, 1e17)
ages_s = st.floats(0, 1e6)


async def submitted(store: MemoryStore, job_flop: float, at_s: float) -> BatchId:
    table = {"app": "pi", "qos": "throughput", "submitter": "ada", "jobs": {"fpops_est": job_flop, "count": JOBS}}
    ports = SubmissionPorts(store.submissions, store.people, store.applications, KnownFiles())
    ordering = (await store.applications.load_catalogue()).settings.ordering
    return await submit(parse_batch(table), ports=ports, ordering=ordering, clock=HandClock(later(NOW, at_s)))


async def refunded_s(
    before: list[float], aborted: float, sent: int, after: list[float], at_s: float
) -> tuple[float, float]:
    """Return the logical time, in seconds, that ada gets back for an aborted batch, and what it was charged."""
    store = MemoryStore()
    await a_registered_version(store)
    await store.people.add_account("lab", parent=None, shares=1.0)
    await store.people.add_submitter("ada", account="lab", shares=1.0, now=NOW)
    for job_flop in before:
        await submitted(store, job_flop, 0.0)
    start_at = (await store.people.submitter("ada")).logical_at
    batch_id = await submitted(store, aborted, at_s)
    cost_s = (await store.people.submitter("ada")).logical_at - max(start_at, later(NOW, at_s))
    for _ in range(sent):
        host = await a_registered_host(store, last_rpc_at=NOW)
        await a_sent_instance(store, batch_id, host)
    for job_flop in after:
        await submitted(store, job_flop, at_s)
    end_at = (await store.people.submitter("ada")).logical_at
    await store.submissions.abort_batch(batch_id, now=later(NOW, at_s))
    return end_at - (await store.people.submitter("ada")).logical_at, cost_s


@given(st.lists(sizes, max_size=2), sizes, st.integers(0, JOBS), st.lists(sizes, max_size=2), ages_s)
@settings(max_examples=60, deadline=None)
def test_an_abort_gives_back_all_but_what_was_sent(
    before: list[float], aborted: float, sent: int, after: list[float], at_s: float
) -> None:
    got_s, cost_s = asyncio.run(refunded_s(before, aborted, sent, after, at_s))

    assert got_s == pytest.approx(cost_s * (JOBS - sent) / JOBS, rel=1e-6, abs=1e-3)
