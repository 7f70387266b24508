"""What operators ask about work that waits and about hosts that call: the answers as values. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from domain.batches import Batch
from domain.dispatch import RequestKey
from domain.hosts import Host, HostAppVersion
from domain.units import HOUR_S, Flop, HostId, Instant, Seconds

MOST_SHORT_HOSTS = 10_000  # that could run an app: with so many it lacks none
MOST_SHORT_JOBS = 100  # of a batch that are looked at, retries first
LEAST_INTERVAL_S = Seconds(1.0)  # between two calls of a host: more often would not be a volunteer's client
SILENT_INTERVALS = 3.0  # silence up to so many of its own intervals says nothing about a host

# One record of a table of hosts' app versions, as numpy names types: what a percentile is made of, and how often the
# host calls (0 while that is unknown). Sums are as of `stats_at`. `clean_since_at`: NaN while unknown. `failed`: its
# last result did, or it timed out.
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
    """How often a host calls: 3600 / max(interval, silence / 3, 1 s); 0 while it has called only once.

    `interval_s` is the decayed mean of the time between its requests. A host that has been silent for longer than
    three intervals is believed to have become slower: it counts as calling every third of its silence.

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
    """A host, by what its next request would be looked up, and how often it calls."""

    host_id: HostId
    key: RequestKey
    last_rpc_at: Instant
    rpc_interval_s: Seconds | None = None

    def calls_per_hour(self, now: Instant) -> float:
        return calls_per_hour(self.rpc_interval_s, self.last_rpc_at, now)


@dataclass(frozen=True, slots=True)
class Newcomers:
    """Active hosts without a row for some app versions that could run one of them, and how often they call."""

    hosts: int = 0
    calls_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """An active batch with unsent instances. `retries_unsent` of them are retries.

    `delay_bound_s` is D: the least of its classes'. `most_quorum` and `most_retries` are the greatest of its jobs.
    """

    batch: Batch
    retries_unsent: int
    delay_bound_s: Seconds
    most_quorum: int = 1
    most_retries: int = 0

    @property
    def most_taken(self) -> int:
        """How many have or had a waiting job, at most: its retries, and what its quorum needs besides."""
        return self.most_quorum - 1 + self.most_retries


@dataclass(frozen=True, slots=True)
class RecentHost:
    """A host that called lately, with what is known of its app versions, by version."""

    host: Host
    rpc_interval_s: Seconds | None = None
    havs: tuple[HostAppVersion, ...] = ()


@dataclass(frozen=True, slots=True)
class HostSample:
    """Some of the `active` hosts that called lately, by id; who is among them does not depend on what they are like."""

    hosts: tuple[RecentHost, ...] = ()
    active: int = 0


@dataclass(frozen=True, slots=True)
class JobSize:
    """A batch's jobs: flop of one on average, and the most that any of them asks for."""

    flop: Flop
    memory_bytes: float
    ncpus: float
    quorum: int


@dataclass(frozen=True, slots=True)
class Short:
    """A batch that no host that called lately can finish, because of its app's limits per volunteer or host.

    `hosts` of `volunteers` called and have a platform of the app. All of these have had the `jobs` (of the first
    MOST_SHORT_JOBS retries that wait), or are fewer than the `agreeing` results that a job needs. `one_per`:
    "volunteer" or "host", of which another one is needed.
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
        """Why, with both numbers.

        >>> Short("volunteer", 1, 3, hosts=4, volunteers=1).reason
        '3 jobs wait for another volunteer: the 1 that called lately has had them'
        >>> Short("volunteer", 2, 0, hosts=4, volunteers=1).reason
        'waits for another volunteer: 2 results must agree, each of another volunteer, and 1 called lately'
        """
        known = self.volunteers if self.one_per == "volunteer" else self.hosts
        if self.agreeing > known:
            return (
                f"waits for {self.waits_for}: {self.agreeing} results must agree, each of another {self.one_per}, "
                f"and {known} called lately"
            )
        jobs = "1 job waits" if self.jobs == 1 else f"{self.jobs} jobs wait"
        return f"{jobs} for {self.waits_for}: the {known} that called lately {'has' if known == 1 else 'have'} had " + (
            "it" if self.jobs == 1 else "them"
        )


@dataclass(frozen=True, slots=True)
class WorkAhead:
    """What stands before a batch in the order: active batches with unsent instances, and those instances."""

    batches: int = 0
    unsent: int = 0
