"""Counts of batch acceleration, as on the reference server."""

from __future__ import annotations

import doctest

import pytest

from domain import acceleration
from domain.acceleration import is_accelerated
from domain.batches import BatchCounts
from domain.units import AppId, BatchId, HostId, Seconds
from tests.cases.reference.acceleration import Returned, low_turnaround


def returned(host: int, turnaround_s: float | None, batch: int = 1) -> Returned:
    return Returned(BatchId(batch), AppId(1), HostId(host), None if turnaround_s is None else Seconds(turnaround_s))


def a_population(quick: int, slow: int) -> list[Returned]:
    """One result per host: fast ones in 10 s, slow ones in 30 s."""
    return [returned(i, 10.0 if i < quick else 30.0) for i in range(quick + slow)]


def test_examples_hold() -> None:
    failed, tried = doctest.testmod(acceleration)
    assert (failed, tried > 0) == (0, True)


def test_hosts_quicker_than_the_median_on_the_mean_are_low() -> None:
    low = low_turnaround(a_population(40, 61))
    assert low.hosts == frozenset(range(40))
    assert low.median_s == {1: 30.0}


def test_a_time_out_counts_ten_medians() -> None:
    results = [*a_population(40, 61), returned(0, None)]
    assert 0 not in low_turnaround(results).hosts
    assert 0 in low_turnaround([*results, *(returned(0, 3.0) for _ in range(11))]).hosts


def test_a_batch_with_fewer_than_a_hundred_results_says_nothing() -> None:
    low = low_turnaround(a_population(40, 59))
    assert (low.hosts, low.median_s) == (frozenset(), {})


@pytest.mark.parametrize(("quick", "slow", "accelerable"), [(26, 75, True), (25, 75, False), (25, 76, False)])
def test_app_needs_100_hosts_and_a_quarter_low(quick: int, slow: int, accelerable: bool) -> None:
    assert (AppId(1) in low_turnaround(a_population(quick, slow)).apps) == accelerable


@pytest.mark.parametrize(
    ("total", "done", "accelerated"), [(1000, 850, False), (1000, 851, True), (30, 11, True), (30, 10, False)]
)
def test_batch_is_accelerated_from_85_percent_or_below_20_jobs(total: int, done: int, accelerated: bool) -> None:
    assert is_accelerated(BatchCounts(total, jobs_validated=done)) is accelerated
