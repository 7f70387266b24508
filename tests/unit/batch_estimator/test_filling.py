"""Snapshots from stored tables: positions, subtraction of own work, and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from batch_estimator.filling import own_work, snapshot_of
from batch_estimator.snapshot import InstanceStanding
from domain.batches import QoS
from domain.forecasting import (
    FORECAST_HAV_FIELDS,
    INSTANCE_FIELDS,
    JOB_FIELDS,
    SAMPLED_HAV_FIELDS,
    SENT_FIELDS,
    STANDINGS,
    BatchTables,
    BatchTerms,
    CountedAs,
    counted_as,
)
from domain.jobs import InstanceState
from domain.settings import LifecycleSettings, Settings
from domain.units import AppId, BatchId, Instant, Seconds

Rows = Sequence[tuple[object, ...]]
NOW = Instant(1e9)
SETTINGS = Settings()
TERMS = BatchTerms(BatchId(1), AppId(1), Instant(NOW - 9e4), Seconds(6e5), QoS.THROUGHPUT, 50, 4e9, 100.0)


def table(fields: Sequence[tuple[str, str]], *rows: tuple[object, ...]) -> Any:
    return np.array(list(rows), np.dtype(list(fields)))


def an_instance(job_id: int, host_id: int, counted: CountedAs, turnaround_s: float = 1000.0) -> tuple[object, ...]:
    sent_at = NOW - 5000.0
    back_at = sent_at + turnaround_s
    standing = InstanceStanding.SUCCESS if counted is CountedAs.VALID else InstanceStanding.ERROR
    return (job_id, host_id, 1, standing, counted, sent_at, sent_at, NOW - 100.0, NOW + 100.0, back_at)


def a_hav(host_id: int, n: int, n_error: int = 0) -> tuple[object, ...]:
    return (host_id, 1, n, 8.0 * n, 65.0 * n, n_error, 0, n, NOW - 60.0)


def tables_of(
    instances: Rows, havs: Rows, others: Rows, sent: Rows = (), weight: float = 1.0, sent_weight: float = 1.0
) -> BatchTables[Any]:
    return BatchTables(
        TERMS,
        table(JOB_FIELDS, (7, 1e13, True, 2, 3), (5, 2e13, False, 1, 0)),
        table(INSTANCE_FIELDS, *instances),
        table(FORECAST_HAV_FIELDS, *havs),
        table(SAMPLED_HAV_FIELDS, *others),
        weight,
        table(SENT_FIELDS, *sent),
        sent_weight,
    )


def test_standings_are_numbered_as_the_snapshot_numbers_them() -> None:
    assert {state: InstanceStanding(number).name for state, number in STANDINGS.items()} == {
        InstanceState.UNSENT: "UNSENT",
        InstanceState.IN_PROGRESS: "IN_PROGRESS",
        InstanceState.REPORTED: "SUCCESS",
        InstanceState.INCONCLUSIVE: "SUCCESS",
        InstanceState.VALID: "SUCCESS",
        InstanceState.TOO_LATE: "SUCCESS",
        InstanceState.FAILED: "ERROR",
        InstanceState.ABORTED: "ABORTED",
        InstanceState.TIMED_OUT: "TIMED_OUT",
        InstanceState.INVALID: "INVALID",
    }


def test_an_abort_at_the_due_date_is_counted_as_a_time_out() -> None:
    assert counted_as(InstanceState.ABORTED, has_sample=True) is CountedAs.TIMED_OUT
    assert counted_as(InstanceState.ABORTED, has_sample=False) is CountedAs.NOTHING
    assert counted_as(InstanceState.REPORTED, has_sample=False) is CountedAs.NOTHING


def test_instances_refer_to_jobs_by_position() -> None:
    rows = [an_instance(7, 1, CountedAs.VALID), an_instance(5, 2, CountedAs.ERROR), an_instance(9, 2, CountedAs.ERROR)]

    snapshot = snapshot_of(tables_of(rows, [a_hav(1, 2), a_hav(2, 2)], []), NOW, SETTINGS)

    assert snapshot.jobs.fpops_flop.tolist() == [2e13, 1e13]
    assert snapshot.jobs.is_open.tolist() == [False, True]
    assert snapshot.instances.job.tolist() == [1, 0]
    assert snapshot.jobs.needed.tolist() == [1, 2]
    assert snapshot.jobs.uncounted.tolist() == [0, 3]


def test_silence_times_out_after_delay_bound_and_grace() -> None:
    assert snapshot_of(tables_of([], [], []), NOW, SETTINGS).delay_bound_s == 6e5 + 6e4
    without = Settings(lifecycle=LifecycleSettings(grace_fraction=0.0, min_grace_s=Seconds(0.0)))
    assert snapshot_of(tables_of([], [], []), NOW, without).delay_bound_s == 6e5


def test_each_sampled_instance_stands_for_its_like() -> None:
    """Six were found in a third of the pages, and two kept."""
    sent = [(host, 1, 2, NOW - 4000.0, NOW, 1e13, 6, host) for host in (8, 9)]

    snapshot = snapshot_of(tables_of([], [a_hav(8, 5), a_hav(9, 5)], [], sent, sent_weight=3.0), NOW, SETTINGS)

    assert snapshot.sent_weight == 9.0


def test_what_the_batch_added_to_a_sum_is_taken_out() -> None:
    instances = table(
        INSTANCE_FIELDS,
        an_instance(7, 2, CountedAs.VALID, turnaround_s=float(np.exp(8.0))),
        an_instance(5, 2, CountedAs.ERROR),
        an_instance(5, -1, CountedAs.NOTHING),
    )

    rows = own_work(table(FORECAST_HAV_FIELDS, a_hav(3, 4), a_hav(2, 3, n_error=1)), instances, NOW)

    assert rows.n_success.tolist() == [4, 2]
    np.testing.assert_allclose(rows.sum_ln, [32.0, 16.0])
    np.testing.assert_allclose(rows.sum_ln_sq, [260.0, 195.0 - 64.0])
    assert (rows.n_error.tolist(), rows.n_due.tolist()) == ([0, 0], [4, 1])


def test_sums_that_lag_behind_the_instances_are_never_below_zero() -> None:
    rows = own_work(
        table(FORECAST_HAV_FIELDS, a_hav(2, 0)), table(INSTANCE_FIELDS, an_instance(7, 2, CountedAs.VALID)), NOW
    )

    assert (rows.n_success.tolist(), rows.sum_ln.tolist(), rows.n_due.tolist()) == ([0], [0.0], [0])


def test_sampled_rows_are_weighted_and_own_rows_count_once() -> None:
    """Four rows of 100 were found in a tenth of the pages and two kept: each represents twenty."""
    others = [(*a_hav(1, 5), 4), (*a_hav(8, 5), 4)]
    sent = [(9, 1, 2, NOW - 4000.0, NOW, 1e13, 2, 0), (8, 1, 2, NOW - 4000.0, NOW, 1e13, 2, 0)]
    havs = [a_hav(1, 5), a_hav(8, 5), a_hav(9, 5)]

    rows = snapshot_of(
        tables_of([an_instance(7, 1, CountedAs.VALID)], havs, others, sent, weight=10.0), NOW, SETTINGS
    ).havs

    assert dict(zip(rows.host_id.tolist(), rows.weight.tolist(), strict=True)) == {1: 1.0, 9: 0.0, 8: 20.0}
    assert dict(zip(rows.host_id.tolist(), rows.n_success.tolist(), strict=True)) == {1: 4, 9: 5, 8: 5}
