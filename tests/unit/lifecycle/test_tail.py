"""When a last job of a batch is worth one more instance, and when it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.batches import BatchCounts, QoS
from domain.jobs import InstanceState, JobState
from domain.settings import FeederSettings, LifecycleSettings
from domain.settlement import ExtraCopy, TailInstance, TailJob, WorkBeside
from domain.units import DAY_S, HOUR_S, HostId, InstanceId, Instant, JobId, Seconds
from lifecycle.settle import InstanceView, JobView, settle
from lifecycle.states import Event
from lifecycle.tail import accelerated_copy, copies_left, is_suspect, is_tail, job_rest_s, rest_s, tail_copy
from tests.builders import NOW, a_batch, a_job_class

S = InstanceState


def an_instance(state: InstanceState = S.IN_PROGRESS, *, sent_s: float = HOUR_S, **changes: Any) -> TailInstance:
    """On a host that called just now and takes what was estimated: an hour."""
    sent = TailInstance(
        InstanceId(1),
        state,
        host_id=HostId(7),
        sent_at=Instant(NOW - sent_s),
        est_runtime_s=Seconds(HOUR_S),
        last_rpc_at=NOW,
    )
    return replace(sent, **changes)


def a_job(
    *instances: TailInstance, tail_copies: int = 0, copies: int = 0, median_s: float | None = None, **limits: Any
) -> TailJob:
    median = None if median_s is None else Seconds(median_s)
    return TailJob(JobId(5), a_job_class(**limits), copies, tail_copies, instances, median)


def copied(job: TailJob, *, good_host_s: float = HOUR_S) -> ExtraCopy | None:
    return tail_copy(
        job,
        qos=QoS.AFAP,
        good_host_s=Seconds(good_host_s),
        now=NOW,
        settings=LifecycleSettings(tail_wait_factor=1.5),
    )


SLOW = an_instance(est_runtime_s=Seconds(DAY_S))


def test_a_job_that_takes_much_longer_than_a_good_host_would_is_copied_with_both_numbers() -> None:
    copy = copied(a_job(SLOW))
    assert copy is not None
    assert (copy.job_id, copy.instances, copy.tail_copies, copy.retries, copy.more_instances) == (5, 1, 0, 1, 0)
    assert copy.because.endswith("more than 1.5 times the 1 h a good host needs")


def test_a_job_that_is_soon_back_is_left_alone() -> None:
    assert copied(a_job(an_instance(sent_s=60.0))) is None


def test_a_host_known_to_be_slower_than_estimated_is_not_believed() -> None:
    assert copied(a_job(an_instance(sent_s=60.0, ln_ratio=1.0))) is not None


def test_relaxed_turnaround_is_measured_by_the_batchs_median() -> None:
    relaxed = an_instance(sent_s=60.0)
    assert copied(a_job(relaxed, median_s=DAY_S)) is not None
    assert copied(a_job(replace(relaxed, tight=True), median_s=DAY_S)) is None


def late(*hours: float, factor: float = 1.5, **of_job: Any) -> ExtraCopy | None:
    """Of a job with a copy, whose hosts usually take an hour and have it since so many."""
    job = a_job(*(an_instance(sent_s=h * HOUR_S) for h in hours), tail_copies=len(hours) - 1, **of_job)
    settings = LifecycleSettings(tail_late_factor=factor)
    return tail_copy(job, qos=QoS.LONG_DEADLINE, good_host_s=Seconds(HOUR_S), now=NOW, settings=settings)


def test_a_copied_job_is_copied_again_when_all_of_it_is_late() -> None:
    assert late(9.0, 1.4) is None
    copy = late(9.0, 1.5)
    assert copy is not None
    assert (copy.instances, copy.tail_copies) == (2, 1)
    assert copy.because == "all 2 are out for 1.5 times what they usually take"
    assert late(9.0, 1.5, 0.1) is None
    assert late(9.0, 3.0, 1.6) is not None


def test_a_copied_job_is_never_copied_again_at_a_factor_of_zero_nor_beyond_its_limit() -> None:
    assert late(9.0, 9.0, factor=0.0) is None
    assert late(9.0, 9.0, max_instances=2) is None


def test_a_throughput_batchs_last_job_is_copied_only_when_it_is_late_by_its_own_factor() -> None:
    def patient(hours: float, median_s: float | None = HOUR_S, **settings: Any) -> ExtraCopy | None:
        job = a_job(an_instance(sent_s=hours * HOUR_S, est_runtime_s=Seconds(60.0)), median_s=median_s)
        lifecycle = LifecycleSettings(tail_late_factor=0.5, **settings)
        return tail_copy(job, qos=QoS.THROUGHPUT, good_host_s=Seconds(HOUR_S), now=NOW, settings=lifecycle)

    assert [patient(hours) is not None for hours in (0.1, 1.9, 2.0)] == [False, False, True]
    assert patient(2.0, throughput_late_factor=3.0) is None
    assert patient(99.0, throughput_late_factor=0.0) is None
    assert patient(99.0, median_s=None) is None  # nobody knows what is usual


def test_a_copy_that_waits_is_enough() -> None:
    waiting = an_instance(S.UNSENT)
    job = a_job(an_instance(sent_s=9 * HOUR_S), waiting, tail_copies=1)
    assert copied(job) is None


def test_a_job_takes_as_long_as_the_soonest_of_as_many_as_it_lacks() -> None:
    def left_s(*instances: TailInstance, quorum: int = 1) -> float:
        return job_rest_s(a_job(*instances, quorum=quorum), now=NOW)

    quick, slow = an_instance(sent_s=0.0), an_instance(sent_s=0.0, est_runtime_s=Seconds(DAY_S))
    assert left_s(slow, quick) == HOUR_S
    assert left_s(slow, quick, quorum=2) == DAY_S
    assert left_s(an_instance(S.REPORTED), slow, quorum=2) == DAY_S
    assert left_s(an_instance(S.UNSENT)) == 0.0


def test_a_job_with_something_unsent_or_more_under_way_than_it_lacks_is_left_alone() -> None:
    assert copied(a_job(SLOW, an_instance(S.UNSENT))) is None
    assert copied(a_job(SLOW, SLOW)) is None
    assert copied(a_job(SLOW, SLOW, quorum=2)) is not None
    assert copied(a_job(SLOW, an_instance(S.REPORTED), quorum=2)) is not None
    assert copied(a_job(an_instance(S.REPORTED))) is None  # the validator's turn


def test_a_jobs_limit_of_instances_is_never_raised() -> None:
    failed, lost = an_instance(S.FAILED), an_instance(S.TIMED_OUT)
    assert copied(a_job(failed, SLOW, max_instances=2)) is None
    for room in copied(a_job(failed, SLOW, max_instances=3)), copied(a_job(lost, SLOW, max_instances=2)):
        assert room is not None
        assert room.retries == 2  # one is over; this one stands like the next


def test_a_silent_host_with_a_tight_due_date_is_suspect_after_a_day_or_three_of_its_intervals() -> None:
    silent = an_instance(tight=True, last_rpc_at=Instant(NOW - 25 * HOUR_S))
    assert is_suspect(silent, NOW)
    assert not is_suspect(replace(silent, tight=False), NOW)
    assert not is_suspect(replace(silent, last_rpc_at=Instant(NOW - 23 * HOUR_S)), NOW)
    assert not is_suspect(replace(silent, rpc_interval_s=Seconds(9 * HOUR_S)), NOW)
    assert is_suspect(replace(silent, rpc_interval_s=Seconds(8 * HOUR_S)), NOW)
    copy = copied(a_job(silent), good_host_s=30 * DAY_S)
    assert copy is not None
    assert copy.because == "host 7 has been silent for 1 d 1 h with a tight due date"


@given(st.floats(0.0, 1e7), st.floats(1.0, 1e7), st.floats(0.0, 1e7))
def test_the_rest_is_never_longer_than_until_the_time_out_or_as_long_as_it_usually_takes(
    elapsed_s: float, median_s: float, timeout_s: float
) -> None:
    rest = rest_s(Seconds(median_s), elapsed_s, timeout_s)
    assert 0.0 <= rest <= max(timeout_s, median_s, elapsed_s) * (1 + 1e-9)


def test_what_is_a_little_late_is_soon_back_and_what_is_very_late_is_missed_until_its_time_out() -> None:
    def rest_h(elapsed_h: float) -> float:
        return rest_s(Seconds(HOUR_S), elapsed_h * HOUR_S, 24 * HOUR_S) / HOUR_S

    assert rest_h(0.0) == pytest.approx(0.95 + 0.05 * 24.0)
    assert rest_h(0.9) < 2.5
    assert rest_h(1.5) > 4.0
    assert rest_h(3.0) > 20.0
    assert rest_h(1000.0) == 24.0


def test_of_two_jobs_the_one_that_is_lost_by_all_signs_keeps_everybody_waiting_longer() -> None:
    overdue = an_instance(sent_s=4 * HOUR_S, timeout_at=Instant(NOW + 10 * HOUR_S))
    slow = an_instance(sent_s=HOUR_S, est_runtime_s=Seconds(6 * HOUR_S), timeout_at=Instant(NOW + 20 * HOUR_S))
    rests = [job_rest_s(a_job(one), now=NOW) for one in (overdue, slow)]
    assert rests[0] > rests[1]


def is_one(done: int, total: int, qos: QoS = QoS.LONG_DEADLINE) -> bool:
    batch = a_batch(qos=qos, counts=BatchCounts(total, jobs_validated=done, unsent=total - done))
    return is_tail(batch, FeederSettings(), LifecycleSettings(afap_tail_fraction=0.3, afap_unsent_fraction=0.05))


def test_the_tail_is_the_last_five_percent_or_twenty_jobs_of_a_batch() -> None:
    assert [is_one(949, 1000), is_one(950, 1000), is_one(1000, 1000)] == [False, True, False]
    assert [is_one(79, 100), is_one(80, 100)] == [False, True]
    assert is_one(950, 1000, QoS.THROUGHPUT)


def test_the_tail_of_a_batch_as_fast_as_possible_begins_earlier() -> None:
    assert [is_one(699, 1000, QoS.AFAP), is_one(700, 1000, QoS.AFAP)] == [False, True]
    assert [is_one(4, 25, QoS.AFAP), is_one(5, 25, QoS.AFAP)] == [False, True]


def test_the_tail_of_a_batch_as_fast_as_possible_has_begun_when_nearly_all_of_it_is_sent() -> None:
    def is_sent_one(unsent: int, qos: QoS = QoS.AFAP) -> bool:
        batch = a_batch(qos=qos, counts=BatchCounts(1000, unsent=unsent))
        return is_tail(batch, FeederSettings(), LifecycleSettings(afap_unsent_fraction=0.05))

    assert [is_sent_one(0), is_sent_one(50), is_sent_one(51)] == [True, True, False]
    assert not is_sent_one(0, QoS.SHORT_DEADLINE)
    over = a_batch(qos=QoS.AFAP, counts=BatchCounts(1000, jobs_validated=990, jobs_failed=10))
    assert not is_tail(over, FeederSettings(), LifecycleSettings())


def test_what_other_batches_of_the_app_saved_pays_for_copies() -> None:
    def left(needed: int, extra: int, *, first: bool = False, sent: int = 104) -> int:
        settings = LifecycleSettings(tail_overhead_fraction=0.1, tail_first_fraction=0.5)
        beside = WorkBeside(needed, extra)
        return copies_left(BatchCounts(100, sent=sent), wanted=100, settings=settings, first=first, beside=beside)

    assert left(900, 50) == 46  # 10 % of 1000, less 4 and 50
    assert left(900, 50, first=True) == 1  # 50, less 54: nothing; of its own 5, less 4
    assert left(900, 0, first=True) == 46
    assert left(900, 150) == left(0, 0) == 6  # what the others used up is not taken from its own
    assert left(900, 50, sent=160) == 0


@given(
    st.integers(0, 500),
    st.integers(0, 500),
    st.integers(0, 5000),
    st.integers(0, 800),
    st.floats(0.0, 2.0),
    st.booleans(),
)
def test_copies_keep_to_the_batchs_cap_or_the_apps(
    wanted: int, own: int, needed: int, extra: int, fraction: float, first: bool
) -> None:
    settings = LifecycleSettings(tail_overhead_fraction=fraction)
    counts = BatchCounts(wanted, sent=wanted + own)
    alone = copies_left(counts, wanted=wanted, settings=settings, first=first)
    copies = copies_left(counts, wanted=wanted, settings=settings, first=first, beside=WorkBeside(needed, extra))
    assert copies >= alone
    assert copies == alone or own + extra + copies <= fraction * (wanted + needed)


def test_retries_use_up_what_copies_may_cost() -> None:
    settings = LifecycleSettings(tail_overhead_fraction=0.1)
    assert copies_left(BatchCounts(100, sent=100), wanted=100, settings=settings) == 10
    assert copies_left(BatchCounts(100, sent=107, unsent=1), wanted=100, settings=settings) == 2
    assert copies_left(BatchCounts(100, sent=150), wanted=100, settings=settings) == 0
    assert copies_left(BatchCounts(100, sent=200), wanted=200, settings=settings) == 20


def test_first_copies_leave_some_for_jobs_that_lose_theirs() -> None:
    settings = LifecycleSettings(tail_overhead_fraction=0.1, tail_first_fraction=0.6)
    counts = BatchCounts(100, sent=104)
    assert copies_left(counts, wanted=100, settings=settings, first=True) == 2
    assert copies_left(counts, wanted=100, settings=settings) == 6
    assert copies_left(BatchCounts(100, sent=109), wanted=100, settings=settings, first=True) == 0
    assert copies_left(BatchCounts(10, sent=10), wanted=10, settings=settings, first=True) == 1  # the only one


def test_acceleration_copies_what_was_not_sent_within_the_median_and_raises_the_limit() -> None:
    def copy(*instances: TailInstance, median_s: float = HOUR_S) -> ExtraCopy | None:
        return accelerated_copy(a_job(*instances, tail_copies=3, max_instances=1), median_s=Seconds(median_s), now=NOW)

    assert copy(an_instance(sent_s=3599.0)) is None
    assert copy(an_instance(S.UNSENT)) is None
    made = copy(an_instance(sent_s=3601.0))
    assert made is not None
    assert (made.tail_copies, made.more_instances) == (3, 1)
    assert copy(an_instance(sent_s=0.0), median_s=0.0) is not None  # without a median nothing counts as lately


def test_settling_a_job_leaves_its_unsent_copy_until_it_is_decided() -> None:
    def events(extra: int, *states: InstanceState, quorum: int = 2) -> dict[InstanceId, Event]:
        views = tuple(InstanceView(InstanceId(n), state) for n, state in enumerate(states, 1))
        job = JobView(quorum, 3, 10, views, extra=extra, state=JobState.OPEN)
        return dict(settle(job, {}).events)

    assert events(0, S.REPORTED, S.IN_PROGRESS, S.UNSENT) == {3: Event.NOT_NEEDED}
    assert events(1, S.REPORTED, S.IN_PROGRESS, S.UNSENT) == {}
    assert events(1, S.REPORTED, S.IN_PROGRESS, S.UNSENT, S.UNSENT) == {4: Event.NOT_NEEDED}


def test_a_copy_is_the_retry_when_what_it_was_made_for_is_lost() -> None:
    views = (InstanceView(InstanceId(1), S.TIMED_OUT), InstanceView(InstanceId(2), S.UNSENT))
    settled = settle(JobView(1, 3, 10, views, extra=1), {})
    assert (settled.events, settled.new_instances) == ((), 0)
