"""Clients that survive failures: they retry at another node with their state, and remember every reply."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import asyncpg

from demo.load.volunteer import tasks_of
from domain.jobs import instance_id_of
from store.postgres import PostgresStore
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.builders import NOW
from tests.faults.waiting import CLOCK, until
from wire.client import decode_reply, encode_request
from wire.messages import STATE_UPLOADED

PAUSE_S = 0.1  # after an unanswered request
LONGEST_S = 120.0  # each node answers or refuses long before, also on a busy machine
POLITE = "the project cannot serve requests now; your client will try again\n"
SENT = "SELECT instance_id, job_id, host_id FROM instance WHERE host_id IS NOT NULL"
ENDED = "SELECT instance_id, host_id FROM instance WHERE reported_at IS NOT NULL"

# Only what is tested sets a limit.
GENEROUS: dict[str, object] = {
    "scheduler.daily_quota": 1_000_000,
    "scheduler.daily_quota_start": 1_000_000,
    "scheduler.shared_quota_start": 0,
    "server.host_requests_per_s": 0,  # simulated hosts send requests as fast as they are answered
    "server.address_requests_per_s": 0,
    "scheduler.in_progress_per_cpu": 1_000,
    "feeder.interval_s": 0.2,
    "lifecycle.validate_interval_s": 0.1,
}
# Jobs without outputs: done on arrival.
QUICK: dict[str, object] = {"fpops_est": 1e9, "outputs": []}


@dataclass(slots=True)
class Client:
    """One host and the nodes it may call."""

    host: Host
    urls: Sequence[str]
    at: int
    told: set[tuple[int, int]] = field(default_factory=set)  # host, instance
    acknowledged: set[tuple[int, int]] = field(default_factory=set)  # of its reports
    answered: int = 0
    broken: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    slowest_s: float = 0.0

    async def run(self, stop: asyncio.Event) -> None:
        """Request one job, do it, report it with the next request."""
        while not stop.is_set():
            began_s = CLOCK.monotonic()
            while not await self._ask() and not stop.is_set():
                self.at += 1
                await CLOCK.sleep(PAUSE_S)
            self.slowest_s = max(self.slowest_s, CLOCK.monotonic() - began_s)

    async def _ask(self) -> bool:
        """Send one request; return whether it was answered."""
        body = encode_request(self.host.request(cpu_req_s=1.0, cpu_req_instances=1.0))
        self.host.seqno += 1
        self.host.scheduler_url = f"{self.urls[self.at % len(self.urls)]}scheduler"
        try:
            async with asyncio.timeout(LONGEST_S):
                status, answer = await self.host.post(body)
        except TimeoutError as error:
            raise AssertionError(f"{self.host.scheduler_url} did not answer within {LONGEST_S:g} s") from error
        except (aiohttp.ClientError, OSError):
            self.broken += 1
            return False
        if status != 200:
            self.refused.append((status, answer.decode()))
            return False
        reply = decode_reply(answer)
        self.host.take(reply)
        self.answered += 1
        self.told |= {self._pair(task.result.name) for task in tasks_of(reply)}
        self.acknowledged |= {self._pair(name) for name in reply.acks}
        for task in list(self.host.held.values()):
            self.host.end(task, STATE_UPLOADED, elapsed_s=1.0, cpu_s=1.0)
        return True

    def _pair(self, name: str) -> tuple[int, int]:
        instance_id = instance_id_of(name)
        assert instance_id is not None
        return self.host.host_id, instance_id


class Crowd:
    """Running clients."""

    def __init__(self, clients: Sequence[Client]) -> None:
        self.clients = clients

    @property
    def answered(self) -> int:
        return sum(client.answered for client in self.clients)

    @property
    def told(self) -> set[tuple[int, int]]:
        return {pair for client in self.clients for pair in client.told}

    @property
    def acknowledged(self) -> set[tuple[int, int]]:
        return {pair for client in self.clients for pair in client.acknowledged}

    @property
    def refused(self) -> list[tuple[int, str]]:
        return [one for client in self.clients for one in client.refused]

    async def served(self, requests: int, most_s: float = 30.0) -> float:
        """Return the seconds until this many more requests were answered."""
        wanted = self.answered + requests
        return await until(lambda: self.answered >= wanted, most_s, f"{requests} requests answered")

    async def sent(self, jobs: int, most_s: float = 30.0) -> float:
        """Return the seconds until this many more jobs were sent: requests are also answered while none can be."""
        wanted = len(self.told) + jobs
        return await until(lambda: len(self.told) >= wanted, most_s, f"{jobs} jobs sent")


@asynccontextmanager
async def crowd(server: LiveServer, urls: Sequence[str], clients: int) -> AsyncIterator[Crowd]:
    """Run this many clients on these nodes until the context ends."""
    made = []
    for number in range(clients):
        host = await server.add_host(f"volunteer{number}")
        made.append(Client(host, urls, number))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for client in made:
            group.create_task(client.run(stop))
        try:
            yield Crowd(made)
        finally:
            stop.set()


async def assert_nothing_lost_or_doubled(told: set[tuple[int, int]], dsn: str) -> None:
    """Assert that every job in a reply is that host's in the database, and that none went to two hosts."""
    connection = await asyncpg.connect(dsn)
    try:
        rows: list[Any] = await connection.fetch(SENT)
    finally:
        await connection.close()
    host_of = {row["instance_id"]: row["host_id"] for row in rows}
    job_of = {row["instance_id"]: row["job_id"] for row in rows}
    assert told, "no client received a job"
    assert [pair for pair in sorted(told) if host_of.get(pair[1]) != pair[0]] == [], "lost"
    instances = [instance_id for _, instance_id in told]
    assert len(instances) == len(set(instances)), "an instance was sent to two hosts"
    jobs = [job_of[instance_id] for instance_id in instances]
    assert len(jobs) == len(set(jobs)), "a job without replicas was sent to two hosts"


async def assert_every_acknowledged_report_is_kept(acknowledged: set[tuple[int, int]], dsn: str) -> None:
    """Assert that acknowledged reports have ended in the database as that host's."""
    connection = await asyncpg.connect(dsn)
    try:
        rows: list[Any] = await connection.fetch(ENDED)
    finally:
        await connection.close()
    assert acknowledged, "no report was acknowledged"
    assert sorted(acknowledged - {(row["host_id"], row["instance_id"]) for row in rows}) == [], "lost reports"


async def assert_all_is_settled(store: PostgresStore) -> None:
    """Assert that everything is settled soon, and that the counters of batches equal their rows."""

    async def all_settled() -> bool:
        return not await store.unsettled.unsettled(1, now=NOW)

    await until(all_settled, 30, "everything reported is settled")
    assert await store.views.check_counters() == []
