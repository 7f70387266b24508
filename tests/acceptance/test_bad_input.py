"""Errors in a client's request are reported, and nothing is lost or half-written."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from copy import copy

import pytest

from domain.hosts import Host as HostRecord
from domain.jobs import InstanceState
from domain.refusals import RefusalCode
from domain.units import HostId, InstanceId
from tests.acceptance.evidence import evidence
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.facts import missing
from wire.client import decode_reply, encode_request
from wire.messages import STATE_UPLOADED, HeldResult, SchedulerReply

S = InstanceState
GONE = ("earlier tasks", "cancelled")


def texts(reply: SchedulerReply) -> list[str]:
    return [message.text for message in reply.messages]


async def record_of(server: LiveServer, host: Host) -> HostRecord:
    record, _ = await server.store.views.host(HostId(host.host_id))
    return record


# ---------------------------------------------------------------- who asks


async def test_unknown_platform_is_reported_and_stored(server: LiveServer) -> None:
    """The app's version is new and others may follow, so the host's back-off is shorter than a day."""
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()

    reply = await host.call(cpu_req_s=1.0, cpu_req_instances=1.0, platforms=("sparc-sun-solaris",))

    refused, again = texts(reply)
    assert refused == f"No work sent. {RefusalCode.PLATFORM.traits.meaning}"
    assert not missing(again, "5 min")
    assert [message.priority for message in reply.messages] == ["low", "low"]
    assert reply.request_delay_s == 300.0
    [record] = await server.store.volunteers.volunteers()
    own = await server.store.volunteer_views.host(record.volunteer.volunteer_id, HostId(host.host_id))
    [(code, why)] = own.refused
    assert code == RefusalCode.PLATFORM
    assert missing(why, "app pi", "x86_64-pc-linux-gnu", "sparc-sun-solaris") == ["app pi"]  # no app has one
    assert (await server.batch(batch_id))["unsent"] == 1
    assert len(await host.ask()) == 1


async def test_wrong_account_key_is_reported_and_keeps_results(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.compute(task)
    before = await evidence(server.project)

    status, body = await host.post(encode_request(host.request(authenticator="0" * 32)))
    stranger = decode_reply(body)

    assert status == 200
    [message] = stranger.messages
    assert (message.priority, missing(message.text, "Unknown account key:", "add it again")) == ("notice", [])
    assert (stranger.acks, stranger.results, stranger.host_id) == ((), (), None)
    assert stranger.request_delay_s == 86400.0
    assert await evidence(server.project) == before
    assert (await host.call()).acks == (task.result.name,)
    await server.validate()
    assert (await server.batch(batch_id))["state"] == "complete"


async def test_missing_account_key_is_reported(server: LiveServer) -> None:
    host = await server.add_host()
    before = await evidence(server.project)

    answer = await host.post(encode_request(host.request(authenticator="")))

    assert answer == (400, b"authenticator: expected in scheduler_request, got none\n")
    assert await evidence(server.project) == before


async def test_cloned_computer_becomes_a_new_host(server: LiveServer) -> None:
    """Its host name differs from the original's, so the listed task stays with the original."""
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    await host.call()
    clone = Host(host.http, host.scheduler_url, host.authenticator, "copy", host_id=host.host_id, seqno=0)
    clone.description = {"host_cpid": host.info().host_cpid}
    [task] = await host.ask()
    await host.call()

    reply = await clone.call(other_results=(HeldResult(task.result.name),))

    assert clone.host_id not in (0, host.host_id)
    [text] = texts(reply)
    assert not missing(
        text, f"now host {clone.host_id}:", f"host {host.host_id} sent", "number 0 after request number 1", *GONE
    )
    assert reply.aborts == (task.result.name,)
    [instance] = await server.instances(batch_id)
    assert (instance.state, instance.host_id) == (S.IN_PROGRESS, host.host_id)
    assert (await host.work(task)).acks == (task.result.name,)
    await server.validate()
    assert (await server.batch(batch_id))["state"] == "complete"


async def test_restored_client_continues_its_task(server: LiveServer) -> None:
    """It is restored from a snapshot before its last call, with a task in progress and a partial upload."""
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 2})
    host = await server.add_host()
    await host.call()
    [task] = await host.ask()
    await host.upload(task, cut_at=3)
    restored = copy(host)
    restored.held = dict(host.held)
    [lost] = await host.ask()
    await host.call()

    await restored.call()
    await restored.compute(task)
    reply = await restored.call()
    await server.validate()

    assert restored.host_id not in (0, host.host_id)
    assert reply.acks == (task.result.name,)
    by_id = {one.instance_id: one for one in await server.instances(batch_id)}
    done, other = (by_id[InstanceId(int(one.result.name.rsplit("_", 1)[1]))] for one in (task, lost))
    assert (done.state, done.host_id) == (S.VALID, restored.host_id)
    assert (other.state, other.host_id) == (S.IN_PROGRESS, host.host_id)
    old, new = [await server.store.views.host(HostId(one.host_id)) for one in (host, restored)]
    assert [(hav.n_valid, hav.n_error, hav.n_timeout) for hav in old[1]] == [(0, 0, 0)]
    assert [(hav.n_valid, hav.n_error, hav.n_timeout) for hav in new[1]] == [(1, 0, 0)]


async def test_two_clients_with_one_host_id_do_the_job_once(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    await host.call()
    twin = Host(host.http, host.scheduler_url, host.authenticator, host.name, host_id=host.host_id, seqno=0)
    [task] = await host.ask()

    await twin.call()  # same serial number: treated as a repeat, so the job is sent again
    assert list(twin.held) == [task.result.name]
    assert (await twin.work(twin.held[task.result.name])).acks == (task.result.name,)
    await server.validate()
    assert (await host.work(task)).acks == (task.result.name,)
    await server.validate()

    assert len(await server.instances(batch_id)) == 1
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["reported"], batch["retries"]) == ("complete", 1, 0)


async def test_host_id_of_another_volunteer_is_refused(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    ada, eve = await server.add_host("ada"), await server.add_host("eve")
    [task] = await ada.ask()
    eve.host_id, eve.seqno = ada.host_id, 50
    eve.end(task, STATE_UPLOADED)

    reply = await eve.call()

    assert eve.host_id not in (0, ada.host_id)
    [text] = texts(reply)
    assert not missing(text, f"now host {eve.host_id}:", f"host {ada.host_id}", "another volunteer", *GONE)
    [instance] = await server.instances(batch_id)
    assert (instance.state, instance.host_id) == (S.IN_PROGRESS, ada.host_id)
    assert (await record_of(server, ada)).domain_name == "ada"


# ---------------------------------------------------------------- numbers


async def test_absurd_host_numbers_are_clamped(server: LiveServer) -> None:
    await server.add_app()
    await server.submit(jobs={"count": 30})
    host = await server.add_host(
        ncpus=-5, flop_per_s=1e299, ram_bytes=-1.0, disk_free_bytes=-1.0, iop_per_s=-3.0, timezone_s=-(10**15)
    )

    tasks = await host.ask(
        10**6,
        seconds=1e250,
        on_fraction=-1.0,
        active_fraction=7e77,
        gpu_active_fraction=-0.0,
        max_ncpus_fraction=-4.0,
        disk_project_share_bytes=1e290,
        disk_project_used_bytes=-1e290,
        rpc_seqno=2**63 - 1,
        client_version=(-1, 10**9, 5),
        estimated_delay_s=-1e290,
    )

    record = await record_of(server, host)
    assert (record.ncpus, record.flop_per_s, record.ram_bytes) == (1, 1e12, 64 * 2**20)
    assert (record.on_fraction, record.active_fraction, record.gpu_active_fraction) == (0.01, 1.0, 0.01)
    assert record.disk_free_bytes == 2.0**60
    assert tasks == []  # its 64 MB of memory are not enough


async def test_invalid_number_is_refused_and_keeps_results(server: LiveServer) -> None:
    await server.add_app()
    await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.compute(task)
    before = await evidence(server.project)

    for tag, value, why in (
        ("p_fpops", b"1e308", b"p_fpops: expected a finite number, got '1e308'\n"),
        ("cpu_req_secs", b"nan", b"cpu_req_secs: expected a finite number, got 'nan'\n"),
        ("m_nbytes", b"-inf", b"m_nbytes: expected a finite number, got '-inf'\n"),
        ("p_ncpus", b"two", b"p_ncpus: expected a whole number, got 'two'\n"),
        ("hostid", b"1e30", b"hostid: expected a whole number of at most 64 bits, got '1e30'\n"),
    ):
        answer = await host.post(with_value(encode_request(host.request()), tag, value))
        assert answer == (400, why)
        assert await evidence(server.project) == before
    assert (await host.call()).acks == (task.result.name,)


def with_value(body: bytes, tag: str, value: bytes) -> bytes:
    """Return the request with another value in the first element of that name."""
    before, opened, rest = body.partition(f"<{tag}>".encode())
    assert opened
    return before + opened + value + rest[rest.index(b"<") :]


async def test_negative_work_request_is_ignored(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()

    reply = await host.call(cpu_req_s=-1e9, cpu_req_instances=-3.0)

    assert (reply.results, texts(reply)) == ((), [])
    assert (await server.batch(batch_id))["unsent"] == 1


# ---------------------------------------------------------------- the request itself


@pytest.mark.parametrize("announced", [True, False])
async def test_request_of_50_mb_is_refused_unread(server: LiveServer, announced: bool) -> None:
    host = await server.add_host()
    await host.call()
    before = await evidence(server.project)
    body = encode_request(host.request()) + b" " * 50_000_000

    answer = await host.post(io.BytesIO(body) if announced else in_pieces(body))

    assert answer == (413, b"scheduler request: expected at most 8000000 bytes, got more\n")
    assert await evidence(server.project) == before
    await host.call()


async def in_pieces(body: bytes) -> AsyncIterator[bytes]:
    """A body without Content-Length."""
    for at in range(0, len(body), 100_000):
        yield body[at : at + 100_000]


async def test_truncated_request_is_refused_and_keeps_results(server: LiveServer) -> None:
    await server.add_app()
    await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.compute(task)
    before = await evidence(server.project)

    for cut in (0.02, 0.3, 0.7, 0.98):
        body = encode_request(host.request())
        status, why = await host.post(body[: int(cut * len(body))])
        assert status == 400
        assert why.startswith(b"scheduler request: expected </scheduler_request> at its end, got '")
        assert await evidence(server.project) == before
    assert (await host.call()).acks == (task.result.name,)
