"""What an event costs, what usage comes to, and which queue a spent grant leaves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from domain.units import AccountId, BatchId, Instant, Seconds, SubmitterId
from domain.usage import Amounts, ChargeEvent, ChargeKind, DecayedUsage
from priority.charging import BONUS, EXPRESS, NORMAL, Grant, charge, queue_of

START = Instant(0.0)
WEEK = Seconds(604_800.0)
SENT = ChargeEvent(
    ChargeKind.DISPATCH,
    SubmitterId(1),
    AccountId(1),
    BatchId(1),
    sent_at=Instant(1_000.0),
    estimate=Amounts(flop=6e12, cpu_s=60.0),
    estimate_su=2.0,
    pe=2.0,
)


def usage_after(*events: ChargeEvent, at: float) -> Amounts:
    usage = DecayedUsage()
    for event in events:
        made = charge(event)
        usage = usage.charged(made.usage, since=made.since, half_life_s=WEEK)
    return usage.read(Instant(at), WEEK)


def test_a_volunteers_failure_gives_back_exactly_what_was_charged_however_late() -> None:
    lost = replace(SENT, kind=ChargeKind.LOST)

    assert usage_after(SENT, lost, at=1_000.0 + 3 * WEEK).flop == pytest.approx(0.0, abs=1e-3)
    assert (charge(lost).reserved_su, charge(lost).used_su, charge(lost).in_flight_pe) == (-2.0, 0.0, -2.0)


def test_a_report_leaves_what_was_used_since_it_was_sent() -> None:
    report = replace(SENT, kind=ChargeKind.REPORT, used=Amounts(flop=4e12), used_su=1.5)

    assert usage_after(SENT, report, at=1_000.0 + WEEK).flop == pytest.approx(2e12)
    assert (charge(report).reserved_su, charge(report).used_su) == (-2.0, 1.5)


def test_the_submitters_fault_is_not_refunded() -> None:
    lost = replace(SENT, kind=ChargeKind.LOST, submitters_fault=True)

    assert usage_after(SENT, lost, at=1_000.0).flop == 6e12


def test_a_report_of_unknown_use_lets_the_estimate_stand() -> None:
    report = charge(replace(SENT, kind=ChargeKind.REPORT))

    assert (report.usage, report.used_su, report.because) == (Amounts(), 2.0, "reported: the estimate stands")


def test_charges_come_out_the_same_in_any_order() -> None:
    report = replace(SENT, kind=ChargeKind.REPORT, used=Amounts(flop=4e12))
    later = replace(SENT, sent_at=Instant(500_000.0))

    one_way = usage_after(SENT, report, later, at=2e6).flop
    other_way = usage_after(later, report, SENT, at=2e6).flop
    assert one_way == pytest.approx(other_way)


def test_usage_next_to_nothing_is_read_as_nothing() -> None:
    usage = DecayedUsage(Amounts(flop=1.0), Instant(0.0)).read(Instant(100 * WEEK), WEEK)

    assert usage.weighed(Amounts(flop=1.0)) == 0.0


def test_a_spent_grant_goes_on_in_the_queue_that_costs_nothing() -> None:
    left = Grant(AccountId(1), 10.0, START, Seconds(100.0), used_su=9.0)
    spent = left.charged(used_su=0.0, reserved_su=1.0)

    assert queue_of("express", left)[0] is EXPRESS
    assert queue_of("express", spent)[0] is queue_of("normal", spent)[0] is BONUS
    assert queue_of("normal", None)[0] is NORMAL
    assert queue_of("normal", spent.at(Instant(100.0)))[0] is NORMAL
