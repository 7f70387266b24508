"""Which hosts does somebody look for, and what did one of them do? Values of lists. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.hosts import Host
from domain.jobs import InstanceState
from domain.units import AppVersionId, BatchId, HostId, InstanceId, Instant, JobId, Seconds
from domain.volunteers import ResultPlace

# What a page reads at most of hosts, or of failures, to find those that are asked for.
LOOKED_AT = 10_000
RESULTS_LOOKED_AT = 5000  # of a volunteer, for those of one of his hosts


class HostKind(StrEnum):
    """Hosts that are looked for.

    ALL the newest first. SLOW by the last ranking: app versions of which the host is in the slowest tenth (X below
    0.1), the slowest first. FAILING by what went wrong since an instant: errors, invalid results, time-outs; those with
    most of them first. SILENT those that have not called since an instant, the newest first.
    """

    ALL = "all"
    SLOW = "slow"
    FAILING = "failing"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class HostChoice:
    """`since` is the instant of FAILING and SILENT; `email` chooses among ALL those of one volunteer."""

    kind: HostKind = HostKind.ALL
    since: Instant = Instant(0.0)
    email: str = ""


@dataclass(frozen=True, slots=True)
class HostPlace:
    """Behind which entry a list goes on. `key` is X of a slow host, and the failures of a failing one."""

    host_id: HostId
    key: float = 0.0
    app_version_id: int = 0


@dataclass(frozen=True, slots=True)
class SlowWith:
    """An app version that a host is slow with: `x` is the share of hosts that are slower, as last ranked.

    `relative` is its turnaround over the usual one, as of now; None while there is no result to tell by.
    """

    app_version_id: AppVersionId
    x: float
    relative: float | None


@dataclass(frozen=True, slots=True)
class RecentFailures:
    """What went wrong on a host lately, and when for the last time: its report, or the end of its grace."""

    errors: int
    invalid: int
    timed_out: int
    last_at: Instant

    @property
    def total(self) -> int:
        return self.errors + self.invalid + self.timed_out


@dataclass(frozen=True, slots=True)
class ListedHost:
    """A host with what it has in progress and what it ever did, over all app versions.

    An invalid result counts among the errors of `n_error`. `slow` and `failures` are told where they are asked for.
    """

    host: Host
    in_progress: int
    n_valid: int
    n_error: int
    n_timeout: int
    slow: SlowWith | None = None
    failures: RecentFailures | None = None


@dataclass(frozen=True, slots=True)
class HostList:
    """A page. `after` is where the list goes on, None at its end: a page may be empty and yet have one.

    `since` is the first failure that was looked at, where there were more than are looked at.
    """

    hosts: Sequence[ListedHost]
    after: HostPlace | None = None
    since: Instant | None = None


@dataclass(frozen=True, slots=True)
class HostInstance:
    """An instance that a host was sent, whatever became of it."""

    instance_id: InstanceId
    job_id: JobId
    batch_id: BatchId
    app: str
    state: InstanceState
    sent_at: Instant
    due_at: Instant
    reported_at: Instant | None
    est_runtime_s: Seconds
    elapsed_s: Seconds | None
    tight: bool
    reason: str = ""

    @property
    def allowed_s(self) -> Seconds:
        return Seconds(self.due_at - self.sent_at)

    @property
    def turnaround_s(self) -> Seconds | None:
        return None if self.reported_at is None else Seconds(self.reported_at - self.sent_at)

    @property
    def is_late(self) -> bool:
        """Whether it came back after it was due, or was given up."""
        if self.reported_at is None:
            return self.state is InstanceState.TIMED_OUT
        return self.reported_at > self.due_at


@dataclass(frozen=True, slots=True)
class HostInstances:
    """A page, the last one sent first. `after` is where the list goes on, None at its end."""

    instances: Sequence[HostInstance]
    after: ResultPlace | None = None
