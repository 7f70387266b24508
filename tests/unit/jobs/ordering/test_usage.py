"""Tests that changes of a batch are charged by its counters, with the same total for any steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.batches import BatchCounts
from domain.ordered_work import OrderedBatch, OrderNotes
from domain.ordering import QueueClock, Request
from domain.units import Flop, Instant, Seconds, later
from domain.usage import Amounts
from jobs.ordering.sizing import JobFootprint
from jobs.ordering.usage import charges_of, clocked, fraction_of, noted
from priority.logical_time import counted
from tests.builders import NOW, a_batch

SIZE = JobFootprint(Request(), Seconds(3600.0), 1.0, Amounts(flop=10.0))


def with_counts(max_errors: int = 3, **counts: int) -> OrderedBatch:
    batch = a_batch(counts=BatchCounts(jobs_total=1000, **counts))
    return OrderedBatch(batch, Flop(1e4), Request(), Flop(10.0), max_errors)


def charged(
    one: OrderedBatch, notes: OrderNotes, *, fraction: float = 1.0, now: Instant = NOW
) -> tuple[OrderNotes, float]:
    """Return the new notes, and the charge in flop."""
    after, charges = charges_of(one, notes, SIZE, rate=1.0, fraction=fraction, now=now)
    return after, sum(one.usage.flop for one in charges)


def test_what_is_sent_is_charged_by_estimate() -> None:
    after, flop = charged(with_counts(sent=7, in_progress=7), OrderNotes())
    assert flop == 70.0
    assert (after.sent, after.charged, after.used, after.charged_at) == (7, 7, 0, NOW)


def test_nothing_is_charged_when_nothing_happened() -> None:
    one = with_counts(sent=7, in_progress=7)
    notes, _ = charged(one, OrderNotes())
    assert charges_of(one, notes, SIZE, rate=1.0, fraction=1.0, now=later(NOW, 60.0)) == (notes, [])


def test_what_a_volunteer_lost_is_refunded_since_it_was_sent() -> None:
    notes, _ = charged(with_counts(sent=4, in_progress=4), OrderNotes())

    [refund] = charges_of(
        with_counts(sent=4, in_progress=3, retries=1), notes, SIZE, rate=1.0, fraction=1.0, now=later(NOW, 9000.0)
    )[1]

    assert (refund.usage.flop, refund.since) == (-10.0, NOW)


def test_what_is_back_is_corrected_to_what_jobs_take() -> None:
    notes, _ = charged(with_counts(sent=4, in_progress=4), OrderNotes())

    after, flop = charged(with_counts(sent=4, in_progress=2, reported=2), notes, fraction=0.5)

    assert flop == -10.0  # two of ten, each with half its estimate
    assert (after.used, after.used_fraction) == (2, 0.5)


def test_service_units_are_used_when_work_is_back() -> None:
    notes, _ = charged(with_counts(sent=4, in_progress=4), OrderNotes())
    charges = charges_of(with_counts(sent=4, in_progress=1, reported=3), notes, SIZE, rate=3.0, fraction=0.5, now=NOW)[
        1
    ]
    assert sum(one.used_su for one in charges) == 3 * 1.0 * 0.5  # at the price when sent


def test_errors_of_jobs_that_failed_are_the_submitters() -> None:
    lost = with_counts(max_errors=3, sent=10, in_progress=0, retries=4, jobs_failed=1)
    assert counted(lost).charged == 9  # three errors of the failed job, and the valid result


def test_the_mean_instant_moves_with_what_is_sent() -> None:
    notes, _ = charged(with_counts(sent=1, in_progress=1), OrderNotes())
    after, _ = charged(with_counts(sent=4, in_progress=4), notes, now=later(NOW, 100.0))
    assert after.charged_at == NOW + 75.0


STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.floats(0, 1), st.floats(0, 1), st.sampled_from([0.5, 1.0, 2.0])), max_size=8
)


@given(STEPS)
def test_all_charges_together_are_what_the_counters_come_to(steps: list[tuple[int, float, float, float]]) -> None:
    notes, total, units, sent, out, lost = OrderNotes(), 0.0, 0.0, 0, 0, 0
    fraction = 1.0
    for number, (more, back, bad, fraction) in enumerate(steps):
        returned = int(back * out)
        sent, out = sent + more, out - returned + more
        lost += int(bad * returned)
        one = with_counts(sent=sent, in_progress=out, retries=lost)
        notes, charges = charges_of(one, notes, SIZE, rate=1.0, fraction=fraction, now=later(NOW, 60.0 * number))
        total += sum(one.usage.flop for one in charges)
        units += sum(one.used_su for one in charges)
        assert total >= -1e-9
    good = sent - out - lost
    assert total == pytest.approx(10.0 * (out + good * fraction))
    assert units == pytest.approx(good * fraction)


def test_a_single_host_cannot_move_what_jobs_take() -> None:
    assert fraction_of([0.9, 1.0, 1.1, 1e9, 1.0], 1.0, used=9) == 1.0
    assert fraction_of([1e9], 1.0, used=1) == 10.0
    assert fraction_of([], 0.7, used=1) == 0.7


def test_a_batch_is_passed_over_while_later_ones_are_sent() -> None:
    notes, one = OrderNotes(QueueClock(since=NOW)), with_counts(unsent=5)
    once = noted(notes, one, later_sent=True, sent=0)
    assert (once.bypassed, noted(once, one, later_sent=True, sent=0).bypassed) == (1, 2)
    assert noted(once, one, later_sent=False, sent=0).bypassed == 1
    assert noted(once, one, later_sent=True, sent=1).bypassed == 0


def test_a_batch_whose_clock_stands_still_is_not_passed_over() -> None:
    assert noted(OrderNotes(), with_counts(unsent=5), later_sent=True, sent=0).bypassed == 0


def test_the_queue_clock_pauses_and_is_not_reset() -> None:
    clock = clocked(QueueClock(since=NOW), eligible=False, now=later(NOW, 60.0))
    assert clocked(clock, eligible=False, now=later(NOW, 90.0)) == clock
    again = clocked(clock, eligible=True, now=later(NOW, 100.0))
    assert again.waited_s(later(NOW, 110.0)) == 70.0
    assert replace(again, since=None) == clock
