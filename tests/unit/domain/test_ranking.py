"""Percentiles of a (host, app version): the worked table of docs/formulas.md, and edge cases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.hosts import DecayedSums, HostAppVersion
from domain.ranking import (
    SHRINKAGE,
    CutPoints,
    Percentile,
    are_stale,
    percentile,
    samples,
    share_less_valid,
    turnaround_score,
    valid_in_a_row,
)
from domain.settings import RankingSettings
from domain.units import AppId, Instant, Seconds
from tests.builders import NOW, a_hav
from tests.facts import missing

ANY_SIZE = RankingSettings(min_rows=1)
BY_DESIGN = RankingSettings()
SAMPLES = 5.0
INF = float("inf")


def a_row(score: float, consecutive_valid: int, *, n: float = SAMPLES) -> HostAppVersion:
    """A row with this turnaround score if the population's mean is 0."""
    total = score * (n + SHRINKAGE)
    return a_hav(consecutive_valid=consecutive_valid, relaxed=DecayedSums(n, total, total**2, NOW))


def cuts_of(rows: Sequence[HostAppVersion]) -> CutPoints:
    """The cut points of a small population: one quantile per row."""
    in_a_row = [row.consecutive_valid for row in rows]
    return CutPoints(
        AppId(1),
        CPU,
        NOW,
        n=len(rows),
        turnaround=tuple(sorted(turnaround_score(row, NOW, 0.0) for row in rows)),
        consecutive_valid=tuple(in_a_row.count(k) for k in range(11)),
    )


def standing(
    row: HostAppVersion | None, rows: Sequence[HostAppVersion], settings: RankingSettings = ANY_SIZE
) -> Percentile:
    return percentile(row, cuts_of(rows), now=NOW, settings=settings)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the worked table: turnaround in hours, consecutive valid results, and the expected percentile."""

    name: str
    hours: float
    consecutive_valid: int
    x: float
    y: float
    p: float
    passes: tuple[float, ...]

    @property
    def row(self) -> HostAppVersion:
        return a_row(self.hours, self.consecutive_valid)


TABLE = (
    Line("A", 2, 40, 0.944, INF, 0.944, (0.5, 0.9)),
    Line("B", 4, 12, 0.778, INF, 0.778, (0.5,)),
    Line("C", 4, 11, 0.778, INF, 0.778, (0.5,)),
    Line("D", 8, 10, 0.611, 0.500, 0.500, (0.5,)),
    Line("E", 10, 3, 0.500, 0.333, 0.333, ()),
    Line("F", 16, 0, 0.389, 0.111, 0.111, ()),
    Line("G", 24, 30, 0.278, INF, 0.278, ()),
    Line("H", 30, 3, 0.167, 0.333, 0.167, ()),
    Line("I", 48, 0, 0.056, 0.111, 0.056, ()),
)
TABLE_ROWS = [line.row for line in TABLE]


@pytest.mark.parametrize("line", TABLE, ids=lambda line: str(line.name))
def test_the_worked_table_holds(line: Line) -> None:
    found = standing(line.row, TABLE_ROWS)

    assert (found.x, found.y, found.p) == pytest.approx((line.x, line.y, line.p), abs=5e-4)
    assert tuple(gate for gate in (0.5, 0.9) if found.passes(gate)) == line.passes


def test_a_newcomer_of_the_worked_table_has_no_percentile() -> None:
    found = standing(a_row(0.0, 0, n=0.0), TABLE_ROWS)

    assert found.p is None
    assert not found.passes(0.0)
    assert "newcomer" in found.because


def test_ten_valid_results_in_a_row_are_not_more_than_ten() -> None:
    one_more = [a_row(8.0, 11) if line.name == "D" else line.row for line in TABLE]

    assert standing(a_row(8.0, 11), one_more).p == pytest.approx(0.611, abs=5e-4)


def test_the_reason_names_both_parts() -> None:
    assert not missing(standing(TABLE_ROWS[4], TABLE_ROWS).because, "50.0 %", "33.3 %")
    assert "inf" not in Percentile(0.07, 0.07, math.inf).because


def test_a_newcomer_has_its_effective_results() -> None:
    old = a_hav(relaxed=DecayedSums(3.0, 0.0, 0.0, Instant(0.0)))
    found = percentile(old, cuts_of([old]), now=Instant(30 * 86400.0), settings=ANY_SIZE)

    assert found.p is None
    assert not missing(found.because, f"{samples(old, Instant(30 * 86400.0)):.2f}", "needs 3")


# ---------------------------------------------------------------- edge case 1: ties


@given(st.integers(20, 60), st.floats(-3.0, 5.0), st.integers(0, 10))
def test_equal_rows_all_pass_the_median_and_nothing_above_it(size: int, score: float, in_a_row: int) -> None:
    row = a_row(score, in_a_row)

    found = standing(row, [row] * size, BY_DESIGN)

    assert (found.x, found.y, found.p) == (0.5, 0.5, 0.5)
    assert found.passes(0.5)
    assert not found.passes(0.9)


def test_equal_rows_with_infinite_y_rank_by_turnaround() -> None:
    row = a_row(1.0, 11)

    assert standing(row, [row] * 30, BY_DESIGN).p == 0.5


# ---------------------------------------------------------------- edge case 2: small populations


@pytest.mark.parametrize(("size", "passes"), [(4, False), (5, True)])
def test_ninety_percent_needs_five_rows(size: int, *, passes: bool) -> None:
    rows = [a_row(float(score), 40) for score in range(size)]

    assert standing(rows[0], rows).passes(0.9) is passes


@pytest.mark.parametrize(("size", "p"), [(19, 0.5), (20, 0.475)])
def test_percentiles_begin_with_the_twentieth_row(size: int, p: float) -> None:
    rows = [a_row(float(score), 40) for score in range(size)]

    assert standing(a_row(10.0, 40), rows, BY_DESIGN).p == pytest.approx(p)


ROWS = st.builds(a_row, st.floats(-3.0, 5.0), st.integers(0, 30))


@given(st.lists(ROWS, min_size=1, max_size=19))
def test_bootstrap_host_without_failure_passes_the_median(rows: list[HostAppVersion]) -> None:
    for row in rows:
        assert standing(row, rows, BY_DESIGN).p in (0.5, 0.9)


@given(st.lists(ROWS, min_size=1, max_size=19, unique_by=lambda row: round(row.relaxed.mean, 6)))
def test_bootstrap_fastest_quarter_has_ninety_percent(rows: list[HostAppVersion]) -> None:
    fast = [row for row in rows if standing(row, rows, BY_DESIGN).p == 0.9]
    slow = [row for row in rows if standing(row, rows, BY_DESIGN).p != 0.9]

    assert len(fast) <= math.ceil(len(rows) / 4)
    assert all(turnaround_score(one, NOW, 0.0) < turnaround_score(other, NOW, 0.0) for one in fast for other in slow)


@given(st.lists(ROWS, min_size=1, max_size=19))
def test_rows_that_share_the_front_count_as_its_middle(rows: list[HostAppVersion]) -> None:
    for row in rows:
        if standing(row, rows, BY_DESIGN).p == 0.9:
            score = turnaround_score(row, NOW, 0.0)
            assert sum(turnaround_score(one, NOW, 0.0) < score for one in rows) < len(rows) / 4


def test_of_four_rows_the_fastest_stands_at_ninety_percent() -> None:
    rows = [a_row(float(score), 0) for score in range(4)]

    assert [standing(row, rows, BY_DESIGN).p for row in rows] == [0.9, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("row", [None, a_hav()])
def test_below_twenty_rows_a_newcomer_passes_the_median(row: HostAppVersion | None) -> None:
    assert standing(row, TABLE_ROWS, BY_DESIGN).p == 0.5
    assert percentile(row, None, now=NOW, settings=BY_DESIGN).p == 0.5


@pytest.mark.parametrize("row", [a_hav(n_error=1), a_hav(n_timeout=1), a_hav(clean_since_at=NOW)])
def test_bootstrap_host_with_failed_last_result_has_zero(row: HostAppVersion) -> None:
    found = percentile(row, None, now=NOW, settings=BY_DESIGN)

    assert (found.p, missing(found.because, "bootstrap:", "failed")) == (0.0, [])


def test_bootstrap_valid_result_after_failure_restores_median() -> None:
    assert percentile(a_hav(n_error=1, consecutive_valid=1), None, now=NOW, settings=BY_DESIGN).p == 0.5


def test_bootstrap_two_samples_are_too_few_for_the_quarter() -> None:
    rows = [a_row(float(score), 0) for score in range(10)]

    assert standing(a_row(-5.0, 0, n=2.0), rows, BY_DESIGN).p == 0.5
    assert standing(a_row(-5.0, 0, n=3.0), rows, BY_DESIGN).p == 0.9


# ---------------------------------------------------------------- edge case 3: no data


@pytest.mark.parametrize(("n", "ranked"), [(0.0, False), (2.9, False), (3.0, True)])
def test_a_row_is_ranked_from_three_samples_on(n: float, *, ranked: bool) -> None:
    rows = [a_row(float(score), 0) for score in range(30)]

    assert (standing(a_row(1.0, 0, n=n), rows, BY_DESIGN).p is not None) is ranked


def test_unknown_host_has_no_percentile_in_large_population() -> None:
    assert standing(None, [a_row(1.0, 0)] * 30, BY_DESIGN).p is None


def test_tight_and_relaxed_samples_count_together() -> None:
    sums = DecayedSums(2.0, 1.0, 1.0, NOW)

    assert samples(a_hav(tight=sums, relaxed=sums), NOW) == 4.0


def test_samples_fade() -> None:
    row = a_row(1.0, 0, n=3.0)

    assert samples(row, Instant(NOW + 14 * 86400.0)) == pytest.approx(1.5)


# ---------------------------------------------------------------- edge case 4: swamps of infinite rows


@given(st.integers(0, 60), st.lists(st.integers(0, 10), min_size=1, max_size=40))
def test_a_host_that_failed_lately_stands_below_all_that_did_not(infinite: int, counted: list[int]) -> None:
    rows = [a_row(1.0, 40)] * infinite + [a_row(1.0, k) for k in counted]
    q = infinite / len(rows)

    for k in counted:
        y = standing(a_row(1.0, k), rows).y
        assert y is not None
        assert y <= 1.0 - q + 1e-12


def test_one_error_closes_the_median_for_eleven_results() -> None:
    rows = [a_row(1.0, 40)] * 20 + [a_row(1.0, 3)] * 10

    gates = [standing(a_row(0.0, k), rows, BY_DESIGN).passes(0.5) for k in range(12)]

    assert gates == [False] * 11 + [True]


# ---------------------------------------------------------------- edge case 5: few jobs


def test_a_host_with_four_good_jobs_has_the_rank_of_four() -> None:
    rows = [a_row(1.0, k) for k in (0, 0, 1, 2, 3, 4, 4, 7, 9, 10)]

    found = standing(a_row(0.0, 4), rows)

    assert (found.x, found.y) == pytest.approx((1.0, 0.6))


# ---------------------------------------------------------------- for every population

POPULATIONS = st.lists(ROWS, min_size=1, max_size=40)


@given(POPULATIONS, ROWS)
def test_both_parts_are_shares(rows: list[HostAppVersion], row: HostAppVersion) -> None:
    found = standing(row, rows)

    assert found.x is not None
    assert found.y is not None
    assert 0.0 <= found.x <= 1.0
    assert 0.0 <= found.y <= 1.0 or found.y == INF
    assert found.p == min(found.x, found.y)


@given(POPULATIONS, st.floats(-4.0, 6.0), st.floats(0.0, 5.0), st.integers(0, 30), st.integers(0, 30))
def test_percentile_is_monotonic_in_speed_and_reliability(
    rows: list[HostAppVersion], score: float, faster_by: float, in_a_row: int, more: int
) -> None:
    better = standing(a_row(score - faster_by, in_a_row + more), rows).p
    worse = standing(a_row(score, in_a_row), rows).p

    assert better is not None
    assert worse is not None
    assert better >= worse


@given(POPULATIONS)
def test_the_mean_share_of_a_population_is_a_half(rows: list[HostAppVersion]) -> None:
    shares = [standing(row, rows).x or 0.0 for row in rows]

    assert sum(shares) / len(shares) == pytest.approx(0.5)


def test_cut_points_without_turnarounds_say_nothing() -> None:
    empty = CutPoints(AppId(1), CPU, NOW, n=0, turnaround=(), consecutive_valid=(0,) * 11)

    assert percentile(a_row(1.0, 0), empty, now=NOW, settings=BY_DESIGN).p == 0.5
    assert share_less_valid(3, empty) == 0.5


# ---------------------------------------------------------------- the score


def test_few_samples_are_drawn_towards_the_populations_mean() -> None:
    few = a_hav(relaxed=DecayedSums(1.0, 4.0, 16.0, NOW))
    many = a_hav(relaxed=DecayedSums(98.0, 392.0, 1568.0, NOW))

    assert turnaround_score(few, NOW, 1.0) == pytest.approx(2.0)
    assert turnaround_score(many, NOW, 1.0) == pytest.approx(3.94)


def test_without_samples_the_score_is_the_populations_mean() -> None:
    assert turnaround_score(a_hav(), NOW, 0.7) == pytest.approx(0.7)


def test_how_long_tight_instances_took_does_not_enter_the_score() -> None:
    """Tight jobs run first, so a host with tight jobs would rise just by getting them."""
    quick = a_hav(relaxed=DecayedSums(2.0, 4.0, 8.0, NOW), tight=DecayedSums(10.0, -50.0, 250.0, NOW))
    slow = replace(quick, tight=DecayedSums(10.0, 5.0, 2.5, NOW))

    assert turnaround_score(quick, NOW, 1.0) == turnaround_score(slow, NOW, 1.0)


def tight(row: HostAppVersion, *, met: float = 0.0, missed: float = 0.0) -> HostAppVersion:
    return replace(row, tight=DecayedSums(met + missed, 0.0, 0.0, row.relaxed.at), tight_missed_n=missed)


SCORED = st.builds(
    lambda n, mean: a_hav(relaxed=DecayedSums(n, n * mean, n * mean * mean, NOW)),
    st.just(0.0) | st.floats(0.01, 100.0),
    st.floats(-5.0, 5.0),
)
COUNTS = st.floats(0.0, 100.0)


@given(SCORED, COUNTS, COUNTS, st.floats(0.0, 20.0), st.floats(-2.0, 2.0))
def test_score_is_monotonic_in_tight_due_dates_met_and_missed(
    row: HostAppVersion, met: float, missed: float, more: float, mean: float
) -> None:
    score = turnaround_score(tight(row, met=met, missed=missed), NOW, mean)

    assert turnaround_score(tight(row, met=met + more, missed=missed), NOW, mean) <= score + 1e-8
    assert turnaround_score(tight(row, met=met, missed=missed + more), NOW, mean) >= score - 1e-8


@given(SCORED, COUNTS, st.floats(-2.0, 2.0))
def test_what_tight_due_dates_can_gain_is_bounded(row: HostAppVersion, met: float, mean: float) -> None:
    """The limit is its own mean plus a quarter: tight work alone makes no host the fastest."""
    own = row.relaxed.mean if row.relaxed.n > 0 else mean

    assert turnaround_score(tight(row, met=met), NOW, mean) >= min(own, mean) - math.log(10.0) / 9 - 1e-8


def test_nine_of_ten_met_are_what_is_expected() -> None:
    row = a_hav(relaxed=DecayedSums(10.0, 20.0, 40.0, NOW))

    assert turnaround_score(tight(row, met=9.0, missed=1.0), NOW, 1.0) == turnaround_score(row, NOW, 1.0)


def test_host_meeting_only_tight_work_keeps_its_score() -> None:
    busy = a_hav(relaxed=DecayedSums(10.0, -10.0, 10.0, NOW))
    half_a_year_on = Instant(NOW + 26 * 7 * 86400.0)
    met = DecayedSums(20.0, 0.0, 0.0, half_a_year_on)
    idle = turnaround_score(busy, half_a_year_on, 0.5)
    kept = busy.relaxed.at_time(half_a_year_on)

    assert idle > 0.4
    assert turnaround_score(replace(busy, relaxed=kept, tight=met), half_a_year_on, 0.5) < -1.0


# ---------------------------------------------------------------- forgiveness and age


def test_month_old_failure_is_forgiven_after_3_valid_results() -> None:
    rows = [a_row(float(score), 40) for score in range(19)]
    forgiven = replace(a_row(0.0, 3), clean_since_at=Instant(NOW - 30 * 86400.0))

    assert standing(forgiven, [*rows, forgiven]).y == INF
    assert standing(replace(forgiven, consecutive_valid=2), [*rows, forgiven]).y != INF
    assert standing(replace(forgiven, clean_since_at=Instant(NOW - 29 * 86400.0)), [*rows, forgiven]).y != INF
    assert standing(replace(forgiven, clean_since_at=None), [*rows, forgiven]).y != INF


def test_with_nothing_to_be_forgiven_months_change_nothing() -> None:
    row = replace(a_row(0.0, 3), clean_since_at=Instant(0.0))

    assert valid_in_a_row(row, NOW, RankingSettings(forgive_s=Seconds(0.0))) == 3


@pytest.mark.parametrize(
    ("run_s", "refresh_s", "hours", "stale"),
    [
        (86400.0, 3600.0, 48.0, False),
        (86400.0, 3600.0, 48.1, True),
        (0.0, 3600.0, 48.1, True),  # ranked by a cron job, once a day
        (0.0, 0.0, 47.9, False),
        (7 * 86400.0, 0.0, 300.0, False),
    ],
)
def test_cut_points_are_stale_after_two_missed_rankings(
    run_s: float, refresh_s: float, hours: float, *, stale: bool
) -> None:
    settings = RankingSettings(run_interval_s=Seconds(run_s), refresh_interval_s=Seconds(refresh_s))

    assert are_stale(cuts_of([a_row(0.0, 1)]), Instant(NOW + hours * 3600.0), settings) is stale
