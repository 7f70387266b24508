"""Volunteers that survive failures, upload real files, and repeat and replay messages."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from demo.load.jobs import UploadFailedError, VolunteerTask, upload_output
from demo.load.volunteer import tasks_of
from domain.dispatch import ReportedFile
from domain.errors import MusterError
from domain.units import Seconds
from tests.acceptance.host import Host
from tests.chaos.told import Told
from tests.faults.waiting import CLOCK
from wire.client import decode_reply, encode_request
from wire.messages import STATE_COMPUTE_ERROR, STATE_UPLOADED

PAUSE_S = (0.6, 2.4)  # between two requests of a volunteer
TIMEOUT_S = 12.0
IMPATIENT_S = 2.0  # every fourth volunteer disconnects this soon, and returns
MOST_BYTES = 12_000
REPEATED = 0.06  # fraction of requests and uploads that are resent or replayed later
GARBAGE, ERRORS = 0.02, 0.02
NEVER = ("token", "no instance", "different content", "offset", "bytes, at most")


def content_of(task: VolunteerTask) -> bytes:
    """What the job comes to: the same on every sound computer, and always the same on one."""
    found = random.Random(task.result.wu_name)
    content = found.randbytes(found.randint(1, MOST_BYTES))
    return content[:-1] + b"?" if random.Random(task.result.name).random() < GARBAGE else content


@dataclass(slots=True)
class Volunteer:
    """One host; the server's replies are recorded in `told`."""

    host: Host
    told: Told
    draw: random.Random
    answered: int = 0
    said: deque[bytes] = field(default_factory=lambda: deque(maxlen=8))

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            try:
                await self._turn()
            except (aiohttp.ClientError, OSError, TimeoutError, MusterError):
                self.told.broken += 1
            await CLOCK.sleep(self.draw.uniform(*PAUSE_S))

    async def _turn(self) -> None:
        want = 0.0 if len(self.host.held) > 2 else 1.0
        body = encode_request(self.host.request(cpu_req_s=Seconds(want), cpu_req_instances=want))
        self.host.seqno += 1
        self.said.append(body)
        self.told.requests += 1
        host_id = self.host.host_id
        status, answer = await self.host.post(body)
        if status != 200:
            self.told.broken += 1
            return
        reply = decode_reply(answer)
        successes = {name for name, one in self.host.finished.items() if one.state == STATE_UPLOADED}
        self.host.take(reply)
        self.told.answered += 1
        self.answered += 1
        for task in tasks_of(reply):
            self.told.note_job(self.host.host_id, task.result.name)
        for name in reply.acks:
            self.told.note_report(host_id, name, success=name in successes)
        if self.draw.random() < REPEATED:
            self.told.repeated += 1
            await self.host.post(self.draw.choice(self.said))
        for task in list(self.host.held.values()):
            await self._do(task)

    async def _do(self, task: VolunteerTask) -> None:
        if self.draw.random() < ERRORS:
            self.host.end(task, STATE_COMPUTE_ERROR, 1)
            return
        content = content_of(task)
        files = []
        for name in task.tokens:
            files.append(await self._bring(task, name, content))
            if self.draw.random() < REPEATED:
                self.told.repeated += 1
                await self._bring(task, name, content)
        self.host.end(task, STATE_UPLOADED, files=tuple(files), elapsed_s=Seconds(30.0), cpu_s=Seconds(30.0))

    async def _bring(self, task: VolunteerTask, name: str, content: bytes) -> ReportedFile:
        try:
            brought = await upload_output(self.host.http, CLOCK, task, name, content)
        except UploadFailedError as error:
            if any(word in str(error) for word in NEVER):
                self.told.refused_outputs.append(str(error))
            raise
        self.told.outputs[name] = (len(content), hashlib.md5(content).hexdigest())
        return brought


@asynccontextmanager
async def at_work(hosts: Sequence[Host], told: Told, seed: int) -> AsyncIterator[list[Volunteer]]:
    """Run all of them, each on its own connections, until the context ends."""
    stop = asyncio.Event()
    async with _session(TIMEOUT_S) as patient, _session(IMPATIENT_S) as impatient:
        volunteers = []
        for number, host in enumerate(hosts):
            host.http = patient if number % 4 else impatient
            volunteers.append(Volunteer(host, told, random.Random(f"{seed} {number}")))
        tasks = [asyncio.create_task(one.run(stop)) for one in volunteers]
        try:
            yield volunteers
        finally:
            stop.set()
            done, _ = await asyncio.wait(tasks, timeout=TIMEOUT_S)
            for task in set(tasks) - done:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for task in done:
                task.result()


def _session(timeout_s: float) -> aiohttp.ClientSession:
    """Return a new connection for each request."""
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout_s), connector=connector)
