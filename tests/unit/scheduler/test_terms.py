"""The terms of a due date, kept with its reason."""

from __future__ import annotations

from hypothesis import given, settings

from domain.batches import QoS
from domain.settings import DeadlineRule
from domain.units import Seconds
from scheduler.context import SchedulingContext
from scheduler.selection import choose
from scheduler.terms import DueTerms, terms_in
from tests.builders import a_host
from tests.properties.test_choices import arrays, askings
from tests.unit.scheduler.arrays import ListArray, a_group, a_want, an_asking

JOB_S = Seconds(3600.0)  # R of a_job_class on a_host


def test_each_job_of_a_reply_keeps_how_busy_the_host_was_by_then() -> None:
    context = an_asking(host=a_host(ncpus=1), wants=[a_want(req_s=Seconds(3 * JOB_S), count=1)])
    chosen = choose(context, ListArray([a_group(1, 2)])).chosen

    [first, second] = (terms_in(one.assignment.because)[1] for one in chosen)

    none, safe_s = Seconds(0.0), Seconds(2.5 * JOB_S)
    assert first == DueTerms("muster", none, none, JOB_S, safe_s, 0.5, "none", 0.0)
    assert second == DueTerms("muster", none, JOB_S, JOB_S, safe_s, 0.5, "none", 0.0)


def test_a_tight_due_date_is_the_sum_of_its_terms() -> None:
    context = an_asking(host=a_host(ncpus=1), wants=[a_want(req_s=Seconds(3 * JOB_S), count=1)])
    chosen = choose(context, ListArray([a_group(1, 2, qos=QoS.AFAP)])).chosen
    assert chosen
    for one in chosen:
        _, terms = terms_in(one.assignment.because)
        assert terms is not None and (terms.gate, terms.threshold) == ("p_afap", 0.5)
        assert one.assignment.due_at - one.assignment.sent_at == terms.start_s + terms.safe_runtime_s


@settings(max_examples=100)
@given(askings(), arrays())
def test_whatever_is_given_keeps_its_terms(context: SchedulingContext, array: ListArray) -> None:
    for one in choose(context, array).chosen:
        because, terms = terms_in(one.assignment.because)
        assert because and "[" not in because and terms is not None
        assert terms.rule in set(DeadlineRule)
        assert abs(terms.runtime_s - one.assignment.est_runtime_s) <= 0.5
