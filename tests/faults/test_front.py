"""Workers and nodes behind HAProxy die, stop and are drained under load: clients notice nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest
from aiohttp import ClientSession, TCPConnector

from benchmarks.dispatch.front import HAPROXY, Front, front
from tests.e2e.server import Server
from tests.faults.cluster import cluster
from tests.faults.crowd import (
    QUICK,
    assert_all_is_settled,
    assert_every_acknowledged_report_is_kept,
    assert_nothing_lost_or_doubled,
    crowd,
)
from tests.faults.waiting import until
from tests.ports import free_port

ALONE = 40  # requests, one after the other


def worker_of(node: Server) -> psutil.Process:
    """Return the node's only request worker."""
    found = psutil.process_iter(["cmdline"])
    [worker] = [one for one in found if {str(node.data_dir), "worker"} <= set(one.info["cmdline"] or [])]
    return worker


def is_up(haproxy: Front, name: str) -> bool:
    return haproxy.servers()[name]["status"].startswith("UP")


@pytest.mark.skipif(HAPROXY is None, reason="needs haproxy: tests/install_system.sh")
async def test_clients_do_not_notice_lost_workers(tmp_path: Path, keys_dir: Path, dsn: str) -> None:
    """Requests of a killed worker are repeated at the other one, a stopped node is left, a drained worker gets none."""
    async with cluster(tmp_path, keys_dir, dsn, nodes=2) as made:
        haproxy = Front(tmp_path / "front", free_port(), free_port(), free_port(), free_port())
        own = [node.worker_port for node in made.nodes if node.worker_port is not None]
        with front(haproxy, workers=own, nodes=[node.port for node in made.nodes]):
            await until(lambda: is_up(haproxy, "worker0") and is_up(haproxy, "worker1"), 10, "both workers checked")
            await made.evenly_held(2)
            await made.server.add_app()
            await made.server.submit(jobs={"count": 20_000, **QUICK})
            url = f"http://127.0.0.1:{haproxy.http_port}/"
            async with crowd(made.server, [url], 8) as clients:
                await clients.served(200)
                spread = [int(haproxy.servers()[name]["stot"]) for name in ("worker0", "worker1")]

                worker_of(made.nodes[0]).kill()
                await clients.served(40)
                await made.evenly_held(2)
                await until(lambda: is_up(haproxy, "worker0"), 10, "the new worker")

                await asyncio.to_thread(made.nodes[1].stop)  # SIGTERM; asserts exit code 0
                await clients.served(40)
                await asyncio.to_thread(made.nodes[1].start)
                await made.evenly_held(2)
                await until(lambda: is_up(haproxy, "worker1"), 10, "the node is back")

                haproxy.command("set server workers/worker0 state drain")
                await until(lambda: haproxy.servers()["worker0"]["scur"] == "0", 10, "no request at the worker")
                before = haproxy.servers()["worker0"]["stot"]
                await clients.served(40)
                drained = haproxy.servers()["worker0"]["stot"] == before
                servers = haproxy.servers()
            earlier = haproxy.servers()["worker1"]
            async with ClientSession(connector=TCPConnector(force_close=True)) as session:
                for _ in range(ALONE):
                    async with session.get(url) as reply:
                        assert reply.status == 200
            now = haproxy.servers()["worker1"]
            alone = {name: int(now[name]) - int(earlier[name]) for name in ("connect", "reuse")}

        assert (clients.refused, sum(client.broken for client in clients.clients)) == ([], 0)
        assert min(spread) > 0.25 * sum(spread)
        assert drained
        # One request at a time needs no further connection to the worker, however busy the machine is.
        assert alone["connect"] <= 1
        assert alone["reuse"] >= ALONE - 1
        assert [int(servers[name]["stot"]) for name in ("node0", "node1")] == [0, 0]
        await assert_nothing_lost_or_doubled(clients.told, dsn)
        await assert_every_acknowledged_report_is_kept(clients.acknowledged, dsn)
        await assert_all_is_settled(made.server.store)
