"""Simulated hosts whose messages and disks fail: repeated, reordered, lost, restored."""

from __future__ import annotations

import hashlib
import math
import random
import zlib
from dataclasses import dataclass, field
from typing import Protocol

from domain.clock import Clock
from domain.dispatch import ReportedFile, ReportedResult
from domain.jobs import instance_id_of
from domain.units import InstanceId, Seconds
from tests.builders import LINUX
from tests.deterministic.cluster import Cluster, NoAnswerError
from wire.messages import STATE_COMPUTE_ERROR, STATE_UPLOADED, HeldResult, HostInfo, SchedulerReply, SchedulerRequest

BYTES = 100
CALLS_EVERY_S = 150.0
REPLAYED_WITHIN_S = 7200.0


class Witness(Protocol):
    """Checks what the server returns, at that moment."""

    async def said(self, client: Client, request: SchedulerRequest, reply: SchedulerReply) -> None: ...

    def stored(self, instance_id: InstanceId, name: str, md5: str) -> None:
        """Record that an upload was acknowledged."""
        ...


@dataclass(frozen=True, slots=True)
class Manners:
    """The rates of events per call or job."""

    wrong: float = 0.0  # wrong output
    error: float = 0.0
    vanishes: float = 0.0  # in progress forever
    late: float = 0.0  # done about when it is given up
    forgets: float = 0.0  # the client's state file was truncated
    replays: float = 0.0  # the request is resent, up to 2 h later
    loses_request: float = 0.0
    loses_reply: float = 0.0
    resets: float = 0.0  # detached and attached again: all jobs are gone
    restores: float = 0.0  # from yesterday's backup


HONEST = Manners()
STORMY = Manners(
    wrong=0.06,
    error=0.04,
    vanishes=0.04,
    late=0.15,
    forgets=0.03,
    replays=0.06,
    loses_request=0.05,
    loses_reply=0.08,
    resets=0.004,
    restores=0.004,
)
GIVEN_UP_AFTER_S = 300.0  # the minimum grace period


@dataclass(slots=True)
class Task:
    name: str
    job: str
    files: tuple[str, ...]
    ends_at_s: float
    fails: bool = False
    garbage: bool = False


@dataclass(slots=True)
class Memory:
    """A client's state on disk."""

    host_id: int = 0
    seqno: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    done: dict[str, ReportedResult] = field(default_factory=dict)

    def copy(self) -> Memory:
        return Memory(self.host_id, self.seqno, dict(self.tasks), dict(self.done))


@dataclass(slots=True)
class Totals:
    requests: int = 0
    replays: int = 0
    acknowledged: int = 0
    uploads: int = 0


class Client:
    """One host of a volunteer; its own clock is right."""

    def __init__(
        self,
        number: int,
        authenticator: str,
        cluster: Cluster,
        witness: Witness,
        clock: Clock,
        totals: Totals,
        draw: random.Random,
        manners: Manners,
    ) -> None:
        self.number, self.authenticator, self.manners = number, authenticator, manners
        self._cluster, self._witness, self._clock, self._totals = cluster, witness, clock, totals
        self._draw = draw
        self.memory = Memory()
        self.host_ids: set[int] = set()
        self._backup = Memory()
        self._again_at_s = 0.0

    async def run(self) -> None:
        await self._clock.sleep(self._draw.uniform(0.0, CALLS_EVERY_S))
        while True:
            await self._live()
            await self._call()
            await self._clock.sleep(max(5.0, self._draw.expovariate(1.0 / CALLS_EVERY_S)))

    def _happens(self, rate: float) -> bool:
        return self._draw.random() < rate

    async def _live(self) -> None:
        """Process events since the last call; outputs are uploaded before they are reported."""
        if self._happens(self.manners.resets):
            self.memory = Memory()
        if self._happens(self.manners.restores):
            self.memory = self._backup.copy()
        if self._happens(0.05):
            self._backup = self.memory.copy()
        now_s = self._clock.monotonic()
        for task in [one for one in self.memory.tasks.values() if one.ends_at_s <= now_s]:
            result = await self._ended(task)
            if result is not None and self.memory.tasks.pop(task.name, None) is not None:
                self.memory.done[task.name] = result

    async def _ended(self, task: Task) -> ReportedResult | None:
        """Return the result to report; None if its outputs could not be uploaded yet."""
        if task.fails:
            return ReportedResult(task.name, STATE_COMPUTE_ERROR, 1, elapsed_s=Seconds(10.0), stderr="it broke")
        digest = hashlib.md5((task.name if task.garbage else task.job).encode(), usedforsecurity=False).hexdigest()
        for name in task.files:
            if not await self._upload(task, name, digest):
                return None
        files = tuple(ReportedFile(name, BYTES, digest) for name in task.files)
        return ReportedResult(task.name, STATE_UPLOADED, 0, elapsed_s=Seconds(300.0), cpu_s=Seconds(300.0), files=files)

    async def _upload(self, task: Task, name: str, digest: str) -> bool:
        instance_id = instance_id_of(task.name)
        assert instance_id is not None
        if self._happens(self.manners.loses_request):
            return False
        try:
            known = await self._cluster.ask(lambda w: w.upload(instance_id, name=name, nbytes=BYTES, md5=digest))
        except NoAnswerError:
            return False
        if known:
            self._totals.uploads += 1
            self._witness.stored(instance_id, name, digest)
        return not self._happens(self.manners.loses_reply)

    # ------------------------------------------------------------ calls

    async def _call(self) -> None:
        if self._clock.monotonic() < self._again_at_s:
            return
        request = self._request()
        self.memory.seqno += 1
        memory = self.memory
        if self._happens(self.manners.replays):
            self._cluster.loop.create_task(self._replay(request))
        if self._happens(self.manners.loses_request):
            return
        try:
            reply = await self._send(request)
        except NoAnswerError:
            return
        if memory is self.memory and not self._happens(self.manners.loses_reply):
            self._receive(reply)

    async def _replay(self, request: SchedulerRequest) -> None:
        """Send the same bytes again, ignoring the reply."""
        await self._clock.sleep(self._draw.choice((0.0, self._draw.uniform(0.0, REPLAYED_WITHIN_S))))
        self._totals.replays += 1
        try:
            await self._send(request)
        except NoAnswerError:
            return

    async def _send(self, request: SchedulerRequest) -> SchedulerReply:
        self._totals.requests += 1

        async def answer(worker: object) -> SchedulerReply:
            reply: SchedulerReply = await worker.answer(request)  # type: ignore[attr-defined]  # a Worker
            await self._witness.said(self, request, reply)
            return reply

        return await self._cluster.ask(answer)

    def _request(self) -> SchedulerRequest:
        busy = len(self.memory.tasks)
        return SchedulerRequest(
            self.authenticator,
            host_id=self.memory.host_id,
            rpc_seqno=self.memory.seqno,
            client_version=(7, 20, 5),
            cpu_req_s=Seconds(max(0.0, 1200.0 - 300.0 * busy)),
            cpu_req_instances=max(0.0, 2.0 - busy),
            platforms=(LINUX,),
            disk_project_share_bytes=1e10,
            host=HostInfo(
                domain_name=f"host-{self.number}",
                host_cpid=f"{self.number:032x}",
                ncpus=2,
                flop_per_s=1e9,
                iop_per_s=1e9,
                ram_bytes=8e9,
                disk_total_bytes=1e11,
                disk_free_bytes=5e10,
                os_name="Linux",
                os_version="6",
            ),
            results=tuple(self.memory.done.values()),
            other_results=tuple(HeldResult(name) for name in self.memory.tasks),
        )

    def _receive(self, reply: SchedulerReply) -> None:
        memory, now_s = self.memory, self._clock.monotonic()
        self._again_at_s = now_s + min(reply.request_delay_s, CALLS_EVERY_S)
        if reply.host_id is not None:
            memory.host_id, memory.seqno = reply.host_id, 0
        for name in reply.acks:
            self._totals.acknowledged += memory.done.pop(name, None) is not None
        for name in (*reply.aborts, *reply.aborts_if_not_started):
            memory.tasks.pop(name, None)
        for result in reply.results:
            if result.name in memory.tasks or result.name in memory.done or self._happens(self.manners.forgets):
                continue
            memory.tasks[result.name] = Task(
                result.name,
                result.wu_name,
                tuple(ref.file_name for ref in result.file_refs),
                now_s + self._takes_s(result.report_deadline - self._clock.now()),
                fails=self._fate(result.name, "error") < self.manners.error,
                garbage=self._fate(result.name, "wrong") < self.manners.wrong,
            )

    def _takes_s(self, due_in_s: float) -> float:
        if self._happens(self.manners.vanishes):
            return math.inf
        if self._happens(self.manners.late):
            return due_in_s + GIVEN_UP_AFTER_S + self._draw.uniform(-120.0, 120.0)
        return self._draw.uniform(200.0, 500.0)

    def _fate(self, name: str, what: str) -> float:
        """Return a number from 0 to 1, always the same for this host and instance."""
        return zlib.crc32(f"{self.number} {what} {name}".encode()) / 2**32
