"""The counters of a batch: what each step adds, and that steps add up to what the rows say."""

from __future__ import annotations

import doctest
from itertools import pairwise

import pytest

import store.counting
from domain.batches import BatchCounts
from domain.jobs import InstanceState, JobState
from domain.units import Instant
from store.counting import added, instance_counts, job_counts, step_counts

MADE, UNSENT, RUNNING = None, InstanceState.UNSENT, InstanceState.IN_PROGRESS
DUE_AT = Instant(100.0)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(store.counting).failed == 0


def test_making_an_instance_counts_it_as_unsent() -> None:
    assert step_counts(MADE, UNSENT) == BatchCounts(unsent=1)


def test_cancelling_an_unsent_instance_is_no_retry() -> None:
    assert step_counts(UNSENT, InstanceState.CANCELLED) == BatchCounts(unsent=-1)


def test_a_report_after_the_due_date_misses_the_deadline() -> None:
    change = step_counts(RUNNING, InstanceState.REPORTED, due_at=DUE_AT, reported_at=Instant(100.5))

    assert change == BatchCounts(in_progress=-1, reported=1, deadlines_missed=1)


def test_a_late_result_takes_the_retry_back_but_not_the_missed_deadline() -> None:
    change = step_counts(InstanceState.TIMED_OUT, InstanceState.REPORTED, due_at=DUE_AT, reported_at=Instant(200.0))

    assert change == BatchCounts(retries=-1, reported=1)


def test_a_success_after_a_reported_abort_is_not_reported_twice() -> None:
    change = step_counts(
        InstanceState.ABORTED,
        InstanceState.REPORTED,
        due_at=DUE_AT,
        reported_before_at=Instant(50.0),
        reported_at=Instant(60.0),
    )

    assert change == BatchCounts(retries=-1)


def test_a_success_after_a_detach_is_reported_and_may_be_late() -> None:
    change = step_counts(InstanceState.ABORTED, InstanceState.REPORTED, due_at=DUE_AT, reported_at=Instant(160.0))

    assert change == BatchCounts(retries=-1, reported=1, deadlines_missed=1)


def test_a_job_that_fails_is_counted() -> None:
    assert job_counts(JobState.OPEN, JobState.FAILED) == BatchCounts(jobs_failed=1)
    assert job_counts(JobState.OPEN, JobState.CANCELLED) == BatchCounts()


@pytest.mark.parametrize("reported_at", [Instant(90.0), Instant(110.0)], ids=["in time", "late"])
@pytest.mark.parametrize(
    "path",
    [
        (MADE, UNSENT),
        (MADE, UNSENT, InstanceState.CANCELLED),
        (MADE, UNSENT, RUNNING),
        (MADE, UNSENT, RUNNING, InstanceState.TIMED_OUT),
        (MADE, UNSENT, RUNNING, InstanceState.ABORTED),
        (MADE, UNSENT, RUNNING, InstanceState.REPORTED, InstanceState.VALID),
        (MADE, UNSENT, RUNNING, InstanceState.REPORTED, InstanceState.INCONCLUSIVE, InstanceState.INVALID),
        (MADE, UNSENT, RUNNING, InstanceState.FAILED),
        (MADE, UNSENT, RUNNING, InstanceState.TOO_LATE),
    ],
    ids=lambda path: str(path[-1]),
)
def test_the_steps_of_an_instance_add_up_to_what_its_row_says(
    path: tuple[InstanceState | None, ...], reported_at: Instant
) -> None:
    total = BatchCounts()
    ends = (InstanceState.REPORTED, InstanceState.FAILED, InstanceState.TOO_LATE)
    reported_before_at = None
    for before, after in pairwise(path):
        assert after is not None
        back_at = reported_at if before is RUNNING and after in ends else None
        change = step_counts(before, after, due_at=DUE_AT, reported_before_at=reported_before_at, reported_at=back_at)
        total = added(total, change)
        reported_before_at = back_at or reported_before_at

    state = path[-1]
    assert state is not None
    assert total == instance_counts(
        state,
        sent_at=Instant(1.0) if RUNNING in path else None,
        due_at=DUE_AT if RUNNING in path else None,
        reported_at=reported_at if any(step in path for step in ends) else None,
    )
