"""The terms of a due date, stored with the instance, and their sentences."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings

from domain.batches import QoS
from domain.due_terms import DueRow, DueTerms
from domain.ranking import Gate
from domain.settings import DeadlineRule
from domain.units import Seconds
from scheduler.context import SchedulingContext
from scheduler.selection import choose
from tests.builders import a_host, some_due_terms
from tests.facts import missing
from tests.properties.test_choices import arrays, askings
from tests.unit.scheduler.arrays import ListArray, a_group, a_want, an_asking

JOB_S = Seconds(3600.0)  # R of a_job_class on a_host


def test_each_job_of_a_reply_keeps_how_busy_the_host_was_by_then() -> None:
    context = an_asking(host=a_host(ncpus=1), wants=[a_want(req_s=Seconds(3 * JOB_S), count=1)])
    [first, second] = [one.assignment.due_terms for one in choose(context, ListArray([a_group(1, 2)])).chosen]

    bound_s = Seconds(7 * 86400.0)
    assert first == some_due_terms(numbers=(JOB_S, bound_s))
    assert second == some_due_terms(numbers=(2 * JOB_S, bound_s), queue_s=JOB_S)


def test_a_tight_due_date_is_the_sum_of_its_terms() -> None:
    context = an_asking(host=a_host(ncpus=1), wants=[a_want(req_s=Seconds(3 * JOB_S), count=1)])
    chosen = choose(context, ListArray([a_group(1, 2, qos=QoS.AFAP)])).chosen
    assert chosen
    for one in chosen:
        terms = one.assignment.due_terms
        assert (terms.gate, terms.threshold) == (Gate.AFAP, 0.5)
        assert one.assignment.due_at - one.assignment.sent_at == terms.start_s + terms.safe_runtime_s


@settings(max_examples=100)
@given(askings(), arrays())
def test_due_terms_survive_encoding(context: SchedulingContext, array: ListArray) -> None:
    """Both stores keep the terms as JSON."""
    for one in choose(context, array).chosen:
        terms = one.assignment.due_terms
        assert terms.because and not set("{}[") & set(terms.because)
        assert terms.rule in set(DeadlineRule)
        assert abs(terms.runtime_s - one.assignment.est_runtime_s) <= 0.5
        assert msgspec.json.decode(msgspec.json.encode(terms), type=DueTerms) == terms


@pytest.mark.parametrize("row", list(DueRow))
def test_row_name_and_number_agree_with_sentence(row: DueRow) -> None:
    assert row.value == row.name.lower()
    assert row.number or row.sentence.startswith(row.value.partition("_")[0] + ": ")
    assert str(row.number) in row.value if row.number else not re.search(r"\d", row.value)
    places = re.findall(r"\{(\d)", row.sentence)
    assert places == [str(place) for place in range(len(places))]


def test_in_full_has_the_terms_that_did_not_decide() -> None:
    terms = some_due_terms(p=None, gate=Gate.RETRY, threshold=0.65, retry=True, queue_s=Seconds(60.0))
    sentence, _, inputs = terms.in_full.partition(" [")
    assert not missing(sentence, "throughput", "1 h", "1 d", "a retry")
    assert not missing(
        inputs, "muster:", "start 0 s", "queue 60 s", "R 1 h", "R_q 2 h 30 min", "P none", "p_retry 0.65"
    )
