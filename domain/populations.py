"""What does a ranking of hosts read, and what does it leave behind? Values only. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from domain.apps import ProcessorType
from domain.settings import RankingSettings
from domain.units import AppId, AppVersionId, Flop, HostId, Instant, Seconds

# One record of a table of hosts' app versions, as numpy names types. Sums are as of `stats_at`. `consecutive_valid`
# is 2^30 where failures are forgiven. `active`: the host called, and ran this, lately. `failed`: its last result did,
# or it timed out. `s_per_flop`: wall-clock seconds per estimated flop, availability included; NaN while nothing was
# measured. `log_*`: the estimator's undecayed sums.
HAV_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("consecutive_valid", "i4"),
    ("active", "?"),
    ("failed", "?"),
    ("stats_at", "f8"),
    ("relaxed_n", "f8"),
    ("relaxed_sum", "f8"),
    ("tight_n", "f8"),
    ("tight_sum", "f8"),
    ("tight_sum_sq", "f8"),
    ("tight_missed_n", "f8"),
    ("log_n", "i8"),
    ("log_sum", "f8"),
    ("log_sum_sq", "f8"),
    ("s_per_flop", "f8"),
)
# One record of percentiles; x and y are NaN where the bootstrap rule gave p.
PERCENTILE_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("p", "f4"),
    ("x", "f4"),
    ("y", "f4"),
)


@dataclass(frozen=True, slots=True)
class Since:
    """What a row has to show to count, each at or after an instant.

    It is active when its host called since `called_at` and it had a result or a time-out since `used_at`. Its
    failures are forgiven with none after `clean_at`, and 3 valid results.
    """

    called_at: Instant
    used_at: Instant
    clean_at: Instant

    @classmethod
    def of(cls, now: Instant, settings: RankingSettings) -> Since:
        """By the settings of the moment; -inf where nothing is forgiven."""
        clean_at = now - settings.forgive_s if settings.forgive_s > 0 else -inf
        return cls(Instant(now - settings.active_s), Instant(now - settings.used_s), Instant(clean_at))


@dataclass(frozen=True, slots=True)
class AppFacts:
    """What an app's recent batches say; None where there are none.

    `typical_flop` is the median size of its job classes, `validation_lag_s` the median time from a canonical
    result's return to its job's end.
    """

    typical_flop: Flop | None = None
    validation_lag_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class RankedPart:
    """What a run found for one (app, processor type).

    `rows` are all (host, app version) of current versions, `population` those that percentiles are taken
    among, `ranked` those that got X and Y, `newcomers` those with too few samples. `small_population`: the
    bootstrap rule holds. `median_score` is the median of the turnaround scores.
    """

    app_id: AppId
    app_name: str
    processor_type: ProcessorType
    rows: int
    population: int
    ranked: int
    newcomers: int
    small_population: bool
    median_score: float | None = None
    median_safe_runtime_s: Seconds | None = None
    retry_turnaround_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class HostStatisticsRun:
    """One run that was published. `full`: with the percentiles of every row, not the cut points alone."""

    generation: int
    full: bool
    started_at: Instant
    seconds: Seconds
    parts: tuple[RankedPart, ...] = ()

    @property
    def apps(self) -> int:
        return len({part.app_id for part in self.parts})

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def ranked(self) -> int:
        return sum(part.ranked for part in self.parts)


@dataclass(frozen=True, slots=True)
class StoredPercentile:
    """Where a (host, app version) stood when the last full run ranked it; `x`, `y` None by the bootstrap rule."""

    host_id: HostId
    app_version_id: AppVersionId
    p: float
    x: float | None = None
    y: float | None = None
