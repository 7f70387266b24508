"""The counts of a preview match what requests get."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.apps import CPU
from domain.hosts import DecayedSums, HostAppVersion
from domain.insight import STANDING_FIELDS
from domain.ranking import CutPoints, percentile
from domain.settings import RankingSettings
from domain.units import AppId, AppVersionId, HostId, Instant, later
from hoststats.standing import Passing, opens, passing, percentiles, time_to_send_s
from tests.builders import NOW

SCORES = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 2.0])
ROWS = st.builds(
    HostAppVersion,
    st.integers(1, 9).map(HostId),
    st.just(AppVersionId(1)),
    consecutive_valid=st.integers(0, 13),
    n_error=st.integers(0, 1),
    n_timeout=st.integers(0, 1),
    relaxed=st.builds(
        lambda n, mean: DecayedSums(n, n * mean, n * mean * mean, NOW), st.sampled_from([0.0, 1.0, 3.0, 20.0]), SCORES
    ),
    tight=st.sampled_from([2.0, 5.0]).map(lambda n: DecayedSums(n, 0.0, 0.0, NOW)),
    tight_missed_n=st.sampled_from([0.0, 1.0, 2.0]),
    clean_since_at=st.none() | st.sampled_from([NOW, Instant(NOW - 20 * 86400.0), Instant(NOW - 40 * 86400.0)]),
)
CUTS = st.none() | st.builds(
    CutPoints,
    st.just(AppId(1)),
    st.just(CPU),
    st.just(NOW),
    st.sampled_from([0, 5, 19, 20, 100]),
    st.lists(SCORES, max_size=30).map(sorted).map(tuple),
    st.lists(st.integers(0, 9), min_size=11, max_size=11).map(tuple),
    score_mean=SCORES,
)


def record(row: HostAppVersion) -> tuple[object, ...]:
    failed = row.failed_last
    sums, clean_at = row.relaxed, math.nan if row.clean_since_at is None else row.clean_since_at
    return (
        row.host_id, 0, row.app_version_id, row.consecutive_valid, failed, sums.at, sums.n, sums.total, row.tight.n,
        row.tight_missed_n, clean_at, 1.0,
    )  # fmt: skip


@given(rows=st.lists(ROWS, max_size=8), cuts=CUTS, days=st.sampled_from([-1.0, 0.0, 14.0, 40.0]))
def test_every_row_has_the_percentile_a_request_would_give_it(
    rows: list[HostAppVersion], cuts: CutPoints | None, days: float
) -> None:
    now = later(NOW, days * 86400.0)
    settings = RankingSettings()
    table = np.array([record(row) for row in rows], list(STANDING_FIELDS))

    many = percentiles(table, cuts, now=now, settings=settings).p

    for p, row in zip(many.tolist(), rows, strict=True):
        one = percentile(row, cuts, now=now, settings=settings).p
        assert math.isnan(p) if one is None else p == pytest.approx(one)


def test_strict_gate_and_newcomers_without_percentile() -> None:
    p = np.array([0.5, 0.6, np.nan, np.inf])

    assert opens(p, 0.5, strict=False).tolist() == [True, True, False, True]
    assert opens(p, 0.5, strict=True).tolist() == [False, True, False, True]
    assert opens(p, 0.0, strict=False).tolist() == [True, True, False, True]


def test_nothing_passes_where_there_is_nothing() -> None:
    assert passing([]) == Passing(0, 0.0)


def test_a_host_with_two_versions_is_two_rows_and_one_caller() -> None:
    table = np.array([(7, 3, version, 0, False, *[0.0] * 6, 2.0) for version in (1, 2)], list(STANDING_FIELDS))

    assert passing([(table, np.array([True, True]))]) == Passing(2, 2.0, hosts=1, volunteers=1)


def test_one_job_per_request_and_none_without_requests() -> None:
    assert time_to_send_s(10, 5.0) == 7200.0
    assert time_to_send_s(10, 0.0) is None
    assert time_to_send_s(0, 0.0) == 0.0


def test_an_old_record_loses_its_percentile_in_time() -> None:
    row = HostAppVersion(HostId(1), AppVersionId(1), 5, relaxed=DecayedSums(4.0, 0.0, 0.0, NOW))
    cuts = CutPoints(AppId(1), CPU, NOW, 50, (0.0, 1.0), (0,) * 11)
    table = np.array([record(row)], list(STANDING_FIELDS))
    later_on = Instant(NOW + 28 * 86400.0)

    assert not np.isnan(percentiles(table, cuts, now=NOW, settings=RankingSettings()).p).any()
    assert np.isnan(percentiles(table, cuts, now=later_on, settings=RankingSettings()).p).all()
