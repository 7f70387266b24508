"""May this job go to this host now? What ordering has to say beside the feasibility checks. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.reservations import Lease
from domain.units import BatchId, HostId, Instant, Seconds
from priority.big_jobs import fits_around
from priority.displacement import Newcomer, UnderWay, may_displace
from priority.reservations import Taken


class Answer(StrEnum):
    SEND = "send"
    HOLD = "hold"  # not to this host now
    SKIP = "skip"  # only when there is nothing else for the host


@dataclass(frozen=True, slots=True)
class Admission:
    answer: Answer
    because: str


@dataclass(frozen=True, slots=True)
class Sending:
    """A feasible job about to be sent. `tight`: its due date forces the client to run it first."""

    batch_id: BatchId
    cores: float
    runtime_s: Seconds
    due_at: Instant
    rate: float = 1.0  # of its queue, in service units; 0: only for hosts with nothing else
    tight: bool = False
    owners_running: int = 0


@dataclass(frozen=True, slots=True)
class HostNow:
    """The asking host by its in-progress list. `others_feasible`: there is other work it could take."""

    host_id: HostId
    cores: float
    under_way: Sequence[UnderWay] = ()
    others_feasible: bool = False
    lease: Lease | None = None

    def taken(self, now: Instant) -> list[Taken]:
        return [Taken(one.name, one.cores, now, Instant(now + one.left_s(now))) for one in self.under_way]


def admit(
    host: HostNow, job: Sending, now: Instant, *, displace: bool = False, most_stretched: float = 1.25
) -> Admission:
    """Send, hold or skip, and why.

    Work that is charged nothing waits for hosts with nothing else; a host leased to another batch takes what fits
    around; with `displace`, tight work must not put other work off too much.

    >>> free = Sending(BatchId(1), 1.0, Seconds(60.0), Instant(1e6), rate=0.0)
    >>> admit(HostNow(HostId(1), 4.0, others_feasible=True), free, Instant(0.0)).answer
    <Answer.SKIP: 'skip'>
    """
    if job.rate <= 0.0 and host.others_feasible:
        return Admission(Answer.SKIP, "work that is charged nothing waits until the host can take nothing else")
    because = "nothing in the order is against it"
    if host.lease is not None and host.lease.batch_id != job.batch_id:
        fits, because = fits_around(
            host.lease,
            cores=job.cores,
            limit_s=job.runtime_s,
            host_cores=host.cores,
            under_way=host.taken(now),
            now=now,
        )
        if not fits:
            return Admission(Answer.HOLD, because)
    if displace and job.tight and host.under_way:
        newcomer = Newcomer(job.cores, job.runtime_s, job.due_at, job.owners_running)
        verdict = may_displace(newcomer, host.under_way, host_cores=host.cores, now=now, most_stretched=most_stretched)
        return Admission(Answer.SEND if verdict.send else Answer.HOLD, verdict.because)
    return Admission(Answer.SEND, because)
