"""A small world for the engine: volunteers that compute one job after the other, and a configurable scenario."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from domain.apps import App, AppVersion
from domain.dispatch import ReportedFile, ReportedResult
from domain.units import HOUR_S, AppId, AppVersionId, Instant, Seconds
from simulator.ports import Outage, Program, ShareOf, Submission, VolunteerFacts
from simulator.services import AnyStore, SimulatedTask
from wire.messages import STATE_COMPUTE_ERROR, STATE_UPLOADED, HeldResult, HostInfo, SchedulerReply, SchedulerRequest

LINUX = "x86_64-pc-linux-gnu"
START = Instant(1_800_000_000.0)


@dataclass(slots=True, eq=False)
class PlainVolunteer:
    """A host that is always on: jobs in order of arrival, one per CPU; it calls every `interval_s`."""

    number: int
    ncpus: int
    flop_per_s: float
    interval_s: float
    lost_fraction: float
    error_fraction: float
    draw: random.Random
    first_at: Instant
    calls: int = 0
    unanswered_calls: int = 0
    _host_id: int = 0
    _seqno: int = 0
    _key: str = ""
    _call_at: float = math.inf
    _free_at: list[float] = field(default_factory=list)
    _queue: dict[str, tuple[float, int]] = field(default_factory=dict)  # name -> end, outputs
    _run: int = 0

    def __post_init__(self) -> None:
        self._call_at = self.first_at
        self._free_at = [0.0] * self.ncpus

    @property
    def authenticator(self) -> str:
        return f"{self.number:032x}"

    def next_event(self, now: Instant) -> Instant:
        return Instant(self._call_at)

    def advance(self, now: Instant) -> None:
        """Does nothing: all ends are known in advance."""

    def request(self, now: Instant) -> SchedulerRequest | None:
        done = {name: job for name, job in self._queue.items() if job[0] <= now}
        idle = sum(1 for at in self._free_at if at <= now + 2 * self.interval_s)
        request = SchedulerRequest(
            self.authenticator,
            host_id=self._host_id,
            rpc_seqno=self._seqno,
            client_version=(7, 20, 5),
            cpu_req_s=Seconds(idle * 2 * self.interval_s),
            cpu_req_instances=float(sum(1 for at in self._free_at if at <= now)),
            estimated_delay_s=Seconds(max(0.0, min(self._free_at) - now)),
            platforms=(LINUX,),
            code_sign_key=self._key,
            disk_project_share_bytes=1e11,
            host=HostInfo(
                domain_name=f"host-{self.number}",
                host_cpid=f"{self.number:032x}",
                ncpus=self.ncpus,
                flop_per_s=self.flop_per_s,
                iop_per_s=self.flop_per_s,
                ram_bytes=8e9,
                disk_total_bytes=1e12,
                disk_free_bytes=5e11,
                os_name="Linux",
            ),
            results=tuple(self._reported(name, outputs) for name, (_, outputs) in done.items()),
            other_results=tuple(HeldResult(name) for name in self._queue if name not in done),
        )
        self.calls += 1
        return request

    def _reported(self, name: str, outputs: int) -> ReportedResult:
        if self.draw.random() < self.error_fraction:
            return ReportedResult(name, STATE_COMPUTE_ERROR, 1, elapsed_s=Seconds(60.0))
        files = tuple(ReportedFile(f"{name}_r{n}", 100.0, "0" * 32) for n in range(outputs))
        return ReportedResult(name, STATE_UPLOADED, 0, elapsed_s=Seconds(1000.0), cpu_s=Seconds(900.0), files=files)

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        if reply.host_id is not None:
            self._host_id, self._seqno = reply.host_id, 0
        self._seqno += 1
        self._key = reply.code_sign_key or self._key
        for name in reply.acks:
            self._queue.pop(name, None)
        works = {work.name: work for work in reply.workunits}
        for result in reply.results:
            self._run += 1
            if self.draw.random() < self.lost_fraction:
                continue
            runtime_s = works[result.wu_name].fpops_est / self.flop_per_s * self.draw.lognormvariate(0.0, 0.2)
            first = min(range(self.ncpus), key=lambda n: self._free_at[n])
            self._free_at[first] = max(now, self._free_at[first]) + runtime_s
            self._queue[result.name] = (self._free_at[first], len(result.file_refs))
        self._call_at = now + self.interval_s

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return zeros: its processor use is not measured."""
        return np.zeros(len(instants)), np.zeros(len(instants))

    def unanswered(self, now: Instant) -> None:
        self.unanswered_calls += 1
        self._call_at = now + self.interval_s

    def facts(self) -> VolunteerFacts:
        return VolunteerFacts(run=self._run)


@dataclass(frozen=True, slots=True)
class PlainScenario:
    """`hosts` plain volunteers and batches of hour-long jobs."""

    name: str = "plain"
    starts_at: Instant = START
    horizon_s: Seconds = Seconds(40 * 86400.0)
    settings: Mapping[str, object] = field(default_factory=dict)
    programs: Sequence[Program] = (Program(App(AppId(0), "pi"), (AppVersion(AppVersionId(0), AppId(0), LINUX, 100),)),)
    submitters: Sequence[ShareOf] = (ShareOf("ada"), ShareOf("bob", 2.0))
    outages: Sequence[Outage] = ()
    hosts: int = 30
    batches: Sequence[Mapping[str, object]] = ()
    interval_s: float = 6 * HOUR_S
    lost_fraction: float = 0.05
    error_fraction: float = 0.02

    def volunteers(self, seed: int) -> list[PlainVolunteer]:
        draw = random.Random(seed)
        return [
            PlainVolunteer(
                number,
                ncpus=draw.choice((1, 2, 4)),
                flop_per_s=1e9 * draw.lognormvariate(0.0, 0.5),
                interval_s=self.interval_s * draw.uniform(0.8, 1.2),
                lost_fraction=self.lost_fraction,
                error_fraction=self.error_fraction,
                draw=random.Random(draw.random()),
                first_at=Instant(self.starts_at + draw.uniform(0.0, self.interval_s)),
            )
            for number in range(1, self.hosts + 1)
        ]

    def submissions(self, seed: int) -> list[Submission]:
        return [Submission(Instant(self.starts_at + 600.0 * n), batch) for n, batch in enumerate(self.batches)]


def a_batch(name: str, *, qos: str = "afap", jobs: int = 40, **changes: object) -> dict[str, object]:
    """Return a batch of one-hour jobs on a host of 1 Gflop/s, with one output."""
    table: dict[str, object] = {"count": jobs, "fpops_est": 3.6e12, "outputs": [{"name": "out", "max_bytes": 1000}]}
    own: dict[str, object] = {"app": "pi", "name": name, "qos": qos, "submitter": "ada"}
    batch_keys: dict[str, object] = {
        key: changes.pop(key) for key in ("app", "submitter", "deadline_s") if key in changes
    }
    return {**own, **batch_keys, "jobs": {**table, **changes}}


def no_more_tasks(store: AnyStore, catalogue: object, clock: object) -> list[SimulatedTask]:
    return []
