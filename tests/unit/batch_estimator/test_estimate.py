"""Forecasts and their reasons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from batch_estimator.estimate import NoForecastError, estimate
from batch_estimator.publish import fallback
from batch_estimator.sending import capacity_of
from batch_estimator.snapshot import AppQueue, Tail
from batch_estimator.snapshot import InstanceStanding as S
from domain.forecasts import HoldKind, Method
from domain.units import DAY_S, HOUR_S, Instant
from tests.facts import missing
from tests.unit.batch_estimator.snapshots import BOUND_S, NOW, Record, Sent, a_snapshot, hosts

TAIL = Tail(open_jobs=1000, unsent=None, late_factor=0.7)
UNSENT, RUNNING, SUCCESS, ERROR = (
    S.UNSENT,
    S.IN_PROGRESS,
    S.SUCCESS,
    S.ERROR,
)


def test_a_complete_batch_is_complete_now() -> None:
    forecast = estimate(a_snapshot([Sent(0, SUCCESS, 1)]))

    assert forecast.method is Method.COMPLETE
    assert forecast.q90_at == NOW


def test_hosts_with_a_record_make_a_warm_forecast() -> None:
    forecast = estimate(a_snapshot([Sent(0, RUNNING, 1, sent_h=1.0)], hosts(12, hours=8.0)))

    assert forecast.method is Method.WARM
    assert 2 * HOUR_S < forecast.q50_at - NOW < 14 * HOUR_S


def test_only_results_of_the_batch_are_named_as_its_basis() -> None:
    first = [Sent(0, RUNNING, 1, sent_h=1.0), Sent(1, UNSENT)]
    later_on = [Sent(0, SUCCESS, 1, sent_h=9.0, back_h=1.0), Sent(1, UNSENT)]

    own = [not missing(estimate(a_snapshot(one, hosts(12))).because, "results") for one in (first, later_on)]

    assert own == [False, True]


def test_a_new_app_is_judged_by_its_own_replies() -> None:
    back = [Sent(job, SUCCESS, job + 1, sent_h=20.0, back_h=10.0) for job in range(8)]

    forecast = estimate(a_snapshot([*back, Sent(8, RUNNING, 9, sent_h=2.0)]))

    assert forecast.method is Method.COLD
    assert 3 * HOUR_S < forecast.q50_at - NOW < 24 * HOUR_S


def test_without_replies_the_size_of_the_jobs_decides() -> None:
    forecast = estimate(a_snapshot([Sent(0, RUNNING, 1, sent_h=0.1)]))

    assert forecast.method is Method.APRIORI
    assert forecast.q90_at - NOW < 3 * BOUND_S


def test_a_batch_without_instances_has_a_forecast() -> None:
    snapshot = a_snapshot([Sent(0, UNSENT), Sent(1, UNSENT)])
    bare = replace(snapshot, instances=a_snapshot([]).instances)

    assert NOW < estimate(bare).q50_at < NOW + 60 * BOUND_S


def test_an_unreliable_host_makes_it_later_than_a_reliable_one() -> None:
    batch = [Sent(0, RUNNING, 1, sent_h=6.0)]
    unreliable = [Record(1, n_timeout=15, n_due=20), *hosts(12)[1:]]

    assert estimate(a_snapshot(batch, unreliable)).q90_at > estimate(a_snapshot(batch, hosts(12))).q90_at + HOUR_S


def test_overdue_instance_is_expected_to_be_retried() -> None:
    late = estimate(a_snapshot([Sent(0, RUNNING, 1, sent_h=150.0)], hosts(12, hours=4.0, n=40)))

    assert late.terms is not None
    assert late.terms.retries_expected > 0.8
    assert late.q50_at > NOW + (168.0 - 150.0) * HOUR_S


def test_larger_jobs_take_longer() -> None:
    batch = [Sent(0, RUNNING, 1, sent_h=0.5)]
    usual = a_snapshot(batch, hosts(12))
    larger = replace(usual, jobs=replace(usual.jobs, fpops_flop=usual.jobs.fpops_flop * 10.0))

    assert estimate(larger).q50_at > estimate(usual).q50_at + HOUR_S


def test_a_slow_sender_makes_it_later() -> None:
    sent = [Sent(job, SUCCESS, 1 + job % 12, sent_h=2.0 + 40.0 * job / 60, back_h=1.0) for job in range(60)]
    few = estimate(a_snapshot([*sent, *[Sent(60 + job, UNSENT) for job in range(10)]], hosts(12)))
    many = estimate(a_snapshot([*sent, *[Sent(60 + job, UNSENT) for job in range(300)]], hosts(12)))

    assert few.terms is not None
    assert many.terms is not None
    assert many.terms.sending_s > 5 * DAY_S > few.terms.sending_s
    assert many.q50_at - few.q50_at > 4 * DAY_S


@pytest.mark.parametrize("tail", [None, TAIL])
def test_a_batch_ends_no_sooner_than_its_sending(tail: Tail | None) -> None:
    sent = [Sent(job, SUCCESS, 1 + job % 12, sent_h=2.0 + 40.0 * job / 60, back_h=0.1) for job in range(60)]
    rest = [Sent(60 + job, UNSENT) for job in range(600)]
    found = estimate(replace(a_snapshot([*sent, *rest], hosts(12)), tail=tail))

    assert found.terms is not None and NOW + found.terms.sending_s <= found.q50_at


@pytest.mark.parametrize("waited_h", [6.0, 24.0, 240.0])
def test_waiting_in_the_queue_is_no_slow_sending(waited_h: float) -> None:
    """Two hundred jobs of 8 h for 500 hosts: retries after the 7 days of the delay bound dominate."""
    jobs = [Sent(job, UNSENT, created_h=waited_h) for job in range(200)]
    submitted_at = Instant(NOW - waited_h * HOUR_S)

    forecast = estimate(a_snapshot(jobs, hosts(40, n=20), submitted_at=submitted_at, active_hosts=500))

    assert forecast.q50_at - NOW < 10 * DAY_S
    assert forecast.q90_at - NOW < 20 * DAY_S


def test_earlier_work_delays_a_batch_by_its_duration() -> None:
    jobs, records = [Sent(job, UNSENT, created_h=1.0) for job in range(20)], hosts(40, n=20)
    waiting = a_snapshot(jobs, records, submitted_at=Instant(NOW - HOUR_S), active_hosts=50)

    first, own, others = [
        estimate(replace(waiting, queue=queue)).q50_at
        for queue in (AppQueue(), AppQueue(ahead=1000), AppQueue(ahead_of_others=1000))
    ]

    assert own == others
    assert own - first == pytest.approx(1000 * 8 * HOUR_S / 25, rel=0.3)


def test_work_of_other_apps_takes_as_long_as_its_jobs_are_large() -> None:
    """Half of 100 processors at 1e9 flop/s work. The own jobs are small."""
    jobs, records = [Sent(job, UNSENT, created_h=1.0) for job in range(3)], hosts(40, n=20, hours=0.5)
    speed: dict[str, Any] = {"active_hosts": 50, "active_processors": 100.0, "median_flop_per_s": 1e9}
    waiting = a_snapshot(jobs, records, submitted_at=Instant(NOW - HOUR_S), **speed)

    first, behind = [
        estimate(replace(waiting, queue=queue)).q50_at
        for queue in (AppQueue(), AppQueue(ahead_of_others=200, flop_of_others=200 * 26e12))
    ]

    assert behind - first == pytest.approx(200 * 26e12 / (50 * 1e9), rel=0.3)


def full_queue(every_h: float, lasts_h: float, *, hours: float = 100.0) -> list[Sent]:
    """A sample of the app's other work: one instance sent every `every_h`, each returned after `lasts_h`."""
    ages = [every_h * number for number in range(int(hours / every_h))]
    return [
        Sent(0, SUCCESS, 1 + number % 40, sent_h=age, back_h=age - lasts_h)
        if age >= lasts_h
        else Sent(0, RUNNING, 1 + number % 40, sent_h=age)
        for number, age in enumerate(ages)
    ]


def test_capacity_is_most_in_progress_over_turnaround() -> None:
    """15 per hour that take 8 h are 120 in progress; the sample has every tenth."""
    snapshot = a_snapshot([Sent(0, UNSENT)], hosts(40, n=20), full_queue(1 / 15, 8.0), sent_weight=10.0)

    capacity = capacity_of(snapshot, 8 * HOUR_S, 8 * HOUR_S)

    assert capacity.rate_per_s == pytest.approx(150 / HOUR_S, rel=0.02)
    assert capacity.room == pytest.approx(0.0, abs=20.0)


def test_an_idle_app_has_room_for_what_it_did_at_once() -> None:
    """All of it returned: 40 instances were in progress at once, so there is room for 40 now."""
    before = [Sent(0, SUCCESS, 1 + number, sent_h=50.0, back_h=30.0) for number in range(40)]
    snapshot = a_snapshot([Sent(0, UNSENT)], hosts(40, n=20), before)

    assert capacity_of(snapshot, 8 * HOUR_S, 8 * HOUR_S).room == 40.0


def test_equal_batches_are_later_by_their_place() -> None:
    """Ten batches of 20,000 one-hour jobs on 1,000 hosts at 2,000 per hour: each takes 10 h of the queue."""
    sample = full_queue(1 / 40, 2.0)
    jobs, records = [Sent(job, UNSENT, created_h=1.0) for job in range(20_000)], hosts(40, n=20, hours=2.0)
    submitted_at = Instant(NOW - HOUR_S)
    first = a_snapshot(jobs, records, sample, submitted_at=submitted_at, active_hosts=1000, sent_weight=50.0)

    ends_h = [
        (estimate(replace(first, queue=AppQueue(ahead=20_000 * place), tail=TAIL)).q50_at - NOW) / HOUR_S
        for place in range(10)
    ]

    steps = np.diff(ends_h)
    assert ends_h[0] < 40.0
    assert np.all(steps > 5.0) and np.all(steps < 20.0)
    assert steps.max() < 1.5 * steps.min()


def test_started_batch_uses_its_own_sending_rate() -> None:
    """Two days of waiting, then one job a minute for an hour: the rest takes another hour to send."""
    sent = [Sent(job, RUNNING, 1 + job % 40, sent_h=job / 60, created_h=48.0) for job in range(60)]
    rest = [Sent(job, UNSENT, created_h=48.0) for job in range(60, 120)]
    snapshot = a_snapshot([*sent, *rest], hosts(40, n=20), active_hosts=0)

    terms = estimate(snapshot).terms

    assert terms is not None and 0.5 * HOUR_S < terms.sending_s < 3 * HOUR_S


def test_a_held_batch_takes_the_room_its_app_had() -> None:
    """All 60 instances in progress at once have returned: as many are sent within 6 h, when most hosts call."""
    sent = [Sent(job, SUCCESS, 1 + job % 40, sent_h=50.0, back_h=32.0, created_h=60.0) for job in range(60)]
    rest = [Sent(job, UNSENT, created_h=60.0) for job in range(60, 120)]
    snapshot = a_snapshot([*sent, *rest], hosts(40, n=20), active_hosts=80, queue=AppQueue(held=True))

    terms = estimate(snapshot).terms

    assert terms is not None and terms.sending_s == pytest.approx(6 * HOUR_S)


def test_what_holds_the_batch_is_named_with_its_hosts() -> None:
    batch = [
        Sent(0, RUNNING, 7, sent_h=160.0),
        Sent(1, RUNNING, 8, sent_h=0.5),
        Sent(2, ERROR, 9),
        Sent(2, UNSENT, created_h=1.0),
    ]

    holds = {hold.kind: hold for hold in estimate(a_snapshot(batch, hosts(12))).holds}

    assert holds[HoldKind.OVERDUE].host_ids == (7,)
    assert holds[HoldKind.IN_PROGRESS].host_ids == (8,)
    assert holds[HoldKind.RETRIES].slots == 1
    assert not missing(
        holds[HoldKind.OVERDUE].because, "1 needed result", "1 host", "up to 6 d 16 h", "longer than usual"
    )


def test_jobs_that_wait_for_their_quorum_are_counted() -> None:
    batch = [Sent(0, SUCCESS, 1), Sent(0, RUNNING, 2), Sent(1, RUNNING, 1), Sent(1, RUNNING, 3)]

    terms = estimate(a_snapshot(batch, hosts(12), quorum=2)).terms

    assert terms is not None
    assert (terms.jobs_open, terms.jobs_with_success) == (2, 1)


def test_no_spread_stretches_beyond_the_grid() -> None:
    snapshot = a_snapshot([Sent(0, UNSENT, created_h=1.0)], active_hosts=0)

    assert estimate(snapshot, spread=4.0).q90_at - NOW <= 16 * BOUND_S + 3 * 4 * BOUND_S


def test_what_waits_for_another_result_to_agree_is_named() -> None:
    agreeing = [Sent(0, SUCCESS, 1, sent_h=20.0), Sent(0, RUNNING, 2, sent_h=1.0)]
    both = [Sent(1, RUNNING, 3, sent_h=1.0), Sent(1, RUNNING, 4, sent_h=1.0)]

    holds = estimate(a_snapshot([*agreeing, *both], hosts(12), quorum=2)).holds

    assert {hold.kind: (hold.slots, hold.host_ids) for hold in holds} == {
        HoldKind.QUORUM: (1, (2,)),
        HoldKind.IN_PROGRESS: (2, (3, 4)),
    }


def test_spread_stretches_about_the_median() -> None:
    snapshot = a_snapshot([Sent(0, RUNNING, 1, sent_h=1.0)], hosts(12))
    usual, wide = estimate(snapshot), estimate(snapshot, spread=2.0)

    assert wide.q50_at == pytest.approx(usual.q50_at, abs=1e-3)
    assert wide.q10_at < usual.q10_at
    assert wide.q90_at > usual.q90_at


def test_work_still_out_makes_the_hosts_slower_than_their_sums() -> None:
    batch = [Sent(0, RUNNING, 1, sent_h=0.5)]
    back = [Sent(0, SUCCESS, 1 + at % 12, sent_h=40.0, back_h=32.0 - at / 20) for at in range(60)]
    out = [Sent(0, RUNNING, 1 + at % 12, sent_h=40.0) for at in range(60)]

    assert (
        estimate(a_snapshot(batch, hosts(12), [*back, *out])).q50_at
        > estimate(a_snapshot(batch, hosts(12), back)).q50_at
    )


def test_instance_waits_for_its_hosts_next_contact() -> None:
    batch = [Sent(0, RUNNING, 1, sent_h=100.0)]
    crowd = [Record(host, n=40, hours=40.0, silent_h=2.0 ** (host / 8)) for host in range(2, 80)]
    heard = estimate(a_snapshot(batch, [Record(1, n=40, hours=40.0, silent_h=0.1), *crowd]))
    silent = estimate(a_snapshot(batch, [Record(1, n=40, hours=40.0, silent_h=99.0), *crowd]))

    assert silent.q10_at > heard.q10_at + HOUR_S


def test_numbers_that_are_none_give_no_forecast() -> None:
    snapshot = a_snapshot([Sent(0, RUNNING, 1)], hosts(12))
    broken = replace(snapshot, havs=replace(snapshot.havs, sum_ln=np.full(12, np.nan)))

    with np.errstate(all="ignore"), pytest.raises(NoForecastError):
        estimate(broken)


def test_fallback_is_at_least_last_estimate_and_delay_bound() -> None:
    for previous_at, expected_at in (
        (None, NOW + BOUND_S),
        (NOW + 1.0, NOW + BOUND_S),
        (NOW + 2 * BOUND_S, NOW + 2 * BOUND_S),
    ):
        previous = None if previous_at is None else Instant(previous_at)
        forecast = fallback(now=NOW, delay_bound_s=BOUND_S, previous_at=previous, because="no fit")

        assert (forecast.method, forecast.q50_at, forecast.q90_at) == (Method.FALLBACK, expected_at, expected_at)
