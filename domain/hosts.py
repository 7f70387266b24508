"""Volunteers' computers and their statistics per (host, app version). Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from domain.apps import ProcessorType
from domain.quick import quick_dataclass
from domain.units import AppVersionId, FlopPerSecond, HostId, Instant, Seconds, VolunteerId

STATS_HALF_LIFE_S = Seconds(14 * 86400.0)  # decayed sums lose half their weight in this time


@dataclass(frozen=True, slots=True)
class Coprocessor:
    """The GPUs of one type in a host."""

    type: ProcessorType
    count: int
    peak_flop_per_s: FlopPerSecond = FlopPerSecond(0.0)
    ram_bytes: float = 0.0
    driver_version: int = 0


@quick_dataclass(frozen=True, slots=True)
class Host:
    """A computer as described by its client, with values clamped to plausible ranges."""

    host_id: HostId
    volunteer_id: VolunteerId
    host_cpid: str = ""
    rpc_seqno: int = 0
    created_at: Instant = Instant(0.0)
    last_rpc_at: Instant = Instant(0.0)
    domain_name: str = ""
    ncpus: int = 1
    flop_per_s: FlopPerSecond = FlopPerSecond(1e9)  # Whetstone benchmark, per CPU
    ram_bytes: float = 0.0  # available to the client
    disk_free_bytes: float = 0.0  # still available to the project
    on_fraction: float = 1.0
    active_fraction: float = 1.0
    gpu_active_fraction: float = 1.0
    platforms: tuple[str, ...] = ()  # in the client's order of preference
    os_name: str = ""
    os_version: str = ""
    cpu_vendor: str = ""
    cpu_model: str = ""
    client_version: int = 0  # 7.20.5 -> 72005
    coprocessors: tuple[Coprocessor, ...] = ()
    clock_skew_s: Seconds = Seconds(0.0)  # ahead of the project's clock; 0 if the client does not send its time
    labels: tuple[str, ...] = ()  # given by operators, for queues bound to hosts
    software: str = ""  # NAME/VERSION separated by blanks: docker, podman, virtualbox

    @property
    def system(self) -> str:
        """Return the name and version of the operating system. A word in both is said once.

        >>> known = ("Linux Fedora", "Fedora Linux 41"), ("Linux Ubuntu", "Ubuntu 24.04"), ("Darwin", "24.1")
        >>> for name, version in known:
        ...     Host(HostId(1), VolunteerId(1), os_name=name, os_version=version).system
        'Fedora Linux 41'
        'Linux Ubuntu 24.04'
        'Darwin 24.1'
        """
        version = self.os_version.split()
        return " ".join([*(word for word in self.os_name.split() if word not in version), *version])

    @property
    def cpu_availability_fraction(self) -> float:
        """Return the fraction of wall-clock time in which a CPU job makes progress."""
        return self.on_fraction * self.active_fraction

    @property
    def gpu_availability_fraction(self) -> float:
        """Return the fraction of wall-clock time in which a GPU job makes progress."""
        return self.on_fraction * self.gpu_active_fraction


def host_in_words(host_id: HostId, name: str) -> str:
    """Return a host's name with its number, or the number if its client reports no name.

    >>> host_in_words(HostId(60), "basil-117"), host_in_words(HostId(60), "")
    ('basil-117 (60)', '60')
    """
    return f"{name} ({host_id})" if name else str(host_id)


@quick_dataclass(frozen=True, slots=True)
class DecayedSums:
    """Count, sum and sum of squares of samples as of `at`. They decay with STATS_HALF_LIFE_S.

    >>> s = DecayedSums(n=4.0, total=8.0, total_sq=20.0, at=Instant(0.0))
    >>> s.mean
    2.0
    """

    n: float = 0.0
    total: float = 0.0
    total_sq: float = 0.0
    at: Instant = Instant(0.0)

    def at_time(self, now: Instant) -> DecayedSums:
        """Return the sums as of `now`, multiplied by 2^(-(now - at) / half-life); unchanged if `now` is before `at`.

        >>> DecayedSums(n=4.0, total=8.0, total_sq=20.0, at=Instant(0.0)).at_time(Instant(14 * 86400.0)).n
        2.0
        """
        weight = self.kept_fraction(now)
        return DecayedSums(self.n * weight, self.total * weight, self.total_sq * weight, max(now, self.at))

    def kept_fraction(self, now: Instant) -> float:
        """Return the remaining weight of the sums at `now`: 2^(-(now - at) / half-life), at most 1.

        >>> DecayedSums(at=Instant(0.0)).kept_fraction(Instant(28 * 86400.0))
        0.25
        """
        return math.exp2((self.at - now) / STATS_HALF_LIFE_S) if now > self.at else 1.0

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n > 0 else 0.0


@quick_dataclass(frozen=True, slots=True)
class HostAppVersion:
    """A HAV: the statistics for one (host, app version).

    `tight` holds ln(turnaround / R) of instances whose due date was set from the host's own speed; `tight_missed_n`
    counts how many of them missed it (decayed alike). `relaxed` holds ln(turnaround / the batch's median) of all other
    instances. `speed` holds elapsed seconds per estimated flop. `clean_since_at` is the time of the last failure, or of
    the first event if there was none. `quota_per_day` is the maximum number of instances per processor and day;
    `sent_today` counts the instances sent on `day`. `log_n`, `log_sum`, `log_sum_sq` are undecayed sums of
    ln(turnaround in seconds) of valid results.
    """

    host_id: HostId
    app_version_id: AppVersionId
    consecutive_valid: int = 0
    quota_per_day: int = 0  # 0: no row yet, use the initial value from the settings
    day: int = 0  # the day of `sent_today`, in days since the epoch
    sent_today: int = 0
    speed: DecayedSums = DecayedSums()
    tight: DecayedSums = DecayedSums()
    relaxed: DecayedSums = DecayedSums()
    n_valid: int = 0
    n_error: int = 0
    n_timeout: int = 0
    n_due: int = 0
    inherited_from: AppVersionId | None = None
    log_n: int = 0
    log_sum: float = 0.0
    log_sum_sq: float = 0.0
    tight_missed_n: float = 0.0
    clean_since_at: Instant | None = None

    @property
    def failed_last(self) -> bool:
        """Return whether the latest result failed or timed out.

        If there are no consecutive valid results, the first event was a failure. Rows older than `clean_since_at` are
        judged by their failure counts, which a new version does not inherit.

        >>> HostAppVersion(1, 1).failed_last, HostAppVersion(1, 1, clean_since_at=Instant(0.0)).failed_last
        (False, True)
        """
        return self.consecutive_valid == 0 and (self.clean_since_at is not None or self.n_error + self.n_timeout > 0)
