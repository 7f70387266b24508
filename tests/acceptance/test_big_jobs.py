"""A job for all processors of a host among small jobs: reserved slots and leases, over HTTP on a database."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from domain.apps import PlanClass
from domain.units import HOUR_S, BatchId, Instant, Seconds, later
from tests.acceptance.faces import command, json_of, run_duty
from tests.acceptance.host import Host
from tests.acceptance.server import LiveServer
from tests.facts import missing
from wire.messages import STATE_COMPUTE_ERROR, InProgress

CORES = 4
FULL_H = 10.0  # of work on every processor, so a job for all of them never fits in time
FLOP_PER_H = HOUR_S * 1e9
SETTINGS = {
    "deadline.rule": "fixed",
    "ordering.policy": "fifo",
    "ordering.reservation_slots": 0,
    "scheduler.daily_quota_start": 500,
}


@dataclass(slots=True)
class Busy:
    """A host that runs each job on the first free processor, and requests more work early."""

    host: Host
    queues: list[dict[str, float]] = field(default_factory=lambda: [{} for _ in range(CORES)])  # hours by name
    cores: dict[str, int] = field(default_factory=dict)

    async def call(self, now: Instant) -> list[BatchId]:
        """Call the server; return the batches of the jobs received."""
        short_h = [max(0.0, FULL_H - sum(queue.values())) for queue in self.queues]
        under_way = tuple(
            InProgress(name, later(now, 30 * 86400.0), Seconds(left_h * HOUR_S), float(self.cores[name]))
            for name, left_h in {name: h for queue in self.queues for name, h in queue.items()}.items()
        )
        idle = sum(not queue for queue in self.queues)
        tasks = await self.host.ask(idle, seconds=max(1.0, sum(short_h) * HOUR_S), in_progress=under_way)
        return [self._take(task.result.name, task.workunit.fpops_est) for task in tasks]

    def _take(self, name: str, flop: float) -> BatchId:
        is_wide = flop > 4 * FLOP_PER_H
        queues = self.queues if is_wide else [min(self.queues, key=lambda queue: sum(queue.values()))]
        self.cores[name] = len(queues)
        for queue in queues:
            queue[name] = flop / FLOP_PER_H / len(queues)
        return BatchId(int(name.split("_")[1]))

    def compute(self, hours: float) -> None:
        """Compute for that long, one job after the other on each processor."""
        for queue in self.queues:
            left_h = hours
            while queue and left_h > 0.0:
                name = next(iter(queue))
                done_h = min(left_h, queue[name])
                queue[name] -= done_h
                left_h -= done_h
                if queue[name] <= 1e-9:
                    del queue[name]
        everywhere = {name for queue in self.queues for name in queue}
        for name in [name for name in self.host.held if name not in everywhere]:
            self.host.end(self.host.held[name], STATE_COMPUTE_ERROR, 1)


@pytest.fixture
async def pi(server: LiveServer) -> LiveServer:
    """Small jobs of an hour, and apps for jobs on all four processors: one with such a plan class, one without."""
    await server.add_app()
    await server.store.applications.put_plan_class(PlanClass("wide", ncpus=float(CORES)))
    await server.add_app("wide", versions=0)
    await server.add_version("wide", plan_class="wide")
    await server.add_app("plain")
    for key, value in SETTINGS.items():
        await server.create("PUT", f"/settings/{key}", json={"value": value, "why": "a test"})
    return server


async def hours_until_sent(server: LiveServer, computer: Busy, batch_id: BatchId, *, most: int) -> int | None:
    """Return the hours until the host gets a job of the batch; None if more than `most`."""
    for hour in range(most):
        if batch_id in await computer.call(server.clock.now()):
            return hour
        computer.compute(1.0)
        await run_duty(server, "reservations")
        await server.forward(HOUR_S)
    return None


@pytest.mark.parametrize(("app", "hours"), [("wide", 16.0), ("plain", 4.5)])
async def test_big_job_reserves_a_host_busy_with_small_jobs(pi: LiveServer, app: str, hours: float) -> None:
    day_s = 86400.0
    small = {"count": 40, "fpops_est": FLOP_PER_H, "fpops_bound": 100 * FLOP_PER_H, "delay_bound_s": 30 * day_s}
    await pi.submit(jobs=small)
    computer = Busy(await pi.add_host("ada", ncpus=CORES))
    await computer.call(pi.clock.now())  # the first call registers the host
    await computer.call(pi.clock.now())
    wide = {"fpops_est": hours * FLOP_PER_H, "ncpus": CORES, "delay_bound_s": 12 * HOUR_S}
    big = await pi.submit(app=app, jobs={**wide, "memory_bytes": 1e8})
    await pi.submit(jobs={**small, "count": 400})  # queued behind it
    await run_duty(pi, "ordering")

    assert await hours_until_sent(pi, computer, big, most=8) is None

    await pi.create("PUT", "/settings/ordering.reservation_slots", json={"value": 1, "why": "big jobs starve"})
    for _ in range(2):  # a pass has to see it waiting
        await run_duty(pi, "reservations")
    await pi.feed()
    await computer.call(pi.clock.now())
    await run_duty(pi, "reservations")
    await pi.feed()

    [standing] = await pi.store.reserving.standing_leases()
    assert (standing.lease.batch_id, standing.lease.host_id) == (big, computer.host.host_id)
    shown = await json_of(pi, "explain", "host", str(computer.host.host_id))
    assert (shown["lease"]["batch_id"], shown["lease"]["holds"]) == (big, True)
    words = (await command(pi, "explain", "host", str(computer.host.host_id))).stdout
    assert not missing(words, f"leased to batch {big}:", "4 of its processors (cpu)")
    assert "leased" in words

    sent_after = await hours_until_sent(pi, computer, big, most=11)
    assert sent_after is not None
    assert (await pi.store.views.batch(big)).counts.in_progress == 1


async def test_each_of_two_big_batches_leases_its_own_host(pi: LiveServer) -> None:
    small = {"count": 200, "fpops_est": FLOP_PER_H, "fpops_bound": 100 * FLOP_PER_H, "delay_bound_s": 30 * 86400.0}
    await pi.submit(jobs=small)
    computers = [Busy(await pi.add_host(name, ncpus=CORES)) for name in ("ada", "bob")]
    for computer in (*computers, *computers):  # the first call registers the host
        await computer.call(pi.clock.now())
    wide = {"fpops_est": 16 * FLOP_PER_H, "ncpus": CORES, "delay_bound_s": 12 * HOUR_S, "memory_bytes": 1e8}
    bigs = [await pi.submit(app="wide", jobs=wide) for _ in range(2)]
    await pi.submit(jobs={**small, "count": 400})  # queued behind them
    await run_duty(pi, "ordering")

    await pi.create("PUT", "/settings/ordering.reservation_slots", json={"value": 2, "why": "big jobs starve"})
    leased, sent = dict[BatchId, int](), set[BatchId]()
    for _ in range(24):
        for computer in computers:
            sent |= {*await computer.call(pi.clock.now())} & set(bigs)
            computer.compute(1.0)
        await run_duty(pi, "reservations")
        leased |= {one.lease.batch_id: one.lease.host_id for one in await pi.store.reserving.standing_leases()}
        await pi.forward(HOUR_S)

    assert sent == set(leased) == set(bigs)
    assert set(leased.values()) == {computer.host.host_id for computer in computers}
