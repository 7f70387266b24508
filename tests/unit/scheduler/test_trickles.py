"""Trickle messages are acknowledged always, and kept where they belong to a job the host has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from domain.dispatch import Report, RequestKey, RequestWrites, TrickleFate
from domain.errors import UnavailableError
from domain.jobs import InstanceState
from domain.units import HostId, InstanceId, Instant, Seconds, later
from tests.builders import NOW
from tests.unit.scheduler.project import KEY, Project, a_project, a_request, a_success, listed
from tests.worlds import hash_of
from wire.messages import HostInfo, TrickleUp

SENT_AT = Instant(NOW - 5.0)


def said(text: str = "half", name: str = "pi_1_1_1") -> TrickleUp:
    return TrickleUp(name, SENT_AT, "progress", text)


async def a_busy_project(**settings: object) -> Project:
    """Host 1 has pi_1_1_1 in progress."""
    project = await a_project()
    await project.set(**settings)
    await project.submit(2)
    await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    return project


async def texts(project: Project) -> list[str]:
    return [one.text for one in await project.store.trickles.of_instance(InstanceId(1), after=0, limit=99)]


async def test_a_message_is_kept_once_and_acknowledged_each_time() -> None:
    """As when the reply with the acknowledgement was lost."""
    project = await a_busy_project()
    for seqno in (1, 2):
        project.clock.at = later(NOW, 60.0 * seqno)
        reply = await project.answer(
            a_request(host_id=1, rpc_seqno=seqno, trickles=(said(),), other_results=listed("pi_1_1_1"))
        )
        assert reply.ack_trickles

    [kept] = await project.store.trickles.of_instance(InstanceId(1), after=0, limit=9)
    assert (kept.variety, kept.text, kept.sent_at, kept.received_at) == ("progress", "half", SENT_AT, NOW + 60.0)
    assert project.counts.trickles == Counter({TrickleFate.KEPT: 2})


async def test_a_request_without_messages_acknowledges_none() -> None:
    project = await a_busy_project()

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, other_results=listed("pi_1_1_1")))

    assert not reply.ack_trickles


async def test_what_is_not_kept_is_acknowledged_and_counted() -> None:
    project = await a_busy_project(files__max_trickle_bytes=4, files__trickles_per_instance=2)
    messages = (said("a" * 5), said("ä" * 3), said("pi", name="pi_1_2_2"), said("one"), said("two"), said("six"))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, trickles=messages, more_trickles=7, other_results=listed("pi_1_1_1"))
    )

    assert reply.ack_trickles
    assert await texts(project) == ["one", "two"]
    assert project.counts.trickles == Counter(
        {
            TrickleFate.KEPT: 2,
            TrickleFate.TOO_LARGE: 2,
            TrickleFate.TOO_MANY: 8,
            TrickleFate.NOT_IN_PROGRESS: 1,
        }
    )


async def test_a_message_of_another_host_changes_nothing() -> None:
    project = await a_busy_project()

    reply = await project.answer(a_request(host=HostInfo(host_cpid="2" * 32), trickles=(said(),)))

    assert reply.ack_trickles
    assert await texts(project) == []
    assert project.counts.trickles == Counter({TrickleFate.NOT_IN_PROGRESS: 1})


async def test_nothing_is_acknowledged_that_could_not_be_stored() -> None:
    project = await a_busy_project()
    project.ledger.down_from_write = len(project.ledger.writes)

    with pytest.raises(UnavailableError):
        await project.answer(a_request(host_id=1, rpc_seqno=1, trickles=(said(),), other_results=listed("pi_1_1_1")))


async def test_restored_client_has_its_messages_stored() -> None:
    """The instance moves to the new record; so does what the app says of it."""
    project = await a_busy_project()
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))

    reply = await project.answer(replace(lists, rpc_seqno=3, trickles=(said(),)))

    assert (reply.host_id, reply.ack_trickles) == (2, True)
    assert await texts(project) == ["half"]


async def test_restored_client_with_lost_reply_has_messages_stored() -> None:
    project = await a_busy_project()
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))
    await project.answer(replace(lists, rpc_seqno=3))

    reply = await project.answer(replace(lists, rpc_seqno=3, trickles=(said(),)))

    assert (reply.host_id, reply.ack_trickles) == (2, True)
    assert await texts(project) == ["half"]


async def test_timed_out_instance_still_running_keeps_messages() -> None:
    project = await a_busy_project()
    [held] = (await project.store.ledger.read(RequestKey(hash_of(KEY), HostId(1)))).held
    [host] = await project.store.views.hosts(limit=1)
    timed_out = Report(held.instance_id, held.job_id, InstanceState.IN_PROGRESS, InstanceState.TIMED_OUT, NOW)
    await project.store.ledger.write(RequestWrites(host, (timed_out,)))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, trickles=(said(),), other_results=listed("pi_1_1_1"))
    )

    assert reply.ack_trickles
    assert await texts(project) == ["half"]


@pytest.mark.parametrize("is_restored", [False, True])
async def test_last_message_comes_with_the_report(is_restored: bool) -> None:
    project = await a_busy_project()
    await project.upload("pi_1_1_1")
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))
    last = a_request(host_id=1, trickles=(said("all"),), results=(a_success("pi_1_1_1"),))

    reply = await project.answer(replace(last, rpc_seqno=3 if is_restored else 9))

    assert (reply.acks, reply.ack_trickles) == (("pi_1_1_1",), True)
    assert await texts(project) == ["all"]


async def test_ended_instance_keeps_no_messages() -> None:
    """A message that follows the end of its instance is counted as one of no instance in progress."""
    project = await a_busy_project()
    await project.upload("pi_1_1_1")
    await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=2, trickles=(said(),), results=(a_success("pi_1_1_1"),))
    )

    assert reply.ack_trickles
    assert await texts(project) == []
    assert project.counts.trickles == Counter({TrickleFate.NOT_IN_PROGRESS: 1})
