"""Charges of events, accumulated usage, and the queue after a grant is used up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.ordered_work import Grant
from domain.units import AccountId, Instant, Seconds
from domain.usage import Amounts, Charge, DecayedUsage
from priority.charging import BONUS, EXPRESS, NORMAL, queue_of

START = Instant(0.0)
WEEK = Seconds(604_800.0)
SENT = Charge(Instant(1_000.0), Amounts(flop=6e12, cpu_s=60.0))
BACK = Charge(SENT.since, Amounts(flop=4e12).minus(SENT.usage))  # it used 4e12


def usage_after(*charges: Charge, at: float) -> Amounts:
    usage = DecayedUsage()
    for one in charges:
        usage = usage.charged(one.usage, since=one.since, half_life_s=WEEK)
    return usage.read(Instant(at), WEEK)


def test_late_failure_refunds_exactly_the_charge() -> None:
    lost = Charge(SENT.since, SENT.usage.times(-1.0))

    assert usage_after(SENT, lost, at=1_000.0 + 3 * WEEK).flop == pytest.approx(0.0, abs=1e-3)


def test_a_report_leaves_what_was_used_since_it_was_sent() -> None:
    assert usage_after(SENT, BACK, at=1_000.0 + WEEK).flop == pytest.approx(2e12)


def test_charges_come_out_the_same_in_any_order() -> None:
    later = Charge(Instant(500_000.0), SENT.usage)

    one_way = usage_after(SENT, BACK, later, at=2e6).flop
    other_way = usage_after(later, BACK, SENT, at=2e6).flop
    assert one_way == pytest.approx(other_way)


def test_usage_next_to_nothing_is_read_as_nothing() -> None:
    usage = DecayedUsage(Amounts(flop=1.0), Instant(0.0)).read(Instant(100 * WEEK), WEEK)

    assert usage.weighed(Amounts(flop=1.0)) == 0.0


def test_a_spent_grant_goes_on_in_the_queue_that_costs_nothing() -> None:
    left = Grant(AccountId(1), 10.0, START, Seconds(100.0), used_su=9.0)
    spent = replace(left, reserved_su=1.0)

    assert queue_of("express", left)[0] is EXPRESS
    assert queue_of("express", spent)[0] is queue_of("normal", spent)[0] is BONUS
    assert queue_of("normal", None)[0] is NORMAL
    assert queue_of("normal", spent.at(Instant(100.0)))[0] is NORMAL
