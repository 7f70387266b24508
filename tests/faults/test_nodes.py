"""Nodes join, leave and die under load: the shards move, and no job is lost or sent to two hosts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.faults.cluster import cluster
from tests.faults.crowd import (
    QUICK,
    assert_all_is_settled,
    assert_every_acknowledged_report_is_kept,
    assert_nothing_lost_or_doubled,
    crowd,
)


@pytest.mark.parametrize(
    ("rounds", "workers"),
    [pytest.param(1, 1, id="once"), pytest.param(5, 2, id="again and again", marks=pytest.mark.faults)],
)
async def test_nodes_die_leave_and_join_under_load(
    tmp_path: Path, keys_dir: Path, dsn: str, rounds: int, workers: int
) -> None:
    """Nodes start and stop in threads: the clients, which share this loop, continue and are timed."""
    async with cluster(tmp_path, keys_dir, dsn, nodes=2, workers=workers) as made:
        first, second = made.nodes
        await made.evenly_held(2 * workers)
        await made.server.add_app()
        await made.server.submit(jobs={"count": 20_000, **QUICK})
        async with crowd(made.server, made.urls, 8) as clients:
            await clients.served(40)
            for _ in range(rounds):
                await asyncio.to_thread(first.kill)
                await made.evenly_held(workers)
                await clients.served(40)
                await asyncio.to_thread(first.start)
                await made.evenly_held(2 * workers)
                await clients.served(40)

                await asyncio.to_thread(second.stop)  # SIGTERM; asserts exit code 0
                await made.evenly_held(workers)
                await clients.served(40)
                await asyncio.to_thread(second.start)
                await made.evenly_held(2 * workers)
                await clients.served(40)

        assert max(client.slowest_s for client in clients.clients) < 10
        await assert_nothing_lost_or_doubled(clients.told, dsn)
        await assert_every_acknowledged_report_is_kept(clients.acknowledged, dsn)
        await assert_all_is_settled(made.server.store)
