"""Operators' reports on waiting work and on hosts that contact the server, as values. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.batches import Batch
from domain.dispatch import RequestKey
from domain.hosts import Host, HostAppVersion
from domain.units import DAY_S, HOUR_S, AppVersionId, BatchId, Flop, HostId, Instant, Seconds

MOST_SHORT_HOSTS = 10_000  # an app with at least this many suitable hosts is not short of hosts
MOST_SHORT_JOBS = 100  # number of jobs checked per batch, retries first
MOST_NAMED = 3  # batches before another one that are named
LEAST_INTERVAL_S = Seconds(
    1.0
)  # minimum time between two requests of a host; volunteers' clients do not connect more often
SILENT_INTERVALS = 3.0  # a host may be silent for this many of its request intervals before it counts as silent

# One record per (host, app version), with numpy type names: the inputs of a percentile and the host's request rate (0
# if unknown). Sums are as of `stats_at`. `clean_since_at`: NaN if unknown. `failed`: the latest result failed or timed
# out.
STANDING_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("volunteer_id", "i4"),
    ("app_version_id", "i4"),
    ("consecutive_valid", "i4"),
    ("failed", "?"),
    ("stats_at", "f8"),
    ("relaxed_n", "f8"),
    ("relaxed_sum", "f8"),
    ("tight_n", "f8"),
    ("tight_missed_n", "f8"),
    ("clean_since_at", "f8"),
    ("calls_per_hour", "f8"),
)


def calls_per_hour(interval_s: float | None, last_rpc_at: Instant, now: Instant) -> float:
    """Return a host's requests per hour: 3600 / max(interval, silence / 3, 1 s), or 0 after a single request.

    `interval_s` is the decayed mean time between its requests. A host silent for more than three intervals is assumed
    to have become slower: one third of its silence is used as its interval.

    >>> calls_per_hour(1800.0, Instant(0.0), Instant(3600.0)), calls_per_hour(600.0, Instant(0.0), Instant(10_800.0))
    (2.0, 1.0)
    >>> calls_per_hour(None, Instant(0.0), Instant(10.0))
    0.0
    """
    if interval_s is None:
        return 0.0
    return HOUR_S / max(interval_s, (now - last_rpc_at) / SILENT_INTERVALS, LEAST_INTERVAL_S)


@dataclass(frozen=True, slots=True)
class Caller:
    """A host, with the key for looking up its next request and its request rate."""

    host_id: HostId
    key: RequestKey
    last_rpc_at: Instant
    rpc_interval_s: Seconds | None = None

    def calls_per_hour(self, now: Instant) -> float:
        """Return the rate to expect: of a silent host, it falls."""
        return calls_per_hour(self.rpc_interval_s, self.last_rpc_at, now)

    @property
    def usual_per_hour(self) -> float | None:
        """Return the mean rate of its requests, None after a single one."""
        return None if self.rpc_interval_s is None else HOUR_S / max(LEAST_INTERVAL_S, self.rpc_interval_s)

    def is_silent(self, now: Instant) -> bool:
        """Return whether its last request is more than an hour and three of its intervals ago; a day if it made one.

        >>> host = Caller(HostId(7), RequestKey(b"", HostId(7)), Instant(0.0), Seconds(1800.0))
        >>> [host.is_silent(Instant(hours * HOUR_S)) for hours in (1.5, 1.6)]
        [False, True]
        """
        interval_s = DAY_S / SILENT_INTERVALS if self.rpc_interval_s is None else self.rpc_interval_s
        return now - self.last_rpc_at > max(HOUR_S, SILENT_INTERVALS * interval_s)


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Active hosts that could run one of some app versions but lack statistics for it, and their request rate."""

    hosts: int = 0
    calls_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """An active batch with unsent instances, of which `retries_unsent` are retries.

    `delay_bound_s` is D, the minimum over its classes. `most_quorum` and `most_retries` are maxima over its jobs.
    """

    batch: Batch
    retries_unsent: int
    delay_bound_s: Seconds
    most_quorum: int = 1
    most_retries: int = 0

    @property
    def most_taken(self) -> int:
        """Return how many hosts can have had a waiting job at most: its retries and the rest of its quorum."""
        return self.most_quorum - 1 + self.most_retries


@dataclass(frozen=True, slots=True)
class RecentInstance:
    """An instance in progress on a recent host."""

    batch_id: BatchId
    app_version_id: AppVersionId
    sent_at: Instant
    due_at: Instant


@dataclass(frozen=True, slots=True)
class RecentHost:
    """A host that recently contacted the server, with its statistics by app version, and, if they were asked for, its
    instances in progress in the order of their dispatch.
    """

    host: Host
    rpc_interval_s: Seconds | None = None
    havs: tuple[HostAppVersion, ...] = ()
    held: tuple[RecentInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class HostSample:
    """A sample of the `active` recent hosts. It is chosen by id, and so is independent of the hosts' properties."""

    hosts: tuple[RecentHost, ...] = ()
    active: int = 0


@dataclass(frozen=True, slots=True)
class JobSize:
    """The size of a batch's jobs: instances' mean flop estimate, and the maximum of every other requirement."""

    flop: Flop
    memory_bytes: float
    ncpus: float
    quorum: int


@dataclass(frozen=True, slots=True)
class Short:
    """A batch that recent hosts cannot finish, because its app limits instances per volunteer or host.

    `hosts` recent hosts of `volunteers` volunteers have a platform of the app. Either all of them already had the
    `jobs` (counted among the first MOST_SHORT_JOBS waiting retries), or there are fewer of them than the `agreeing`
    results that a job needs. `one_per`: "volunteer" or "host", whichever is in shorter supply.
    """

    one_per: str
    agreeing: int
    jobs: int
    hosts: int
    volunteers: int

    @property
    def waits_for(self) -> str:
        return f"another {self.one_per}"

    @property
    def reason(self) -> str:
        """Return the reason in one sentence, with both numbers.

        >>> Short("volunteer", 1, 3, hosts=4, volunteers=1).reason
        '3 jobs need another volunteer: all recent volunteers (1) have already had them'
        >>> Short("volunteer", 2, 0, hosts=4, volunteers=1).reason
        'needs another volunteer: 2 results of different volunteers must agree, but only 1 connected recently'
        """
        known = self.volunteers if self.one_per == "volunteer" else self.hosts
        if self.agreeing > known:
            return (
                f"needs {self.waits_for}: {self.agreeing} results of different {self.one_per}s must agree, "
                f"but only {known} connected recently"
            )
        jobs, them = ("1 job needs", "it") if self.jobs == 1 else (f"{self.jobs} jobs need", "them")
        return f"{jobs} {self.waits_for}: all recent {self.one_per}s ({known}) have already had {them}"


@dataclass(frozen=True, slots=True)
class WorkAhead:
    """The work from which requests take jobs before a batch's: batches with fresh instances, and how many wait of them.
    `is_part`: of more batches than were read, so there may be more. At least `gated` of them only go to hosts above a
    gate, which not all of the batch's own jobs need, and only as `gated_share` of a host's jobs. `first`: at most
    MOST_NAMED of the batches.
    """

    batches: int = 0
    unsent: int = 0
    is_part: bool = False
    gated: int = 0
    gated_share: float = 1.0
    first: Sequence[Batch] = field(default=(), compare=False)
