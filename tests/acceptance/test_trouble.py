"""Broken connections, concurrent requests and servers below a path: work continues and nothing is done twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg

from demo.load.volunteer import tasks_of
from domain.errors import UnavailableError
from domain.jobs import InstanceState
from tests.acceptance.host import RIGHT, Host
from tests.acceptance.server import LiveServer, live_server
from wire.client import decode_reply, encode_request

S = InstanceState


async def test_project_below_a_path(tmp_path: Path, keys_dir: Path) -> None:
    async with live_server(tmp_path, keys_dir, path="science/pi/") as server:
        await server.add_app()
        batch_id = await server.submit()
        host = await server.add_host()
        [task] = await host.ask()
        await host.work(task)
        await server.validate()

        assert task.upload_url == f"{server.url}upload" and "/science/pi/" in task.upload_url
        assert (await server.batch(batch_id))["state"] == "complete"
        async with server.http.get(server.url) as page:
            assert f"{server.url}scheduler" in await page.text()


async def test_concurrent_repeat_gets_the_same_job(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 5})
    host = await server.add_host()
    await host.call()
    body = encode_request(host.request(cpu_req_s=1.0, cpu_req_instances=1.0))

    answers = await asyncio.gather(host.post(body), host.post(body))

    assert [status for status, _ in answers] == [200, 200]
    host.seqno += 1
    for _, answer in answers:
        host.take(decode_reply(answer))
    for task in list(host.held.values()):
        await host.compute(task)
    await host.call()
    await server.validate()
    batch = await server.batch(batch_id)
    assert batch["jobs_validated"] == batch["sent"] == len({task for _, a in answers for task in names_in(a)})


def names_in(answer: bytes) -> list[str]:
    return [task.result.name for task in tasks_of(decode_reply(answer))]


async def test_hosts_of_one_volunteer_do_not_validate_each_other(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"quorum": 2})
    first = await server.add_host("ada")
    second = Host(first.http, first.scheduler_url, first.authenticator, "ada's other computer")
    [task] = await first.ask()

    assert await second.ask() == []
    await first.work(task)
    await server.validate()
    await server.feed()
    assert await second.ask() == []

    assert second.host_id not in (0, first.host_id)
    assert sorted(i.state for i in await server.instances(batch_id)) == [S.REPORTED, S.UNSENT]


async def test_upload_continues_at_another_worker(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    content = RIGHT * 5000
    cut = await host.upload(task, content, cut_at=20_000)
    await server.restart()

    size = (await host.size(task)).file_size
    assert size is not None
    rest = await host.upload(task, content, offset=size)

    assert (cut.status, size, rest.status) == (1, 19_999, 0)  # size queries report a partial upload one byte short
    await host.work(task, content)
    await server.validate()
    assert (await server.batch(batch_id))["state"] == "complete"


async def test_dropped_connections_lose_no_work(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 4})
    host = await server.add_host()
    first, second = await host.ask(2)
    await host.compute(first)
    await drop_connections(server)

    answers = [await host.post(encode_request(host.request())) for _ in range(3)]

    assert {status for status, _ in answers} <= {200, 503} and answers[-1][0] == 200
    assert all(b"try again" in body for status, body in answers if status == 503)
    host.take(decode_reply(answers[-1][1]))
    await host.work(second)
    await recovered(server)
    for task in await host.ask(2):
        await host.work(task)
    await server.validate()
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["sent"], batch["retries"]) == ("complete", 4, 0)


async def drop_connections(server: LiveServer) -> None:
    """Close all connections, as a restart of PostgreSQL does."""
    assert server.project.database_url is not None
    connection = await asyncpg.connect(server.project.database_url)
    try:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()


async def recovered(server: LiveServer) -> None:
    """Retry a background loop until it succeeds, a few times at most."""
    for _ in range(5):
        try:
            await server.feed()
            await server.store.views.check_counters()
            await server.validate()
        except UnavailableError:
            continue
        return
    raise AssertionError("the server did not come back")
