"""Runs one repeat: first the echo, then the echo with more connections, then the node."""

from __future__ import annotations

import argparse
import asyncio
import sys

import asyncpg

from benchmarks.dispatch.figures import Repeat
from benchmarks.dispatch.processes import Echo, Generator, Node, cpu_s_of
from benchmarks.dispatch.world import World
from benchmarks.running import reference_us
from domain.clock import Clock

CLIENTS = (1, 16, 64)  # concurrent clients with one request each
WARM_UP_S = 3.0
WATCH_S = 0.25  # interval of checking the backlog
SETTLED_S = 120.0  # time limit for validating the results of a phase


class Runs:
    """Phases of load on a running node and a running echo."""

    def __init__(
        self,
        node: Node,
        load: Generator,
        world: World,
        connection: asyncpg.Connection,
        options: argparse.Namespace,
        clock: Clock,
        *,
        clients: int = CLIENTS[-1],
        keep_alive: bool = False,
    ) -> None:
        self._node = node
        self._load = load
        self._world = world
        self._connection = connection
        self._options = options
        self._clock = clock
        self._clients = clients
        self._keep_alive = keep_alive

    async def echo(self, port: int, seconds: float, clients: int | None = None) -> dict[str, float]:
        return await self._load.ask(
            server="echo",
            port=port,
            connections=clients or self._clients,
            seconds=seconds,
            rate_per_s=None,
            keep_alive=self._keep_alive,
        )

    async def dispatch(self, seconds: float, rate_per_s: float | None = None) -> dict[str, float]:
        """Load the node, keeping its backlog above half of the requested size."""
        over = asyncio.Event()
        topping = asyncio.create_task(self._keep_backlog(over))
        try:
            return await self._load.ask(
                server="dispatch",
                port=self._node.port,
                connections=self._clients,
                seconds=seconds,
                rate_per_s=rate_per_s,
                keep_alive=self._keep_alive,
                certificate=self._node.certificate,
            )
        finally:
            over.set()
            await topping

    async def repeat(self, echo: Echo) -> Repeat:
        """Run echo and dispatch. CPU time counts until all reported results are settled."""
        seconds, load = self._options.seconds, self._options.load
        echo_s = -echo.cpu_s()
        echoed = await self.echo(echo.port, seconds)
        echo_s += echo.cpu_s()
        few = self._clients < CLIENTS[-1]  # few clients wait for replies, so more clients always raise the rate
        echoed_more = echoed if few else await self.echo(echo.port, seconds, self._clients * 3 // 2)
        await self._world.top_up(self._options.waiting_jobs)
        reference = reference_us()
        full = await self.dispatch(seconds) if load < 1.0 else None
        if full is not None:
            await self._settled()
            await self._world.top_up(self._options.waiting_jobs)
        rate_per_s = None if full is None else load * full["requests_per_s"]
        used = self._used_s()
        done = await self.dispatch(seconds, rate_per_s)
        if done["without_work"]:
            print(f"  without work: {done['why']}", file=sys.stderr, flush=True)
        unsettled = await self._unsettled()
        rss_mib = self._node.rss_mib_per_worker()
        await self._settled()
        workers_us, background_us, postgres_us, front_us = (
            1e6 * (after - before) / done["requests"] for before, after in zip(used, self._used_s(), strict=True)
        )
        return Repeat(
            echo_requests_per_s=echoed["requests_per_s"],
            echo_more_requests_per_s=echoed_more["requests_per_s"],
            full_requests_per_s=(full or done)["requests_per_s"],
            requests_per_s=done["requests_per_s"],
            jobs_per_s=done["jobs_per_s"],
            p50_ms=done["p50_ms"],
            p99_ms=done["p99_ms"],
            no_work_fraction=(done["without_work"] + done["failed"]) / done["requests"],
            failed=done["failed"],
            cpu_us_per_request=workers_us + background_us + postgres_us + front_us,
            workers_cpu_us_per_request=workers_us,
            python_cpu_us_per_request=workers_us + background_us,
            background_cpu_us_per_request=background_us,
            postgres_cpu_us_per_request=postgres_us,
            front_cpu_us_per_request=front_us,
            echo_cpu_us_per_request=1e6 * echo_s / echoed["requests"],
            generator_cpu_fraction=max(done["generator_cpu_fraction"], echoed["generator_cpu_fraction"]),
            unsettled_left=unsettled,
            rss_mib_per_worker=rss_mib,
            reference_us=reference,
        )

    async def _keep_backlog(self, over: asyncio.Event) -> None:
        """Submit more jobs whenever less than half of the backlog is left, so that it does not run out."""
        wanted = self._options.waiting_jobs
        while not over.is_set():
            await self._clock.sleep(WATCH_S)
            if await self._world.waiting() < wanted // 2:
                await self._world.top_up(wanted, most=max(1000, wanted // 10))

    def _used_s(self) -> tuple[float, float, float, float]:
        """Return the CPU seconds so far of workers, background process, database (less our queries) and front end."""
        postgres_s = self._node.postgres_cpu_s() - cpu_s_of(self._connection.get_server_pid())
        return self._node.workers_cpu_s(), self._node.background_cpu_s(), postgres_s, self._node.front_cpu_s()

    async def _unsettled(self) -> int:
        return int(await self._connection.fetchval("SELECT count(*) FROM job_todo"))

    async def _settled(self) -> None:
        """Wait until the validator has processed all reported results."""
        until_s = self._clock.monotonic() + SETTLED_S
        while await self._unsettled() and self._clock.monotonic() < until_s:
            await self._clock.sleep(0.1)
