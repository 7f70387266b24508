"""A simulated client: it calls, downloads, uploads and reports on the test's command."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

import aiohttp

from demo.load.jobs import VolunteerTask
from demo.load.volunteer import tasks_of
from domain.dispatch import ReportedFile, ReportedResult
from domain.units import Seconds
from wire.client import decode_reply, encode_request
from wire.messages import (
    STATE_UPLOADED,
    DownloadElement,
    HeldResult,
    HostInfo,
    SchedulerReply,
    SchedulerRequest,
    SizeQuery,
    UploadHeader,
    UploadReply,
)
from wire.uploads import decode_upload_reply, encode_size_query, encode_upload_header

LINUX = "x86_64-pc-linux-gnu"
RIGHT = b"3.14159\n"  # a correct result


@dataclass(slots=True)
class Host:
    """One host, attached with one account key.

    `held` are its unfinished tasks, `finished` the results that it reports until acknowledged; `description` overrides
    the values of an ordinary host.
    """

    http: aiohttp.ClientSession
    scheduler_url: str
    authenticator: str
    name: str
    description: Mapping[str, Any] = field(default_factory=dict)
    host_id: int = 0
    seqno: int = 0
    key_text: str = ""
    held: dict[str, VolunteerTask] = field(default_factory=dict)
    finished: dict[str, ReportedResult] = field(default_factory=dict)

    # ------------------------------------------------------------------ the scheduler

    def request(self, **changes: Any) -> SchedulerRequest:
        """Return its next request, by default without a request for work."""
        values: dict[str, Any] = {
            "authenticator": self.authenticator,
            "host_id": self.host_id,
            "rpc_seqno": self.seqno,
            "client_version": (7, 20, 5),
            "platforms": (LINUX,),
            "code_sign_key": self.key_text,
            "disk_project_share_bytes": 1e10,
            "host": self.info(),
            "results": tuple(self.finished.values()),
            "other_results": tuple(HeldResult(name) for name in self.held),
        }
        return SchedulerRequest(**(values | changes))

    def info(self, **changes: Any) -> HostInfo:
        """Return the host's description, by default with two CPUs of 1 Gflop/s."""
        values: dict[str, Any] = {
            "domain_name": self.name,
            "host_cpid": hashlib.md5(self.name.encode()).hexdigest(),
            "ncpus": 2,
            "flop_per_s": 1e9,
            "iop_per_s": 1e9,
            "ram_bytes": 8e9,
            "disk_total_bytes": 1e11,
            "disk_free_bytes": 5e10,
            "os_name": "Linux Debian",
            "os_version": "12",
        }
        return HostInfo(**(values | dict(self.description) | changes))

    async def call(self, **changes: Any) -> SchedulerReply:
        """Send one request; process and return the reply as a client does."""
        request = self.request(**changes)
        self.seqno += 1
        status, body = await self.post(encode_request(request))
        assert status == 200, body
        reply = decode_reply(body)
        self.take(reply)
        return reply

    async def ask(self, instances: int = 1, *, seconds: float | None = None, **changes: Any) -> list[VolunteerTask]:
        """Request work for some idle CPUs; return the tasks received."""
        wish = {"cpu_req_s": Seconds(seconds or float(instances)), "cpu_req_instances": float(instances)}
        return tasks_of(await self.call(**(wish | changes)))

    async def post(self, body: bytes | BytesIO | AsyncIterator[bytes]) -> tuple[int, bytes]:
        """Post a body to the scheduler; return status and reply."""
        async with self.http.post(self.scheduler_url, data=body) as response:
            return response.status, await response.read()

    def take(self, reply: SchedulerReply) -> None:
        if reply.host_id is not None:
            self.host_id, self.seqno = reply.host_id, 0
        self.key_text = reply.code_sign_key or self.key_text
        for name in reply.acks:
            self.finished.pop(name, None)
        for name in (*reply.aborts, *reply.aborts_if_not_started):
            self.held.pop(name, None)
        for task in tasks_of(reply):
            self.held[task.result.name] = task

    # ------------------------------------------------------------------ files

    async def download(self, element: DownloadElement) -> bytes:
        async with self.http.get(element.urls[0]) as response:
            assert response.status == 200, element
            return await response.read()

    async def upload(
        self, task: VolunteerTask, content: bytes = RIGHT, *, cut_at: int | None = None, **changes: Any
    ) -> UploadReply:
        """Upload a task's only output; `changes` modifies the header, and `cut_at` truncates the body."""
        [name] = task.tokens
        values: dict[str, Any] = {
            "name": name,
            "token": task.tokens[name],
            "max_bytes": task.max_bytes[name],
            "nbytes": len(content),
            "md5": hashlib.md5(content).hexdigest(),
            "offset": 0,
        }
        header = UploadHeader(**(values | changes))
        return await self.bring(task.upload_url, encode_upload_header(header) + content[header.offset : cut_at])

    async def size(self, task: VolunteerTask) -> UploadReply:
        """Query how many bytes of a task's only output the server has."""
        [name] = task.tokens
        return await self.bring(task.upload_url, encode_size_query(SizeQuery(name)))

    async def bring(self, url: str, body: bytes) -> UploadReply:
        async with self.http.post(url, data=BytesIO(body)) as response:
            assert response.status == 200, await response.text()
            return decode_upload_reply(await response.read())

    # ------------------------------------------------------------------ work

    async def compute(self, task: VolunteerTask, content: bytes = RIGHT, *, elapsed_s: float = 900.0) -> None:
        """Finish a task and upload its outputs; the next call reports it."""
        files = []
        for name in task.tokens:
            assert (await self.upload(task, content)).status == 0
            files.append(ReportedFile(name, len(content), hashlib.md5(content).hexdigest()))
        self.end(task, STATE_UPLOADED, files=tuple(files), elapsed_s=Seconds(elapsed_s), cpu_s=Seconds(elapsed_s))

    def end(self, task: VolunteerTask, state: int, exit_status: int = 0, **more: Any) -> None:
        """End a task in a state; the next call reports it."""
        self.held.pop(task.result.name, None)
        self.finished[task.result.name] = ReportedResult(task.result.name, state, exit_status, **more)

    async def work(self, task: VolunteerTask, content: bytes = RIGHT, **more: Any) -> SchedulerReply:
        """Compute, upload and report."""
        await self.compute(task, content, **more)
        return await self.call()
