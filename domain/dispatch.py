"""What one scheduler request reads and writes, as values. Pure.

A request is one read, one decision, one write. `RequestKey` names what to read, `ReportedResult` is what the client
reports, not trusted (numbers are finite, otherwise unchecked), `RequestView` is what
was found, `RequestWrites` is what the decision changes, `WriteOutcome` what of it was committed. A request may also
bring `Trickle`s: messages that an app sends while its job runs (trickle-ups).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from enum import StrEnum

from domain.due_terms import DueTerms
from domain.havs import HavEvent
from domain.hosts import Host, HostAppVersion
from domain.jobs import Input, InstanceInProgress, InstanceState, Output
from domain.quick import quick_dataclass
from domain.quotas import SharedQuota
from domain.refusals import Whys
from domain.reservations import Lease
from domain.units import (
    AppVersionId,
    BatchId,
    Flop,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    VolunteerId,
)
from domain.volunteers import Volunteer


@quick_dataclass(frozen=True, slots=True)
class RequestKey:
    """What to look up for a request. `authenticator_hash` is the SHA-256 of the account key.

    `host_id` 0 asks for the volunteer's newest host of that `host_cpid` instead.
    `instance_ids` are the instances named in the request's reports; those of other hosts are left out, unless
    `of_computer` asks for those of all records of the host's computer: same volunteer, CPID and computer's name.
    `network` is where the request comes from, empty: not known; None asks for the network that the host's record has.
    """

    authenticator_hash: bytes
    host_id: HostId
    host_cpid: str = ""
    instance_ids: tuple[InstanceId, ...] = ()
    of_computer: bool = False
    network: str | None = None


@quick_dataclass(frozen=True, slots=True)
class Upload:
    """An output that is whole on the server."""

    name: str
    nbytes: int
    md5: str


@quick_dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """What the database knows of one output of an existing instance."""

    accepted: bool  # the state of its instance allows a success report, so uploads are accepted
    recorded: Upload | None


@quick_dataclass(frozen=True, slots=True)
class ReportedFile:
    """An output as the client reports it. `error` is why it could not be uploaded; empty: it was."""

    name: str
    nbytes: float
    md5: str
    error: str = ""


@quick_dataclass(frozen=True, slots=True)
class ReportedResult:
    """A finished result, as the client tells it."""

    name: str
    state: int
    exit_status: int
    elapsed_s: Seconds = Seconds(0.0)
    cpu_s: Seconds = Seconds(0.0)
    version_num: int = 0
    plan_class: str = ""
    stderr: str = ""
    files: tuple[ReportedFile, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class Reported:
    """An instance a host reports about, as the server knows it."""

    held: InstanceInProgress
    state: InstanceState
    app_name: str
    fpops_est_flop: Flop
    outputs: tuple[Output, ...]
    uploads: tuple[Upload, ...]
    turnaround_sample: float | None = None  # the censored sample its time-out left
    timeout_at: Instant | None = None
    reported_at: Instant | None = None  # of an earlier report


@quick_dataclass(frozen=True, slots=True)
class RequestView:
    """What the server knows about who is asking. `volunteer` None: no such account key.

    `host` is None when there is no such host or it belongs to somebody else. `havs` are the host's
    rows; `held` what it has in progress; `reported` the instances asked for that belong to the host. `quotas` are those
    of the account and of `network`, as far as they were drawn on.
    """

    volunteer: Volunteer | None = None
    host: Host | None = None
    havs: Mapping[AppVersionId, HostAppVersion] = field(default_factory=dict)
    held: tuple[InstanceInProgress, ...] = ()
    reported: Mapping[InstanceId, Reported] = field(default_factory=dict)
    network: str = ""
    quotas: tuple[SharedQuota, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class InstanceStep:
    """A guarded change of one instance: applied only while it is still in `from_state`."""

    instance_id: InstanceId
    from_state: InstanceState
    to_state: InstanceState
    turnaround_sample: float | None = None
    hav_event: HavEvent | None = None  # counts only if this step is really made
    reason: str = ""  # why, in words, where the instance is to keep it


@quick_dataclass(frozen=True, slots=True)
class Report(InstanceStep):
    """The step that one instance's end makes, and what is recorded with it.

    `host_id` is the record that has the instance: the step is made only for that host, or for the host of the request
    once it has taken the instance over.
    """

    _: KW_ONLY
    job_id: JobId
    host_id: HostId
    reported_at: Instant
    reported_before_at: Instant | None = None  # of an earlier report that this one corrects
    elapsed_s: Seconds = Seconds(0.0)
    cpu_s: Seconds = Seconds(0.0)
    exit_status: int | None = None  # None: the client reported nothing, it no longer has the job
    stderr: str = ""


@quick_dataclass(frozen=True, slots=True)
class Assignment:
    """One instance for one host, and by when it must be back."""

    instance_id: InstanceId
    job_id: JobId
    batch_id: BatchId
    job_class_id: JobClassId
    app_version_id: AppVersionId
    host_id: HostId
    volunteer_id: VolunteerId
    sent_at: Instant
    due_at: Instant
    timeout_at: Instant
    est_runtime_s: Seconds
    tight: bool
    due_terms: DueTerms
    hr_class: int = 0  # fixed for the job by its first dispatch; 0 = none
    copies: int = 0  # adaptive replication: copies the job now needs; 0 = leave
    gated: bool = False  # the host was asked for a percentile: one of its share of gated jobs


class AssignmentFate(StrEnum):
    """What became of an assignment when it was written."""

    SENT = "sent"
    LOST = "lost"  # somebody else has it, or it is no longer needed
    SIBLING = "sibling"  # the host or its volunteer had an instance of this job


@quick_dataclass(frozen=True, slots=True)
class SentJob:
    """What a reply needs of a job that was sent, read in the transaction that sent it."""

    instance_id: InstanceId
    command_line: str
    inputs: tuple[Input, ...] | None  # of this job alone; None = only its class's


@quick_dataclass(frozen=True, slots=True)
class TakeOver:
    """An instance that moves to the host of a request from another record of the same computer and volunteer.

    `unused_only`: from a record that no client has called as yet, and so perhaps none ever will: a request that was
    overtaken by a later one of the same client makes such a record.
    """

    instance_id: InstanceId
    from_host_id: HostId
    unused_only: bool = False


@quick_dataclass(frozen=True, slots=True)
class RequestWrites:
    """Everything one request changes, in one transaction.

    `host` holds the new description (with rpc_seqno and last_rpc_at), `known` the record as it was read: a
    description that says nothing new need not be written.
    `detach`: the host lost all its instances; those instances end as aborted. `lease` is made unless the host or the
    batch has one. `refused` is why it was given no job, where it wanted one; without, what was kept of that stays.
    `take_over` is made before the reports, of one instance per job at most; a report of an instance that cannot move
    counts for the record that has it.
    """

    host: Host
    reports: tuple[Report, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    detach: bool = False
    known: Host | None = None
    lease: Lease | None = None
    refused: Whys = ()
    take_over: tuple[TakeOver, ...] = ()

    def with_choice(self, assignments: tuple[Assignment, ...], lease: Lease | None, refused: Whys) -> RequestWrites:
        """The same with what was chosen for the host, or why nothing was."""
        return RequestWrites(
            self.host, self.reports, assignments, self.detach, self.known, lease, refused, self.take_over
        )


@quick_dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What was committed. `fates` has one entry per assignment; `sent` one per SENT.

    `left_out`: the reports that lost a race, say to a time-out. They must not be acknowledged: the client then says
    them again, and they are judged by what the instances are by then. `moved` are the instances of the take-over that
    are the host's now; another host may have taken the others.
    """

    fates: Mapping[InstanceId, AssignmentFate] = field(default_factory=dict)
    sent: Mapping[InstanceId, SentJob] = field(default_factory=dict)
    left_out: frozenset[InstanceId] = frozenset()
    moved: frozenset[InstanceId] = frozenset()


@quick_dataclass(frozen=True, slots=True)
class Trickle:
    """One message of an instance. `sent_at` is by the client's clock; `trickle_id` is 0 until it is stored."""

    instance_id: InstanceId
    sent_at: Instant
    received_at: Instant
    variety: str  # the kind of message, as the app names it
    text: str
    trickle_id: int = 0


class TrickleFate(StrEnum):
    """What became of a message. Every one is acknowledged: clients repeat a message until it is."""

    KEPT = "kept"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"  # of its instance, or of the request
    NOT_IN_PROGRESS = "not_in_progress"  # the client neither runs nor reports that instance
