"""The values that one scheduler request reads and writes. Pure.

A request makes one read, one decision and one write. `RequestKey` says what to read, and `RequestView` is the result.
`ReportedResult` is a client's report (untrusted: numbers are finite but otherwise unchecked). `RequestWrites` are the
changes to make, `WriteOutcome` is what was committed. A request may also carry `Trickle`s: messages that an app sends
while its job runs (trickle-ups).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from enum import StrEnum

from domain.credit import NO_STANDING, Standing
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
    """The lookup key of a request. `authenticator_hash` is the SHA-256 of the account key.

    If `host_id` is 0, the key selects the volunteer's newest host with that `host_cpid`. `instance_ids` are the
    instances that the request reports. Instances of other hosts are omitted; with `of_computer`, instances of other
    records of the same computer (same volunteer, CPID and domain name) are included. `network` is the request's origin;
    empty: unknown; None: use the network in the host's record.
    """

    authenticator_hash: bytes
    host_id: HostId
    host_cpid: str = ""
    instance_ids: tuple[InstanceId, ...] = ()
    of_computer: bool = False
    network: str | None = None


@quick_dataclass(frozen=True, slots=True)
class Upload:
    """An output file whose upload is complete."""

    name: str
    nbytes: int
    md5: str


@quick_dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """The database's record of one output of an existing instance."""

    accepted: bool  # the instance's state allows a success report, so uploads are accepted
    recorded: Upload | None


@quick_dataclass(frozen=True, slots=True)
class ReportedFile:
    """An output as reported by the client. `error` is the reason for a failed upload, empty after success."""

    name: str
    nbytes: float
    md5: str
    error: str = ""


@quick_dataclass(frozen=True, slots=True)
class ReportedResult:
    """The client's report of a finished instance."""

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
    """The server's record of an instance that a client reports."""

    held: InstanceInProgress
    state: InstanceState
    app_name: str
    fpops_est_flop: Flop
    outputs: tuple[Output, ...]
    uploads: tuple[Upload, ...]
    turnaround_sample: float | None = None  # the censored sample recorded when it timed out
    timeout_at: Instant | None = None
    reported_at: Instant | None = None  # of an earlier report


@quick_dataclass(frozen=True, slots=True)
class RequestView:
    """The server's data for a request. `volunteer` is None if the account key is unknown.

    `host` is None if it does not exist or belongs to another volunteer. `havs` are the host's rows, `held` its
    instances in progress, `reported` the requested instances that belong to the host. `quotas` are the used quotas of
    the account and of `network`. `standing` is the credit of the host, if known, and of the volunteer.
    """

    volunteer: Volunteer | None = None
    host: Host | None = None
    havs: Mapping[AppVersionId, HostAppVersion] = field(default_factory=dict)
    held: tuple[InstanceInProgress, ...] = ()
    reported: Mapping[InstanceId, Reported] = field(default_factory=dict)
    network: str = ""
    quotas: tuple[SharedQuota, ...] = ()
    standing: Standing = NO_STANDING


@quick_dataclass(frozen=True, slots=True)
class InstanceStep:
    """A guarded change of one instance, applied only while the instance is in `from_state`."""

    instance_id: InstanceId
    from_state: InstanceState
    to_state: InstanceState
    turnaround_sample: float | None = None
    hav_event: HavEvent | None = None  # counted only if this step is applied
    reason: str = ""  # in words, if the instance is to store it
    credit: float | None = None  # granted by this step, which makes the result valid


@quick_dataclass(frozen=True, slots=True)
class Report(InstanceStep):
    """The final step of one instance, with the values to store.

    `host_id` is the host that has the instance. The step is applied only for that host, or for the requesting host
    after it has taken over the instance.
    """

    _: KW_ONLY
    job_id: JobId
    host_id: HostId
    reported_at: Instant
    reported_before_at: Instant | None = None  # of an earlier report that this one corrects
    elapsed_s: Seconds = Seconds(0.0)
    cpu_s: Seconds = Seconds(0.0)
    exit_status: int | None = None  # None: not reported, because the client no longer has the job
    stderr: str = ""


@quick_dataclass(frozen=True, slots=True)
class Assignment:
    """One instance assigned to one host, with its due date."""

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
    hr_class: int = 0  # set for the job when its first instance is sent; 0 = none
    copies: int = 0  # adaptive replication: copies that the job now needs; 0 = unchanged
    gated: bool = False  # the host had to pass a percentile gate; counts towards its share of gated jobs


class AssignmentFate(StrEnum):
    """The result of writing one assignment to the database."""

    SENT = "sent"
    LOST = "lost"  # another host has the instance, or it is no longer needed
    SIBLING = "sibling"  # the host or its volunteer already had an instance of this job


@quick_dataclass(frozen=True, slots=True)
class SentJob:
    """The data about a sent job that the reply needs, read in the transaction that sent the job."""

    instance_id: InstanceId
    command_line: str
    inputs: tuple[Input, ...] | None  # of this job alone; None = only the inputs of its class


@quick_dataclass(frozen=True, slots=True)
class TakeOver:
    """An instance that moves to the requesting host from another record of the same computer and volunteer.

    `unused_only`: only from a record that no client has used yet, as left behind when a later request of the same
    client overtakes an earlier one.
    """

    instance_id: InstanceId
    from_host_id: HostId
    unused_only: bool = False


@quick_dataclass(frozen=True, slots=True)
class RequestWrites:
    """All changes made by one request, in one transaction.

    `host` has the new description (with rpc_seqno and last_rpc_at), `known` the record as read; an unchanged
    description is not written. With `detach`, the host has lost all its instances, which end as aborted. `lease` is
    created unless the host or the batch already has one. `refused` has the reasons if the host requested work and got
    no job; if it is empty, the stored reasons remain. `take_over` is applied before the reports, with at most one
    instance per job; a report of an instance that cannot move counts for the record that has it.
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
        """Return the same writes with the jobs chosen for the host, or with the reasons for refusal."""
        return RequestWrites(
            self.host, self.reports, assignments, self.detach, self.known, lease, refused, self.take_over
        )


@quick_dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What was committed of a request's writes. `fates` has one entry per assignment, `sent` one per SENT assignment.

    `left_out` are reports that lost a race, for example against a timeout. They must not be acknowledged, so that the
    client repeats them and they are checked against the new states. `moved` are the taken-over instances that now
    belong to the host; the rest may have gone to another host.
    """

    fates: Mapping[InstanceId, AssignmentFate] = field(default_factory=dict)
    sent: Mapping[InstanceId, SentJob] = field(default_factory=dict)
    left_out: frozenset[InstanceId] = frozenset()
    moved: frozenset[InstanceId] = frozenset()


@quick_dataclass(frozen=True, slots=True)
class Trickle:
    """A message from an instance. `sent_at` is the client's time; `trickle_id` is 0 until the message is stored."""

    instance_id: InstanceId
    sent_at: Instant
    received_at: Instant
    variety: str  # the app's name for this type of message
    text: str
    trickle_id: int = 0


class TrickleFate(StrEnum):
    """The result of handling a message. All messages are acknowledged, because clients repeat unacknowledged ones."""

    KEPT = "kept"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"  # limit per instance or per request exceeded
    NOT_IN_PROGRESS = "not_in_progress"  # the client neither has nor reports that instance
