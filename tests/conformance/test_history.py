"""Tests that jobs of batches that ended long ago move to history, stay findable, and are purged by month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from domain.batches import Batch
from domain.dispatch import Assignment, ExpectedOutput, InstanceStep, Upload
from domain.errors import NotFoundError
from domain.history import START, FinishedMonth, JobPlace, MovedJobs
from domain.jobs import InstanceState, JobState
from domain.settlement import JobSettlement
from domain.units import BatchId, InstanceId, Instant, later
from tests.builders import NOW
from tests.conformance.twins import months_of
from tests.stores import Store
from tests.worlds import RegisteredHost, a_registered_host, a_report, a_sent_instance, a_submitted_batch, read, report

S = InstanceState
DAY_S = 86400.0
SETTLED_AT = later(NOW, 7200.0)  # in January 2027
LONG_AFTER = later(NOW, 30 * DAY_S)


async def move(store: Store, *, before: Instant = LONG_AFTER, limit: int = 100) -> MovedJobs:
    """Run all steps of the move; return their sums."""
    await store.overdue.count_due(now=LONG_AFTER)
    total, step = MovedJobs(), MovedJobs(more=True)
    while step.more:
        step = await store.history.move_ended(before=before, after=step.after, limit=limit)
        total = replace(total, jobs=total.jobs + step.jobs, instances=total.instances + step.instances)
    return total


async def settle(store: Store, at: Instant = SETTLED_AT) -> None:
    """Make every reported job valid by its first instance."""
    settlements = []
    for facts in await store.unsettled.unsettled(1000, now=NOW):
        first = facts.instances[0].instance_id
        if facts.state is JobState.VALID:
            late = tuple(
                InstanceStep(one.instance_id, S.REPORTED, S.VALID) for one in facts.instances if one.state is S.REPORTED
            )
            settlements.append(
                JobSettlement(facts.job_id, facts.serial, JobState.VALID, at, canonical_instance_id=first, steps=late)
            )
            continue
        steps = [InstanceStep(first, S.REPORTED, S.VALID)]
        steps += [InstanceStep(one.instance_id, S.UNSENT, S.CANCELLED) for one in facts.instances]
        settlements.append(
            JobSettlement(
                facts.job_id, facts.serial, JobState.VALID, at, canonical_instance_id=first, steps=tuple(steps)
            )
        )
    assert await store.unsettled.settle(settlements) == len(settlements)


async def a_complete_batch(
    store: Store,
    host: RegisteredHost,
    jobs: int = 1,
    *,
    at: Instant = SETTLED_AT,
    quorum: int = 1,
    brought: Sequence[tuple[int, Upload]] = (),
) -> tuple[Batch, list[Assignment]]:
    """Complete a batch. `brought`: outputs uploaded before the report, by the number of the instance."""
    batch = await a_submitted_batch(store, jobs=jobs, quorum=quorum)
    sent = [await a_sent_instance(store, batch.batch_id, host) for _ in range(jobs)]
    for number, one in brought:
        assert await store.uploads.record_upload(
            sent[number].instance_id, name=one.name, nbytes=one.nbytes, md5=one.md5, completed_at=NOW
        )
    await report(store, host, *(a_report(one, stderr="oh", to_state=S.REPORTED) for one in sent))
    await settle(store, at)
    batch = await store.views.batch(batch.batch_id)
    assert batch.ended_at == at
    return batch, sent


# ---------------------------------------------------------------- moving


async def test_an_ended_batch_looks_the_same_after_its_jobs_were_moved(store: Store) -> None:
    host = await a_registered_host(store)
    batch, sent = await a_complete_batch(store, host, jobs=3, brought=[(1, Upload("out", 7, "c" * 32))])
    before = [await store.views.job(one.job_id) for one in sent], await store.views.jobs(batch.batch_id, limit=9)

    assert await move(store) == MovedJobs(jobs=3, instances=3)

    after = [await store.views.job(one.job_id) for one in sent], await store.views.jobs(batch.batch_id, limit=9)
    assert after == before
    assert after[0][1].instances[0].uploads == (Upload("out", 7, "c" * 32),)
    assert await store.views.batch(batch.batch_id) == batch


async def test_uploads_are_found_before_and_after_the_move(store: Store) -> None:
    host = await a_registered_host(store)
    brought = [(number, Upload(name, 7, "c" * 32)) for number, name in ((1, "b"), (1, "a"), (2, "c"))]
    batch, sent = await a_complete_batch(store, host, jobs=3, brought=brought)
    ids = [one.instance_id for one in sent]
    wanted = {
        ids[0]: (),
        ids[1]: (Upload("a", 7, "c" * 32), Upload("b", 7, "c" * 32)),
        ids[2]: (Upload("c", 7, "c" * 32),),
    }

    async def uploads() -> Mapping[InstanceId, tuple[Upload, ...]]:
        found = await store.views.returned(batch.batch_id, ids)
        assert {one.host_id for one in found.values()} == {host.host_id}
        return {instance_id: one.uploads for instance_id, one in found.items()}

    before = await store.views.returned(batch.batch_id, ids)
    assert await uploads() == wanted
    assert await store.views.returned(batch.batch_id, []) == {}

    assert (await move(store)).jobs == 3
    assert await store.views.returned(batch.batch_id, ids) == before


async def test_listing_continues_from_busy_jobs_to_history(store: Store) -> None:
    host = await a_registered_host(store)
    batch, sent = await a_complete_batch(store, host, jobs=4)
    await store.overdue.count_due(now=LONG_AFTER)
    await store.history.move_ended(before=LONG_AFTER, after=START, limit=2)

    pages = [await store.views.jobs(batch.batch_id, limit=3, after=after) for after in (None, sent[2].job_id)]

    assert [[job.job_id for job in page] for page in pages] == [[one.job_id for one in sent[:3]], [sent[3].job_id]]


async def test_a_job_of_several_instances_is_moved_whole(store: Store) -> None:
    host = await a_registered_host(store)
    _, [sent] = await a_complete_batch(store, host, quorum=2)

    assert await move(store) == MovedJobs(jobs=1, instances=2)

    states = [one.state for one in (await store.views.job(sent.job_id)).instances]
    assert states == [S.VALID, S.CANCELLED]


async def test_moving_twice_moves_nothing_more(store: Store) -> None:
    await a_complete_batch(store, await a_registered_host(store), jobs=2)

    assert (await move(store)).jobs == 2
    assert (await move(store)).jobs == 0


async def test_steps_are_bounded_and_go_on_where_the_last_one_ended(store: Store) -> None:
    host = await a_registered_host(store)
    (first, of_first), (second, of_second) = [await a_complete_batch(store, host, jobs=3) for _ in range(2)]
    await store.overdue.count_due(now=LONG_AFTER)

    steps, place = [], START
    for _ in range(5):
        step = await store.history.move_ended(before=LONG_AFTER, after=place, limit=2)
        steps.append((step.jobs, step.after, step.more))
        place = step.after

    assert steps == [
        (2, JobPlace(first.batch_id, of_first[1].job_id), True),
        (1, JobPlace(first.batch_id, of_first[2].job_id), True),
        (2, JobPlace(second.batch_id, of_second[1].job_id), True),
        (1, JobPlace(second.batch_id, of_second[2].job_id), True),
        (0, START, False),
    ]


async def test_a_batch_that_ended_lately_stays(store: Store) -> None:
    await a_complete_batch(store, await a_registered_host(store))

    assert (await move(store, before=later(SETTLED_AT, -1.0))).jobs == 0


async def test_jobs_of_active_batches_stay_later_ones_move(store: Store) -> None:
    host = await a_registered_host(store)
    open_batch = await a_submitted_batch(store, jobs=2)
    done = await a_sent_instance(store, open_batch.batch_id, host)
    await report(store, host, a_report(done))
    await settle(store)
    _, [sent] = await a_complete_batch(store, host)

    assert (await move(store)).jobs == 1
    assert list((await read(store, host, done.instance_id, sent.instance_id)).reported) == [done.instance_id]


async def test_a_job_with_an_instance_under_way_stays(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    first = await a_sent_instance(store, batch.batch_id, host)
    await a_sent_instance(store, batch.batch_id, other)
    await report(store, host, a_report(first))
    await settle(store)

    assert (await move(store)).jobs == 0


async def test_marked_job_stays_until_settled(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    first = await a_sent_instance(store, batch.batch_id, host)
    second = await a_sent_instance(store, batch.batch_id, other)
    await report(store, host, a_report(first))
    await settle(store)
    await report(store, other, a_report(second))

    assert (await move(store)).jobs == 0
    await settle(store)
    assert (await move(store)).jobs == 1


async def test_a_due_date_that_was_not_counted_keeps_its_job(store: Store) -> None:
    host = await a_registered_host(store)
    await a_complete_batch(store, host)

    moved = await store.history.move_ended(before=LONG_AFTER, after=START, limit=9)

    assert (moved.jobs, moved.more) == (0, True)
    assert (await move(store)).jobs == 1
    assert [hav.n_due for hav in (await read(store, host)).havs.values()] == [1]


async def test_jobs_of_an_aborted_batch_are_moved(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=2)
    await store.submissions.abort_batch(batch.batch_id, now=SETTLED_AT)

    assert await move(store) == MovedJobs(jobs=2, instances=2)
    assert {job.state for job in await store.views.jobs(batch.batch_id, limit=9)} == {JobState.CANCELLED}


# ---------------------------------------------------------------- what comes too late


async def test_report_on_instance_in_history_changes_nothing(store: Store) -> None:
    host = await a_registered_host(store)
    _, [sent] = await a_complete_batch(store, host)
    stale = a_report(sent, from_state=S.VALID, to_state=S.REPORTED, stderr="late")
    await move(store)
    before = await store.views.job(sent.job_id)

    assert (await read(store, host, sent.instance_id)).reported == {}
    await report(store, host, stale)

    assert await store.views.job(sent.job_id) == before
    assert list(await store.unsettled.unsettled(9, now=NOW)) == []


async def test_an_upload_of_a_moved_result_may_be_repeated(store: Store) -> None:
    """An output not uploaded before the report is refused: clients upload first, then report."""
    host = await a_registered_host(store)
    _, [sent] = await a_complete_batch(store, host, brought=[(0, Upload("a", 5, "a" * 32))])
    await move(store)

    async def brings(name: str, nbytes: int) -> bool:
        return await store.uploads.record_upload(
            sent.instance_id, name=name, nbytes=nbytes, md5="a" * 32, completed_at=NOW, replace=True
        )

    assert await brings("a", 5)
    assert not await brings("a", 6)
    assert not await brings("b", 5)
    [instance] = (await store.views.job(sent.job_id)).instances
    assert instance.uploads == (Upload("a", 5, "a" * 32),)
    recorded = Upload("a", 5, "a" * 32)
    assert await store.uploads.expected(sent.instance_id, "a") == ExpectedOutput(accepted=False, recorded=recorded)
    assert await months_of(store) == [FinishedMonth("2027-01", jobs=1, instances=1, files=1, file_bytes=5)]


# ---------------------------------------------------------------- purging


async def test_months_count_what_was_moved(store: Store) -> None:
    host = await a_registered_host(store)
    await a_complete_batch(store, host, jobs=2, brought=[(0, Upload("out", 5, "a" * 32))])
    await a_complete_batch(store, host, jobs=1, at=later(SETTLED_AT, 20 * DAY_S))
    await move(store)

    assert await months_of(store) == [
        FinishedMonth("2027-01", jobs=2, instances=2, files=1, file_bytes=5),
        FinishedMonth("2027-02", jobs=1, instances=1),
    ]


async def test_a_purged_month_is_gone_and_the_others_are_not(store: Store) -> None:
    host = await a_registered_host(store)
    old, [old_one] = await a_complete_batch(store, host)
    new, [new_one] = await a_complete_batch(store, host, at=later(SETTLED_AT, 20 * DAY_S))
    await move(store)

    await store.history.purge_month("2027-01", now=LONG_AFTER)

    with pytest.raises(NotFoundError, match=f"no job {old_one.job_id}"):
        await store.views.job(old_one.job_id)
    assert list(await store.views.jobs(old.batch_id, limit=9)) == []
    assert await store.views.batch(old.batch_id) == old
    assert [job.job_id for job in await store.views.jobs(new.batch_id, limit=9)] == [new_one.job_id]
    assert await months_of(store) == [
        FinishedMonth("2027-01", purged_at=LONG_AFTER),
        FinishedMonth("2027-02", jobs=1, instances=1),
    ]


async def test_purging_twice_or_unknown_month_changes_nothing(store: Store) -> None:
    host = await a_registered_host(store)
    await a_complete_batch(store, host)
    await move(store)

    for month in ("2027-01", "2027-01", "2020-05"):
        await store.history.purge_month(month, now=LONG_AFTER)

    assert await months_of(store) == [FinishedMonth("2027-01", purged_at=LONG_AFTER)]


async def test_jobs_moved_after_purge_wait_for_the_next(store: Store) -> None:
    host = await a_registered_host(store)
    await a_complete_batch(store, host)
    await move(store)
    await store.history.purge_month("2027-01", now=LONG_AFTER)
    _, [late] = await a_complete_batch(store, host)

    assert (await move(store)).jobs == 1
    assert (await store.views.job(late.job_id)).state is JobState.VALID
    assert await months_of(store) == [FinishedMonth("2027-01", jobs=1, instances=1, purged_at=LONG_AFTER)]


async def test_an_upload_for_a_purged_instance_is_nobodys(store: Store) -> None:
    host = await a_registered_host(store)
    _, [sent] = await a_complete_batch(store, host)
    await move(store)
    await store.history.purge_month("2027-01", now=LONG_AFTER)

    recorded = await store.uploads.record_upload(sent.instance_id, name="a", nbytes=5, md5="a" * 32, completed_at=NOW)

    assert not recorded


async def test_outputs_are_named_in_pages_until_the_last(store: Store) -> None:
    host = await a_registered_host(store)
    brought = [(number, Upload(name, 1, "a" * 32)) for number, name in ((0, "a"), (0, "b"), (2, "c"))]
    await a_complete_batch(store, host, jobs=3, brought=brought)
    await move(store)

    pages, after = [], InstanceId(0)
    while (page := await store.history.outputs("2027-01", after=after, limit=2)).after is not None:
        pages.append(page.uploads)
        after = page.after

    assert pages == [tuple(one for _, one in brought[:2]), (brought[2][1],)]
    assert (await store.history.outputs("2020-05", after=InstanceId(0), limit=2)).after is None


async def test_a_batch_that_is_not_there_has_no_jobs(store: Store) -> None:
    assert list(await store.views.jobs(BatchId(99), limit=9)) == []
