"""Snapshots reject inconsistent columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batch_estimator.snapshot import InstanceStanding, JobRows
from domain.errors import InvalidInputError
from domain.units import Seconds
from tests.facts import states
from tests.unit.batch_estimator.snapshots import Sent, a_snapshot

SENT = [Sent(0, InstanceStanding.IN_PROGRESS, 1), Sent(1, InstanceStanding.UNSENT)]


def test_columns_of_different_lengths_are_named() -> None:
    snapshot = a_snapshot(SENT)

    with states(InvalidInputError, "instances:", "equal length", "'job': 1"):
        replace(snapshot, instances=replace(snapshot.instances, job=np.zeros(1, dtype=np.int64)))


def test_an_instance_of_a_job_that_is_not_there_is_refused() -> None:
    snapshot = a_snapshot(SENT)

    with pytest.raises(InvalidInputError, match=r"instances\.job: expected less than 1"):
        replace(snapshot, jobs=JobRows(np.ones(1), np.ones(1, dtype=bool), *np.ones((2, 1), dtype=np.int64)))


@pytest.mark.parametrize("bound_s", [0.0, float("nan"), float("inf")])
def test_a_delay_bound_is_a_length_of_time(bound_s: float) -> None:
    with pytest.raises(InvalidInputError, match="delay_bound_s: expected more than 0"):
        a_snapshot(SENT, delay_bound_s=Seconds(bound_s))


def test_a_quorum_is_at_least_one() -> None:
    with states(InvalidInputError, "jobs.needed:", "at least 1", "got 0"):
        a_snapshot(SENT, quorum=0)


def test_an_instant_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="now, submitted_at"):
        a_snapshot(SENT, now=float("nan"))
