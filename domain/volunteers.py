"""Volunteers: preferences, credentials, and what they see of their own computers and results. Values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from domain.hosts import Host
from domain.jobs import InstanceState
from domain.refusals import Whys
from domain.units import AppId, BatchId, HostId, InstanceId, Instant, Seconds, VolunteerId


@dataclass(frozen=True, slots=True)
class Volunteer:
    """A person whose computers do the work."""

    volunteer_id: VolunteerId
    name: str
    created_at: Instant
    email_hash: str = ""  # md5 of the lower-case e-mail: what clients identify an account by
    cross_project_id: str = ""
    beta: bool = False
    no_gpu: bool = False
    max_jobs: int = 0  # most jobs in progress per host; 0 = no wish
    apps: tuple[AppId, ...] = ()  # chosen apps; empty = all
    no_cpu: bool = False
    max_cpus: int = 0  # most CPUs of one job; 0 = no wish
    preferred_at: Instant | None = None  # when beta and what follows it here were last changed; None: never


@dataclass(frozen=True, slots=True)
class Credentials:
    """What is stored of a volunteer's secrets: never the account key, never the password."""

    authenticator_nonce: bytes
    authenticator_hash: bytes  # SHA-256 of the account key
    password_salt: bytes | None = None
    password_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class VolunteerRecord:
    """A volunteer with what is only for the owner and for checking who asks."""

    volunteer: Volunteer
    email: str
    credentials: Credentials


# ---- what a volunteer sees


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
