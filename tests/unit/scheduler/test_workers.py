"""Two request workers on one database, each with its own job array."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.batches import QoS
from domain.errors import UnavailableError
from domain.units import SHARDS, Seconds
from feeder.service import Feeder, build_feeder
from scheduler.service import RequestService, SchedulerPorts
from tests.unit.feeder.fakes import FakeShards
from tests.unit.scheduler.project import Addresses, Counts, Project, Signing, a_project, a_request, names_of

HALF = SHARDS // 2
ONE_JOB: dict[str, Any] = {"cpu_req_s": Seconds(1.0), "cpu_req_instances": 0.0}


class Worker:
    """A feeder on the project's store that owns some shards, and the request service on its array."""

    def __init__(self, project: Project, shards: range) -> None:
        self.counts = Counts()
        own = FakeShards(frozenset(shards))
        self.feeder: Feeder = build_feeder(project.store.waiting, own, project.shelf, project.clock)
        self.service = RequestService(
            SchedulerPorts(
                project.ledger, self.feeder.array, project.shelf, Addresses(), Signing(), project.pause, self.counts
            ),
            project.clock,
        )

    async def new_host(self, number: int, **changes: object) -> list[str]:
        """Let a new computer call; return the jobs it gets."""
        request = a_request(host=replace(a_request().host, host_cpid=f"{number:032x}"), **changes)
        return names_of(await self.service.answer(request))


async def two_workers(jobs: int) -> tuple[Project, Worker, Worker]:
    """Two workers that each own half of the shards; all jobs are gated and in both arrays."""
    project = await a_project()
    await project.submit(jobs, fill=False, qos=QoS.AFAP)
    first, second = Worker(project, range(HALF)), Worker(project, range(HALF, SHARDS))
    for worker in (first, second):
        await worker.feeder.refill_once()
        assert len(worker.feeder.array) == jobs
    return project, first, second


async def test_workers_begin_with_jobs_of_their_own_and_lose_no_races() -> None:
    project, first, second = await two_workers(60)
    given = [await worker.new_host(number, **ONE_JOB) for number in range(12) for worker in (first, second)]
    assert len(given) == len({name for names in given for name in names}) == 24
    assert len(project.ledger.writes) == 24


async def test_host_gets_jobs_after_another_worker_sent_the_first_ones() -> None:
    project, first, second = await two_workers(HALF - 2)  # all of shards that the first one owns
    for number in range(24):
        assert len(await first.new_host(number, **ONE_JOB)) == 1
    project.ledger.writes.clear()

    assert len(await second.new_host(100)) == 2

    assert len(project.ledger.writes) == 2
    assert len(second.feeder.array) == HALF - 2 - 24 - 2


async def test_a_host_that_lost_every_race_calls_again_soon() -> None:
    _, first, second = await two_workers(10)
    assert sum([len(await first.new_host(number)) for number in range(5)]) == 10

    reply = await second.service.answer(a_request())

    assert (names_of(reply), reply.request_delay_s) == ([], 10.0)


async def test_nothing_is_in_flight_after_a_commit_or_a_lost_race() -> None:
    _, first, second = await two_workers(10)
    await first.new_host(1)
    assert len(first.feeder.array.in_flight) == 0
    await second.new_host(2)
    assert len(second.feeder.array.in_flight) == 0


async def test_failed_write_returns_its_slots_to_the_array() -> None:
    project, first, _ = await two_workers(10)
    project.ledger.down_from_write = 0
    with pytest.raises(UnavailableError):
        await first.new_host(1)
    assert (len(first.feeder.array), len(first.feeder.array.in_flight)) == (10, 0)
