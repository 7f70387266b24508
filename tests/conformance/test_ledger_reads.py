"""Tests what a request reads about its sender: volunteer, host, statistics, instances held and reported."""

from __future__ import annotations

from dataclasses import replace

from domain.apps import NVIDIA
from domain.dispatch import RequestKey, RequestView, RequestWrites, Upload
from domain.hosts import Coprocessor, Host
from domain.jobs import InstanceState
from domain.units import DAY_S, FlopPerSecond, HostId, InstanceId, later
from tests.builders import NOW, a_host, a_job_class
from tests.stores import Store
from tests.worlds import (
    a_registered_host,
    a_registered_volunteer,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    an_assignment,
    hash_of,
    read,
    report,
    send,
    the_version,
    waiting_of,
)


async def test_an_unknown_account_key_finds_nothing(store: Store) -> None:
    host = await a_registered_host(store)

    assert await store.ledger.read(RequestKey(hash_of("guessed"), host.host_id)) == RequestView()


async def test_a_known_host_is_found_with_its_volunteer(store: Store) -> None:
    host = await a_registered_host(store)

    view = await read(store, host)

    assert view.volunteer is not None
    assert view.volunteer.volunteer_id == host.volunteer_id
    assert view.host == host.host
    assert (view.havs, view.held, view.reported) == ({}, (), {})


async def test_host_without_id_is_newest_of_volunteer_and_cpid(store: Store) -> None:
    first = await a_registered_host(store, host_cpid="c" * 32)
    second = await a_registered_host(store, volunteer_id=first.volunteer_id, host_cpid="c" * 32)
    await a_registered_host(store, volunteer_id=first.volunteer_id, host_cpid="d" * 32)
    await a_registered_host(store, host_cpid="c" * 32)

    view = await store.ledger.read(RequestKey(first.authenticator_hash, HostId(0), "c" * 32))

    assert view.host == second.host


async def test_a_host_without_number_and_of_unknown_cpid_is_not_found(store: Store) -> None:
    host = await a_registered_host(store)

    view = await store.ledger.read(RequestKey(host.authenticator_hash, HostId(0), "e" * 32))

    assert view.volunteer is not None
    assert view.host is None


async def test_an_empty_cpid_finds_no_host(store: Store) -> None:
    host = await a_registered_host(store, host_cpid="")

    assert (await store.ledger.read(RequestKey(host.authenticator_hash, HostId(0), ""))).host is None


async def test_a_host_that_changed_its_cpid_is_found_by_the_new_one(store: Store) -> None:
    host = await a_registered_host(store, host_cpid="c" * 32)
    await store.ledger.write(RequestWrites(replace(host.host, host_cpid="d" * 32)))

    by_old = await store.ledger.read(RequestKey(host.authenticator_hash, HostId(0), "c" * 32))
    by_new = await store.ledger.read(RequestKey(host.authenticator_hash, HostId(0), "d" * 32))

    assert by_old.host is None
    assert by_new.host is not None
    assert by_new.host.host_id == host.host_id


async def test_host_of_another_volunteer_is_not_returned(store: Store) -> None:
    theirs = await a_registered_host(store)
    mine = await a_registered_host(store)

    view = await store.ledger.read(RequestKey(mine.authenticator_hash, theirs.host_id, theirs.host.host_cpid))

    assert view.volunteer is not None
    assert view.volunteer.volunteer_id == mine.volunteer_id
    assert view.host is None


async def test_an_unknown_host_number_is_not_found(store: Store) -> None:
    mine = await a_registered_host(store)

    assert (await store.ledger.read(RequestKey(mine.authenticator_hash, HostId(999)))).host is None


async def test_a_created_host_keeps_everything_it_said(store: Store) -> None:
    volunteer_id = await a_registered_volunteer(store)
    gpu = Coprocessor(NVIDIA, 2, FlopPerSecond(1e13), 8e9, 53000)
    described = a_host(
        host_id=HostId(77), domain_name="den", coprocessors=(gpu,), platforms=("a", "b"), active_fraction=0.7
    )

    host_id = await store.ledger.create_host(volunteer_id, described)

    stored, havs = await store.views.host(host_id)
    assert stored == replace(described, host_id=host_id, volunteer_id=volunteer_id)
    assert list(havs) == []


async def test_a_write_updates_the_hosts_description(store: Store) -> None:
    host = await a_registered_host(store)
    changed: Host = replace(
        host.host,
        rpc_seqno=9,
        last_rpc_at=later(NOW, 60.0),
        ncpus=8,
        on_fraction=0.3,
        disk_free_bytes=1.0,
        os_version="13",
        coprocessors=(Coprocessor(NVIDIA, 1),),
    )

    await store.ledger.write(RequestWrites(changed))

    assert (await store.views.host(host.host_id))[0] == changed


async def test_a_write_never_gives_a_host_to_another_volunteer(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)

    await store.ledger.write(RequestWrites(replace(host.host, volunteer_id=other.volunteer_id, created_at=NOW)))

    assert (await store.views.host(host.host_id))[0] == host.host


async def test_held_instances_are_returned_by_id_with_names(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=3)
    candidates = (await waiting_of(store, batch.batch_id))[:2]
    version = await the_version(store)
    later_one = an_assignment(candidates[1], host, version, tight=True, gated=True, est_runtime_s=1800.0)
    await send(store, host, later_one)
    await send(store, host, an_assignment(candidates[0], host, version))

    held = (await read(store, host)).held

    assert [one.instance_id for one in held] == [candidate.ready.instance_id for candidate in candidates]
    one = held[1]
    assert one.name == f"pi_{batch.batch_id}_{one.job_id}_{one.instance_id}"
    assert (one.job_id, one.batch_id, one.job_class_id) == (
        later_one.job_id,
        later_one.batch_id,
        later_one.job_class_id,
    )
    assert (one.app_version_id, one.host_id, one.volunteer_id) == (
        version.app_version_id,
        host.host_id,
        host.volunteer_id,
    )
    assert (one.sent_at, one.due_at, one.est_runtime_s, one.tight) == (NOW, NOW + 86400.0, 1800.0, True)
    assert not one.no_longer_needed
    assert [one.gated for one in held] == [False, True]


async def test_reported_instance_is_returned_with_its_checks(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await store.uploads.record_upload(sent.instance_id, name="b", nbytes=3, md5="b" * 32, completed_at=NOW)
    await store.uploads.record_upload(sent.instance_id, name="a", nbytes=2, md5="a" * 32, completed_at=NOW)

    reported = (await read(store, host, sent.instance_id, InstanceId(999))).reported

    assert set(reported) == {sent.instance_id}
    one = reported[sent.instance_id]
    [job_class] = await store.views.classes_of_batch(batch.batch_id)
    assert (one.state, one.app_name) == (InstanceState.IN_PROGRESS, "pi")
    assert (one.fpops_est_flop, one.outputs) == (job_class.fpops_est_flop, job_class.outputs)
    assert one.uploads == (Upload("a", 2, "a" * 32), Upload("b", 3, "b" * 32))
    assert one.turnaround_sample is None
    assert one.held == (await read(store, host)).held[0]


async def test_ended_instance_is_returned_on_request_but_not_held(store: Store) -> None:
    host = await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=1)
    sent = await a_sent_instance(store, batch.batch_id, host)
    await report(store, host, a_report(sent, turnaround_sample=0.25))

    view = await read(store, host, sent.instance_id)

    assert view.held == ()
    assert view.reported[sent.instance_id].state is InstanceState.REPORTED
    assert view.reported[sent.instance_id].turnaround_sample == 0.25


async def test_other_hosts_and_unsent_instances_are_not_returned(store: Store) -> None:
    host, other = await a_registered_host(store), await a_registered_host(store)
    batch = await a_submitted_batch(store, jobs=2)
    sent = await a_sent_instance(store, batch.batch_id, other)
    [unsent] = await waiting_of(store, batch.batch_id)

    view = await read(store, host, sent.instance_id, unsent.ready.instance_id)

    assert (view.held, view.reported) == ((), {})


async def test_cpus_of_a_job_are_returned_with_its_instances(store: Store) -> None:
    wide = await a_submitted_batch(store, jobs=1, job_class=a_job_class(ncpus=8.0))
    host = await a_registered_host(store)
    sent = await a_sent_instance(store, wide.batch_id, host)

    [held] = (await read(store, host)).held
    reported = (await read(store, host, sent.instance_id)).reported[sent.instance_id]
    same = {"volunteer_id": host.volunteer_id, "host_cpid": host.host.host_cpid}
    copy = await a_registered_host(store, account_key=host.account_key, **same)
    key = replace(copy.key(sent.instance_id), of_computer=True)
    by_copy = (await store.ledger.read(key)).reported[sent.instance_id]
    [overdue] = await store.overdue.overdue(now=later(NOW, 99 * DAY_S), limit=9)

    assert [one.ncpus for one in (held, reported.held, by_copy.held, overdue.held)] == [8.0] * 4
