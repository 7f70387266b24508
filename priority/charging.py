"""What does an event cost a submitter, or give back? Pure.

Work is charged by estimate when it is sent, corrected to what it took when it comes back, and refunded when a
volunteer failed: a refund is at most what was charged. All of it counts from the instant the work was sent.
"""

from __future__ import annotations

from typing import assert_never

from domain.usage import Amounts, Charge, ChargeEvent, ChargeKind


def charge(event: ChargeEvent) -> Charge:
    """The changes an event makes to its submitter's usage, work under way and service units.

    Dispatch: + estimate. Report: what was used - estimate (nothing where it is not known). Lost: - estimate,
    unless it was the submitter's fault, which is charged like a report.

    >>> event = ChargeEvent(ChargeKind.REPORT, 1, 1, 7, 100.0, Amounts(flop=5e12), used=Amounts(flop=4e12), pe=2.0)
    >>> made = charge(event)
    >>> made.usage.flop, made.in_flight, made.in_flight_pe, made.since
    (-1000000000000.0, -1, -2.0, 100.0)
    """
    match event.kind:
        case ChargeKind.DISPATCH:
            because = "sent: charged by estimate"
            return _charge(event, event.estimate, in_flight=+1, because=because, reserved_su=event.estimate_su)
        case ChargeKind.REPORT:
            return _corrected(event, "reported")
        case ChargeKind.LOST if event.submitters_fault:
            return _corrected(event, "failed by the submitter's fault")
        case ChargeKind.LOST:
            because = "lost through no fault of the submitter: refunded"
            refund = event.estimate.times(-1.0)
            return _charge(event, refund, in_flight=-1, because=because, reserved_su=-event.estimate_su)
        case _:
            assert_never(event.kind)


def _corrected(event: ChargeEvent, what: str) -> Charge:
    """Estimates give way to what was used, where that is known."""
    usage = Amounts() if event.used is None else event.used.minus(event.estimate)
    units = event.estimate_su if event.used_su is None else event.used_su
    known = "charged what it took" if event.used is not None else "the estimate stands"
    because = f"{what}: {known}"
    return _charge(event, usage, in_flight=-1, because=because, used_su=units, reserved_su=-event.estimate_su)


def _charge(
    event: ChargeEvent, usage: Amounts, *, in_flight: int, because: str, used_su: float = 0.0, reserved_su: float = 0.0
) -> Charge:
    return Charge(
        event.submitter_id,
        event.account_id,
        event.batch_id,
        event.sent_at,
        usage,
        in_flight,
        in_flight * event.pe,
        in_flight * event.estimate.flop,
        used_su,
        reserved_su,
        because,
    )
