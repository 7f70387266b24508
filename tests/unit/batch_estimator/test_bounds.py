"""How long instances that are still to be sent are given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from batch_estimator.bounds import bound_of
from batch_estimator.estimate import estimate
from batch_estimator.snapshot import Snapshot, Standing
from domain.units import HOUR_S
from tests.unit.batch_estimator.snapshots import BOUND_S, Sent, a_snapshot, hosts


def given(hours: float, sent: list[Sent]) -> Snapshot:
    """A batch whose instances are given so many hours."""
    snapshot = a_snapshot(sent, hosts(40))
    rows = snapshot.instances
    return replace(snapshot, instances=replace(rows, timeout_at=rows.sent_at + hours * HOUR_S))


def under_way(count: int, sent_h: float = 4.0) -> list[Sent]:
    return [Sent(job, Standing.IN_PROGRESS, host=1 + job % 40, sent_h=sent_h) for job in range(count)]


def test_it_is_what_the_batchs_instances_are_given() -> None:
    assert bound_of(given(20.0, under_way(5))) == 20 * HOUR_S


def test_it_is_the_delay_bound_while_few_were_sent() -> None:
    unsent = [Sent(job, Standing.UNSENT) for job in range(4, 30)]
    assert bound_of(given(20.0, under_way(4) + unsent)) == BOUND_S
    assert bound_of(a_snapshot(unsent, hosts(40))) == BOUND_S


def test_it_is_never_more_than_the_delay_bound() -> None:
    assert bound_of(given(20_000.0, under_way(9))) == BOUND_S


def test_instances_sent_last_say_what_is_given_now() -> None:
    early, late = under_way(80, sent_h=30.0), under_way(50, sent_h=2.0)
    snapshot = given(20.0, early + late)
    rows = snapshot.instances
    timeout_at = np.where(np.arange(130) < 80, rows.sent_at + BOUND_S, rows.timeout_at)
    assert bound_of(replace(snapshot, instances=replace(rows, timeout_at=timeout_at))) == 20 * HOUR_S


def test_retries_are_given_what_retries_were_given() -> None:
    retries = [replace(one, created_h=5.0) for one in under_way(5)]
    snapshot = given(20.0, under_way(30) + retries)
    rows = snapshot.instances
    timeout_at = np.where(np.arange(35) < 30, rows.timeout_at, rows.sent_at + 9 * HOUR_S)
    assert bound_of(replace(snapshot, instances=replace(rows, timeout_at=timeout_at))) == 9 * HOUR_S


def test_a_batch_of_hurried_work_is_forecast_to_be_over_long_before_its_delay_bounds_are() -> None:
    sent = under_way(60)
    hurried, leisurely = estimate(given(20.0, sent)), estimate(a_snapshot(sent, hosts(40)))
    assert hurried.q90_at - hurried.now < 0.6 * (leisurely.q90_at - leisurely.now)
