"""The table of scheduler/deadline/table.py row by row, and the other rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.acceleration import Acceleration
from domain.batches import BatchCounts, QoS, complete_at
from domain.catalogue import Catalogue
from domain.due_terms import DueRow
from domain.ranking import Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings
from domain.units import DAY_S, HOUR_S, AppId, BatchId, HostId, Instant, Seconds
from scheduler.context import SchedulingContext
from scheduler.deadline import Due, Moment, due_inputs, retry_turnaround_s, rule_of
from scheduler.selection import choose
from tests.builders import NOW, a_batch, a_job_class
from tests.facts import missing
from tests.unit.scheduler.arrays import ListArray, a_catalogue, a_group, a_want, an_asking, some_cuts

D = Seconds(7 * DAY_S)
T_RETRY = Seconds(DAY_S)


def decide(
    qos: QoS = QoS.SHORT_DEADLINE,
    *,
    p: float | None = 0.95,
    complete_in_s: float | None = None,
    start_s: float = 0.0,
    queue_s: float = 0.0,
    runtime_s: float = 2 * HOUR_S,
    safe_runtime_s: float = 5 * HOUR_S,
    bound_s: float = D,
    retry: bool = False,
    validated: int = 50,
    retry_turnaround_s: float | None = T_RETRY,
    alone_s: float = 0.0,
    **settings: Any,
) -> Due | Refusal:
    target = None if complete_in_s is None else Instant(NOW + complete_in_s)
    batch = a_batch(
        qos=qos,
        deadline_at=target if qos is QoS.SHORT_DEADLINE else None,
        completion_at=target if qos is not QoS.SHORT_DEADLINE else None,
        counts=BatchCounts(jobs_total=100, jobs_validated=validated),
    )
    p_found = Percentile(p, reason="as the test says")
    moment = Moment(NOW, Seconds(start_s), Seconds(queue_s), p_found, Seconds(alone_s))
    job = due_inputs(
        batch,
        a_job_class(delay_bound_s=bound_s),
        some_cuts(retry_turnaround_s=retry_turnaround_s),
        runtime_s=Seconds(runtime_s),
        safe_runtime_s=Seconds(safe_runtime_s),
        retry=retry,
    )
    chosen = DeadlineSettings(**{"afap_due_factor": 1.0, **settings})
    return rule_of(chosen)(moment, job, chosen)


def due(*arguments: Any, **named: Any) -> Due:
    found = decide(*arguments, **named)
    assert isinstance(found, Due), found
    return found


def refusal(*arguments: Any, **named: Any) -> Refusal:
    found = decide(*arguments, **named)
    assert isinstance(found, Refusal), found
    return found


# ------------------------------------------------------------------ the table


def test_row_1_throughput_is_due_at_the_delay_bound() -> None:
    found = due(QoS.THROUGHPUT, p=None, queue_s=DAY_S)
    assert (found.row.number, found.due_at, found.tight, found.gate) == (1, NOW + D, False, Gate.NONE)
    assert found.row.number == 1 and not missing(found.because, "throughput", "in 1 d 2 h", "delay bound of 7 d")


def test_row_1_refuses_a_queue_that_ends_after_the_delay_bound() -> None:
    assert isinstance(decide(QoS.THROUGHPUT, queue_s=D - 2 * HOUR_S), Due)
    found = refusal(QoS.THROUGHPUT, queue_s=D - 2 * HOUR_S + 1.0)
    assert found.code is RefusalCode.TOO_SLOW
    assert not missing(found.detail, "7 d 1 s", "6 d 22 h 1 s of queued work", "2 h runtime", "delay bound is 7 d")


def test_row_2_afap_without_estimate_is_due_at_safe_completion() -> None:
    found = due(QoS.AFAP, p=0.5, start_s=HOUR_S)
    assert (found.row.number, found.due_at, found.tight) == (2, NOW + 6 * HOUR_S, True)
    assert (found.gate, found.threshold) == (Gate.AFAP, 0.5)


def test_row_2_is_closed_below_p_afap() -> None:
    found = refusal(QoS.AFAP, p=0.499, safe_runtime_s=48 * HOUR_S + 1.0)
    assert (found.code, found.terms[-2:]) == (RefusalCode.BELOW_GATE, (48 * HOUR_S + 1.0, 48 * HOUR_S))
    assert found.terms[2] == "as the test says"
    assert not missing(found.detail, 0.499, "p_afap 0.5", "2 d")
    new = refusal(QoS.AFAP, p=None, safe_runtime_s=48 * HOUR_S + 1.0)
    assert (new.code, new.terms[-1]) == (RefusalCode.NO_RANK, 48 * HOUR_S)


@pytest.mark.parametrize("p", [None, 0.499])
def test_a_host_that_is_only_busy_is_told_apart(p: float | None) -> None:
    """Idle, it would get the job without a gate; its refusal says up to how much queued work."""
    found = refusal(QoS.AFAP, p=p, queue_s=2 * DAY_S)
    assert (found.code, found.terms[-2:]) == (RefusalCode.BUSY_BELOW_GATE, (48 * HOUR_S, 43 * HOUR_S))
    assert not missing(found.detail, "p_afap 0.5", "2 d", "1 d 19 h")
    assert due(QoS.AFAP, p=p, queue_s=found.terms[-1]).gate is Gate.NONE


def test_row_2_applies_to_good_hosts_with_or_without_estimate() -> None:
    found = due(QoS.AFAP, p=0.5, complete_in_s=3 * DAY_S, queue_s=20 * HOUR_S)
    assert (found.row.number, found.due_at, found.tight, found.gate) == (2, NOW + 5 * HOUR_S, True, Gate.AFAP)
    assert found.row.number == 2 and not missing(
        found.because, "good host", "P 0.500 >= 0.5", "confidence in 5 h", "due in 5 h"
    )


def test_afap_retry_after_completion_waits_for_no_better_host() -> None:
    for retry in (False, True):
        found = due(QoS.AFAP, p=0.55, complete_in_s=-HOUR_S, retry=retry)
        assert (found.row.number, found.due_at, found.tight, found.threshold) == (2, NOW + 5 * HOUR_S, True, 0.5)
    assert refusal(QoS.AFAP, p=0.55, complete_in_s=-HOUR_S, afap=AfapPolicy.TABLE).code is RefusalCode.BELOW_GATE


def test_other_hosts_get_afap_jobs_if_done_within_two_retries() -> None:
    for complete_in_s in (None, 6 * DAY_S):
        found = due(QoS.AFAP, p=0.2, queue_s=43 * HOUR_S, complete_in_s=complete_in_s)
        assert (found.row.number, found.due_at, found.tight, found.gate) == (3, NOW + 48 * HOUR_S, False, Gate.NONE)
        assert found.row.number == 3 and not missing(
            found.because, "queue order in 2 d", "2 retry turnarounds of 1 d", "due in 2 d"
        )
        later = refusal(QoS.AFAP, p=0.2, queue_s=43 * HOUR_S + 1.0, complete_in_s=complete_in_s)
        assert later.code is RefusalCode.BUSY_BELOW_GATE


def test_afap_due_factor_allows_more_than_the_safe_runtime() -> None:
    """The client need not run it before all other work; never after the delay bound."""
    assert DeadlineSettings().afap_due_factor == 1.1
    hurried = due(QoS.AFAP, p=0.5, afap_due_factor=1.2)
    assert (hurried.due_at, hurried.tight) == (NOW + 6 * HOUR_S, True)
    assert hurried.row is DueRow.PROMPT_2_NO_ESTIMATE
    assert hurried.row.number == 2 and not missing(hurried.because, "P 0.500 >= 0.5", "confidence in 5 h", "due in 6 h")
    in_turn = due(QoS.AFAP, p=0.2, queue_s=43 * HOUR_S, afap_due_factor=1.5)
    assert (in_turn.due_at, in_turn.tight) == (NOW + 72 * HOUR_S, False)
    assert in_turn.row.number == 3 and not missing(
        in_turn.because, "queue order in 2 d", "2 retry turnarounds of 1 d", "due in 3 d"
    )
    assert due(QoS.AFAP, p=0.5, bound_s=DAY_S, afap_due_factor=10.0).due_at == NOW + DAY_S
    in_turn = due(QoS.AFAP, p=0.2, bound_s=2 * DAY_S, queue_s=19 * HOUR_S, afap_due_factor=10.0)
    assert in_turn.due_at == NOW + 2 * DAY_S


@given(
    p=st.floats(0.0, 1.0),
    queue_s=st.floats(0.0, 3 * DAY_S),
    start_s=st.floats(0.0, 3 * DAY_S),
    factor=st.floats(1.0, 10.0),
    complete_in_s=st.none() | st.floats(-DAY_S, 9 * DAY_S),
)
def test_due_factor_is_bounded_by_runtime_and_delay_bound(
    p: float, queue_s: float, start_s: float, factor: float, complete_in_s: float | None
) -> None:
    busy: dict[str, Any] = {"p": p, "queue_s": queue_s, "start_s": start_s, "complete_in_s": complete_in_s}
    found = decide(QoS.AFAP, afap_due_factor=factor, **busy)
    plain = decide(QoS.AFAP, afap_due_factor=1.0, **busy)
    assert isinstance(found, Due) == isinstance(plain, Due)
    if isinstance(found, Due) and isinstance(plain, Due):
        needed_s, given_s = plain.due_at - NOW, found.due_at - NOW
        assert (found.row.number, found.tight) == (plain.row.number, plain.tight)
        rounded_s = 1e-6 * (1.0 + factor)  # an instant is exact to 0.24 microseconds, a duration to two of them
        assert needed_s <= given_s + rounded_s and given_s <= min(D, factor * needed_s) + rounded_s


def test_without_turn_factor_afap_jobs_are_for_good_hosts() -> None:
    assert refusal(QoS.AFAP, p=0.2, afap_turn_factor=0.0).code is RefusalCode.BELOW_GATE


@given(complete_in_s=st.floats(-DAY_S, 9 * DAY_S), queue_s=st.floats(0.0, 3 * DAY_S))
def test_a_forecast_moves_no_host_in_its_turn(complete_in_s: float, queue_s: float) -> None:
    """Otherwise an earlier C would refuse hosts, and move C later again."""
    unknown = decide(QoS.AFAP, p=0.2, queue_s=queue_s)
    known = decide(QoS.AFAP, p=0.2, queue_s=queue_s, complete_in_s=complete_in_s)

    assert isinstance(known, Due) == isinstance(unknown, Due)
    if isinstance(known, Due) and isinstance(unknown, Due):
        assert (known.row.number, known.due_at) == (unknown.row.number, unknown.due_at)


def test_a_host_in_its_turn_keeps_the_delay_bound() -> None:
    assert due(QoS.AFAP, p=0.2, bound_s=DAY_S, queue_s=19 * HOUR_S).due_at == NOW + DAY_S
    assert isinstance(decide(QoS.AFAP, p=0.2, bound_s=DAY_S, queue_s=19 * HOUR_S + 1.0), Refusal)


def test_a_wrong_forecast_does_not_extend_due_dates() -> None:
    for p in (None, 0.2, 0.95):
        found = due(QoS.AFAP, p=p, complete_in_s=30 * DAY_S, queue_s=10 * HOUR_S)
        assert found.due_at <= NOW + 15 * HOUR_S


def test_setting_afap_table_applies_the_table_to_afap_batches() -> None:
    table = {"afap": AfapPolicy.TABLE, "p": 0.95}
    assert refusal(QoS.AFAP, **{**table, "p": 0.2}).terms[1] == 0.2
    assert due(QoS.AFAP, **table).row.number == 2
    assert due(QoS.AFAP, complete_in_s=3 * DAY_S, **table).due_at == NOW + 2 * DAY_S
    assert due(QoS.AFAP, complete_in_s=DAY_S, **table).row.number == 4
    assert due(QoS.AFAP, complete_in_s=4 * HOUR_S, **table).row.number == 5


@pytest.mark.parametrize("qos", [QoS.THROUGHPUT, QoS.LONG_DEADLINE, QoS.SHORT_DEADLINE])
def test_a_retry_is_for_hosts_that_compute_it_soon(qos: QoS) -> None:
    asked: dict[str, Any] = {"complete_in_s": None if qos is QoS.THROUGHPUT else 5 * DAY_S}
    assert due(qos, retry=True, queue_s=12 * HOUR_S, **asked).gate is Gate.NONE
    found = refusal(qos, retry=True, queue_s=12 * HOUR_S + 1.0, **asked)
    assert (found.code, found.terms) == (RefusalCode.NOT_YET, (12 * HOUR_S + 1.0, T_RETRY / 2))
    assert due(qos, queue_s=20 * HOUR_S, **asked).gate is Gate.NONE
    assert due(qos, retry=True, queue_s=20 * HOUR_S, alone_s=20 * HOUR_S, **asked).gate is Gate.NONE


def test_a_retry_that_is_hurried_does_not_wait_for_the_queue() -> None:
    assert due(complete_in_s=4 * HOUR_S, p=0.9, retry=True, queue_s=20 * HOUR_S).row.number == 5


def test_row_3_leaves_time_for_a_retry() -> None:
    found = due(complete_in_s=3 * DAY_S, p=None)
    assert (found.row.number, found.due_at, found.tight, found.gate) == (3, NOW + 2 * DAY_S, False, Gate.NONE)


def test_row_3_is_due_at_the_delay_bound_at_the_latest() -> None:
    found = due(QoS.LONG_DEADLINE, complete_in_s=60 * DAY_S)
    assert (found.row.number, found.due_at) == (3, NOW + D)


def test_row_3_ends_where_the_host_leaves_just_time_for_a_retry() -> None:
    found = due(complete_in_s=T_RETRY + 5 * HOUR_S, p=None)
    assert (found.row.number, found.due_at) == (3, NOW + 5 * HOUR_S)


def test_row_3_refuses_a_queue_that_ends_after_the_due_date() -> None:
    assert due(complete_in_s=3 * DAY_S, queue_s=46 * HOUR_S).row.number == 3
    found = refusal(complete_in_s=3 * DAY_S, queue_s=46 * HOUR_S + 1.0)
    assert found.code is RefusalCode.TOO_SLOW
    assert not missing(found.detail, "1 d 22 h of queued work", "2 h runtime > 2 d", "due date")


def test_row_4_refuses_a_queue_that_ends_after_the_due_date() -> None:
    assert due(complete_in_s=6 * HOUR_S, queue_s=4 * HOUR_S).row.number == 4
    assert refusal(complete_in_s=6 * HOUR_S, queue_s=4 * HOUR_S + 1.0).code is RefusalCode.TOO_SLOW


def test_tight_rows_look_at_endangered_work_only() -> None:
    assert due(QoS.AFAP, queue_s=30 * DAY_S).row.number == 2
    assert due(complete_in_s=4 * HOUR_S, queue_s=30 * DAY_S).row.number == 5


def test_retry_is_refused_if_the_queue_ends_after_its_due_date() -> None:
    assert refusal(complete_in_s=3 * DAY_S, queue_s=46 * HOUR_S + 1.0, retry=True).code is RefusalCode.TOO_SLOW


@pytest.mark.parametrize(
    ("code", "of_host"),
    [
        (RefusalCode.BELOW_GATE, {"p": 0.1, "safe_runtime_s": 3 * DAY_S}),
        (RefusalCode.NO_RANK, {"p": None, "safe_runtime_s": 3 * DAY_S}),
        (RefusalCode.BUSY_BELOW_GATE, {"p": 0.1, "queue_s": 2 * DAY_S}),
    ],
)
@pytest.mark.parametrize("afap", list(AfapPolicy))
def test_later_deadline_opens_the_gates_of_a_late_batch(
    code: RefusalCode, of_host: dict[str, Any], afap: AfapPolicy
) -> None:
    """If the host's end leaves time for a retry before it. A nearer one that can be met has a gate as well."""
    assert refusal(complete_in_s=-HOUR_S, **of_host).code is code
    assert due(complete_in_s=5 * DAY_S, **of_host, afap=afap).gate is Gate.NONE
    assert refusal(complete_in_s=12 * HOUR_S, p=of_host["p"]).code in (RefusalCode.BELOW_GATE, RefusalCode.NO_RANK)


def test_row_4_is_due_at_completion_and_asks_for_p_late() -> None:
    found = due(complete_in_s=T_RETRY + 5 * HOUR_S - 1.0, p=0.5)
    assert (found.row.number, found.due_at, found.tight) == (4, NOW + T_RETRY + 5 * HOUR_S - 1.0, False)
    assert (found.gate, found.threshold) == (Gate.LATE, 0.5)
    assert refusal(complete_in_s=T_RETRY, p=0.49).code is RefusalCode.BELOW_GATE


def test_row_4_is_due_at_the_delay_bound_at_the_latest() -> None:
    found = due(complete_in_s=DAY_S, bound_s=20 * HOUR_S, p=0.5)
    assert (found.row.number, found.due_at) == (4, NOW + 20 * HOUR_S)


def test_row_4_begins_where_completion_is_as_late_as_the_host() -> None:
    assert due(complete_in_s=5 * HOUR_S, p=0.5).row.number == 4


def test_row_5_host_done_after_completion_is_due_when_done() -> None:
    found = due(complete_in_s=4 * HOUR_S, p=0.9, start_s=600.0)
    assert (found.row.number, found.due_at, found.tight) == (5, NOW + 5 * HOUR_S + 600.0, True)
    assert (found.gate, found.threshold) == (Gate.TIGHT, 0.9)
    assert found.row.number == 5 and not missing(
        found.because, "which is in 4 h", "P 0.900 >= 0.9", "confidence, in 5 h 10 min"
    )


def test_row_5_is_closed_below_p_tight() -> None:
    found = refusal(complete_in_s=4 * HOUR_S, p=0.89)
    assert found.terms[2] == "as the test says"
    assert not missing(found.detail, "0.890", "p_tight 0.9")


def test_row_5_of_the_table_holds_when_completion_has_passed() -> None:
    found = due(complete_in_s=-DAY_S, p=0.9, afap=AfapPolicy.TABLE)
    assert (found.row.number, found.due_at) == (5, NOW + 5 * HOUR_S)


@pytest.mark.parametrize("p", [None, 0.2, 0.95])
def test_first_instances_past_the_deadline_need_no_gate(p: float | None) -> None:
    """They run in queue order, also on good hosts: no due date can save the deadline any more."""
    for complete_in_s in (0.0, -DAY_S):
        found = due(complete_in_s=complete_in_s, p=p, queue_s=43 * HOUR_S)
        assert (found.row.number, found.due_at, found.tight, found.gate) == (3, NOW + 48 * HOUR_S, False, Gate.NONE)
    assert due(complete_in_s=1.0, p=0.95).row.number == 5


def test_past_the_deadline_busy_hosts_need_p_afap() -> None:
    busy: dict[str, Any] = {"complete_in_s": -HOUR_S, "queue_s": 43 * HOUR_S + 1.0}
    found = due(p=0.5, **busy)
    assert (found.row.number, found.tight, found.gate) == (2, True, Gate.AFAP)
    assert refusal(p=0.49, **busy).code is RefusalCode.BUSY_BELOW_GATE


def test_retry_past_the_deadline_is_that_of_an_afap_job() -> None:
    late: dict[str, Any] = {"complete_in_s": -HOUR_S, "retry": True, "p_retry": 0.4}
    found = due(p=0.5, **late)
    assert (found.row.number, found.tight, found.threshold) == (2, True, 0.5)
    assert due(p=0.45, **late).row.number == 3
    assert refusal(p=0.39, **late).code is RefusalCode.BELOW_GATE


@pytest.mark.parametrize("qos", list(QoS))
def test_no_row_allows_a_host_to_finish_after_the_delay_bound(qos: QoS) -> None:
    asked: dict[str, Any] = {"complete_in_s": 30 * DAY_S, "bound_s": 2 * HOUR_S + 60.0, "safe_runtime_s": 2 * DAY_S}
    found = due(qos, start_s=60.0, **asked)
    assert found.due_at == NOW + 2 * HOUR_S + 60.0  # likely done by then, but not with 90 % confidence
    late = refusal(qos, start_s=61.0, **asked)
    assert (late.code, late.terms[:2]) == (RefusalCode.TOO_SLOW, refusal(qos, start_s=61.0, **asked).terms[:2])


def test_busy_time_of_tight_jobs_ignores_the_queue() -> None:
    assert due(QoS.AFAP, queue_s=3 * DAY_S).due_at == NOW + 5 * HOUR_S


# ------------------------------------------------------------------ retries


@pytest.mark.parametrize("qos", [QoS.LONG_DEADLINE, QoS.SHORT_DEADLINE])
@pytest.mark.parametrize("p", [None, 0.0, 0.4])
def test_a_retry_keeps_its_rows_due_date_and_gate(qos: QoS, p: float | None) -> None:
    assert due(qos, retry=True, p=p, complete_in_s=5 * DAY_S) == due(qos, p=p, complete_in_s=5 * DAY_S)


@pytest.mark.parametrize("p", [None, 0.0, 0.4])
def test_a_retry_of_a_throughput_batch_is_for_any_host(p: float | None) -> None:
    assert due(QoS.THROUGHPUT, retry=True, p=p) == due(QoS.THROUGHPUT, p=p)


def test_a_retry_asks_for_the_stricter_of_two_gates() -> None:
    assert due(QoS.AFAP, retry=True, p=0.7, p_retry=0.7).threshold == 0.7
    assert refusal(QoS.AFAP, retry=True, p=0.6, p_retry=0.7).code is RefusalCode.BELOW_GATE
    tight = due(complete_in_s=HOUR_S, retry=True, p=0.9)
    assert (tight.gate, tight.threshold) == (Gate.TIGHT, 0.9)


def test_afap_retry_is_not_sent_to_a_newcomer() -> None:
    assert refusal(QoS.AFAP, retry=True, p=None).terms[4] == 0.5


def test_a_newcomer_passes_no_gate_even_at_zero() -> None:
    assert refusal(QoS.AFAP, p=None, p_afap=0.0, afap_turn_factor=0.0).code is RefusalCode.NO_RANK


# ------------------------------------------------------------------ C and T_retry


def test_throughput_has_no_completion() -> None:
    assert complete_at(a_batch(completion_at=NOW), D) is None


def test_a_short_deadline_is_not_moved_by_a_later_forecast() -> None:
    batch = a_batch(qos=QoS.SHORT_DEADLINE, deadline_at=NOW + 10.0, completion_at=NOW + 99.0)
    assert complete_at(batch, D) == NOW + 10.0


def test_long_deadline_counts_from_submission_without_forecast() -> None:
    batch = a_batch(qos=QoS.LONG_DEADLINE, created_at=NOW - 500.0)
    assert complete_at(batch, D) == NOW - 500.0 + D


def test_long_deadline_follows_forecast_but_keeps_first_due_date() -> None:
    batch = a_batch(qos=QoS.LONG_DEADLINE, created_at=NOW - 500.0, completion_at=NOW + 77.0)
    assert complete_at(batch, D) == NOW - 500.0 + D
    assert complete_at(replace(batch, completion_at=Instant(NOW + 2 * D)), D) == NOW + 2 * D


def test_long_deadline_is_at_least_bound_after_first_dispatch() -> None:
    batch = a_batch(qos=QoS.LONG_DEADLINE, completion_at=NOW + 77.0, last_first_dispatch_at=NOW - 60.0)
    assert complete_at(batch, D) == NOW - 60.0 + D


@pytest.mark.parametrize(
    ("total", "validated", "known"),
    [(100, 4, False), (100, 5, True), (1000, 19, False), (1000, 20, True), (3, 3, False)],
)
def test_an_estimate_counts_from_five_jobs_and_two_percent_on(total: int, validated: int, known: bool) -> None:
    counts = BatchCounts(jobs_total=total, jobs_validated=validated)
    batch = a_batch(qos=QoS.AFAP, completion_at=NOW + 5.0, counts=counts)
    assert complete_at(batch, D) == (NOW + 5.0 if known else None)


def test_afap_batch_without_forecast_has_no_completion() -> None:
    counts = BatchCounts(jobs_total=100, jobs_validated=100)
    assert complete_at(a_batch(qos=QoS.AFAP, counts=counts), D) is None


def test_retry_takes_half_the_bound_until_hosts_are_measured() -> None:
    assert retry_turnaround_s(None, D) == D / 2
    assert retry_turnaround_s(some_cuts(), D) == D / 2
    assert retry_turnaround_s(some_cuts(retry_turnaround_s=Seconds(99.0)), D) == 99.0


# ------------------------------------------------------------------ the other rules


def test_proposal_gives_an_afap_job_no_slack() -> None:
    found = due(QoS.AFAP, p=0.51, start_s=60.0, rule=DeadlineRule.PROPOSAL)
    assert (found.due_at, found.tight) == (NOW + 2 * HOUR_S + 60.0, True)


def test_proposal_compares_percentiles_with_greater() -> None:
    assert refusal(QoS.AFAP, p=0.5, rule=DeadlineRule.PROPOSAL).code is RefusalCode.BELOW_GATE
    assert refusal(complete_in_s=HOUR_S, p=0.9, rule=DeadlineRule.PROPOSAL).code is RefusalCode.BELOW_GATE


def test_proposal_gives_an_early_host_all_time_to_completion() -> None:
    found = due(complete_in_s=60 * DAY_S, p=None, rule=DeadlineRule.PROPOSAL)
    assert (found.due_at, found.tight) == (NOW + 60 * DAY_S, False)


def test_proposal_gives_a_late_host_what_it_needs() -> None:
    found = due(complete_in_s=2 * HOUR_S, p=0.91, rule=DeadlineRule.PROPOSAL)
    assert (found.due_at, found.tight) == (NOW + 2 * HOUR_S, True)


def test_proposal_uses_delay_bound_for_batch_without_completion() -> None:
    assert due(QoS.THROUGHPUT, p=None, rule=DeadlineRule.PROPOSAL).due_at == NOW + D


def test_fixed_is_the_delay_bound_for_hosts_done_by_then() -> None:
    found = due(QoS.AFAP, p=None, safe_runtime_s=99 * D, rule=DeadlineRule.FIXED)
    assert (found.due_at, found.tight, found.gate) == (NOW + D, False, Gate.NONE)
    assert refusal(queue_s=D, rule=DeadlineRule.FIXED).code is RefusalCode.TOO_SLOW


FLAGS = Acceleration(NOW, frozenset({HostId(1)}), frozenset({AppId(1)}), frozenset({BatchId(2)}))


def catalogue(flags: Acceleration | None = FLAGS) -> Catalogue:
    return replace(a_catalogue(deadline__rule="accelerated"), acceleration=flags)


def context(flags: Acceleration | None = FLAGS, *, jobs: int = 1) -> SchedulingContext:
    return an_asking(catalogue=catalogue(flags), wants=(a_want(req_s=Seconds(3600.0 * jobs - 1.0)),))


def batches_given(flags: Acceleration | None, *, jobs: int) -> list[int]:
    chosen = choose(context(flags, jobs=jobs), ListArray([a_group(1, 3), a_group(2, 3)])).chosen
    return [one.batch.batch_id for one in chosen]


def test_accelerated_jobs_come_first_for_low_turnaround_hosts() -> None:
    assert batches_given(FLAGS, jobs=4) == [2, 2, 2, 1]


def test_other_hosts_are_refused_accelerated_jobs_with_reason() -> None:
    flags = replace(FLAGS, hosts=frozenset({HostId(9)}))
    assert batches_given(flags, jobs=6) == [1, 1, 1]
    choice = choose(context(flags), ListArray([a_group(2)]))
    [(_, _, why)] = choice.not_given
    assert why.code is RefusalCode.BELOW_GATE
    assert not missing(why.detail, "accelerated:", "low-turnaround")


def test_jobs_of_other_apps_go_in_order_to_all_hosts() -> None:
    assert batches_given(replace(FLAGS, apps=frozenset(), hosts=frozenset()), jobs=4) == [1, 1, 1, 2]


def test_before_anything_is_flagged_all_jobs_go_in_order() -> None:
    assert batches_given(None, jobs=4) == [1, 1, 1, 2]


def test_due_dates_are_the_delay_bounds() -> None:
    chosen = choose(context(jobs=4), ListArray([a_group(1, 3), a_group(2, 3, delay_bound_s=2 * DAY_S)])).chosen
    assert [one.assignment.due_at - NOW for one in chosen[:3]] == [2 * DAY_S] * 3
    assert all(
        not one.assignment.tight and one.assignment.due_terms.because.startswith("accelerated") for one in chosen[:3]
    )
    assert chosen[3].assignment.due_terms.because.startswith("fixed")
