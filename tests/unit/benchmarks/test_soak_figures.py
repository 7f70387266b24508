"""Figures of a long run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from benchmarks.soak.figures import Sample, Table, bloat, bloat_ratio, first_and_last, growth_mib_per_hour, summary

MIB = 2**20


def a_table(**changes: Any) -> Table:
    return replace(Table(live=900, dead=100, table_bytes=6 * MIB, index_bytes={"a": 2 * MIB, "b": MIB}), **changes)


def a_sample(at_s: float = 30.0, *, rss_mib: float = 400.0, **changes: Any) -> Sample:
    usual = Sample(
        at_s=at_s,
        requests=3000,
        requests_per_s=100.0,
        p50_ms=5.0,
        p99_ms=20.0,
        without_work=0,
        failed=0,
        unsettled=10,
        rss_mib={"worker 1": rss_mib - 100.0, "background 1": 100.0},
        postgres_private_mib=50.0,
        database_mib=1000.0,
        refill_s=None,
        tables={"host": a_table()},
    )
    return replace(usual, **changes)


def test_a_table_counts_with_its_indexes() -> None:
    assert a_table().whole_bytes == 9 * MIB


def test_dead_rows_are_a_fraction_of_all_rows() -> None:
    assert a_table().dead_fraction == 0.1
    assert a_table(live=0, dead=0).dead_fraction == 0.0
    assert a_table(live=0, dead=5).dead_fraction == 1.0


def test_the_ends_of_a_long_run_are_its_first_and_last_sixth() -> None:
    assert first_and_last([1.0, 3.0, *[50.0] * 8, 4.0, 6.0]) == (2.0, 5.0)


def test_the_ends_of_a_short_run_are_single_samples() -> None:
    assert first_and_last([1.0, 2.0, 3.0]) == (1.0, 3.0)
    assert first_and_last([7.0]) == (7.0, 7.0)


def test_steady_memory_does_not_grow() -> None:
    assert growth_mib_per_hour([a_sample(30.0 * n) for n in range(1, 61)]) == 0.0


def test_a_mebibyte_a_minute_is_sixty_an_hour() -> None:
    samples = [a_sample(60.0 * n, rss_mib=400.0 + n) for n in range(1, 31)]
    assert growth_mib_per_hour(samples) == pytest.approx(60.0)


def test_caches_that_fill_in_the_first_half_are_no_growth() -> None:
    samples = [a_sample(60.0 * n, rss_mib=min(400.0 + 10.0 * n, 500.0)) for n in range(1, 31)]
    assert growth_mib_per_hour(samples) == 0.0


def test_one_disturbed_sample_is_no_growth() -> None:
    samples = [a_sample(60.0 * n) for n in range(1, 31)]
    samples[-1] = a_sample(1800.0, rss_mib=900.0)
    assert growth_mib_per_hour(samples) == 0.0


def test_the_growth_of_a_single_sample_is_none() -> None:
    assert growth_mib_per_hour([a_sample()]) == 0.0


def test_a_summary_adds_requests_up_and_compares_the_ends() -> None:
    samples = [
        a_sample(30.0, p99_ms=20.0, refill_s=0.01, unsettled=5),
        a_sample(60.0, p99_ms=90.0, without_work=3, failed=1),
        a_sample(90.0, p99_ms=30.0, refill_s=0.03, requests_per_s=130.0, rss_mib=420.0),
    ]
    figures = summary(samples)

    assert (figures["minutes"], figures["requests"], figures["requests_per_s"]) == (1.5, 9000, 100.0)
    assert (figures["p99_first_ms"], figures["p99_last_ms"], figures["p99_growth"]) == (20.0, 30.0, 1.5)
    assert (figures["rss_first_mib"], figures["rss_last_mib"]) == (400.0, 420.0)
    assert (figures["failed"], figures["no_work_fraction"]) == (1, 0.0004444)
    assert (figures["refill_s"], figures["refill_worst_s"], figures["unsettled_most"]) == (0.02, 0.03, 10)


def test_a_run_without_logged_refills_has_no_refill_time() -> None:
    figures = summary([a_sample()])
    assert (figures["refill_s"], figures["refill_worst_s"]) == (None, None)


def test_bloat_is_relative_to_rewritten_rows() -> None:
    compact = {"host": a_table(dead=0, table_bytes=4 * MIB, index_bytes={"a": MIB, "b": MIB})}
    worse = a_sample(tables={"host": a_table(live=600, dead=400, table_bytes=9 * MIB)})

    assert bloat([a_sample(), worse, a_sample()], {"host": a_table()}, compact) == {
        "host": {
            "mib": 9.0,
            "compact_mib": 6.0,
            "ratio": 1.5,
            "mib_most": 12.0,
            "dead_fraction": 0.1,
            "dead_fraction_most": 0.4,
        }
    }
    assert bloat_ratio({"host": a_table()}, compact) == 1.5
