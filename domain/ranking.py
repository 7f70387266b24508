"""Cut points: where a (host, app version) stands among its kind, looked up in microseconds. Pure.

The host-statistics job writes cut points per (app, processor type); the request handler ranks the
host's present row against them, so that a change counts at once. What the job reads and writes, as values, comes last.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import StrEnum
from math import inf, log

from domain.apps import ProcessorType
from domain.hosts import HostAppVersion
from domain.quick import quick_dataclass
from domain.settings import RankingSettings
from domain.units import DAY_S, AppId, AppVersionId, Flop, HostId, Instant, Seconds

BOOTSTRAP_P = 0.5  # of a host without a failure, while too few rows are ranked
FASTEST_QUARTER_P = 0.9  # of the fastest quarter meanwhile: those with X of at least
FASTEST_QUARTER_X = 0.75
SHRINKAGE = 2.0  # k0: two pseudo-samples at the population's mean
MISSED_PENALTY = log(10.0)  # a missed tight due date: as a turnaround ten times the host's own (decision 11)
MET_PER_MISSED = 9.0  # due dates are 90 % quantiles: who meets nine of ten is what was expected
LEAST_KNOWN_SAMPLES = 1e-6  # of relaxed turnarounds; fewer have faded away
FORGIVEN_VALID = 3  # valid results since its last failure before a row can be forgiven
FORGIVEN = 2**30  # valid results in a row that such a row counts as having
STALE_INTERVALS = 2.0  # docs/formulas.md#percentiles
SCORE_DECIMALS = 9  # scores are compared to so many, so that the same row has the same score wherever it is computed


class Gate(StrEnum):
    """Which threshold a host's percentile has to reach."""

    NONE = "none"
    AFAP = "p_afap"
    LATE = "p_late"
    TIGHT = "p_tight"
    RETRY = "p_retry"
    LOW_TURNAROUND = "low_turnaround"  # no percentile: the flag of batch acceleration


NO_GATE = Gate.NONE  # for comparisons in every request: Python 3.11 takes 75 ns to look a member up in its enum


@dataclass(frozen=True, slots=True)
class RelaxedGate:
    """A gate that is lower for now, because hosts behind it ask too seldom for the jobs that wait (decision 12).

    `jobs` wait behind it; hosts with at least `threshold` on any processor type of the app make `calls_per_hour`.
    """

    app_id: AppId
    processor_type: ProcessorType
    gate: Gate
    threshold: float
    jobs: int = 0
    calls_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class CutPoints:
    """The population of one (app, processor type) in brief.

    `turnaround` holds ascending quantiles of the turnaround score (lower is better) at
    (i + 0.5) / len; `consecutive_valid[k]` counts rows with exactly k valid results in a row, k from 0
    to `consecutive_valid_infinite` (rows above it are in `n` only); `n` counts all rows.
    `score_mean` is the population's mean score, towards which few samples are shrunk.
    `tight_n`, `tight_mean` and `tight_sd` describe ln(turnaround / R) of tight instances over all rows.
    `retry_turnaround_s` is the time a retry on a good host needs, validation included, and
    `median_safe_runtime_s` the median of R_q over the hosts; None until known. `relaxed` are the gates that
    are lower than their settings for now.
    """

    app_id: AppId
    processor_type: ProcessorType
    computed_at: Instant
    n: int
    turnaround: tuple[float, ...]
    consecutive_valid: tuple[int, ...]
    score_mean: float = 0.0
    tight_n: float = 0.0
    tight_mean: float = 0.0
    tight_sd: float = 0.0
    retry_turnaround_s: Seconds | None = None
    median_safe_runtime_s: Seconds | None = None
    relaxed: tuple[RelaxedGate, ...] = ()


@quick_dataclass(frozen=True, slots=True)
class Percentile:
    """P = min(X, Y) with its two parts; `p` None for a newcomer: below every gate.

    `reason` stands for whatever else than X and Y made it so.
    """

    p: float | None
    x: float | None = None
    y: float | None = None
    reason: str = ""

    @property
    def because(self) -> str:
        """Why P is what it is, in words.

        >>> Percentile(0.25, 0.25, 0.5).because
        'turnaround 0.250, consecutive valid 0.500'
        """
        return self.reason if self.x is None else f"turnaround {self.x:.3f}, consecutive valid {self.y:.3f}"

    def passes(self, threshold: float) -> bool:
        """Whether this percentile opens a gate at `threshold` (compared with >=).

        >>> Percentile(0.5).passes(0.5), Percentile(None).passes(0.0)
        (True, False)
        """
        return self.p is not None and self.p >= threshold


def turnaround_score(row: HostAppVersion, now: Instant, score_mean: float) -> float:
    """ln(turnaround / what the batch's jobs usually take), as far as the row's record goes; lower is better.

    The mean m of n relaxed samples is drawn to the population's mean M while they are few, k0 = 2.
    Tight instances are hurried, so their turnaround says nothing here, only whether the due date was met:
    those met keep the record of a host above the mean from fading, and

        score = M + (m - M) w / (w + k0) + ln 10 (missed - met / 9) / (n + k0 + met + missed)

    with w = n + met if m < M, else n; to 9 decimals. Meeting a due date never makes the score worse, missing one never
    better, and meeting nine of ten moves it little: docs/decisions/0011.

    >>> from domain.hosts import DecayedSums
    >>> row = HostAppVersion(1, 1, relaxed=DecayedSums(2.0, 4.0, 8.0, Instant(0.0)))
    >>> turnaround_score(row, Instant(0.0), 1.0)
    1.5
    """
    kept = row.relaxed.kept_fraction(now)
    n, met, missed = row.relaxed.n * kept, row.tight.n * kept, row.tight_missed_n * kept
    met = max(0.0, met - missed)
    ahead = row.relaxed.total / row.relaxed.n - score_mean if n >= LEAST_KNOWN_SAMPLES else 0.0
    weight = n + met if ahead < 0.0 else n
    penalty = MISSED_PENALTY * (missed - met / MET_PER_MISSED) / (n + SHRINKAGE + met + missed)
    return round(score_mean + ahead * weight / (weight + SHRINKAGE) + penalty, SCORE_DECIMALS)


def valid_in_a_row(row: HostAppVersion, now: Instant, settings: RankingSettings) -> int:
    """Valid results in a row, or 2^30 once failures are forgiven: none for `forgive_s`, and 3 valid results since.

    Else the memory of one failure, eleven results long, would be months for a host with a job a week.

    >>> row = HostAppVersion(1, 1, consecutive_valid=4, clean_since_at=Instant(0.0))
    >>> day = 86400.0
    >>> [valid_in_a_row(row, Instant(days * day), RankingSettings()) for days in (29, 30)]
    [4, 1073741824]
    """
    if row.consecutive_valid < FORGIVEN_VALID or row.clean_since_at is None or settings.forgive_s <= 0:
        return row.consecutive_valid
    return FORGIVEN if now - row.clean_since_at >= settings.forgive_s else row.consecutive_valid


def are_stale(cuts: CutPoints, now: Instant, settings: RankingSettings) -> bool:
    """Whether cut points are too old to judge by: by more than twice the time between full rankings.

    A cron job that does them alone is expected once a day.

    >>> cuts = CutPoints(1, "cpu", Instant(0.0), 40, (), ())
    >>> [are_stale(cuts, Instant(hours * 3600.0), RankingSettings()) for hours in (48, 49)]
    [False, True]
    """
    interval_s = max(settings.run_interval_s or DAY_S, settings.refresh_interval_s)
    return now - cuts.computed_at > STALE_INTERVALS * interval_s


def samples(row: HostAppVersion, now: Instant) -> float:
    """Effective turnaround samples of a row, tight and relaxed together."""
    return row.relaxed.n * row.relaxed.kept_fraction(now) + row.tight.n * row.tight.kept_fraction(now)


def share_slower(score: float, cuts: CutPoints) -> float:
    """X: the share of rows slower than `score`, ties counted half (mid-rank).

    >>> cuts = CutPoints(1, "cpu", 0.0, 4, (1.0, 2.0, 2.0, 4.0), ())
    >>> share_slower(2.0, cuts)
    0.5
    """
    size = len(cuts.turnaround)
    if size == 0:
        return 0.5
    below = bisect_left(cuts.turnaround, score)
    at_or_below = bisect_right(cuts.turnaround, score)
    return 1.0 - (below + at_or_below) / (2.0 * size)


def share_less_valid(consecutive_valid: int, cuts: CutPoints) -> float:
    """Y: mid-rank of consecutive valid results among all rows; +inf above the last counted value.

    >>> cuts = CutPoints(1, "cpu", 0.0, 9, (), (2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1))
    >>> round(share_less_valid(3, cuts), 3), share_less_valid(11, cuts)
    (0.333, inf)
    """
    if consecutive_valid >= len(cuts.consecutive_valid):
        return float("inf")
    if cuts.n == 0:
        return 0.5
    less = sum(cuts.consecutive_valid[:consecutive_valid])
    return (less + 0.5 * cuts.consecutive_valid[consecutive_valid]) / cuts.n


def percentile(
    row: HostAppVersion | None, cuts: CutPoints | None, *, now: Instant, settings: RankingSettings
) -> Percentile:
    """P of a (host, app version): min(X, Y), or the bootstrap rule while the population is small.

    Bootstrap (fewer than `min_rows` rows): a host without a failure has P 0.5, newcomers included;
    the fastest quarter of rows with `min_samples` samples has 0.9. From `min_rows` rows on a newcomer
    has none.
    """
    enough = row is not None and samples(row, now) >= settings.min_samples
    if cuts is None or cuts.n < settings.min_rows:
        return _bootstrap(row, cuts, enough=enough, now=now)
    if row is None or not enough:
        return Percentile(None, reason="newcomer: too few results to be ranked")
    x = share_slower(turnaround_score(row, now, cuts.score_mean), cuts)
    y = share_less_valid(valid_in_a_row(row, now, settings), cuts)
    return Percentile(min(x, y), x, y)


def _bootstrap(row: HostAppVersion | None, cuts: CutPoints | None, *, enough: bool, now: Instant) -> Percentile:
    if row is not None and row.failed_last:
        return Percentile(0.0, reason="bootstrap: its last result failed")
    if row is not None and enough and cuts is not None and cuts.turnaround:
        score = turnaround_score(row, now, cuts.score_mean)
        if share_slower(score, cuts) >= FASTEST_QUARTER_X:
            return Percentile(FASTEST_QUARTER_P, reason="bootstrap: among the fastest quarter")
    return Percentile(BOOTSTRAP_P, reason="bootstrap: no failure yet")


# ---- what a run of the host-statistics job reads and writes

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
