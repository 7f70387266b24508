"""Workers stop, start and share the work: nothing is lost or sent twice."""

from __future__ import annotations

import asyncio

from tests.acceptance.server import LiveServer
from tests.ports import free_port


async def test_server_stop_between_fetch_and_report(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 2})
    host = await server.add_host()
    first, second = await host.ask(2)
    await host.compute(first)

    await server.restart()
    await host.work(second)
    await server.validate()

    batch = await server.batch(batch_id)
    assert (batch["state"], batch["jobs_validated"], batch["sent"], batch["retries"]) == ("complete", 2, 2, 0)


async def test_workers_share_shards_without_double_dispatch(server: LiveServer) -> None:
    await server.add_app()
    second = await server.start_worker(free_port())
    batch_id = await server.submit(jobs={"count": 60, "fpops_est": 1e9})
    owned = [worker.parts.shards.owned() for worker in server.workers]
    hosts = [await server.add_host(f"volunteer{number}") for number in range(6)]
    for host in hosts[::2]:
        host.scheduler_url = f"{second.url}scheduler"

    while (await server.batch(batch_id))["unsent"]:
        await asyncio.gather(*(host.ask(2, seconds=4.0) for host in hosts))
        await server.feed()

    assert [len(shards) for shards in owned] == [32, 32] and owned[0].isdisjoint(owned[1])
    given = [name for host in hosts for name in host.held]
    assert len(given) == len(set(given)) == 60
    for host in hosts:
        for task in list(host.held.values()):
            await host.compute(task)
        await host.call()
    await server.validate()
    assert (await server.batch(batch_id))["state"] == "complete"


async def test_shards_of_a_stopped_worker_move(server: LiveServer) -> None:
    await server.add_app()
    second = await server.start_worker(free_port())
    batch_id = await server.submit(jobs={"count": 40, "fpops_est": 1e9})

    await server.stop_worker(second)
    await server.feed()

    assert len(server.workers[0].parts.shards.owned()) == 64
    host = await server.add_host(ncpus=8)
    assert len(await host.ask(40, seconds=400.0)) == 40
    assert (await server.batch(batch_id))["unsent"] == 0
