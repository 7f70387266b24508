"""When a last job of a batch gets an extra copy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.batches import BatchCounts, QoS
from domain.jobs import InstanceState
from domain.settings import FeederSettings, LifecycleSettings
from domain.settlement import CopyUse, ExtraCopy, TailInstance, TailJob
from domain.units import DAY_S, HOUR_S, HostId, InstanceId, Instant, JobId, Seconds
from lifecycle.settle import settle
from lifecycle.tail import LATE as LATE_REASON
from lifecycle.tail import LOST, SOONER, LateCopy, accelerated_copy, copies_left, is_last, is_tail, tail_copy
from tests.builders import NOW, a_batch, a_job_class, instance_facts, job_facts

S = InstanceState


def an_instance(state: InstanceState = S.IN_PROGRESS, *, sent_s: float = HOUR_S, **changes: Any) -> TailInstance:
    """An instance on a host that needs the estimated time: an hour."""
    sent = TailInstance(
        InstanceId(1),
        state,
        host_id=HostId(7),
        sent_at=Instant(NOW - sent_s),
        est_runtime_s=Seconds(HOUR_S),
    )
    return replace(sent, **changes)


def a_job(
    *instances: TailInstance, tail_copies: int = 0, copies: int = 0, median_s: float | None = None, **limits: Any
) -> TailJob:
    median = None if median_s is None else Seconds(median_s)
    return TailJob(JobId(5), a_job_class(**limits), copies, tail_copies, instances, median)


def late_copy(job: TailJob, *, is_last: bool = True, factor: float = 1.0) -> LateCopy | None:
    return tail_copy(job, is_last=is_last, now=NOW, settings=LifecycleSettings(tail_late_factor=factor))


def out_for(*hours: float, **of_job: Any) -> TailJob:
    """A job with instances of these ages, all but one of them copies, on hosts that usually take an hour."""
    return a_job(
        *(an_instance(sent_s=h * HOUR_S) for h in hours),
        tail_copies=len(hours) - 1,
        **{"median_s": HOUR_S, **of_job},
    )


LATE = an_instance(sent_s=9 * HOUR_S)


@pytest.mark.parametrize("is_last", [True, False])
def test_a_short_job_is_copied_after_minutes_at_the_earliest(is_last: bool) -> None:
    """A host reports it only with its next request, however short it is."""
    young, old = (a_job(an_instance(sent_s=at_s), median_s=3.0) for at_s in (500.0, 2000.0))

    assert late_copy(young, is_last=is_last) is None
    assert late_copy(old, is_last=is_last) is not None


def copied(job: TailJob) -> bool:
    return late_copy(replace(job, median_turnaround_s=Seconds(HOUR_S))) is not None


def test_a_last_job_is_copied_once_all_that_is_under_way_is_late() -> None:
    assert late_copy(out_for(0.9)) is None
    found = late_copy(out_for(1.2))
    assert found is not None
    copy = found.copy
    assert (copy.job_id, copy.instances, copy.tail_copies, copy.retries, copy.more_instances) == (5, 1, 0, 1, 0)
    assert copy.because == LATE_REASON and found.lateness == pytest.approx(1.2)
    assert late_copy(out_for(9.0, 0.9)) is None
    again = late_copy(out_for(9.0, 1.2))
    assert again is not None
    assert (again.copy.instances, again.copy.tail_copies) == (2, 1)


def test_what_is_as_good_as_lost_is_replaced_beyond_the_cap() -> None:
    found = [late_copy(out_for(hours)) for hours in (1.4, 1.5)]
    assert [one and one.is_capped for one in found] == [True, False]


def test_before_the_tail_only_lost_instances_are_copied() -> None:
    found = [late_copy(out_for(hours), is_last=False) for hours in (2.9, 3.0)]
    assert [one and one.is_capped for one in found] == [None, False]


def test_without_medians_only_last_jobs_get_capped_copies() -> None:
    found = [late_copy(out_for(hours, median_s=None)) for hours in (2.9, 3.0, 99.0)]
    assert [one and one.is_capped for one in found] == [None, True, True]
    assert late_copy(out_for(99.0, median_s=None), is_last=False) is None


def test_a_host_known_to_be_slower_has_longer() -> None:
    slow = an_instance(sent_s=2 * HOUR_S, ln_ratio=1.0)
    assert late_copy(a_job(slow, median_s=HOUR_S)) is None
    assert late_copy(a_job(replace(slow, ln_ratio=0.0), median_s=HOUR_S)) is not None


def test_lateness_reference_is_batch_median_or_runtime() -> None:
    relaxed = an_instance(sent_s=2 * HOUR_S)
    assert late_copy(a_job(relaxed, median_s=DAY_S)) is None
    assert late_copy(a_job(replace(relaxed, tight=True), median_s=DAY_S)) is not None


SLOW = an_instance(sent_s=0.5 * HOUR_S, ln_ratio=math.log(3.0))  # usually takes three hours, other hosts one


def test_last_job_on_slow_host_gets_an_early_capped_copy() -> None:
    found = late_copy(a_job(SLOW, median_s=HOUR_S))
    assert found is not None
    assert found.rest_s == pytest.approx(2.5 * HOUR_S)
    assert (found.is_capped, found.copy.because) == (True, SOONER)
    soon = replace(SLOW, sent_at=Instant(NOW - 2.1 * HOUR_S))
    assert late_copy(a_job(soon, median_s=HOUR_S)) is None
    assert late_copy(a_job(SLOW, median_s=HOUR_S), is_last=False) is None
    assert late_copy(a_job(SLOW)) is None


def test_slow_host_is_no_reason_if_a_faster_one_has_the_job() -> None:
    fast = an_instance(sent_s=0.5 * HOUR_S)
    assert late_copy(a_job(SLOW, fast, tail_copies=1, median_s=HOUR_S)) is None


def test_a_usual_host_is_not_slow_at_the_moment_it_gets_the_job() -> None:
    assert late_copy(out_for(0.0)) is None


@pytest.mark.parametrize(("timed_out", "hours"), [(0, 3.0), (1, 1.5), (2, 1.0), (5, 0.5)])
def test_a_job_that_was_lost_before_counts_as_lost_sooner(timed_out: int, hours: float) -> None:
    over = tuple(an_instance(S.TIMED_OUT, sent_s=99 * HOUR_S) for _ in range(timed_out))

    def a_copy_after(sent_h: float) -> LateCopy | None:
        return late_copy(a_job(*over, an_instance(sent_s=sent_h * HOUR_S), median_s=HOUR_S), is_last=False)

    assert a_copy_after(hours - 0.01) is None
    found = a_copy_after(hours)
    assert found is not None
    assert not found.is_capped and found.copy.because == LOST and found.lateness == pytest.approx(hours)


@given(st.integers(0, 5), st.floats(0.0, 5.0), st.booleans())
def test_a_job_that_was_lost_once_more_waits_no_longer(lost: int, sent_h: float, is_last: bool) -> None:
    def found(times: int) -> LateCopy | None:
        over = (an_instance(S.TIMED_OUT, sent_s=99 * HOUR_S),) * times
        return late_copy(a_job(*over, an_instance(sent_s=sent_h * HOUR_S), median_s=HOUR_S), is_last=is_last)

    before, after = found(lost), found(lost + 1)
    assert before is None or (after is not None and (before.is_capped or not after.is_capped))


def test_at_a_factor_of_zero_nothing_is_copied() -> None:
    assert late_copy(out_for(99.0), factor=0.0) is None


@given(st.floats(0.0, 50.0), st.floats(0.0, 10.0), st.floats(0.01, 5.0), st.booleans())
def test_a_job_that_is_later_is_copied_as_well(hours: float, more: float, factor: float, is_last: bool) -> None:
    sooner, later = (late_copy(out_for(h), is_last=is_last, factor=factor) for h in (hours, hours + more))
    assert sooner is None or later is not None
    assert sooner is None or later is None or not later.is_capped or sooner.is_capped


@given(st.floats(0.0, 50.0), st.floats(0.01, 5.0))
def test_a_last_job_is_copied_whenever_another_one_would_be(hours: float, factor: float) -> None:
    other, last = (late_copy(out_for(hours), is_last=one, factor=factor) for one in (False, True))
    assert other is None or last is not None


def test_a_copy_that_waits_is_enough() -> None:
    assert not copied(a_job(LATE, an_instance(S.UNSENT), tail_copies=1))


def test_job_with_unsent_or_surplus_instances_gets_no_copy() -> None:
    assert not copied(a_job(LATE, an_instance(S.UNSENT)))
    assert not copied(a_job(LATE, LATE))
    assert copied(a_job(LATE, LATE, quorum=2))
    assert copied(a_job(LATE, an_instance(S.REPORTED), quorum=2))
    assert not copied(a_job(an_instance(S.REPORTED)))  # the validator's turn


def test_a_jobs_limit_of_instances_is_never_raised() -> None:
    failed, lost = an_instance(S.FAILED), an_instance(S.TIMED_OUT)
    assert not copied(a_job(failed, LATE, max_instances=2))
    for job in a_job(failed, LATE, max_instances=3), a_job(lost, LATE, max_instances=2):
        found = late_copy(replace(job, median_turnaround_s=Seconds(HOUR_S)))
        assert found is not None
        assert found.copy.retries == 2  # one has ended; this one counts like the next


def is_one(done: int, total: int) -> bool:
    counts = BatchCounts(total, jobs_validated=done, unsent=total - done, sent=done)
    return is_last(a_batch(counts=counts), FeederSettings(tail_jobs=20), LifecycleSettings(tail_fraction=0.05))


def test_the_last_jobs_of_a_batch_are_a_share_or_a_number() -> None:
    assert [is_one(949, 1000), is_one(950, 1000), is_one(1000, 1000)] == [False, True, True]
    assert [is_one(79, 100), is_one(80, 100)] == [False, True]


@pytest.mark.parametrize("qos", sorted(QoS))
def test_jobs_may_be_copied_once_the_batch_is_nearly_sent(qos: QoS) -> None:
    def may_be(unsent: int, validated: int = 0) -> bool:
        batch = a_batch(qos=qos, counts=BatchCounts(1000, unsent=unsent, jobs_validated=validated))
        return is_tail(batch, FeederSettings(), LifecycleSettings(tail_unsent_fraction=0.05))

    assert [may_be(0), may_be(50), may_be(51)] == [True, True, False]
    assert not may_be(0, validated=1000)


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0.0, 2.0))
def test_copies_keep_to_the_cap_regardless_of_replacements(wanted: int, made: int, fraction: float) -> None:
    more = copies_left(CopyUse(wanted, made), LifecycleSettings(tail_overhead_fraction=fraction))
    assert more == 0 or made + more <= fraction * wanted


def test_acceleration_copies_and_raises_the_instance_limit() -> None:
    def copy(*instances: TailInstance, median_s: float = HOUR_S) -> ExtraCopy | None:
        return accelerated_copy(a_job(*instances, tail_copies=3, max_instances=1), median_s=Seconds(median_s), now=NOW)

    assert copy(an_instance(sent_s=3599.0)) is None
    assert copy(an_instance(S.UNSENT)) is None
    made = copy(an_instance(sent_s=3601.0))
    assert made is not None
    assert (made.tail_copies, made.more_instances) == (3, 1)
    assert copy(an_instance(sent_s=0.0), median_s=0.0) is not None  # without a median no instance counts as recent


def test_settling_keeps_an_unsent_copy_until_the_job_ends() -> None:
    def cancelled(extra: int, *states: InstanceState) -> list[int]:
        instances = [instance_facts(n, state) for n, state in enumerate(states, 1)]
        job = job_facts(*instances, job_class=a_job_class(quorum=2), tail_copies=extra)
        steps = settle(job, {}, now=NOW, max_lost=20).steps
        assert all((step.from_state, step.to_state) == (S.UNSENT, S.CANCELLED) for step in steps)
        return [step.instance_id for step in steps]

    assert cancelled(0, S.REPORTED, S.IN_PROGRESS, S.UNSENT) == [3]
    assert cancelled(1, S.REPORTED, S.IN_PROGRESS, S.UNSENT) == []
    assert cancelled(1, S.REPORTED, S.IN_PROGRESS, S.UNSENT, S.UNSENT) == [4]


def test_a_copy_is_the_retry_when_what_it_was_made_for_is_lost() -> None:
    job = job_facts(instance_facts(1, S.TIMED_OUT), instance_facts(2, S.UNSENT), tail_copies=1)
    settled = settle(job, {}, now=NOW, max_lost=20)
    assert (settled.steps, settled.new_instances) == ((), 0)
