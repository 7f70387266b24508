"""What a volunteer sees of his own: computers, and results that are over. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.hosts import Host
from domain.jobs import InstanceState
from domain.refusals import Whys
from domain.units import BatchId, HostId, InstanceId, Instant, Seconds


@dataclass(frozen=True, slots=True)
class OwnHost:
    """A computer. `refused` is why it was given no job when it last wanted one in vain, at `refused_at`."""

    host: Host
    in_progress: int
    refused_at: Instant | None = None
    refused: Whys = ()


class Outcome(StrEnum):
    """What became of results, as volunteers tell them apart."""

    WAITING = "waiting"  # for the comparison with another's
    VALID = "valid"
    WRONG = "wrong"
    FAILED = "failed"
    LATE = "late"
    DROPPED = "dropped"


OUTCOMES = {
    InstanceState.REPORTED: Outcome.WAITING,
    InstanceState.INCONCLUSIVE: Outcome.WAITING,
    InstanceState.VALID: Outcome.VALID,
    InstanceState.INVALID: Outcome.WRONG,
    InstanceState.FAILED: Outcome.FAILED,
    InstanceState.TIMED_OUT: Outcome.LATE,
    InstanceState.TOO_LATE: Outcome.LATE,
    InstanceState.ABORTED: Outcome.DROPPED,
}


@dataclass(frozen=True, slots=True)
class OwnResult:
    """An instance that a volunteer's computer had and has no more."""

    instance_id: InstanceId
    batch_id: BatchId
    app: str
    host_id: HostId
    state: InstanceState
    sent_at: Instant
    due_at: Instant
    reported_at: Instant | None
    elapsed_s: Seconds | None
    reason: str = ""

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[self.state]


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """Behind which result a list goes on: the last one sent comes first."""

    sent_at: Instant
    instance_id: InstanceId


@dataclass(frozen=True, slots=True)
class OwnTotals:
    """All that a volunteer's computers ever did, and what they do now."""

    hosts: int
    in_progress: int
    valid: int
    failed: int
    late: int
