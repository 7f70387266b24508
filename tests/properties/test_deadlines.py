"""Properties of due dates for any host, batch and settings."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from domain.batches import Batch, BatchCounts, QoS, complete_at
from domain.jobs import JobClass
from domain.ranking import CutPoints, Gate, Percentile
from domain.refusals import BEHIND_GATE, Refusal, RefusalCode
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings
from domain.units import Flop, FlopPerSecond, Instant, Seconds
from scheduler.deadline import Due, Moment, due_inputs, retry_turnaround_s, rule_of
from scheduler.runtime import Speed
from tests.builders import NOW, a_batch, a_job_class
from tests.unit.scheduler.arrays import some_cuts

lengths_s = st.floats(0.0, 4e6)
fractions = st.floats(0.0, 1.0)
percentiles = st.one_of(st.none(), fractions).map(lambda p: Percentile(p, reason="drawn"))
moments = st.builds(Moment, st.just(NOW), lengths_s, lengths_s, percentiles, lengths_s)
settings = st.builds(
    DeadlineSettings,
    p_afap=fractions,
    p_late=fractions,
    p_retry=fractions,
    p_tight=fractions,
    min_slack_s=st.one_of(st.just(0.0), lengths_s),
    afap=st.sampled_from(AfapPolicy),
    afap_turn_factor=st.floats(0.0, 10.0),
)
instants = st.one_of(st.none(), st.floats(-4e6, 8e6).map(lambda by_s: Instant(NOW + by_s)))
classes = st.floats(1.0, 4e6).map(lambda bound_s: a_job_class(delay_bound_s=bound_s))
cut_points = st.one_of(st.none(), st.one_of(st.none(), lengths_s).map(lambda s: some_cuts(retry_turnaround_s=s)))


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    qos = draw(st.sampled_from(QoS))
    return a_batch(
        qos=qos,
        deadline_at=draw(instants.filter(lambda at: at is not None)) if qos is QoS.SHORT_DEADLINE else None,
        completion_at=draw(instants),
        last_first_dispatch_at=draw(instants),
        counts=BatchCounts(jobs_total=100, jobs_validated=draw(st.integers(0, 10))),
    )


@st.composite
def runtimes(draw: st.DrawFn) -> tuple[Seconds, Seconds]:
    """Generate R and an R_q that is not shorter."""
    runtime_s = draw(lengths_s)
    return Seconds(runtime_s), Seconds(runtime_s + draw(lengths_s))


class Case(NamedTuple):
    """What a due date depends on; `lengths` are R and R_q."""

    moment: Moment
    batch: Batch
    job_class: JobClass
    lengths: tuple[Seconds, Seconds]
    retry: bool
    cuts: CutPoints | None
    chosen: DeadlineSettings


cases = st.builds(Case, moments, batches(), classes, runtimes(), st.booleans(), cut_points, settings)


def decide(of: Case) -> Due | Refusal:
    job = due_inputs(
        of.batch, of.job_class, of.cuts, runtime_s=of.lengths[0], safe_runtime_s=of.lengths[1], retry=of.retry
    )
    return rule_of(of.chosen)(of.moment, job, of.chosen)


@given(cases)
def test_due_date_is_between_host_end_and_delay_bound(of: Case) -> None:
    found = decide(of)
    if isinstance(found, Due):
        assert found.due_at <= NOW + of.job_class.delay_bound_s
        assert found.due_at >= NOW + of.moment.start_s + of.lengths[0]


@given(cases, st.sampled_from(DeadlineRule))
def test_due_dates_are_feasible_under_every_rule(of: Case, rule: DeadlineRule) -> None:
    # All queued work never ends before its endangered part (test_busy_times).
    moment = replace(of.moment, queue_s=Seconds(of.moment.start_s + of.moment.queue_s))
    found = decide(of._replace(moment=moment, chosen=replace(of.chosen, rule=rule)))
    if isinstance(found, Due):
        assert found.due_at >= NOW + of.moment.start_s + of.lengths[0]
        # The proposal's pseudo-code has no delay bound: C(B) and BT + R are due dates at any distance.
        assert rule is DeadlineRule.PROPOSAL or found.due_at <= NOW + of.job_class.delay_bound_s


@given(cases)
def test_afap_job_never_waits_beyond_its_turn(of: Case) -> None:
    prompt = replace(of.chosen, afap=AfapPolicy.PROMPT)
    found = decide(of._replace(batch=replace(of.batch, qos=QoS.AFAP), chosen=prompt))
    if isinstance(found, Due):
        turn_s = max(of.moment.start_s, of.moment.queue_s) + of.lengths[1]
        assert found.due_at - NOW <= of.chosen.afap_due_factor * turn_s + 1e-3
        retry_s = retry_turnaround_s(of.cuts, of.job_class.delay_bound_s)
        assert found.tight or turn_s <= of.chosen.afap_turn_factor * retry_s


@given(cases)
def test_past_the_deadline_no_host_is_needlessly_tight(of: Case) -> None:
    """A first instance that runs soon enough in queue order is sent to any host, and interrupts no other work."""
    late = replace(of.batch, qos=QoS.SHORT_DEADLINE, deadline_at=NOW)
    found = decide(of._replace(batch=late, retry=False, chosen=replace(of.chosen, afap=AfapPolicy.PROMPT)))
    bound_s, retry_s = of.job_class.delay_bound_s, retry_turnaround_s(of.cuts, of.job_class.delay_bound_s)
    turn_s = max(min(of.moment.start_s + of.lengths[1], bound_s), of.moment.queue_s + of.lengths[1])
    if of.moment.start_s + of.lengths[0] <= bound_s and turn_s <= min(bound_s, of.chosen.afap_turn_factor * retry_s):
        assert isinstance(found, Due)
        assert not found.tight
        assert found.gate is Gate.NONE


@given(cases)
def test_only_retries_are_refused_behind_much_work(of: Case) -> None:
    found = decide(of)
    prompt = of.batch.qos is QoS.AFAP and of.chosen.afap is AfapPolicy.PROMPT
    most_s = max(0.5 * retry_turnaround_s(of.cuts, of.job_class.delay_bound_s), of.moment.alone_s)
    if isinstance(found, Due) and of.retry and not found.tight and not prompt:
        assert of.moment.queue_s <= most_s
    if isinstance(found, Refusal) and found.code is RefusalCode.NOT_YET:
        assert of.retry and of.moment.queue_s > most_s


@given(cases)
def test_no_host_below_a_gate_passes_it(of: Case) -> None:
    found = decide(of)
    p = of.moment.percentile.p
    if isinstance(found, Due) and found.gate is not Gate.NONE:
        assert p is not None
        assert p >= found.threshold
    if isinstance(found, Due) and of.retry and of.batch.qos is QoS.AFAP and of.chosen.afap is AfapPolicy.PROMPT:
        assert p is not None
        assert p >= of.chosen.p_retry
    if isinstance(found, Due) and found.tight:
        assert p is not None
        assert p >= min(of.chosen.p_afap, of.chosen.p_tight)


@given(cases, st.sampled_from(DeadlineRule))
def test_every_answer_has_its_reason(of: Case, rule: DeadlineRule) -> None:
    found = decide(of._replace(chosen=replace(of.chosen, rule=rule)))
    if isinstance(found, Due):
        assert found.because
        assert "{" not in found.because
    else:
        assert found.code in {RefusalCode.TOO_SLOW, RefusalCode.NOT_YET, *BEHIND_GATE}
        assert found.detail


@given(cases)
def test_a_better_percentile_never_closes_a_gate(of: Case) -> None:
    found = decide(of)
    best = decide(of._replace(moment=replace(of.moment, percentile=Percentile(1.0))))
    if isinstance(found, Due):
        assert isinstance(best, Due)
        assert best.due_at == found.due_at or (of.batch.qos is QoS.AFAP and best.due_at < found.due_at)


@given(cases)
def test_afap_due_date_is_at_most_the_in_turn_end(of: Case) -> None:
    found = decide(of)
    if isinstance(found, Due) and of.batch.qos is QoS.AFAP and of.chosen.afap is AfapPolicy.PROMPT:
        done_s = max(of.moment.start_s, of.moment.queue_s) + of.lengths[1]
        assert found.due_at - NOW <= max(1.0, of.chosen.afap_due_factor) * done_s + 1e-6


def table(
    qos: QoS,
    c: float | None,
    p: float | None,
    *,
    done: float,
    x: float,
    queue_ends: float,
    queue_s: float,
    most_s: float,
    last: float,
    t_retry: float,
    retry: bool,
    gates: DeadlineSettings,
) -> tuple[int, float] | None:
    """Return row and due_at of scheduler/deadline/table.py, with decision 33's allowance for the queue, or None."""
    if done > last:
        return None
    x = min(x, last)
    if qos is QoS.THROUGHPUT:
        row, gate, due_at = 1, None, last
    elif qos is QoS.AFAP and c is None:
        row, gate, due_at = 2, gates.p_afap, x
    else:
        assert c is not None
        if x <= c - t_retry:
            row, gate, due_at = 3, None, max(x, min(c - t_retry, last))
        elif x <= c:
            row, gate, due_at = 4, gates.p_late, min(c, last)
        else:
            row, gate, due_at = 5, gates.p_tight, x
    if row in (1, 3, 4) and queue_ends > due_at:
        return None
    if retry and row in (1, 3, 4) and queue_s > most_s:
        return None
    return (row, due_at) if gate is None or (p is not None and p >= gate) else None


@given(cases)
def test_rule_without_options_equals_the_design_table(of: Case) -> None:
    by_table = replace(of.chosen, afap=AfapPolicy.TABLE)
    found = decide(of._replace(chosen=by_table))
    bound_s = of.job_class.delay_bound_s
    expected = table(
        of.batch.qos,
        complete_at(of.batch, bound_s),
        of.moment.percentile.p,
        done=NOW + of.moment.start_s + of.lengths[0],
        x=NOW + of.moment.start_s + of.lengths[1],
        queue_ends=NOW + of.moment.queue_s + of.lengths[0],
        queue_s=of.moment.queue_s,
        most_s=max(0.5 * retry_turnaround_s(of.cuts, bound_s), of.moment.alone_s),
        last=NOW + bound_s,
        t_retry=0.5 * bound_s if of.cuts is None or of.cuts.retry_turnaround_s is None else of.cuts.retry_turnaround_s,
        retry=of.retry,
        gates=by_table,
    )
    assert (None if isinstance(found, Refusal) else (found.row.number, found.due_at)) == expected


def pseudo_code(
    b_is_afap: bool, c: float | None, bt: float, r: float, p: float | None, percent_50: float, percent_90: float
) -> float | None:
    """Return the deadline of the proposal's pseudo-code, line by line; None for a job that is not sent."""
    if b_is_afap and c is None:  # if B is AFAP and there's no estimate yet
        if p is not None and p > percent_50:  # if P(H, AV) > 50%
            return NOW + (bt + r)  # send J using AV, with deadline BT + R
    else:  # else
        x = NOW + (bt + r)  # x = MD(J, T)
        assert c is not None
        if x < c:  # if x < C(B)
            return c  # send J using AV, with deadline C(B)
        if p is not None and p > percent_90:  # else if P(H, AV) > 90%
            return x  # send J using AV, with deadline x
    return None


@given(cases)
def test_the_proposal_is_its_pseudo_code(of: Case) -> None:
    found = decide(of._replace(chosen=replace(of.chosen, rule=DeadlineRule.PROPOSAL)))
    c: float | None = complete_at(of.batch, of.job_class.delay_bound_s)
    if of.batch.qos is QoS.THROUGHPUT:
        c = NOW + of.job_class.delay_bound_s
    expected = pseudo_code(
        of.batch.qos is QoS.AFAP,
        c,
        of.moment.start_s,
        of.lengths[0],
        of.moment.percentile.p,
        of.chosen.p_afap,
        of.chosen.p_tight,
    )
    assert isinstance(found, Due) == (expected is not None)
    if isinstance(found, Due) and expected is not None:
        assert abs(found.due_at - expected) <= 1e-6


@given(st.floats(1.0, 1e18), st.floats(1e6, 1e15), st.floats(0.05, 50.0), lengths_s)
def test_a_safe_runtime_is_at_least_the_runtime_and_the_slack(
    flop: float, speed: float, factor: float, min_slack_s: float
) -> None:
    told = FlopPerSecond(speed)
    found = Speed(told, told, 1.0, told, factor)
    runtime_s = found.runtime_s(Flop(flop))
    assert found.safe_runtime_s(runtime_s, Seconds(min_slack_s)) >= runtime_s + min_slack_s
