"""Big jobs: earliest starts in reservation and backfill, reserved slots, leases, and displacement of other work."""

from __future__ import annotations

import math

import pytest

from domain.ordering import Request
from domain.reservations import Kept, Lease, LeaseStanding
from domain.units import BatchId, HostId, Instant, Seconds
from priority.big_jobs import (
    CoreRequest,
    CoreUse,
    WaitingBigJob,
    earliest,
    given_back,
    kept_slots,
    lease,
    lease_conflict,
)
from priority.displacement import DisplacingJob, UnderWay, veto
from tests.cases.reference.backfill import Plan, Rehearsed, plan, rehearse
from tests.facts import missing

START = Instant(0.0)
NOW = Instant(100.0)
HOST = Request(8.0, 16e9)


def looked(*queue: tuple[str, float, float], cores: float = 4.0, depth: int | None = 1, busy: float = 0.0) -> Plan:
    running = [CoreUse("old", busy, Instant(-50.0), Instant(100.0))] if busy else []
    wanted = [CoreRequest(job, wants, Seconds(limit_s)) for job, wants, limit_s in queue]
    return plan(wanted, cores=cores, running=running, now=START, depth=depth)


def started(one: Plan) -> list[object]:
    return [slot.job for slot in one.started]


def test_a_small_job_that_ends_before_the_promise_goes_ahead() -> None:
    one = looked(("big", 4, 60.0), ("short", 2, 100.0), ("long", 2, 101.0), busy=2)

    assert started(one) == ["short"]
    assert [(slot.job, slot.start_at) for slot in one.promised] == [("big", 100.0)]
    assert one.because["long"] == "waits behind 1 promises"


def test_depth_zero_reserves_nothing() -> None:
    one = looked(("big", 4, 60.0), ("long", 2, 1e6), depth=0, busy=2)

    assert (started(one), one.promised) == (["long"], ())


def test_job_too_big_for_every_host_blocks_no_other() -> None:
    one = looked(("huge", 5, 60.0), ("small", 4, 60.0))

    assert started(one) == ["small"]
    assert one.because["huge"] == "requests 5 of 4 cores"


def test_work_past_its_limit_is_taken_to_end_now() -> None:
    late = [CoreUse("late", 4, Instant(-100.0), Instant(-10.0))]

    assert [
        slot.job for slot in plan([CoreRequest("a", 4, Seconds(5.0))], cores=4, running=late, now=START).started
    ] == ["a"]


def test_what_never_fits_has_no_earliest_start() -> None:
    assert earliest(CoreRequest("a", 5, Seconds(1.0)), [], cores=4, now=START) == math.inf


def test_without_backfill_no_job_passes_the_first_waiting_one() -> None:
    jobs = [
        Rehearsed(CoreRequest("old", 1, Seconds(100.0))),
        Rehearsed(CoreRequest("big", 2, Seconds(10.0)), Instant(1.0), priority=2.0),
        Rehearsed(CoreRequest("small", 1, Seconds(10.0)), Instant(1.0), priority=1.0),
    ]

    assert dict(rehearse(jobs, cores=2).starts) == {"old": 0.0, "small": 1.0, "big": 100.0}
    assert dict(rehearse(jobs, cores=2, backfill=False).starts) == {"old": 0.0, "big": 100.0, "small": 110.0}


def slots(waiting: list[WaitingBigJob], kept: list[Kept], depth: int = 1, longest_s: float = 1000.0) -> list[int]:
    made = kept_slots(waiting, kept, depth=depth, reference=HOST, least_pe=4.0, longest_s=Seconds(longest_s), now=NOW)
    return [slot.batch_id for slot in made]


def big(number: int, **changes: object) -> WaitingBigJob:
    return WaitingBigJob(BatchId(number), **{"request": Request(8.0), **changes})  # type: ignore[arg-type]


def test_ordinary_jobs_and_those_hosts_take_need_no_kept_slot() -> None:
    assert slots([big(1, request=Request(1.0)), big(2, blocked=False), big(3)], []) == [3]


def test_a_newly_higher_job_takes_no_slot_away() -> None:
    assert slots([big(1), big(2)], [Kept(BatchId(2), NOW)]) == [2]


def test_a_sent_job_leaves_its_slot_to_the_next() -> None:
    assert slots([big(1)], [Kept(BatchId(2), NOW)]) == [1]
    assert slots([big(1), big(2, sent=4)], [Kept(BatchId(2), NOW, sent=3)]) == [1]
    assert slots([big(1), big(2, sent=4)], [Kept(BatchId(2), NOW, sent=4)]) == [2]


def test_a_slot_kept_too_long_goes_to_another() -> None:
    assert slots([big(1), big(2)], [Kept(BatchId(1), Instant(0.0))], longest_s=50.0) == [2]
    assert slots([big(1)], [Kept(BatchId(1), Instant(0.0))], longest_s=50.0) == []


def a_lease(under_way: list[CoreUse], now: float = 100.0, cores: float = 4.0) -> Lease | None:
    return lease(
        batch_id=BatchId(1),
        cores=cores,
        limit_s=Seconds(500.0),
        host_id=HostId(1),
        host_cores=4.0,
        under_way=under_way,
        slack_s=Seconds(60.0),
        now=Instant(now),
    )


def test_a_lease_slides_forward_when_work_ends_early() -> None:
    first = a_lease([CoreUse("a", 2.0, NOW, Instant(900.0)), CoreUse("b", 1.0, NOW, Instant(400.0))])
    second = a_lease([CoreUse("b", 1.0, NOW, Instant(400.0))], now=200.0)

    assert first is not None and second is not None
    assert (first.start_at, second.start_at) == (900.0, 400.0)


def test_a_host_with_too_few_cores_gives_no_lease() -> None:
    assert a_lease([], cores=5.0) is None


def test_job_leaving_enough_cores_may_outlast_lease_start() -> None:
    held = a_lease([CoreUse("a", 3.0, NOW, Instant(300.0))], cores=2.0)
    assert held is not None

    def fits(cores: float, under_way: list[CoreUse]) -> bool:
        limit_s = Seconds(1000.0)
        found = lease_conflict(held, cores=cores, limit_s=limit_s, host_cores=4.0, under_way=under_way, now=NOW)
        return found is None

    assert fits(2.0, [])
    assert not fits(3.0, [])
    assert not fits(2.0, [CoreUse("c", 1.0, NOW, Instant(5000.0))])


def under_way(**changes: object) -> UnderWay:
    values: dict[str, object] = {
        "name": "old",
        "cores": 4.0,
        "remaining_s": Seconds(4000.0),
        "limit_s": Seconds(4000.0),
        "due_at": Instant(1e6),
        "reported_at": NOW,
    }
    return UnderWay(**{**values, **changes})  # type: ignore[arg-type]


def verdict(one: UnderWay, seconds: float = 1000.0, due_at: float = 1e5, running: int = 0) -> str | None:
    job = DisplacingJob(4.0, Seconds(seconds), Instant(due_at), running)
    return veto(job, [one], host_cores=4.0, now=NOW)


def test_each_factor_alone_forbids_displacement() -> None:
    assert verdict(under_way()) is None
    assert not missing(verdict(under_way(), seconds=1001.0) or "", "old", "stretched to 1.25", "at most 1.25")
    assert not missing(verdict(under_way(due_at=Instant(5000.0))) or "", "old would end 100 s after")
    assert not missing(verdict(under_way(), due_at=1000.0) or "", "100 s after", "own due date")
    nearly_done = under_way(remaining_s=Seconds(40.0))
    score = "score -0.46"  # 1 + log2(2) / 2 - 2 * 0.99^2
    assert not missing(verdict(nearly_done, seconds=500.0) or "", "old", score)
    assert verdict(under_way(), running=1000) is not None


def test_what_would_be_late_anyway_is_no_obstacle() -> None:
    free = under_way(name="late", cores=1.0, due_at=Instant(200.0))

    assert veto(DisplacingJob(2.0, Seconds(10.0), Instant(1e5)), [free], host_cores=4.0, now=NOW) is None


def test_reports_grow_old_and_work_goes_on_meanwhile() -> None:
    one = under_way(reported_at=Instant(0.0))

    assert (one.left_s(NOW), one.left_s(Instant(1e9))) == (3900.0, 0.0)
    assert one.done_fraction(NOW) == pytest.approx(0.025)


def standing(held: Lease, **changes: object) -> LeaseStanding:
    values: dict[str, object] = {"unsent": 1, "given": False, "last_rpc_at": NOW}
    return LeaseStanding(held, **{**values, **changes})  # type: ignore[arg-type]


def test_lease_ends_with_job_host_or_expiry() -> None:
    held = a_lease([CoreUse("a", 2.0, NOW, Instant(900.0))])
    assert held is not None and (held.start_at, held.expires_at) == (900.0, 960.0)

    def why(now: float = 100.0, **changes: object) -> str | None:
        return given_back(standing(held, **changes), slack_s=Seconds(60.0), now=Instant(now))

    assert why() is None
    assert not missing(why(given=True) or "", "host 1", "sent a job", "batch 1")
    assert not missing(why(unsent=0) or "", "batch 1", "no unsent job")
    assert not missing(why(now=161.0) or "", "host 1", "61 s", "limit 60 s")
    assert why(now=300.0, rpc_interval_s=Seconds(100.0)) is None
    assert not missing(why(now=970.0, last_rpc_at=Instant(969.0)) or "", "expired 10 s ago", "60 s after")


def test_a_job_may_end_as_late_as_the_slack_after_a_lease_begins() -> None:
    held = a_lease([CoreUse("a", 2.0, NOW, Instant(900.0))])
    assert held is not None

    def fits(limit_s: float) -> bool:
        found = lease_conflict(
            held,
            cores=1.0,
            limit_s=Seconds(limit_s),
            host_cores=4.0,
            under_way=[],
            now=NOW,
            slack_s=Seconds(60.0),
        )
        return found is None

    assert fits(860.0)
    assert not fits(861.0)
