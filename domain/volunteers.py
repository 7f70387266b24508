"""Volunteers: preferences, credentials, and a volunteer's view of hosts and results. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from domain.credit import NO_CREDIT, Credit
from domain.hosts import Host
from domain.jobs import InstanceState
from domain.refusals import Whys
from domain.units import AppId, BatchId, HostId, InstanceId, Instant, Seconds, VolunteerId


@dataclass(frozen=True, slots=True)
class Volunteer:
    """A volunteer: a person who lends computers to the project."""

    volunteer_id: VolunteerId
    name: str
    created_at: Instant
    email_hash: str = ""  # MD5 of the lower-case e-mail address, by which clients identify an account
    cross_project_id: str = ""
    external_cpid: str = ""  # md5 of cross_project_id and e-mail, by which statistics sites know the volunteer
    beta: bool = False
    no_gpu: bool = False
    max_jobs: int = 0  # maximum jobs in progress per host; 0 = no limit
    apps: tuple[AppId, ...] = ()  # selected apps; empty = all
    no_cpu: bool = False
    max_cpus: int = 0  # maximum CPUs per job; 0 = no limit
    preferred_at: Instant | None = None  # last change of the preferences, from `beta` down; None: never


@dataclass(frozen=True, slots=True)
class Credentials:
    """The stored part of a volunteer's secrets. Neither the account key nor the password is stored."""

    authenticator_nonce: bytes
    authenticator_hash: bytes  # SHA-256 of the account key
    password_salt: bytes | None = None
    password_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class NewAddress:
    """An e-mail address that is not verified yet, with the password's hash for it."""

    email: str
    password_salt: bytes = field(repr=False)
    password_hash: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class MailCode:
    """A code that was sent by mail: to choose a new password, or to verify the address `new`."""

    volunteer_id: VolunteerId
    new: NewAddress | None = None


@dataclass(frozen=True, slots=True)
class VolunteerRecord:
    """A volunteer, including the data that only the owner and authentication may use."""

    volunteer: Volunteer
    email: str
    credentials: Credentials


@dataclass(frozen=True, slots=True)
class ListedVolunteer:
    """A volunteer in operators' lists. `last_rpc_at`: the last request of one of the hosts; None without a host."""

    volunteer_id: VolunteerId
    email: str
    name: str
    created_at: Instant
    hosts: int
    last_rpc_at: Instant | None
    credit: float


# ---- what volunteers see


@dataclass(frozen=True, slots=True)
class OwnHost:
    """A volunteer's computer. `refused` is why its last request for work, at `refused_at`, got no job."""

    host: Host
    in_progress: int
    refused_at: Instant | None = None
    refused: Whys = ()
    credit: Credit = NO_CREDIT


class Outcome(StrEnum):
    """The outcome of a result, as shown to volunteers."""

    WAITING = "waiting"  # for comparison with another result
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
    """A finished instance of a volunteer's computer."""

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
    credit: float | None = None  # None: none was granted

    @property
    def outcome(self) -> Outcome:
        return OUTCOMES[self.state]


@dataclass(frozen=True, slots=True)
class ResultPlace:
    """The last result on a page, after which the next page starts; newest first."""

    sent_at: Instant
    instance_id: InstanceId


@dataclass(frozen=True, slots=True)
class OwnTotals:
    """Totals over all computers of a volunteer."""

    hosts: int
    in_progress: int
    valid: int
    failed: int
    late: int
    credit: Credit = NO_CREDIT
