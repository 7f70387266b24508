"""Tests views of batches, jobs and hosts: paging, and unknown ids."""

from __future__ import annotations

import pytest

from domain.errors import NotFoundError
from domain.jobs import InstanceState, JobState
from domain.units import AccountId, BatchId, HostId, JobId, SubmitterId
from domain.views import Whose
from tests.builders import NOW
from tests.stores import Store
from tests.worlds import a_registered_host, a_registered_version, a_sent_instance, a_submitted_batch, waiting_of


async def test_batches_say_by_name_whose_they_are(store: Store) -> None:
    account = await store.people.add_account("science", parent=None, shares=1.0)
    marie = await store.people.add_submitter("marie", account="science", shares=1.0, now=NOW)
    of_default = await a_submitted_batch(store, jobs=1)
    of_marie = await a_submitted_batch(store, jobs=1, submitter_id=marie.submitter_id, account_id=account.account_id)

    assert await store.views.whose([of_marie.batch_id, of_default.batch_id, BatchId(99)]) == {
        of_marie.batch_id: Whose("pi", "marie", "science"),
        of_default.batch_id: Whose("pi", "default", "default"),
    }


async def test_jobs_of_batch_are_paged_by_id_without_instances(store: Store) -> None:
    await a_submitted_batch(store, jobs=3)
    batch = await a_submitted_batch(store, jobs=5)

    first = list(await store.views.jobs(batch.batch_id, limit=3))
    second = list(await store.views.jobs(batch.batch_id, limit=3, after=first[-1].job_id))

    jobs = first + second
    assert [job.command_line for job in jobs] == [f"--job {number}" for number in range(5)]
    assert {job.batch_id for job in jobs} == {batch.batch_id}
    assert {job.instances for job in jobs} == {()}
    assert [job.job_id for job in jobs] == sorted(job.job_id for job in jobs)
    assert list(await store.views.jobs(batch.batch_id, limit=3, after=jobs[-1].job_id)) == []


async def test_a_job_is_shown_with_its_instances_by_id(store: Store) -> None:
    batch = await a_submitted_batch(store, jobs=1, quorum=2)
    candidates = await waiting_of(store, batch.batch_id)
    await a_sent_instance(store, batch.batch_id, await a_registered_host(store), candidates[1])

    job = await store.views.job(candidates[0].ready.job_id)

    assert (job.state, job.failure, job.canonical_instance_id) == (JobState.OPEN, "", None)
    assert [instance.instance_id for instance in job.instances] == [one.ready.instance_id for one in candidates]
    assert [instance.state for instance in job.instances] == [InstanceState.UNSENT, InstanceState.IN_PROGRESS]
    unsent = job.instances[0]
    assert (unsent.host_id, unsent.sent_at, unsent.due_at, unsent.reported_at) == (None, None, None, None)
    assert (unsent.exit_status, unsent.reason, unsent.because, unsent.stderr, unsent.uploads) == (None, "", "", "", ())


async def test_classes_are_shown_by_batch(store: Store) -> None:
    one = await a_submitted_batch(store, jobs=1)
    two = await a_submitted_batch(store, jobs=1)

    [of_one] = await store.views.classes_of_batch(one.batch_id)
    [of_two] = await store.views.classes_of_batch(two.batch_id)

    assert (of_one.batch_id, of_two.batch_id) == (one.batch_id, two.batch_id)
    assert list(await store.views.classes_of_batch(BatchId(99))) == []


async def test_hosts_are_listed_by_id_in_pages(store: Store) -> None:
    hosts = [(await a_registered_host(store)).host for _ in range(5)]

    first = list(await store.views.hosts(limit=3))
    second = list(await store.views.hosts(limit=3, after=first[-1].host_id))

    assert first + second == hosts
    assert list(await store.views.hosts(limit=3, after=hosts[-1].host_id)) == []


async def test_a_host_is_shown_with_its_statistics_by_version(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    first, second = await a_registered_version(store), await a_registered_version(store)
    for version in (second, first):
        await a_sent_instance(store, batch.batch_id, host, app_version_id=version.app_version_id)

    shown, havs = await store.views.host(host.host_id)

    assert shown == host.host
    assert [hav.app_version_id for hav in havs] == [first.app_version_id, second.app_version_id]


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFoundError, match="no batch 99"):
        await store.views.batch(BatchId(99))
    with pytest.raises(NotFoundError, match="no job 99"):
        await store.views.job(JobId(99))
    with pytest.raises(NotFoundError, match="no host 99"):
        await store.views.host(HostId(99))
    with pytest.raises(NotFoundError, match="no submitter 99"):
        await store.views.submitter_name(SubmitterId(99))
    with pytest.raises(NotFoundError, match="no account 99"):
        await store.views.account_name(AccountId(99))
    assert list(await store.views.jobs(BatchId(99), limit=9)) == []
