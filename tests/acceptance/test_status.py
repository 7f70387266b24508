"""The metrics of a whole node, and request ids."""

from __future__ import annotations

import json
import re

from domain.settings import RankingSettings
from runtime.compose import host_statistics
from tests.acceptance.server import LiveServer
from tests.facts import missing
from tests.unit.runtime.metrics.test_manual import expressions, metric_named

OF_THE_SUPERVISOR = {"muster_process_up", "muster_process_restarts_total"}  # not present in these tests


async def get(server: LiveServer, path: str) -> tuple[int, str]:
    async with server.http.get(f"{server.url}{path}") as reply:
        return reply.status, await reply.text()


async def test_worker_metrics_cover_requests_work_and_database(server: LiveServer) -> None:
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


async def test_metrics_of_dashboard_and_alerts_exist(server: LiveServer) -> None:
    assert server.background is not None
    [estimator] = [duty for duty in server.background.duties if duty.name == "estimator"]
    await server.add_app()
    await server.submit(jobs={"count": 4})
    host = await server.add_host()
    for _ in range(2):  # a batch is scored by the forecasts made while it ran
        for task in await host.ask(2):
            await host.compute(task)
        await host.call()
        await server.validate()
        await server.forward(3600.0)
        await estimator.step()
    await host_statistics(server.store, RankingSettings, server.clock).statistics.run(full=True)
    await server.submit(jobs={"memory_bytes": 1e13})
    await estimator.step()
    assert await host.ask() == []
    await server.feed()
    await server.measure()

    _, text = await get(server, "metrics")

    told = set(re.findall(r"^# TYPE (\w+)", text, flags=re.MULTILINE))
    assert {name for _, expression in expressions() for name in families_in(expression)} - told == OF_THE_SUPERVISOR


def families_in(expression: str) -> set[str]:
    """Return the metrics in the expressions; histograms without suffix."""
    found = [metric_named(name) for name in re.findall(r"\bmuster_\w+", expression)]
    return {metric.name for metric in found if metric is not None}


async def test_worker_is_ready_while_it_can_send_jobs(server: LiveServer) -> None:
    assert await get(server, "readyz") == (200, '{"ready":true,"troubles":{}}')
    await server.workers[0].parts.shards.close()

    status, text = await get(server, "readyz")

    assert status == 503
    assert not missing(json.loads(text)["troubles"]["work"], "lost its database connection")
    assert (await get(server, "healthz"))[0] == 200


async def test_overdue_periodic_task_is_reported_but_not_unready(server: LiveServer) -> None:
    await server.validate()
    await server.sweep()
    await server.measure()
    assert await get(server, "duties") == (200, '{"in_time":true,"troubles":{}}')

    await server.forward(100.0)  # in which the sweeper runs, and the validator hangs
    await server.sweep()
    await server.measure()

    status, text = await get(server, "duties")
    assert status == 503
    assert set(json.loads(text)["troubles"]) == {"validator"}
    assert json.loads(text)["troubles"]["validator"].startswith("overdue by ")
    assert (await get(server, "readyz"))[0] == 200
    lines = (await get(server, "metrics"))[1].splitlines()
    found = dict(line.split() for line in lines if line.startswith("muster_duty_overdue_seconds"))
    assert float(found['muster_duty_overdue_seconds{duty="sweeper"}']) == 0
    assert 50 < float(found['muster_duty_overdue_seconds{duty="validator"}']) < 100

    await server.validate()
    await server.measure()
    assert (await get(server, "duties"))[0] == 200


async def test_request_id_of_the_caller_is_kept(server: LiveServer) -> None:
    async with server.http.post(f"{server.url}scheduler", data=b"?", headers={"X-Request-ID": "abc"}) as reply:
        assert (reply.status, reply.headers["X-Request-ID"]) == (400, "abc")
    async with server.http.get(f"{server.url}api/v1/batches") as reply:
        assert reply.status == 401
        assert reply.headers["X-Request-ID"]
