"""One round: load, faults, calm, inspection."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import asyncpg

from tests.chaos.deployment import Deployment
from tests.chaos.injectors import inject, mend
from tests.chaos.schedule import LOAD_S, Fault, Schedule
from tests.chaos.told import Told
from tests.chaos.upgrade import take_back
from tests.chaos.verdict import Verdict, compare, described
from tests.chaos.volunteers import Volunteer, at_work
from tests.faults.waiting import CLOCK, until

CALM_S = 60.0  # limit for serving and validating everything, on a busy machine


@dataclass(slots=True)
class Round:
    """The result of a schedule."""

    schedule: Schedule
    told: Told = field(default_factory=Told)
    verdict: Verdict = field(default_factory=Verdict)
    doubled_requests: int = 0
    calm_after_s: float = 0.0
    took_s: float = 0.0


async def run_round(made: Deployment, schedule: Schedule, *, load_s: float = LOAD_S) -> Round:
    """Break the deployment as scheduled, and inspect the result. The node runs only meanwhile."""
    done = Round(schedule)
    began_s = CLOCK.monotonic()
    if schedule.fails_over:
        await made.spare.follow(made.primary)
    await made.node.start()
    await made.submit(schedule.seed)
    doubled = made.clients.doubled
    try:
        async with at_work(made.hosts, done.told, schedule.seed) as volunteers:
            await asyncio.gather(CLOCK.sleep(load_s), *(_at_its_time(made, fault) for fault in schedule.faults))
            await mend(made)
            done.calm_after_s = await until(Served(volunteers), CALM_S, "every volunteer is served again")
        await until(lambda: _settled(made), CALM_S, "everything reported is validated")
        await made.node.stop()
    except AssertionError as error:
        done.verdict.wrong.append(f"no calm: {error}")
        made.node.kill()
    if any(fault.kind == "upgrade" for fault in schedule.faults):
        await take_back(made.dsn)
    done.doubled_requests = made.clients.doubled - doubled
    await _look(made, done)
    done.took_s = CLOCK.monotonic() - began_s
    return done


async def _at_its_time(made: Deployment, fault: Fault) -> None:
    await CLOCK.sleep(fault.at_s)
    await inject(made, fault)


class Served:
    """Checks whether every volunteer was answered since its creation."""

    def __init__(self, volunteers: Sequence[Volunteer]) -> None:
        self._before = [(one, one.answered) for one in volunteers]

    def __call__(self) -> bool:
        self._before = [(one, before) for one, before in self._before if one.answered <= before]
        return not self._before


async def _settled(made: Deployment) -> bool:
    connection = await asyncpg.connect(made.dsn)
    try:
        return await connection.fetchval("SELECT NOT EXISTS (SELECT FROM job_todo)") is True
    finally:
        await connection.close()


async def _look(made: Deployment, done: Round) -> None:
    found = await compare(done.told, made.dsn, made.project.upload_dir)
    done.verdict.lost += found.lost
    done.verdict.doubled += found.doubled
    inspection = await made.inspected()
    places = inspection.counts.unacknowledged_places
    done.verdict.lost += [f"reported but never recorded: {one}" for one in await described(made.dsn, places)]
    for question, wrong in inspection.wrong.items():
        where = done.verdict.doubled if question == "nothing is there twice" else done.verdict.wrong
        where += [f"{question}: {one}" for one in wrong]
    done.verdict.wrong += [f"an output was refused permanently: {one}" for one in done.told.refused_outputs]
