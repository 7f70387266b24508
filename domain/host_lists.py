"""Values for operators' lists of hosts and of a host's instances. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.attention import FailingHost
from domain.credit import NO_CREDIT, Credit
from domain.hosts import Host
from domain.jobs import InstanceState
from domain.refusals import Whys
from domain.units import AppVersionId, BatchId, HostId, InstanceId, Instant, JobId, Seconds
from domain.volunteers import ResultPlace

# Maximum number of hosts or failures that are read for one page.
LOOKED_AT = 10_000
RESULTS_LOOKED_AT = 5000  # maximum number of a volunteer's instances that are read to list those of one host


class HostKind(StrEnum):
    """Kinds of host lists.

    ALL: newest first. WITHOUT_WORK: hosts without jobs in progress that have called since `since`, newest first. SLOW:
    hosts in the slowest tenth of an app version at the last ranking (X below 0.1), slowest first. FAILING: the hosts of
    Needs attention that fail half of their results, worst first; only AttentionViews lists them. SILENT: hosts that
    have not contacted the server since `since`, newest first. RESTRICTED: hosts that are banned or limited, or whose
    volunteer is, newest first.
    """

    ALL = "all"
    WITHOUT_WORK = "without_work"
    SLOW = "slow"
    FAILING = "failing"
    SILENT = "silent"
    RESTRICTED = "restricted"


class Sort(StrEnum):
    """The order of a list by a key, descending with `-`."""

    @property
    def key(self) -> str:
        return self.value.removeprefix("-")

    @property
    def sign(self) -> int:
        """Return -1 for a descending order, otherwise 1."""
        return -1 if self.value.startswith("-") else 1


class HostSort(Sort):
    """The order of a list of all or silent hosts or those without work, descending with `-`.

    Orders other than `-id` read all hosts; `in_progress`, `valid` and `failed` also read their counts.
    """

    NEWEST = "-id"
    OLDEST = "id"
    LAST_CONTACT = "last_contact"
    LAST_CONTACT_DOWN = "-last_contact"
    CPUS = "cpus"
    CPUS_DOWN = "-cpus"
    MEMORY = "memory"
    MEMORY_DOWN = "-memory"
    AVAILABILITY = "availability"
    AVAILABILITY_DOWN = "-availability"
    IN_PROGRESS = "in_progress"
    IN_PROGRESS_DOWN = "-in_progress"
    VALID = "valid"
    VALID_DOWN = "-valid"
    FAILED = "failed"
    FAILED_DOWN = "-failed"


@dataclass(frozen=True, slots=True)
class HostChoice:
    """Selects hosts for a list. `since` applies to WITHOUT_WORK and SILENT; `email` restricts ALL to one volunteer.

    `text` restricts ALL to hosts that have it in the name that the client reports or in the volunteer's name, or whose
    address or volunteer's e-mail address it is. `platform`, part of a platform's name, `label` and `sort` apply to ALL,
    WITHOUT_WORK and SILENT.
    """

    kind: HostKind = HostKind.ALL
    since: Instant = Instant(0.0)
    email: str = ""
    platform: str = ""
    label: str = ""
    sort: HostSort = HostSort.NEWEST
    text: str = ""


@dataclass(frozen=True, slots=True)
class HostPlace:
    """The last entry of a page, where the next page continues. `key` is the sort key, X of a slow host, or the number
    of failing hosts up to this one; `second` the app version of a slow host.
    """

    host_id: HostId
    key: float = 0.0
    second: int = 0


@dataclass(frozen=True, slots=True)
class SlowWith:
    """An app version for which the host is slow: `x` is the share of slower hosts at the last ranking.

    `relative` is the host's current turnaround divided by the usual one; None without results.
    """

    app_version_id: AppVersionId
    x: float
    relative: float | None


@dataclass(frozen=True, slots=True)
class RecentFailures:
    """An app version's recent failures, and the time of the latest: its report or the end of its grace period."""

    errors: int
    invalid: int
    timed_out: int
    last_at: Instant

    @property
    def total(self) -> int:
        return self.errors + self.invalid + self.timed_out


@dataclass(frozen=True, slots=True)
class ListedHost:
    """A host with its jobs in progress and its totals over all app versions.

    `n_error` includes invalid results. `slow` and `failures` are set only in those lists. `refused` is why its last
    request got no work; empty if it got some or asked for none.
    """

    host: Host
    in_progress: int
    n_valid: int
    n_error: int
    n_timeout: int
    credit: Credit = NO_CREDIT
    refused: Whys = ()
    slow: SlowWith | None = None
    failures: FailingHost | None = None


@dataclass(frozen=True, slots=True)
class HostList:
    """A page of hosts. The next page starts at `after`, None at the end. Even an empty page may have a next page."""

    hosts: Sequence[ListedHost]
    after: HostPlace | None = None


@dataclass(frozen=True, slots=True)
class HostInstance:
    """An instance sent to a host, in any state."""

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
    credit: float | None = None  # None: none was granted

    @property
    def allowed_s(self) -> Seconds:
        return Seconds(self.due_at - self.sent_at)

    @property
    def turnaround_s(self) -> Seconds | None:
        return None if self.reported_at is None else Seconds(self.reported_at - self.sent_at)

    @property
    def is_late(self) -> bool:
        """Return whether the instance was returned after its due date or timed out."""
        if self.reported_at is None:
            return self.state is InstanceState.TIMED_OUT
        return self.reported_at > self.due_at


@dataclass(frozen=True, slots=True)
class HostInstances:
    """A page of instances, newest first. The next page starts at `after`, None at the end."""

    instances: Sequence[HostInstance]
    after: ResultPlace | None = None
