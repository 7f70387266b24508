"""Defines hostile clients. Each satisfies simulator.ports.Participant, calls at any time and reports anything."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from domain.dispatch import ReportedFile, ReportedResult
from domain.units import Instant, Seconds, later
from simulator.client import CLIENT_VERSION, OUTPUT_BYTES
from simulator.ports import Participant, VolunteerFacts
from simulator.traits import digest_of
from wire.messages import STATE_ABORTED, STATE_UPLOADED, HeldResult, HostInfo, SchedulerReply, SchedulerRequest

EXIT_ABORTED_BY_USER = 203
A_CALL_S = Seconds(600.0)


@dataclass(slots=True)
class Place:
    """The network from which the current request comes."""

    network: str = ""


@dataclass(slots=True)
class Placed:
    """A volunteer's host at a network address."""

    volunteer: Participant
    network: str
    place: Place

    @property
    def authenticator(self) -> str:
        return self.volunteer.authenticator

    def next_event(self, now: Instant) -> Instant:
        return self.volunteer.next_event(now)

    def advance(self, now: Instant) -> None:
        self.volunteer.advance(now)

    def request(self, now: Instant) -> SchedulerRequest | None:
        self.place.network = self.network
        return self.volunteer.request(now)

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        self.volunteer.receive(reply, now)

    def unanswered(self, now: Instant) -> None:
        self.volunteer.unanswered(now)

    def facts(self) -> VolunteerFacts:
        return self.volunteer.facts()

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.volunteer.processor_use_s(instants)


@dataclass(frozen=True, slots=True)
class Job:
    """An instance sent to a hostile client. `job` is its workunit, which determines the correct answer."""

    name: str
    job: str
    given_at: Instant


@dataclass(slots=True)
class Hostile:
    """Requests as much work as possible every 10 min from `starts_at` until `ends_at`, keeps everything and reports
    nothing.

    Subclasses define other behaviour. `taken` counts the instances it received.
    """

    authenticator: str
    cpid: str
    starts_at: Instant
    ends_at: Instant
    platform: str
    ncpus: int = 64
    taken: int = 0
    host_ids: set[int] = field(default_factory=set)
    host_id: int = 0
    seqno: int = 0
    held: dict[str, Job] = field(default_factory=dict)
    at: Instant = Instant(-math.inf)

    def next_event(self, now: Instant) -> Instant:
        at = max(now, self.starts_at, self.at)
        return Instant(at if at <= self.ends_at else math.inf)

    def advance(self, now: Instant) -> None:
        """Do nothing, because a hostile client acts only in its requests."""

    def reports(self, now: Instant) -> Iterable[ReportedResult]:  # noqa: ARG002  its kinds' argument
        """Return the results that the client reports."""
        return ()

    def request(self, now: Instant) -> SchedulerRequest | None:
        if now < self.starts_at:
            return None
        results = tuple(self.reports(now))
        said = {result.name for result in results}
        request = SchedulerRequest(
            self.authenticator,
            host_id=self.host_id,
            rpc_seqno=self.seqno,
            client_version=CLIENT_VERSION,
            cpu_req_s=Seconds(1e9),
            cpu_req_instances=float(self.ncpus),
            platforms=(self.platform,),
            disk_project_share_bytes=1e14,
            host=HostInfo(
                domain_name=f"cheater-{self.cpid}",
                host_cpid=self.cpid,
                ncpus=self.ncpus,
                cpu_vendor="simulated",
                flop_per_s=5e9,
                ram_bytes=1e12,
                disk_free_bytes=1e14,
                os_name="Linux",
            ),
            results=results,
            other_results=tuple([HeldResult(name) for name in self.held if name not in said]),
        )
        self.seqno += 1
        return request

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        if reply.host_id is not None:
            self.host_id, self.seqno = reply.host_id, 0
            self.host_ids.add(reply.host_id)
        for name in (*reply.acks, *reply.aborts):
            self.held.pop(name, None)
        for result in reply.results:
            self.taken += result.name not in self.held
            self.held[result.name] = Job(result.name, result.wu_name, now)
        self.at = later(now, A_CALL_S)

    def unanswered(self, now: Instant) -> None:
        self.at = later(now, A_CALL_S)

    def facts(self) -> VolunteerFacts:
        return VolunteerFacts()

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return zeros, because the client computes nothing."""
        return np.zeros(len(instants)), np.zeros(len(instants))


@dataclass(slots=True)
class Loser(Hostile):
    """Reports neither a host id nor results in each request, so that everything it had is lost.

    With `calls_per_cpid` it claims to be a new host after this many requests.
    """

    calls_per_cpid: int = 0
    calls: int = 0

    def request(self, now: Instant) -> SchedulerRequest | None:
        self.host_id, self.seqno = 0, 0
        self.held.clear()
        if self.calls_per_cpid and now >= self.starts_at:
            self.cpid = digest_of(f"{self.authenticator} {self.calls // self.calls_per_cpid}")
            self.calls += 1
        return Hostile.request(self, now)


@dataclass(slots=True)
class Clone(Hostile):
    """One of many copies of a client, which calls as the original host with the same serial number."""

    original: Hostile | None = None

    def request(self, now: Instant) -> SchedulerRequest | None:
        if self.original is not None and not self.host_id and self.original.host_id:
            self.host_id, self.seqno = self.original.host_id, 0
        return Hostile.request(self, now)


@dataclass(slots=True)
class Garbage(Hostile):
    """Reports all jobs in the next request, with made-up outputs."""

    def reports(self, now: Instant) -> Iterable[ReportedResult]:
        return [success(job, digest_of(job.name), A_CALL_S) for job in self.held.values() if job.given_at < now]


@dataclass(slots=True)
class Colluder(Hostile):
    """Reports all jobs an hour later: correct answers until `turns_at`, then the same wrong answers as its friends."""

    turns_at: Instant = Instant(0.0)

    def reports(self, now: Instant) -> Iterable[ReportedResult]:
        for job in self.held.values():
            if now - job.given_at >= 3600.0:
                answer = job.job if now < self.turns_at else f"agreed wrong answer for {job.job}"
                yield success(job, digest_of(answer), Seconds(3600.0))


@dataclass(slots=True)
class Gamer(Hostile):
    """Takes many jobs, immediately returns correct answers for the first `keeps` of each reply, and aborts the rest."""

    keeps: int = 4

    def reports(self, now: Instant) -> Iterable[ReportedResult]:
        for place, job in enumerate(job for job in self.held.values() if job.given_at < now):
            if place < self.keeps:
                yield success(job, digest_of(job.job), A_CALL_S)
            else:
                yield ReportedResult(job.name, STATE_ABORTED, EXIT_ABORTED_BY_USER)


def success(job: Job, digest: str, elapsed_s: Seconds) -> ReportedResult:
    """Return the report of a finished job whose single output has this digest."""
    files = (ReportedFile(f"{job.name}_r0", OUTPUT_BYTES, digest),)
    return ReportedResult(job.name, STATE_UPLOADED, 0, elapsed_s=elapsed_s, cpu_s=elapsed_s, files=files)
