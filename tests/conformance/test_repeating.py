"""Tests that failed jobs are retried in place, with their batch and its counters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from batch_estimator.filling import snapshot_of
from batch_estimator.publish import most_spent_of
from domain.batches import BatchState
from domain.errors import ConflictError, NotFoundError
from domain.history import JobPlace
from domain.jobs import JobState
from domain.settings import Settings
from domain.settlement import JobFacts
from domain.units import AppVersionId, BatchId, JobId, later
from lifecycle.settle import settle
from tests.builders import NOW
from tests.conformance.to_settle import SETTLED_AT, S, a_reported_job, failed, valid
from tests.stores import Store
from tests.worlds import a_registered_host, a_report, a_sent_instance, a_submitted_batch, report

RETRIED_AT = later(SETTLED_AT, 60.0)


async def a_failed_job(store: Store) -> JobFacts:
    """Return the facts of a job that failed as the only job of its batch."""
    facts = await a_reported_job(store, await a_registered_host(store), to_state=S.FAILED)
    await store.unsettled.settle([failed(facts)])
    return facts


async def test_retry_opens_failed_jobs_and_their_batch(store: Store) -> None:
    facts = await a_failed_job(store)
    assert (await store.views.batch(facts.batch_id)).state is BatchState.COMPLETE

    assert await store.repeating.retry_failed(facts.batch_id, now=RETRIED_AT) == 1

    batch = await store.views.batch(facts.batch_id)
    assert (batch.state, batch.ended_at) == (BatchState.ACTIVE, None)
    assert (batch.counts.jobs_failed, batch.counts.jobs_open, batch.counts.unsent) == (0, 1, 0)
    job = await store.views.job(facts.job_id)
    assert (job.state, job.failure, [one.state for one in job.instances]) == (JobState.OPEN, "", [S.FAILED])
    assert await store.repeating.retry_failed(facts.batch_id, now=RETRIED_AT) == 0


async def test_retried_job_gets_an_instance_and_becomes_valid(store: Store) -> None:
    """Errors before the retry count towards no limit."""
    facts = await a_failed_job(store)
    await store.repeating.retry_failed(facts.batch_id, now=RETRIED_AT)

    [again] = await store.unsettled.unsettled(9, now=RETRIED_AT)
    one_error = replace(again, job_class=replace(again.job_class, max_errors=1, max_instances=1))
    settlement = settle(one_error, {}, now=RETRIED_AT, max_lost=1)
    assert (settlement.state, settlement.new_instances, settlement.retries) == (JobState.OPEN, 1, 1)
    await store.unsettled.settle([settlement])
    assert (await store.views.batch(facts.batch_id)).counts.unsent == 1
    tables = await store.forecasting.of_batch(facts.batch_id, now=RETRIED_AT)
    assert tables is not None
    assert most_spent_of(snapshot_of(tables, RETRIED_AT, Settings())) == 0

    host = await a_registered_host(store, account_key="two")
    await report(store, host, a_report(await a_sent_instance(store, facts.batch_id, host)))
    [done] = await store.unsettled.unsettled(9, now=RETRIED_AT)
    [last] = [one.instance_id for one in done.instances if one.state is S.REPORTED]
    verdict = settle(done, {last: 0}, now=later(RETRIED_AT, 99.0), max_lost=1)
    await store.unsettled.settle([verdict])

    batch = await store.views.batch(facts.batch_id)
    assert (batch.state, batch.ended_at) == (BatchState.COMPLETE, later(RETRIED_AT, 99.0))
    assert (batch.counts.jobs_validated, batch.counts.jobs_failed) == (1, 0)


async def test_retry_changes_neither_valid_nor_open_jobs(store: Store) -> None:
    host = await a_registered_host(store)
    one = await a_reported_job(store, host, jobs=3)
    await store.unsettled.settle([valid(one)])
    sent = await a_sent_instance(store, one.batch_id, host)
    await report(store, host, a_report(sent, to_state=S.FAILED))
    [two] = await store.unsettled.unsettled(9, now=NOW)
    await store.unsettled.settle([failed(two)])

    assert await store.repeating.retry_failed(one.batch_id, now=RETRIED_AT) == 1

    jobs = await store.views.jobs(one.batch_id, limit=9)
    assert [job.state for job in jobs] == [JobState.VALID, JobState.OPEN, JobState.OPEN]
    counts = (await store.views.batch(one.batch_id)).counts
    assert (counts.jobs_validated, counts.jobs_failed, counts.unsent) == (1, 0, 1)


async def test_ordering_charges_no_instance_of_a_retried_batch_again(store: Store) -> None:
    """A pass deletes the notes of an ended batch; a retry stores them as of the last charge."""
    facts = await a_failed_job(store)
    view = await store.ordering.view()
    await store.repeating.retry_failed(facts.batch_id, now=RETRIED_AT)

    after = await store.ordering.view()
    [one] = [one for one in after.batches if one.batch.batch_id == facts.batch_id]
    assert one.notes is not None
    assert after.serial > view.serial  # a pass that took the batch for ended is discarded


async def test_failures_are_returned_with_versions_and_stderr(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    for stderr in ("first\nlast", "other"):
        sent = await a_sent_instance(store, batch.batch_id, host)
        await report(store, host, replace(a_report(sent, to_state=S.FAILED), stderr=stderr, exit_status=3))
    await report(store, host, a_report(await a_sent_instance(store, batch.batch_id, host)))

    found = await store.repeating.failures(batch.batch_id, limit=9, stderr_chars=5)

    assert [(one.state, one.exit_status, one.stderr, one.host_id) for one in found] == [
        (S.FAILED, 3, "\nlast", host.host_id),
        (S.FAILED, 3, "other", host.host_id),
    ]
    assert {(one.platform, one.version_num) for one in found} == {(found[0].platform, found[0].version_num)}
    assert len(await store.repeating.failures(batch.batch_id, limit=1, stderr_chars=5)) == 1
    assert await store.repeating.failures(BatchId(99), limit=9, stderr_chars=5) == []


async def test_failures_of_a_version_are_the_latest(store: Store) -> None:
    host = await a_registered_host(store)
    for at_s in (10.0, 20.0):
        sent = await a_sent_instance(store, (await a_submitted_batch(store, jobs=1)).batch_id, host)
        failed = a_report(sent, to_state=S.FAILED, reported_at=later(NOW, at_s))
        await report(store, host, replace(failed, stderr=f"at {at_s:g}", exit_status=3))

    async def found(version: int, after_s: float = 0.0, limit: int = 9) -> list[str]:
        since, read = later(NOW, after_s), store.repeating.failures_of_version
        return [one.stderr for one in await read(AppVersionId(version), since=since, limit=limit, stderr_chars=99)]

    assert (await found(1), await found(1, limit=1)) == (["at 20", "at 10"], ["at 20"])
    assert (await found(1, 15.0), await found(2)) == (["at 20"], [])


async def test_jobs_to_copy_are_those_of_the_batch_in_order(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=3)
    await a_submitted_batch(store, jobs=1)
    found = [job async for page in store.repeating.jobs_to_copy(batch.batch_id) for job in page]
    jobs = await store.views.jobs(batch.batch_id, limit=9)
    assert [(one.job_class_id, one.command_line) for one in found] == [
        (one.job_class_id, one.command_line) for one in jobs
    ]
    assert await store.repeating.class_counts(batch.batch_id) == {jobs[0].job_class_id: 3}
    assert [page async for page in store.repeating.jobs_to_copy(BatchId(99)) if page] == []


async def test_failures_and_jobs_in_the_history_are_found(store: Store) -> None:
    facts = await a_failed_job(store)
    before = await store.repeating.failures(facts.batch_id, limit=9, stderr_chars=99)
    at = later(SETTLED_AT, 90 * 86400.0)
    await store.overdue.count_due(now=at)
    await store.history.move_ended(before=at, after=JobPlace(BatchId(0), JobId(0)), limit=9)

    assert await store.repeating.failures(facts.batch_id, limit=9, stderr_chars=99) == before
    assert len([job async for page in store.repeating.jobs_to_copy(facts.batch_id) for job in page]) == 1
    assert sum((await store.repeating.class_counts(facts.batch_id)).values()) == 1


async def test_aborted_and_unknown_batches_are_not_retried(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1)
    await store.submissions.abort_batch(batch.batch_id, now=NOW)
    with pytest.raises(ConflictError):
        await store.repeating.retry_failed(batch.batch_id, now=NOW)
    with pytest.raises(NotFoundError):
        await store.repeating.retry_failed(BatchId(99), now=NOW)


async def test_batch_in_the_history_is_not_retried(store: Store) -> None:
    facts = await a_failed_job(store)
    at = later(SETTLED_AT, 90 * 86400.0)
    await store.overdue.count_due(now=at)
    moved = await store.history.move_ended(before=at, after=JobPlace(BatchId(0), JobId(0)), limit=9)
    assert moved.jobs == 1
    with pytest.raises(ConflictError):
        await store.repeating.retry_failed(facts.batch_id, now=at)
