"""What a whole node tells a monitoring system, and under which name it knows each request."""

from __future__ import annotations

from tests.acceptance.server import LiveServer


async def get(server: LiveServer, path: str) -> tuple[int, str]:
    async with server.http.get(f"{server.url}{path}") as reply:
        return reply.status, await reply.text()


async def test_a_worker_tells_of_requests_work_and_the_database(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 3})
    host = await server.add_host()
    [job] = await host.ask(1)
    await server.measure()

    status, text = await get(server, "metrics")

    lines = text.splitlines()
    assert status == 200
    assert job is not None
    assert "muster_jobs_sent_total 1.0" in lines
    assert 'muster_array_slots{app="pi",processor_type="cpu"} 2.0' in lines
    assert f'muster_batch_unsent_instances{{batch="{batch_id}"}} 2.0' in lines
    assert 'muster_serving{process="worker 0"} 1.0' in lines
    assert 'muster_database_up{process="background"} 1.0' in lines
    assert any(line.startswith('muster_database_group_size_count{kind="write"} ') for line in lines)
    assert any(line.startswith('muster_pages_total{area="api",status="2xx"} ') for line in lines)


async def test_a_worker_is_ready_while_it_may_give_out_work(server: LiveServer) -> None:
    assert await get(server, "readyz") == (200, '{"ready":true,"troubles":{}}')
    await server.workers[0].parts.shards.close()

    status, text = await get(server, "readyz")

    assert status == 503
    assert '"work":"this server has lost sight of its database' in text
    assert (await get(server, "healthz"))[0] == 200


async def test_a_request_is_known_by_the_id_its_caller_gave_it(server: LiveServer) -> None:
    async with server.http.post(f"{server.url}scheduler", data=b"?", headers={"X-Request-ID": "abc"}) as reply:
        assert (reply.status, reply.headers["X-Request-ID"]) == (400, "abc")
    async with server.http.get(f"{server.url}api/v1/batches") as reply:
        assert reply.status == 401
        assert reply.headers["X-Request-ID"]
