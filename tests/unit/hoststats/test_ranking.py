"""Ranking whole populations: the worked table, brute force on random and tied data, scipy's definition."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import percentileofscore

from domain.hosts import DecayedSums
from domain.ranking import turnaround_score
from domain.settings import RankingSettings
from domain.units import Instant
from hoststats.ranking import Ranking, Record, mid_ranks, rank, turnaround_scores
from tests.builders import NOW, a_hav
from tests.unit.hoststats.populations import Line, by_brute_force

ANY_SIZE = RankingSettings(min_rows=1)
BY_DESIGN = RankingSettings()

WORKED_TABLE = {  # docs/formulas.md#percentiles: turnaround h, valid in a row -> X, Y, P
    "A": (Line(2, 40), (0.944, math.inf, 0.944)),
    "B": (Line(4, 12), (0.778, math.inf, 0.778)),
    "C": (Line(4, 11), (0.778, math.inf, 0.778)),
    "D": (Line(8, 10), (0.611, 0.500, 0.500)),
    "E": (Line(10, 3), (0.500, 0.333, 0.333)),
    "F": (Line(16, 0), (0.389, 0.111, 0.111)),
    "G": (Line(24, 30), (0.278, math.inf, 0.278)),
    "H": (Line(30, 3), (0.167, 0.333, 0.167)),
    "I": (Line(48, 0), (0.056, 0.111, 0.056)),
}


def ranked(lines: Sequence[Line], settings: RankingSettings = ANY_SIZE) -> Ranking:
    """The lines ranked by their scores, without shrinkage."""
    return rank(
        np.array([line.score for line in lines], float),
        np.array([line.consecutive_valid for line in lines], np.int32),
        active=np.array([line.active for line in lines], bool),
        enough=np.array([line.n >= settings.min_samples for line in lines], bool),
        failed=np.array([line.failed for line in lines], bool),
        settings=settings,
    )


def test_the_worked_table_holds() -> None:
    ranking = ranked([line for line, _ in WORKED_TABLE.values()])

    found = list(zip(ranking.x, ranking.y, ranking.p, strict=True))
    assert found == [pytest.approx(expected, abs=5e-4) for _, expected in WORKED_TABLE.values()]
    assert (ranking.p >= 0.5).tolist() == [True] * 4 + [False] * 5
    assert (ranking.p >= 0.9).tolist() == [True] + [False] * 8


def test_newcomer_of_worked_table_is_not_counted() -> None:
    lines = [line for line, _ in WORKED_TABLE.values()]

    ranking = ranked([*lines, Line(0.0, 0, n=0.0)])

    assert math.isnan(ranking.p[-1])
    assert ranking.n == 9
    assert ranking.p[:-1].tolist() == ranked(lines).p.tolist()


def test_eleven_valid_results_lift_the_host_with_ten() -> None:
    lines = [Line(8, 11) if name == "D" else line for name, (line, _) in WORKED_TABLE.items()]

    assert ranked(lines).p[3] == pytest.approx(0.611, abs=5e-4)


@given(st.integers(20, 200), st.integers(0, 10))
def test_equal_rows_all_pass_the_median_and_nothing_above_it(size: int, in_a_row: int) -> None:
    assert ranked([Line(1.0, in_a_row)] * size, BY_DESIGN).p.tolist() == [0.5] * size


@pytest.mark.parametrize(("size", "passes"), [(4, False), (5, True)])
def test_ninety_percent_needs_five_rows(size: int, *, passes: bool) -> None:
    assert bool(ranked([Line(score, 40) for score in range(size)]).p[0] >= 0.9) is passes


def test_bootstrap_newcomers_pass_median_failed_hosts_nothing() -> None:
    lines = [*(Line(score, 0) for score in range(8)), Line(0.0, 0, n=0.0), Line(-1.0, 0, failed=True)]

    assert ranked(lines, BY_DESIGN).p.tolist() == [0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0]


def test_silent_host_is_ranked_but_not_counted() -> None:
    active = [Line(float(score), score % 12) for score in range(30)]

    with_silent = ranked([*active, Line(14.5, 40, active=False)], BY_DESIGN)

    assert with_silent.p[:-1].tolist() == ranked(active, BY_DESIGN).p.tolist()
    assert with_silent.p[-1] == 0.5


def test_empty_table_has_no_population() -> None:
    ranking = ranked([])

    assert (ranking.n, ranking.p.size, ranking.in_a_row.tolist()) == (0, 0, [0] * 11)


def test_where_all_are_newcomers_the_bootstrap_rule_holds() -> None:
    assert ranked([Line(1.0, 0, n=0.0)] * 30, BY_DESIGN).p.tolist() == [0.5] * 30


# ---------------------------------------------------------------- brute force

SCORES = st.floats(-5.0, 8.0) | st.sampled_from([-1.0, 0.0, 0.0, 0.5, 1.0])  # many ties
LINES = st.builds(Line, SCORES, st.integers(0, 14), st.sampled_from([0.0, 2.9, 3.0, 9.0]), st.booleans(), st.booleans())


@given(st.lists(LINES, max_size=60), st.sampled_from([1, 20]))
def test_a_ranking_equals_brute_force(lines: list[Line], min_rows: int) -> None:
    settings = RankingSettings(min_rows=min_rows)

    ranking = ranked(lines, settings)

    expected = by_brute_force([line.score for line in lines], lines, settings)
    for position, one in enumerate(expected):
        assert ranking.p[position] == pytest.approx(math.nan if one.p is None else one.p, abs=1e-12, nan_ok=True)
        if one.x is not None and one.y is not None:
            assert (ranking.x[position], ranking.y[position]) == pytest.approx((one.x, one.y), abs=1e-12)


def test_a_large_ranking_with_many_ties_equals_brute_force() -> None:
    rng = np.random.default_rng(7)
    lines = [
        Line(float(score), int(in_a_row), 9.0, bool(active))
        for score, in_a_row, active in zip(
            rng.integers(0, 40, 1500), rng.integers(0, 14, 1500), rng.random(1500) < 0.8, strict=True
        )
    ]

    ranking = ranked(lines, BY_DESIGN)

    expected = by_brute_force([line.score for line in lines], lines, BY_DESIGN)
    assert ranking.p.tolist() == pytest.approx([one.p for one in expected], abs=1e-12)


# ---------------------------------------------------------------- other definitions


@given(st.lists(SCORES, min_size=1, max_size=80))
def test_a_mid_rank_is_scipys_percentile_of_kind_mean(values: list[float]) -> None:
    ranks, _ = mid_ranks(np.array(values))

    expected = [percentileofscore(values, value, kind="mean") / 100.0 for value in values]
    assert ranks.tolist() == pytest.approx(expected, abs=1e-12)


DECAYED_ROWS = st.tuples(
    st.just(0.0) | st.floats(1e-3, 500.0),
    st.floats(-5.0, 5.0),
    st.floats(0.0, 5e6),
    st.floats(0.0, 100.0),
    st.floats(0.0, 100.0),
)


@given(st.lists(DECAYED_ROWS, min_size=1, max_size=20), st.floats(-2.0, 2.0))
def test_a_score_is_the_very_same_where_a_request_computes_it(
    sums: list[tuple[float, float, float, float, float]], score_mean: float
) -> None:
    now = Instant(NOW + 5e6)
    n, mean, age, met, missed = (np.array(column) for column in zip(*sums, strict=True))
    weight = np.exp2(-(now - (NOW + age)).clip(0.0) / (14 * 86400.0))

    record = Record(*(column * weight for column in (n, n * mean, met + missed, missed)))
    scores = turnaround_scores(record, score_mean=score_mean)

    rows = [
        a_hav(
            relaxed=DecayedSums(n, n * mean, 0.0, Instant(NOW + age)),
            tight=DecayedSums(met + missed, 0.0, 0.0, Instant(NOW + age)),
            tight_missed_n=missed,
        )
        for n, mean, age, met, missed in sums
    ]
    expected = [turnaround_score(row, now, score_mean) for row in rows]
    assert scores.tolist() == pytest.approx(expected, rel=0.0, abs=2e-9)
