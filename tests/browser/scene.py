"""Sets up a project with history: hosts, batches of every kind, an operator."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from administration.access.sign_in import Cost, stretched
from domain.access import Role
from domain.settings import RankingSettings
from domain.units import BatchId, Instant
from runtime.compose import host_statistics
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer

OPERATOR, PASSWORD = "grace", "correct horse battery"
CHEAP = Cost(n=2**4)  # cheap to hash: tests need no protection against guessing
HOSTS = 24
ROUNDS = 3
AT_ONCE = 4  # hosts report in groups,
PAUSE_S = 240.0  # this many seconds apart


async def add_operator(server: LiveServer) -> None:
    """Add an operator with her own password."""
    await server.store.access.add_person(
        OPERATOR,
        role=Role.OPERATOR,
        submitter_id=None,
        password=stretched(PASSWORD, CHEAP),
        one_time_until=None,
        now=server.clock.now(),
    )


async def add_hosts(server: LiveServer, count: int) -> list[Host]:
    return [await server.add_host(f"host{number}") for number in range(count)]


async def work_off(server: LiveServer, hosts: Sequence[Host], *, share: float = 1.0) -> int:
    """Let each host request, compute and report, one group after the other; return the number of jobs done."""
    await server.feed()
    given = await asyncio.gather(*(host.ask(2) for host in hosts))
    finished = [tasks[: max(0, round(share * len(tasks)))] for tasks in given]

    async def report(number: int) -> None:
        for task in finished[number]:
            await hosts[number].compute(task, elapsed_s=300.0 + 40.0 * number)
        await hosts[number].call()

    for first in range(0, len(hosts), AT_ONCE):  # the first ones are the fastest
        await server.forward(PAUSE_S)
        await asyncio.gather(*(report(number) for number in range(first, min(first + AT_ONCE, len(hosts)))))
    await server.validate()
    return sum(len(tasks) for tasks in finished)


async def furnish(server: LiveServer) -> dict[str, BatchId]:
    """Add ranked hosts with statistics, and batches: complete, active, unschedulable, and without urgency."""
    await add_operator(server)
    await server.add_app()
    hosts = await add_hosts(server, HOSTS)
    survey = await server.submit(name="survey", jobs={"count": 2 * HOSTS * ROUNDS})
    for _ in range(ROUNDS):
        await work_off(server, hosts)
        await server.forward(1200.0)
    ranking = host_statistics(server.store, RankingSettings, server.clock)
    await ranking.statistics.run(full=True)
    rush = await server.submit(name="rush", qos="afap", jobs={"count": 40})
    await work_off(server, hosts[:10], share=0.5)
    huge = await server.submit(name="huge matrices", qos="long_deadline", jobs={"count": 12, "memory_bytes": 1e13})
    await work_off(server, hosts)
    census = await server.submit(name="census", jobs={"count": 400})
    due = await server.submit(name="conference paper", qos="short_deadline", deadline_s=5 * 3600, jobs={"count": 60})
    await tell(server)
    for place in range(3):
        await server.forward(20.0)
        await work_off(server, hosts[8 * place : 8 * place + 8], share=0.5)
        await tell(server)
    await add_samples(server)
    return {"survey": survey, "rush": rush, "huge": huge, "census": census, "due": due}


async def add_samples(server: LiveServer) -> None:
    """Add samples of the past hour and day, with a gap of two minutes and one of an hour."""
    now = server.clock.now()
    for step_s, count in ((10, 360), (60, 1440)):
        for place in (one for one in range(1, count) if not 100 <= one < 160 - step_s // 2 + 10):
            wave = 1.0 + math.sin(place * step_s / 4000.0)
            figures = {"requests": 0.4 + wave, "sent": 0.3 * wave, "reports": 0.25 * wave, "busy": 0.004 * wave}
            figures |= {"jobs_open": 500.0 - place / 10.0, "unsent": 300.0 - place / 12.0, "in_progress": 40.0 * wave}
            figures |= {"hosts": 24.0, "refused.memory": 0.02 * wave, "refused.disk": 0.01 if place % 9 else 0.0}
            at = Instant((now // step_s - place) * step_s)
            await server.store.samples.write(step_s, at, figures)


async def tell(server: LiveServer) -> None:
    """Run the periodic tasks that pages depend on: ordering, forecasts and heartbeats."""
    assert server.background is not None
    await server.background.catalogue.refresh_once()
    for worker in server.workers:
        await worker.parts.catalogue.refresh_once()
        await worker.parts.heartbeat.write_once()
    for duty in server.background.duties:
        if duty.name in ("ordering", "estimator", "validator", "samples", "unschedulable work"):
            await duty.step()
    await server.background.heartbeat.write_once()
