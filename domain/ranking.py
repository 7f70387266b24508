"""Cut points: where a (host, app version) stands among its kind, looked up in microseconds. Pure.

The host-statistics job writes cut points per (app, processor type); the request handler ranks the
host's present row against them, so that a change counts at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import StrEnum

from domain.apps import ProcessorType
from domain.hosts import HostAppVersion
from domain.settings import RankingSettings
from domain.units import AppId, Instant, Seconds

BOOTSTRAP_P = 0.5  # of a host without a failure, while too few rows are ranked
FASTEST_QUARTER_P = 0.9  # of the fastest quarter meanwhile: those with X of at least
FASTEST_QUARTER_X = 0.75
SHRINKAGE = 2.0  # k0 of POLICY 4.5: two pseudo-samples at the population's mean
SCORE_DECIMALS = 9  # scores are compared to so many, so that the same row has the same score wherever it is computed


class Gate(StrEnum):
    """Which threshold a host's percentile has to reach."""

    NONE = "none"
    AFAP = "p_afap"
    LATE = "p_late"
    TIGHT = "p_tight"
    RETRY = "p_retry"


@dataclass(frozen=True, slots=True)
class CutPoints:
    """The population of one (app, processor type) in brief.

    `turnaround` holds ascending quantiles of the turnaround score (lower is better) at
    (i + 0.5) / len; `consecutive_valid[k]` counts rows with exactly k valid results in a row, k from 0
    to `consecutive_valid_infinite` (rows above it are in `n` only); `n` counts all rows.
    `score_mean` is the population's mean score, towards which few samples are shrunk.
    `tight_n`, `tight_mean` and `tight_sd` describe ln(turnaround / R) of tight instances over all rows.
    `retry_turnaround_s` is the time a retry on a good host needs, validation included, and
    `median_safe_runtime_s` the median of R_q over the hosts; None until known.
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


@dataclass(frozen=True, slots=True)
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
    """The row's shrunk mean of ln(turnaround / R) over relaxed instances; lower is better.

    (sum + k0 * score_mean) / (n + k0) with k0 = 2 (POLICY 4.5), to 9 decimals.

    >>> from domain.hosts import DecayedSums
    >>> row = HostAppVersion(1, 1, relaxed=DecayedSums(2.0, 4.0, 8.0, Instant(0.0)))
    >>> turnaround_score(row, Instant(0.0), 1.0)
    1.5
    """
    sums = row.relaxed.at_time(now)
    return round((sums.total + SHRINKAGE * score_mean) / (sums.n + SHRINKAGE), SCORE_DECIMALS)


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
    y = share_less_valid(row.consecutive_valid, cuts)
    return Percentile(min(x, y), x, y)


def _bootstrap(row: HostAppVersion | None, cuts: CutPoints | None, *, enough: bool, now: Instant) -> Percentile:
    if row is not None and row.consecutive_valid == 0 and row.n_error + row.n_timeout > 0:
        return Percentile(0.0, reason="bootstrap: its last result failed")
    if row is not None and enough and cuts is not None and cuts.turnaround:
        score = turnaround_score(row, now, cuts.score_mean)
        if share_slower(score, cuts) >= FASTEST_QUARTER_X:
            return Percentile(FASTEST_QUARTER_P, reason="bootstrap: among the fastest quarter")
    return Percentile(BOOTSTRAP_P, reason="bootstrap: no failure yet")
