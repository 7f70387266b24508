"""Missing successes of open jobs, and the instances expected to deliver them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from batch_estimator.chain import RetryRules
from batch_estimator.outstanding import Outstanding, failing, open_slots
from batch_estimator.snapshot import InstanceStanding
from tests.unit.batch_estimator.snapshots import Sent, a_snapshot

UNSENT, RUNNING, SUCCESS = InstanceStanding.UNSENT, InstanceStanding.IN_PROGRESS, InstanceStanding.SUCCESS
ERROR, TIMED_OUT = InstanceStanding.ERROR, InstanceStanding.TIMED_OUT


def test_a_job_with_its_quorum_lacks_nothing() -> None:
    open_ = open_slots(a_snapshot([Sent(0, SUCCESS, 1), Sent(0, RUNNING, 2)]))

    assert open_.jobs == 0
    assert len(open_.in_progress) == 0


def test_a_job_lacks_its_quorum_less_its_successes() -> None:
    open_ = open_slots(a_snapshot([Sent(0, SUCCESS, 1), Sent(0, RUNNING, 2), Sent(0, UNSENT)], quorum=3))

    assert len(open_.in_progress) == 1
    assert open_.first_unsent == 1
    assert open_.jobs_with_success == 1


def test_each_job_lacks_what_it_needs_itself() -> None:
    """A trusted host's single result is enough; an untrusted one's must be confirmed, although the quorum is 1."""
    snapshot = a_snapshot([Sent(0, RUNNING, 1), Sent(1, SUCCESS, 2), Sent(1, UNSENT, created_h=1.0)])
    jobs = replace(snapshot.jobs, is_open=np.array([True, True]), needed=np.array([1, 2]))

    open_ = open_slots(replace(snapshot, jobs=jobs))

    assert (len(open_.in_progress), open_.first_unsent, open_.retries_unsent) == (1, 0, 1)
    assert open_.jobs_with_success == 1


def test_an_instance_more_than_needed_helps() -> None:
    open_ = open_slots(a_snapshot([Sent(0, RUNNING, 1, sent_h=30.0), Sent(0, RUNNING, 2, sent_h=3.0)]))

    assert open_.in_progress.tolist() == [0]
    assert open_.helper.tolist() == [1]


def test_a_timed_out_instance_may_still_help_its_retry() -> None:
    retried = [Sent(0, TIMED_OUT, 1, sent_h=170.0), Sent(0, RUNNING, 2, sent_h=1.0, created_h=2.0)]

    open_ = open_slots(a_snapshot(retried))

    assert open_.in_progress.tolist() == [1]
    assert open_.helper.tolist() == [0]


@pytest.mark.parametrize("hosts", [(1, 2), (2, 1)])
def test_helper_choice_is_independent_of_row_order(hosts: tuple[int, int]) -> None:
    snapshot = a_snapshot([*(Sent(0, TIMED_OUT, host, sent_h=170.0) for host in hosts), Sent(0, UNSENT, created_h=1.0)])

    [helper] = open_slots(snapshot).retry_helper.tolist()

    assert hosts[helper] == 2


def test_a_retry_to_be_sent_is_no_first_instance() -> None:
    open_ = open_slots(a_snapshot([Sent(0, ERROR, 1), Sent(0, UNSENT, created_h=1.0), Sent(1, UNSENT)]))

    assert (open_.retries_unsent, open_.first_unsent) == (1, 1)
    assert open_.retry_helper.tolist() == [-1]


def test_failure_is_likelier_the_longer_an_instance_takes() -> None:
    """After exp(mu), half of the 95 % that return still run: 0.05 / 0.525 are lost. A timeout two sd later cuts off
    0.0322 / 0.5 of the others, one in the past all of them.
    """
    ages = np.exp([0.0, 8.0, 8.0, 8.0])
    left = np.array([1e9, 1e9, np.exp(10.0) - np.exp(8.0), -1.0])
    same = np.ones(4)
    out = Outstanding(ages, left, 8.0 * same, same, 0.05 * same, 0.0 * same)

    chances = failing(out, RetryRules(86400.0, 600.0, 0.0, 600.0))

    lost = 0.05 / 0.525
    assert chances == pytest.approx([0.05, lost, 1.0 - (1.0 - lost) * (1.0 - 0.0322 / 0.5), 1.0], abs=1e-3)


def test_an_instance_that_has_yet_to_be_made_counts_as_unsent() -> None:
    open_ = open_slots(a_snapshot([Sent(0, ERROR, 1), Sent(1, UNSENT)], quorum=2))

    assert open_.retries_unsent == 2
    assert open_.first_unsent == 2
