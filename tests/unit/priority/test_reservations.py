"""Promises, and who may run before them."""

from __future__ import annotations

import math

from domain.units import AccountId, BatchId, Instant, Seconds
from priority.equal_access import Claim, shuffled
from priority.grants import BONUS, EXPRESS, NORMAL, Grant, queue_of
from priority.reservations import Plan, Rehearsed, Taken, Wanting, earliest, plan, rehearse

NOW = Instant(0.0)


def looked(*queue: tuple[str, float, float], cores: float = 4.0, depth: int | None = 1, busy: float = 0.0) -> Plan:
    running = [Taken("old", busy, Instant(-50.0), Instant(100.0))] if busy else []
    wanted = [Wanting(job, wants, Seconds(limit_s)) for job, wants, limit_s in queue]
    return plan(wanted, cores=cores, running=running, now=NOW, depth=depth)


def started(one: Plan) -> list[object]:
    return [slot.job for slot in one.started]


def test_a_small_job_that_ends_before_the_promise_goes_ahead() -> None:
    one = looked(("big", 4, 60.0), ("short", 2, 100.0), ("long", 2, 101.0), busy=2)

    assert started(one) == ["short"]
    assert [(slot.job, slot.start_at) for slot in one.promised] == [("big", 100.0)]
    assert one.because["long"] == "waits behind 1 promises"


def test_depth_nought_promises_nothing_and_any_job_that_fits_goes() -> None:
    one = looked(("big", 4, 60.0), ("long", 2, 1e6), depth=0, busy=2)

    assert (started(one), one.promised) == (["long"], ())


def test_a_job_that_no_host_could_hold_blocks_nobody() -> None:
    one = looked(("huge", 5, 60.0), ("small", 4, 60.0))

    assert started(one) == ["small"]
    assert one.because["huge"] == "wants 5 cores where there are 4"


def test_work_past_its_limit_is_taken_to_end_now() -> None:
    late = [Taken("late", 4, Instant(-100.0), Instant(-10.0))]

    assert [slot.job for slot in plan([Wanting("a", 4, Seconds(5.0))], cores=4, running=late, now=NOW).started] == ["a"]


def test_what_never_fits_has_no_earliest_start() -> None:
    assert earliest(Wanting("a", 5, Seconds(1.0)), [], cores=4, now=NOW) == math.inf


def test_without_backfill_nobody_passes_the_first_that_waits() -> None:
    jobs = [
        Rehearsed(Wanting("old", 1, Seconds(100.0))),
        Rehearsed(Wanting("big", 2, Seconds(10.0)), Instant(1.0), priority=2.0),
        Rehearsed(Wanting("small", 1, Seconds(10.0)), Instant(1.0), priority=1.0),
    ]

    assert dict(rehearse(jobs, cores=2).starts) == {"old": 0.0, "small": 1.0, "big": 100.0}
    assert dict(rehearse(jobs, cores=2, backfill=False).starts) == {"old": 0.0, "big": 100.0, "small": 110.0}


def claim(number: int, owner: int, **changes: object) -> Claim:
    values: dict[str, object] = {"tier": 1, "pe": 1.0, "jobs": 10, "submitted_at": Instant(float(number))}
    return Claim(BatchId(number), owner, **{**values, **changes})  # type: ignore[arg-type]  # by name


def order(*claims: Claim, held: dict[int, float] | None = None, slots: int = 4) -> list[int]:
    return list(shuffled(claims, held_pe=held or {}, slots=slots))


def test_equals_alternate_and_big_jobs_count_for_what_they_hold() -> None:
    assert order(claim(1, 1), claim(2, 2)) == [1, 2, 1, 2]
    assert order(claim(1, 1, pe=3.0), claim(2, 2), slots=5) == [1, 2, 2, 2, 1]


def test_express_is_served_before_normal_whatever_is_held() -> None:
    assert order(claim(1, 1), claim(2, 2, tier=0, jobs=2), held={2: 99.0}) == [2, 2, 1, 1]


def test_a_batch_passed_over_comes_nearer() -> None:
    assert order(claim(1, 1), claim(2, 2, bypassed=2), held={2: 1.0}, slots=2) == [2, 1]


def test_no_more_jobs_are_placed_than_there_are() -> None:
    assert order(claim(1, 1, jobs=1), claim(2, 1, jobs=1), claim(3, 2, jobs=0), slots=9) == [1, 2]


def test_a_spent_grant_goes_on_in_the_queue_that_costs_nothing() -> None:
    left = Grant(AccountId(1), 10.0, NOW, Seconds(100.0), used_su=9.0)
    spent = left.charged(used_su=0.0, reserved_su=1.0)

    assert queue_of("express", left)[0] is EXPRESS
    assert queue_of("express", spent)[0] is queue_of("normal", spent)[0] is BONUS
    assert queue_of("normal", None)[0] is NORMAL
    assert queue_of("normal", spent.at(Instant(100.0)))[0] is NORMAL
