"""Trickle messages reach readers of the job's results: by the API, the client and the console."""

from __future__ import annotations

from domain.access import Role
from domain.units import DAY_S, Instant, later
from muster_client import Client
from tests.acceptance.server import LiveServer
from tests.acceptance.test_access import a_person, a_token
from tests.acceptance.test_console import a_browser
from tests.acceptance.test_results import not_there, own_token
from tests.browser.scene import OPERATOR, add_operator
from wire.messages import TrickleUp

TEXTS = [f"<b>step {number}</b>" for number in range(5)]


async def test_trickles_need_permission_to_read_results(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    await server.create("POST", "/submitters", json={"name": "lab", "account": "default", "shares": 1.0})
    await a_person(server, "sue", Role.SUBMITTER, "lab")
    await add_operator(server)
    host = await server.add_host()
    [task] = await host.ask()
    sent = [TrickleUp(task.result.name, Instant(1000.0 + n), "progress", text) for n, text in enumerate(TEXTS)]

    reply = await host.call(trickles=tuple(sent))

    assert reply.ack_trickles
    [instance_id] = [one.instance_id for job in await server.jobs(batch_id) for one in job.instances]
    async with Client(server.url, own_token(server)) as client:
        found = await client.instance_trickles(instance_id)
        assert [(one["sent_at"], one["variety"], one["text"]) for one in found] == [
            (1000.0 + number, "progress", text) for number, text in enumerate(TEXTS)
        ]
        assert len(await client.instance_trickles(instance_id, limit=2)) == 2
        assert "no instance 99" in await not_there(client.instance_trickles(99))
    async with Client(server.url, await a_token(server, "sue", "read")) as sue:
        assert "another submitter" in await not_there(sue.instance_trickles(instance_id), 403)
    async with a_browser(server, OPERATOR) as grace:
        status, page = await grace.get(f"/instances/{instance_id}")
    assert status == 200
    assert "Trickle messages" in page
    assert "&lt;b&gt;step 4&lt;/b&gt;" in page


async def test_trickles_of_a_restored_client_are_kept(server: LiveServer) -> None:
    """Its serial number is behind, so the server creates a new host record for it."""
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    for _ in range(2):
        await host.call()
    host.seqno, old_id = host.seqno - 2, host.host_id

    reply = await host.call(trickles=(TrickleUp(task.result.name, Instant(1000.0), "progress", "half"),))

    assert (reply.ack_trickles, host.host_id != old_id) == (True, True)
    [instance_id] = [one.instance_id for job in await server.jobs(batch_id) for one in job.instances]
    async with Client(server.url, own_token(server)) as client:
        assert [one["text"] for one in await client.instance_trickles(instance_id)] == ["half"]


async def test_wrong_host_clock_is_shown(server: LiveServer) -> None:
    await server.add_app()
    await server.submit()
    await add_operator(server)
    host = await server.add_host()
    wrong = later(server.clock.now(), 3 * DAY_S)

    refused = await host.call(cpu_req_s=1.0, cpu_req_instances=1.0, client_now=wrong)

    assert refused.results == ()
    assert refused.messages[0].priority == "notice"
    assert "3 d ahead" in refused.messages[0].text and "1 h" in refused.messages[0].text
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get(f"/hosts/{host.host_id}")
    assert "clock_skew" in page
    assert "clock is 3 d ahead" in page
    assert len(await host.ask(client_now=server.clock.now())) == 1
