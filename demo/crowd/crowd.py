"""A whole crowd against one server: joins over HTTP, works until told to stop."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from demo.crowd.cache import FileCache
from demo.crowd.jobs import TaskRunner
from demo.crowd.profile import Profile
from demo.crowd.volunteer import CrowdVolunteer, Tally
from domain.clock import Clock

CONNECTIONS = 64
TIMEOUT_S = 30.0
JOIN_OVER_S = 3.0  # the crowd arrives within this


@dataclass(frozen=True, slots=True)
class Member:
    """A profile and the account key it attaches with."""

    profile: Profile
    authenticator: str


class Crowd:
    """Runs its members; `tallies` tells what each lived through."""

    def __init__(self, members: Sequence[Member], *, scheduler_url: str, folder: Path, clock: Clock, seed: int) -> None:
        self._members = members
        self._scheduler_url = scheduler_url
        self._folder = folder
        self._clock = clock
        self._seed = seed
        self.tallies: dict[int, Tally] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set."""
        cache_folder = self._folder / "files"
        cache_folder.mkdir(parents=True, exist_ok=True)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        connector = aiohttp.TCPConnector(limit=CONNECTIONS)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            cache = FileCache(session, cache_folder)
            runner = TaskRunner(self._clock, cache_folder, self._folder / "slots", at_once=4)
            tasks = [asyncio.create_task(self._join(member, session, cache, runner)) for member in self._members]
            await stop.wait()
            for task in tasks:
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result

    async def _join(self, member: Member, session: aiohttp.ClientSession, cache: FileCache, runner: TaskRunner) -> None:
        draw = random.Random(self._seed * 100_003 + member.profile.number)  # noqa: S311  repeatable, not secret
        volunteer = CrowdVolunteer(
            member.profile,
            member.authenticator,
            self._scheduler_url,
            session,
            cache,
            runner,
            self._clock,
            draw,
        )
        self.tallies[member.profile.number] = volunteer.tally
        await self._clock.sleep(draw.uniform(0.0, JOIN_OVER_S))
        await volunteer.run()
