"""Cut points, with which a (host, app version) is ranked in its population within microseconds. Pure.

The host-statistics job writes cut points per (app, processor type). The request handler ranks the host's current row
against them, so that changes of the row take effect immediately. The job's input and output are defined last.
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

BOOTSTRAP_P = 0.5  # P of a host without failures, while too few rows are ranked
FASTEST_QUARTER_P = 0.9  # P of the fastest quarter in that case: rows with at least this X
FASTEST_QUARTER_X = 0.75
SHRINKAGE = 2.0  # k0: two pseudo-samples at the population's mean
MISSED_PENALTY = log(10.0)  # a missed tight due date counts like ten times the host's own turnaround (decision 11)
MET_PER_MISSED = 9.0  # due dates are 90 % quantiles, so meeting nine out of ten is expected
LEAST_KNOWN_SAMPLES = 1e-6  # of relaxed turnarounds; below this, the samples have decayed too far
FORGIVEN_VALID = 3  # valid results required since its last failure before a row is forgiven
FORGIVEN = 2**30  # consecutive valid results assumed for a forgiven row
NEWCOMER = (
    "newcomer: {:.2f} effective results, a rank needs {:g} (ranking.min_samples); old results count less, errors not"
)
STALE_INTERVALS = 2.0  # docs/formulas.md#percentiles
SCORE_DECIMALS = 9  # scores are rounded to this many decimals, so that a row has the same score wherever it is computed


class Gate(StrEnum):
    """A threshold that a host's percentile must reach."""

    NONE = "none"
    AFAP = "p_afap"
    LATE = "p_late"
    TIGHT = "p_tight"
    RETRY = "p_retry"
    LOW_TURNAROUND = "low_turnaround"  # not a percentile, but the flag set by batch acceleration


def gate_in_words(in_force: float, set_to: float) -> str:
    """Return a gate's value, and its setting if it is temporarily lowered.

    >>> gate_in_words(0.5, 0.9), gate_in_words(0.9, 0.9)
    ('0.5 (lowered from 0.9)', '0.9')
    """
    return f"{in_force:g} (lowered from {set_to:g})" if in_force < set_to else f"{in_force:g}"


NO_GATE = Gate.NONE  # cached for comparisons in every request: an enum lookup takes 75 ns in Python 3.11


@dataclass(frozen=True, slots=True)
class RelaxedGate:
    """A temporarily lowered gate, because hosts that pass it send too few requests for the waiting jobs (decision 12).

    `jobs` wait for this gate; hosts at or above `threshold` on any processor type of the app make `calls_per_hour`.
    `measured_at`: when both were counted, None if an older version stored the gate.
    """

    app_id: AppId
    processor_type: ProcessorType
    gate: Gate
    threshold: float
    jobs: int = 0
    calls_per_hour: float = 0.0
    measured_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class CutPoints:
    """Summary of the population for one (app, processor type).

    `turnaround` holds ascending quantiles of the turnaround score (lower is better) at (i + 0.5) / len.
    `consecutive_valid[k]` counts rows with exactly k consecutive valid results, for k from 0 to
    `consecutive_valid_infinite` (rows above are only in `n`); `n` counts all rows. `score_mean` is the population's
    mean score, towards which small samples are shrunk. `tight_n`, `tight_mean` and `tight_sd` describe ln(turnaround /
    R) of tight instances over all rows. `retry_turnaround_s` is the turnaround of a retry on a good host, including
    validation, and `median_safe_runtime_s` the median R_q over the hosts; None if unknown. `relaxed` are the
    temporarily lowered gates.
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
    """P = min(X, Y), with both parts. `p` is None for a newcomer, which passes no gate.

    `reason` is set if P does not come from X and Y.
    """

    p: float | None
    x: float | None = None
    y: float | None = None
    reason: str = ""

    @property
    def because(self) -> str:
        """Return, in words, how P was determined.

        >>> Percentile(0.25, 0.25, 0.5).because
        'faster than 25.0 % of hosts; more valid results in a row than 50.0 % of hosts'
        """
        if self.x is None or self.y is None:
            return self.reason
        most = "more than 10 valid results in a row"
        valid = most if self.y > 1.0 else f"more valid results in a row than {100.0 * self.y:.1f} % of hosts"
        return f"faster than {100.0 * self.x:.1f} % of hosts; {valid}"

    def passes(self, threshold: float) -> bool:
        """Return whether P reaches the gate's `threshold`, that is, P >= threshold.

        >>> Percentile(0.5).passes(0.5), Percentile(None).passes(0.0)
        (True, False)
        """
        return self.p is not None and self.p >= threshold


def turnaround_score(row: HostAppVersion, now: Instant, score_mean: float) -> float:
    """Return the row's ln(turnaround / usual turnaround of the batch's jobs). Lower is better.

    The mean m of n relaxed samples is shrunk towards the population's mean M, with k0 = 2. Tight instances run first,
    so their turnaround is no evidence of speed; only whether they met the due date counts. Met due dates keep the score
    of a host below the mean from decaying towards it:

        score = M + (m - M) w / (w + k0) + ln 10 (missed - met / 9) / (n + k0 + met + missed)

    with w = n + met if m < M, else n; to 9 decimals. Meeting a due date never worsens the score, missing one never
    improves it, and meeting nine of ten changes it little: docs/decisions/0011.

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
    """Return the consecutive valid results, or 2^30 once `forgive_s` and 3 valid results followed the last failure.

    Without forgiveness, a host with one job a week would need months (eleven results) to recover from one failure.

    >>> row = HostAppVersion(1, 1, consecutive_valid=4, clean_since_at=Instant(0.0))
    >>> day = 86400.0
    >>> [valid_in_a_row(row, Instant(days * day), RankingSettings()) for days in (29, 30)]
    [4, 1073741824]
    """
    if row.consecutive_valid < FORGIVEN_VALID or row.clean_since_at is None or settings.forgive_s <= 0:
        return row.consecutive_valid
    return FORGIVEN if now - row.clean_since_at >= settings.forgive_s else row.consecutive_valid


def are_stale(cuts: CutPoints, now: Instant, settings: RankingSettings) -> bool:
    """Return whether cut points are too old to use, that is, older than twice the interval between full rankings.

    If only a cron job runs rankings, one per day is expected.

    >>> cuts = CutPoints(1, "cpu", Instant(0.0), 40, (), ())
    >>> [are_stale(cuts, Instant(hours * 3600.0), RankingSettings()) for hours in (48, 49)]
    [False, True]
    """
    interval_s = max(settings.run_interval_s or DAY_S, settings.refresh_interval_s)
    return now - cuts.computed_at > STALE_INTERVALS * interval_s


def samples(row: HostAppVersion, now: Instant) -> float:
    """Return the effective number of turnaround samples in a row, tight and relaxed together."""
    return row.relaxed.n * row.relaxed.kept_fraction(now) + row.tight.n * row.tight.kept_fraction(now)


def share_slower(score: float, cuts: CutPoints) -> float:
    """Return X: the share of rows slower than `score`, with ties counted half (mid-rank).

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
    """Return Y, the mid-rank of consecutive valid results among all rows; +inf above the highest counted value.

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
    """Return P of a (host, app version): min(X, Y) or, in a small population, the value from the bootstrap rule.

    Bootstrap rule (fewer than `min_rows` rows): a host without a failure, or a newcomer, has P = 0.5; the fastest
    quarter of rows with `min_samples` samples has P = 0.9. With at least `min_rows` rows, a newcomer has no P.
    """
    known = 0.0 if row is None else samples(row, now)
    enough = known >= settings.min_samples
    if cuts is None or cuts.n < settings.min_rows:
        return _bootstrap(row, cuts, enough=enough, now=now)
    if row is None or not enough:
        return Percentile(None, reason=NEWCOMER.format(known, settings.min_samples))
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


# ---- input and output of the host-statistics job

# One record per (host, app version), with numpy type names. Sums are as of `stats_at`. `consecutive_valid` is 2^30 if
# failures are forgiven. `active`: the host contacted the server and used the version recently. `failed`: the latest
# result failed or timed out. `s_per_flop`: wall-clock seconds per estimated flop, including availability; NaN if not
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
# One percentile record; x and y are NaN if p was set by the bootstrap rule.
PERCENTILE_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("p", "f4"),
    ("x", "f4"),
    ("y", "f4"),
)


@dataclass(frozen=True, slots=True)
class Since:
    """The instants since which a row must have had contact or samples to be active, used or forgiven.

    A row is active if its host contacted the server after `called_at` and it had a result or a timeout after `used_at`.
    Its failures are forgiven if none happened after `clean_at` and 3 valid results followed.
    """

    called_at: Instant
    used_at: Instant
    clean_at: Instant

    @classmethod
    def of(cls, now: Instant, settings: RankingSettings) -> Since:
        """Return the instants for the current settings. The last is -inf if failures are never forgiven."""
        clean_at = now - settings.forgive_s if settings.forgive_s > 0 else -inf
        return cls(Instant(now - settings.active_s), Instant(now - settings.used_s), Instant(clean_at))


@dataclass(frozen=True, slots=True)
class AppFacts:
    """Medians over an app's recent batches; None without recent batches.

    `typical_flop` is the median size of its job classes, `validation_lag_s` the median time from the return of the
    canonical result to the end of the job.
    """

    typical_flop: Flop | None = None
    validation_lag_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class RankedPart:
    """The result of a run for one (app, processor type).

    `rows` are all (host, app version) rows of current versions, `population` the rows that percentiles are relative to,
    `ranked` the rows with X and Y, `newcomers` the rows with too few samples. `small_population`: the bootstrap rule
    applies. `median_score` is the median turnaround score.
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
    """One published run. `full`: it includes the percentile of every row, not only the cut points."""

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
    """The percentile of a (host, app version) from the last full run. `x` and `y` are None under the bootstrap rule."""

    host_id: HostId
    app_version_id: AppVersionId
    p: float
    x: float | None = None
    y: float | None = None
