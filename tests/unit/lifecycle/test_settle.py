"""Settling a job, one situation at a time."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from domain.credit import credit_of
from domain.dispatch import InstanceStep
from domain.errors import InvalidInputError
from domain.jobs import InstanceState, JobState
from domain.settlement import JobFacts, JobSettlement
from domain.units import InstanceId, JobId
from lifecycle.settle import UNREADABLE, copies_for, give_up, needs_comparison, settle
from tests.builders import NOW, a_job_class, instance_facts, job_facts
from tests.facts import missing, states

S = InstanceState


def a_job(
    *states: InstanceState, quorum: int = 1, max_errors: int = 3, max_instances: int = 10, **changes: Any
) -> JobFacts:
    """A job whose instances 1, 2, 3, ... are in `states`."""
    job_class = a_job_class(quorum=quorum, max_errors=max_errors, max_instances=max_instances)
    return job_facts(*(instance_facts(n, state) for n, state in enumerate(states, 1)), job_class=job_class, **changes)


def settled(job: JobFacts, *, max_lost: int = 20, **groups: int) -> JobSettlement:
    """Settle with groups given as i1=0, i2=1, ..."""
    return settle(job, {InstanceId(int(name[1:])): group for name, group in groups.items()}, now=NOW, max_lost=max_lost)


def changes(settlement: JobSettlement) -> tuple[tuple[int, InstanceState], ...]:
    return tuple((step.instance_id, step.to_state) for step in settlement.steps)


# ------------------------------------------------------------------ comparing


def test_nothing_is_compared_below_the_quorum() -> None:
    assert needs_comparison(a_job(S.REPORTED, S.IN_PROGRESS, quorum=2)) == ()


def test_all_usable_results_are_compared_once_there_are_enough() -> None:
    job = a_job(S.INCONCLUSIVE, S.FAILED, S.REPORTED, S.IN_PROGRESS, quorum=2)
    assert needs_comparison(job) == (1, 3)


def test_a_late_result_is_compared_with_the_canonical_one() -> None:
    job = a_job(S.INVALID, S.VALID, S.REPORTED, state=JobState.VALID, canonical_instance_id=InstanceId(2))
    assert needs_comparison(job) == (2, 3)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_ended_job_without_result_compares_nothing(state: JobState) -> None:
    assert needs_comparison(a_job(S.REPORTED, S.REPORTED, state=state)) == ()


def test_nothing_is_compared_when_a_valid_job_has_no_new_result() -> None:
    job = a_job(S.VALID, S.IN_PROGRESS, state=JobState.VALID, canonical_instance_id=InstanceId(1))
    assert needs_comparison(job) == ()


def test_groups_of_other_instances_are_refused() -> None:
    with states(InvalidInputError, "groups:", "for each of [1]", "got {}"):
        settled(a_job(S.REPORTED))


@pytest.mark.parametrize("state", [S.FAILED, S.TIMED_OUT])
def test_instances_before_a_retry_count_towards_no_limit(state: InstanceState) -> None:
    job = a_job(state, state, max_errors=2, max_instances=2)
    assert settled(job, max_lost=2).state is JobState.FAILED
    again = settled(replace(job, retried_after=InstanceId(2)), max_lost=2)
    assert (again.state, again.new_instances, again.retries) == (JobState.OPEN, 1, 2)


# ------------------------------------------------------------------ a quorum


def test_a_single_result_makes_a_job_of_quorum_one_valid() -> None:
    assert settled(a_job(S.REPORTED), i1=0) == JobSettlement(
        JobId(1),
        1,
        JobState.VALID,
        NOW,
        canonical_instance_id=InstanceId(1),
        steps=(InstanceStep(InstanceId(1), S.REPORTED, S.VALID, credit=credit_of(a_job_class().fpops_est_flop)),),
    )


def test_quorum_validates_rejects_and_cancels() -> None:
    job = a_job(S.INCONCLUSIVE, S.INCONCLUSIVE, S.REPORTED, S.UNSENT, S.IN_PROGRESS, quorum=2)
    settlement = settled(job, i1=0, i2=1, i3=1)
    assert settlement.state is JobState.VALID
    assert settlement.canonical_instance_id == 2
    assert changes(settlement) == ((1, S.INVALID), (2, S.VALID), (3, S.VALID), (4, S.CANCELLED))
    assert settlement.new_instances == 0
    assert settlement.retries == 1  # the rejected one
    credit = credit_of(job.job_class.fpops_est_flop)
    assert [step.credit for step in settlement.steps] == [None, credit, credit, None]


def test_of_two_groups_that_reach_the_quorum_the_larger_wins() -> None:
    job = a_job(*[S.REPORTED] * 5, quorum=2)
    assert settled(job, i1=0, i2=0, i3=1, i4=1, i5=1).canonical_instance_id == 3


def test_smallest_instance_decides_between_equal_groups() -> None:
    job = a_job(*[S.REPORTED] * 4, quorum=2)
    assert settled(job, i1=7, i2=3, i3=3, i4=7).canonical_instance_id == 1


def test_a_quorum_wins_over_errors() -> None:
    job = a_job(S.FAILED, S.FAILED, S.REPORTED, max_errors=2)
    assert settled(job, i3=0).state is JobState.VALID


def test_copies_raise_what_must_agree() -> None:
    waiting = settled(a_job(S.REPORTED, copies=2))
    assert (waiting.state, waiting.new_instances, waiting.hasten) == (JobState.OPEN, 1, True)
    assert settled(a_job(S.REPORTED, S.REPORTED, copies=2), i1=0, i2=0).state is JobState.VALID


def test_copies_never_ask_for_more_than_max_instances() -> None:
    job = a_job(S.REPORTED, copies=5, max_instances=1)
    assert settled(job, i1=0).state is JobState.VALID


# ------------------------------------------------------------------ no quorum yet


def test_a_new_job_gets_its_quorum_of_instances() -> None:
    settlement = settled(a_job(quorum=3))
    assert (settlement.new_instances, settlement.retries, settlement.hasten) == (3, 0, False)


def test_disagreement_is_undecided_and_asks_for_one_more() -> None:
    settlement = settled(a_job(S.REPORTED, S.REPORTED, quorum=2), i1=0, i2=1)
    assert settlement.state is JobState.OPEN
    assert changes(settlement) == ((1, S.INCONCLUSIVE), (2, S.INCONCLUSIVE))
    assert (settlement.new_instances, settlement.retries, settlement.hasten) == (1, 0, True)


def test_disagreement_creates_what_the_largest_group_lacks() -> None:
    job = a_job(*[S.REPORTED] * 3, quorum=3)
    assert settled(job, i1=0, i2=1, i3=1).new_instances == 1
    assert settled(job, i1=0, i2=1, i3=2).new_instances == 2


def test_an_outstanding_sibling_counts_towards_the_quorum() -> None:
    settlement = settled(a_job(S.REPORTED, S.REPORTED, S.IN_PROGRESS, quorum=2), i1=0, i2=1)
    assert settlement.new_instances == 0


def test_an_undecided_pair_asks_again_when_its_third_fails() -> None:
    job = a_job(S.INCONCLUSIVE, S.INCONCLUSIVE, S.TIMED_OUT, quorum=2)
    settlement = settled(job, i1=0, i2=1)
    assert changes(settlement) == ()
    assert (settlement.new_instances, settlement.retries) == (1, 1)


def test_an_unreadable_result_is_rejected_and_replaced() -> None:
    settlement = settled(a_job(S.REPORTED), i1=UNREADABLE)
    assert changes(settlement) == ((1, S.INVALID),)
    assert (settlement.state, settlement.new_instances, settlement.retries) == (JobState.OPEN, 1, 1)


def test_readable_result_waits_when_the_other_is_unreadable() -> None:
    settlement = settled(a_job(S.REPORTED, S.REPORTED, quorum=2), i1=UNREADABLE, i2=0)
    assert changes(settlement) == ((1, S.INVALID),)
    assert settlement.new_instances == 1


@pytest.mark.parametrize("lost", [S.FAILED, S.TIMED_OUT, S.ABORTED])
def test_a_lost_instance_is_replaced_by_a_retry(lost: InstanceState) -> None:
    settlement = settled(a_job(lost))
    assert (settlement.new_instances, settlement.retries, settlement.hasten) == (1, 1, False)


def test_an_unsent_replacement_is_not_made_twice() -> None:
    settlement = settled(a_job(S.TIMED_OUT, S.UNSENT))
    assert (settlement.new_instances, changes(settlement)) == (0, ())


def test_copy_is_a_retry_once_what_it_was_to_help_has_ended() -> None:
    assert settled(a_job(S.FAILED, S.UNSENT, tail_copies=1)).copies_needed
    assert settled(a_job(S.FAILED, S.IN_PROGRESS, S.UNSENT, quorum=2, tail_copies=1)).copies_needed
    assert not settled(a_job(S.FAILED, S.IN_PROGRESS, S.UNSENT, tail_copies=1)).copies_needed
    assert not settled(a_job(S.FAILED, S.UNSENT)).copies_needed


def test_a_late_result_takes_back_the_unsent_retry() -> None:
    job = a_job(S.REPORTED, S.IN_PROGRESS, S.UNSENT, quorum=2)  # 1 timed out, 3 replaced it
    settlement = settled(job)
    assert changes(settlement) == ((3, S.CANCELLED),)
    assert settlement.new_instances == 0
    assert not settlement.hasten


def test_of_surplus_unsent_instances_the_newest_are_cancelled() -> None:
    job = a_job(S.REPORTED, S.UNSENT, S.UNSENT, S.UNSENT, quorum=2)
    settlement = settled(job)
    assert changes(settlement) == ((3, S.CANCELLED), (4, S.CANCELLED))
    assert settlement.hasten


# ------------------------------------------------------------------ giving up


def test_too_many_errors_end_the_job_with_a_sentence() -> None:
    job = a_job(S.FAILED, S.INVALID, S.FAILED, S.UNSENT, S.REPORTED, S.IN_PROGRESS, quorum=2)
    settlement = settled(job)
    assert settlement.state is JobState.FAILED
    assert not missing(settlement.failure, "too many errors: 3", "(1 invalid, 2 failed)", "limit 3")
    assert changes(settlement) == ((4, S.CANCELLED), (5, S.TOO_LATE))
    assert settlement.new_instances == 0


@pytest.mark.parametrize("lost", [S.ABORTED, S.TIMED_OUT])
def test_lost_instances_count_to_neither_limit_of_a_job(lost: InstanceState) -> None:
    settlement = settled(a_job(*[lost] * 5, max_errors=1, max_instances=2))
    assert (settlement.state, settlement.new_instances, settlement.retries) == (JobState.OPEN, 1, 5)


def test_too_many_lost_instances_end_the_job() -> None:
    lost = [S.ABORTED] * 2 + [S.TIMED_OUT] * 3
    assert settled(a_job(*lost), max_lost=6).new_instances == 1
    settlement = settled(a_job(*lost), max_lost=5)
    assert settlement.state is JobState.FAILED
    assert not missing(settlement.failure, "lost: 5", "(3 timed out, 2 aborted)", "limit 5")


def test_a_job_waits_for_what_is_out_however_many_were_lost() -> None:
    assert settled(a_job(*[S.TIMED_OUT] * 9, S.IN_PROGRESS), max_lost=5).state is JobState.OPEN


def test_an_unreadable_result_counts_as_an_error_at_once() -> None:
    settlement = settled(a_job(S.INVALID, S.REPORTED, max_errors=2), i2=UNREADABLE)
    assert settlement.state is JobState.FAILED
    assert not missing(settlement.failure, "too many errors: 2", "(2 invalid)", "limit 2")
    assert changes(settlement) == ((2, S.INVALID),)


def test_a_job_out_of_instances_fails_with_a_sentence() -> None:
    settlement = settled(a_job(*[S.FAILED] * 3, max_instances=3, max_errors=9))
    assert settlement.state is JobState.FAILED
    facts = ("no instances left:", "1 results must agree", "0 usable", "0 outstanding", "limit 3 instances")
    assert not missing(settlement.failure, *facts)


def test_disagreement_without_instances_left_is_too_late() -> None:
    settlement = settled(a_job(S.INCONCLUSIVE, S.REPORTED, quorum=2, max_instances=2), i1=0, i2=1)
    assert settlement.state is JobState.FAILED
    assert changes(settlement) == ((1, S.TOO_LATE), (2, S.TOO_LATE))


def test_cancelled_instances_do_not_use_up_max_instances() -> None:
    settlement = settled(a_job(S.CANCELLED, S.CANCELLED, S.FAILED, max_instances=2))
    assert (settlement.state, settlement.new_instances, settlement.retries) == (JobState.OPEN, 1, 1)


def test_the_job_of_an_aborted_batch_is_cancelled() -> None:
    job = a_job(S.UNSENT, S.IN_PROGRESS, S.REPORTED, batch_aborted=True)
    settlement = settled(job)
    assert settlement.state is JobState.CANCELLED
    assert changes(settlement) == ((1, S.CANCELLED), (3, S.TOO_LATE))


# ------------------------------------------------------------------ after the end


def test_a_latecomer_is_judged_by_the_canonical_result() -> None:
    job = a_job(S.VALID, S.REPORTED, S.REPORTED, state=JobState.VALID, canonical_instance_id=InstanceId(1))
    settlement = settled(job, i1=0, i2=0, i3=1)
    assert changes(settlement) == ((2, S.VALID), (3, S.INVALID))
    assert (settlement.state, settlement.canonical_instance_id) == (JobState.VALID, 1)


def test_late_result_is_too_late_without_canonical_files() -> None:
    job = a_job(S.VALID, S.REPORTED, S.REPORTED, state=JobState.VALID, canonical_instance_id=InstanceId(1))
    settlement = settled(job, i1=UNREADABLE, i2=0, i3=UNREADABLE)
    assert changes(settlement) == ((2, S.TOO_LATE), (3, S.INVALID))


def test_uncomparable_late_results_keep_the_canonical_one() -> None:
    job = a_job(S.VALID, S.REPORTED, S.UNSENT, state=JobState.VALID, canonical_instance_id=InstanceId(1))
    settlement = give_up(job, "too slow", now=NOW)
    assert changes(settlement) == ((2, S.TOO_LATE), (3, S.CANCELLED))
    assert (settlement.state, settlement.canonical_instance_id, settlement.failure) == (JobState.VALID, 1, "")


def test_a_valid_job_replaces_nothing() -> None:
    job = a_job(S.VALID, S.TIMED_OUT, S.UNSENT, state=JobState.VALID, canonical_instance_id=InstanceId(1))
    settlement = settled(job)
    assert (settlement.new_instances, changes(settlement)) == (0, ((3, S.CANCELLED),))


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
def test_a_result_after_the_end_is_too_late(state: JobState) -> None:
    settlement = settled(a_job(S.FAILED, S.REPORTED, state=state))
    assert changes(settlement) == ((2, S.TOO_LATE),)
    assert (settlement.state, settlement.failure) == (state, "")


def test_a_valid_job_without_a_canonical_instance_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="canonical_instance_id: expected an instance id"):
        needs_comparison(a_job(S.REPORTED, state=JobState.VALID))


@pytest.mark.parametrize("adaptive_copies", [0, 1])
def test_app_without_adaptive_replication_checks_no_host(adaptive_copies: int) -> None:
    assert copies_for(0, adaptive_copies, rng=random.Random(1)) == 0


@pytest.mark.parametrize("consecutive_valid", [0, 1, 10])
def test_a_host_without_a_record_is_always_checked(consecutive_valid: int) -> None:
    rng = random.Random(1)
    assert {copies_for(consecutive_valid, 3, rng=rng) for _ in range(200)} == {3}


@pytest.mark.parametrize("consecutive_valid", [11, 40])
def test_trusted_host_is_checked_once_per_consecutive_valid(consecutive_valid: int) -> None:
    rng = random.Random(1)
    checked = sum(copies_for(consecutive_valid, 2, rng=rng) > 0 for _ in range(20_000))
    assert checked / 20_000 == pytest.approx(1 / consecutive_valid, rel=0.15)


def test_trust_threshold_is_configurable() -> None:
    rng = random.Random(1)
    drawn = {copies_for(5, 2, rng=rng, consecutive_valid_infinite=4) for _ in range(200)}
    assert drawn == {0, 2}


def test_the_same_seed_draws_the_same_copies() -> None:
    one, other = random.Random(9), random.Random(9)
    assert [copies_for(11, 2, rng=one) for _ in range(50)] == [copies_for(11, 2, rng=other) for _ in range(50)]
