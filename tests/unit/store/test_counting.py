"""Tests the counters of a batch: the change per step, and that the changes add up to the rows."""

from __future__ import annotations

import doctest
from dataclasses import replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

import store.counting
from domain.batches import BatchCounts
from domain.jobs import InstanceState, JobState
from domain.units import Instant
from store.counting import Counted, added, change_counts, job_counts
from tests.recount import instance_counts

S = InstanceState
MADE, UNSENT = None, S.UNSENT
DUE_AT = Instant(100.0)
SENT = Counted(S.IN_PROGRESS, Instant(1.0), DUE_AT)
INSTANTS = st.none() | st.floats(0.0, 200.0).map(Instant)
COUNTED = st.builds(Counted, st.sampled_from(S), INSTANTS, INSTANTS, INSTANTS)


def back(state: InstanceState, reported_at: float) -> Counted:
    return replace(SENT, state=state, reported_at=Instant(reported_at))


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(store.counting).failed == 0


def test_making_an_instance_counts_it_as_unsent() -> None:
    assert change_counts(MADE, Counted(UNSENT)) == BatchCounts(unsent=1)


def test_sending_an_instance_counts_it_as_sent_and_in_progress() -> None:
    assert change_counts(Counted(UNSENT), SENT) == BatchCounts(unsent=-1, in_progress=1, sent=1)


def test_cancelling_an_unsent_instance_is_no_retry() -> None:
    assert change_counts(Counted(UNSENT), Counted(S.CANCELLED)) == BatchCounts(unsent=-1)


def test_a_report_after_the_due_date_misses_the_deadline() -> None:
    change = change_counts(SENT, back(S.REPORTED, 100.5))

    assert change == BatchCounts(in_progress=-1, reported=1, deadlines_missed=1)


def test_late_result_removes_retry_but_not_missed_deadline() -> None:
    change = change_counts(replace(SENT, state=S.TIMED_OUT), back(S.REPORTED, 200.0))

    assert change == BatchCounts(retries=-1, reported=1)


def test_a_success_after_a_reported_abort_is_not_reported_twice() -> None:
    assert change_counts(back(S.ABORTED, 50.0), back(S.REPORTED, 60.0)) == BatchCounts(retries=-1)


def test_a_success_after_a_detach_is_reported_and_may_be_late() -> None:
    change = change_counts(replace(SENT, state=S.ABORTED), back(S.REPORTED, 160.0))

    assert change == BatchCounts(retries=-1, reported=1, deadlines_missed=1)


@given(st.lists(COUNTED, min_size=1, max_size=8))
def test_the_steps_of_an_instance_add_up_to_what_its_row_says(rows: list[Counted]) -> None:
    total = BatchCounts()
    for before, after in pairwise([MADE, *rows]):
        assert after is not None
        total = added(total, change_counts(before, after))

    assert total == instance_counts(rows[-1])


def test_a_job_that_fails_is_counted() -> None:
    assert job_counts(JobState.OPEN, JobState.FAILED) == BatchCounts(jobs_failed=1)
    assert job_counts(JobState.OPEN, JobState.CANCELLED) == BatchCounts()
