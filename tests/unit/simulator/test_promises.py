"""Forecasts against what came of them: late is late, however long the simulation, and width is told."""

from __future__ import annotations

from array import array

import pytest

from domain.batches import QoS
from domain.units import BatchId, Instant
from simulator.promises import coverage_fraction, promise_ratio
from simulator.recording import Followed

END = Instant(1000.0)


def a_batch(promised_at: float | None, *ends: float, jobs: int = 2) -> Followed:
    promised = None if promised_at is None else Instant(promised_at)
    return Followed(
        BatchId(1), "b", QoS.AFAP, "ada", Instant(0.0), jobs, ended_at=array("d", ends), promised_at=promised
    )


@pytest.mark.parametrize(
    ("batches", "fraction"),
    [
        ([a_batch(400.0, 100.0, 400.0)], 1.0),
        ([a_batch(399.0, 100.0, 400.0)], 0.0),
        ([a_batch(400.0, 100.0, 300.0), a_batch(999.0, 100.0)], 0.5),  # it is not over, and should be
        ([a_batch(400.0, 100.0, 300.0), a_batch(1000.0, 100.0)], 1.0),  # it may yet be in time
        ([a_batch(400.0, 100.0, 300.0), a_batch(None, 100.0)], 1.0),  # nothing was promised
        ([a_batch(2000.0, 100.0)], None),
        ([], None),
    ],
)
def test_batches_are_late_by_what_was_promised_at_half(batches: list[Followed], fraction: float | None) -> None:
    assert coverage_fraction(batches, END) == fraction


def test_promises_are_measured_from_half_of_the_jobs_on_in_batches_that_are_over() -> None:
    three_times, half = a_batch(400.0, 200.0, 100.0), a_batch(150.0, 100.0, 200.0)

    assert promise_ratio([three_times]) == 3.0
    assert promise_ratio([three_times, half, a_batch(900.0, 100.0), a_batch(None, 1.0, 2.0)]) == 1.75


def test_without_a_second_half_there_is_nothing_to_measure() -> None:
    assert promise_ratio([a_batch(400.0, 100.0, jobs=1), a_batch(400.0, 100.0, 100.0)]) is None
