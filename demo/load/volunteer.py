"""Simulated volunteers over HTTP. Each requests work, computes, uploads and reports until it is stopped."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import structlog

from demo.load.jobs import (
    BadDownloadError,
    FileCache,
    Finished,
    Profile,
    TaskRunner,
    UploadFailedError,
    VolunteerTask,
    upload_output,
)
from domain.clock import Clock
from domain.dispatch import ReportedResult
from domain.errors import MusterError
from domain.units import Seconds
from wire.client import decode_reply, encode_request
from wire.messages import STATE_COMPUTE_ERROR, HeldResult, HostInfo, SchedulerReply, SchedulerRequest
from wire.signing import PublicKey, parse_public_key_text

PLATFORM = "x86_64-pc-linux-gnu"
RETRY_S = Seconds(2.0)
DOWNLOAD_FAILED = -186  # the exit status that clients report for a job whose downloads failed

log = structlog.get_logger()


@dataclass(slots=True)
class Tally:
    """Counts the events of one volunteer."""

    requests: int = 0
    jobs: int = 0
    failed: int = 0
    left: bool = False


@dataclass(slots=True)
class LoadVolunteer:
    """A host and its owner. `run` ends when the volunteer leaves or is cancelled."""

    profile: Profile
    authenticator: str
    scheduler_url: str
    session: aiohttp.ClientSession
    cache: FileCache
    runner: TaskRunner
    clock: Clock
    draw: random.Random
    tally: Tally = field(default_factory=Tally)
    _host_id: int = 0
    _seqno: int = 0
    _key_text: str = ""
    _running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _finished: dict[str, ReportedResult] = field(default_factory=dict)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        try:
            while not self.tally.left:
                delay_s = await self._call()
                await self.clock.sleep(delay_s)
                if not self._has_reason_to_call():
                    await self._woken.wait()
                self._woken.clear()
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _has_reason_to_call(self) -> bool:
        return bool(self._finished) or len(self._running) < self.profile.ncpus

    async def _call(self) -> Seconds:
        """Send one scheduler request and return the seconds until the next one."""
        request = self._request()
        self._seqno += 1
        self.tally.requests += 1
        try:
            async with self.session.post(self.scheduler_url, data=encode_request(request)) as response:
                response.raise_for_status()
                reply = decode_reply(await response.read())
        except (aiohttp.ClientError, TimeoutError, MusterError) as error:
            log.info("request failed", volunteer=self.profile.number, why=str(error))
            return RETRY_S
        await self._take(reply)
        return Seconds(reply.request_delay_s)

    def _request(self) -> SchedulerRequest:
        idle = max(0, self.profile.ncpus - len(self._running))
        return SchedulerRequest(
            self.authenticator,
            host_id=self._host_id,
            rpc_seqno=self._seqno,
            client_version=(7, 20, 5),
            cpu_req_s=Seconds(idle * 5.0),
            cpu_req_instances=float(idle),
            platforms=(PLATFORM,),
            code_sign_key=self._key_text,
            disk_project_share_bytes=1e10,
            host=HostInfo(
                domain_name=f"volunteer-{self.profile.number}",
                host_cpid=f"{self.profile.number:032x}",
                ncpus=self.profile.ncpus,
                flop_per_s=self.profile.flop_per_s,
                iop_per_s=self.profile.flop_per_s,
                ram_bytes=8e9,
                disk_total_bytes=1e11,
                disk_free_bytes=5e10,
                os_name="Linux",
                os_version="simulated",
            ),
            results=tuple(self._finished.values()),
            other_results=tuple(HeldResult(name) for name in self._running),
        )

    async def _take(self, reply: SchedulerReply) -> None:
        if reply.host_id is not None:
            self._host_id, self._seqno = reply.host_id, 0
        if reply.code_sign_key:
            self._key_text = reply.code_sign_key
        for name in reply.acks:
            self._finished.pop(name, None)
        for name in (*reply.aborts, *reply.aborts_if_not_started):
            running = self._running.pop(name, None)
            if running is not None:
                running.cancel()
        if not reply.results:
            return
        if self.draw.random() < self.profile.vanish_fraction:
            self.tally.left = True  # leaves with the jobs of this reply
            return
        for task in tasks_of(reply):
            if task.result.name not in self._running:
                self._start(task, reply)

    def _start(self, task: VolunteerTask, reply: SchedulerReply) -> None:
        self.tally.jobs += 1
        work = asyncio.create_task(self._work(task, reply))
        self._running[task.result.name] = work
        work.add_done_callback(self._ended(task.result.name))

    def _ended(self, name: str) -> Callable[[asyncio.Task[None]], None]:
        def done(work: asyncio.Task[None]) -> None:
            self._running.pop(name, None)
            self._woken.set()
            if not work.cancelled() and work.exception() is not None:
                log.error("a simulated volunteer failed", volunteer=self.profile.number, why=repr(work.exception()))

        return done

    async def _work(self, task: VolunteerTask, reply: SchedulerReply) -> None:
        name = task.result.name
        try:
            key = parse_public_key_text(self._key_text)
            await self._fetch(task, reply, key)
            finished = await self.runner.run(task, self.profile, self.draw)
            self._finished[name] = await self._bring(finished)
        except (BadDownloadError, aiohttp.ClientError, TimeoutError) as error:
            self._finished[name] = ReportedResult(name, 1, DOWNLOAD_FAILED, stderr=str(error))
        except UploadFailedError as error:
            self._finished[name] = ReportedResult(name, STATE_COMPUTE_ERROR, 0, stderr=str(error))
        self.tally.failed += self._finished[name].exit_status != 0

    async def _fetch(self, task: VolunteerTask, reply: SchedulerReply, key: PublicKey) -> None:
        needed = {ref.file_name for ref in task.workunit.file_refs}
        for version in reply.app_versions:
            needed |= {ref.file_name for ref in version.file_refs}
        for element in reply.downloads:
            if element.name in needed:
                await self.cache.fetch(element, key)

    async def _bring(self, finished: Finished) -> ReportedResult:
        files = [
            await upload_output(self.session, self.clock, finished.task, name, content)
            for name, content in finished.outputs.items()
        ]
        return ReportedResult(
            finished.task.result.name,
            finished.state,
            finished.exit_status,
            elapsed_s=finished.elapsed_s,
            cpu_s=finished.elapsed_s,
            stderr=finished.stderr,
            files=tuple(files),
        )


def tasks_of(reply: SchedulerReply) -> list[VolunteerTask]:
    """Return the tasks in a reply, each with the elements it refers to."""
    workunits = {workunit.name: workunit for workunit in reply.workunits}
    uploads = {upload.name: upload for upload in reply.uploads}
    mains = {
        (version.app_name, version.version_num, version.plan_class): ref.file_name
        for version in reply.app_versions
        for ref in version.file_refs
        if ref.main_program
    }
    tasks = []
    for result in reply.results:
        workunit = workunits[result.wu_name]
        outputs = [uploads[ref.file_name] for ref in result.file_refs]
        tasks.append(
            VolunteerTask(
                result,
                workunit,
                mains[(workunit.app_name, result.version_num, result.plan_class)],
                {upload.name: upload.max_bytes for upload in outputs},
                {upload.name: upload.token for upload in outputs},
                outputs[0].url if outputs else "",
            )
        )
    return tasks


CONNECTIONS = 64
TIMEOUT_S = 30.0
JOIN_OVER_S = 3.0  # all volunteers start within this time


@dataclass(frozen=True, slots=True)
class LoadMember:
    """A profile, and the account key used to attach."""

    profile: Profile
    authenticator: str


class LoadGenerator:
    """Runs the simulated volunteers; `tallies` has one entry per volunteer."""

    def __init__(
        self, members: Sequence[LoadMember], *, scheduler_url: str, folder: Path, clock: Clock, seed: int
    ) -> None:
        self._members = members
        self._scheduler_url = scheduler_url
        self._folder = folder
        self._clock = clock
        self._seed = seed
        self.tallies: dict[int, Tally] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set."""
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

    async def _join(
        self, member: LoadMember, session: aiohttp.ClientSession, cache: FileCache, runner: TaskRunner
    ) -> None:
        draw = random.Random(self._seed * 100_003 + member.profile.number)  # noqa: S311  repeatable, not secret
        volunteer = LoadVolunteer(
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
