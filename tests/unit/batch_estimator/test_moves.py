"""The first forecast after a batch has got another place in the order, or was paused for a moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from batch_estimator.estimate import estimate
from batch_estimator.sending import capacity_of, sending_of
from batch_estimator.snapshot import AppQueue, BatchSnapshot, InstanceStanding, Tail
from domain.forecasting import MOVED_S, NEVER_MOVED, PROVISIONAL_S
from domain.units import HOUR_S, Seconds, later
from tests.unit.batch_estimator.snapshots import NOW, Sent, a_snapshot, hosts

RUNNING, SUCCESS, UNSENT = InstanceStanding.IN_PROGRESS, InstanceStanding.SUCCESS, InstanceStanding.UNSENT
BATCH_H = 3.0  # since the submission


@dataclass(frozen=True, slots=True)
class Moved:
    """A batch of an app whose last batch, the day before, was sent at `per_s`, in jobs of `job_h`."""

    jobs: int
    job_h: float
    per_s: float
    ahead: int  # unsent instances of other apps before the move
    ahead_then: int  # and after it

    def seen(self, *, sent: int = 0, held: bool = False, moved: bool = True) -> BatchSnapshot:
        """Return the batch `MOVED_S` after the move, or before it. `sent` of its jobs are out since then."""
        yesterday = [Sent(0, SUCCESS, 1 + at % 40, 20.0 + at / 800, 20.0 + at / 800 - self.job_h) for at in range(400)]
        weight = self.per_s * 0.5 * HOUR_S / 400  # all of it was sent within half an hour
        weight *= max(1.0, self.job_h / 0.5)  # and filled the hosts when the jobs are longer
        out = [
            Sent(at, RUNNING, 1 + at % 40, MOVED_S / HOUR_S * (1 + at) / (sent + 1), 0, BATCH_H) for at in range(sent)
        ]
        return a_snapshot(
            [*out, *(Sent(job, UNSENT, created_h=BATCH_H) for job in range(sent, self.jobs))],
            hosts(40, n=40, hours=self.job_h, silent_h=0.0),
            yesterday,
            submitted_at=later(NOW, -BATCH_H * HOUR_S),
            sent_weight=weight,
            active_hosts=int(2 * self.per_s * self.job_h * HOUR_S),
            queue=AppQueue(ahead_of_others=self.ahead_then if moved else self.ahead, held=held),
            moved_at=later(NOW, -MOVED_S) if moved else NEVER_MOVED,
            delay_bound_s=Seconds(24 * HOUR_S),
            tail=Tail(self.jobs // 20, None, 1.5),
        )


LARGE, SMALL = Moved(9500, 0.17, 0.7, 26_000, 0), Moved(200, 0.17, 0.7, 26_000, 0)
LONG_JOBS, LOWER = Moved(2000, 8.0, 0.05, 5000, 0), Moved(9500, 0.17, 0.7, 0, 26_000)


def expected_h(snapshot: BatchSnapshot) -> float:
    return (estimate(snapshot).q50_at - NOW) / HOUR_S


@pytest.mark.parametrize("batch", [LARGE, SMALL, LONG_JOBS], ids=["large", "small", "long jobs"])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("speed", [0.0, 0.2, 1.0, 4.0])
def test_batch_moved_up_is_not_forecast_later(batch: Moved, speed: float, held: bool) -> None:
    """Its first instances are sent at the hosts' speed, faster, or not yet. A pause of a moment takes nothing away."""
    before, sent = batch.seen(moved=False), round(speed * batch.per_s * MOVED_S)

    assert expected_h(batch.seen(sent=sent, held=held)) < expected_h(before)


def resumed(sent: int, after_s: float = MOVED_S) -> BatchSnapshot:
    """Return a batch that was sent at 0.2/s before a pause of an hour, `sent` of it since the end of the pause."""
    begun_h = 1.0 + after_s / HOUR_S
    before = [
        Sent(at, SUCCESS, 1 + at % 40, begun_h + (at + 120) / 720, begun_h + at / 720, 12.0) for at in range(3000)
    ]
    since = [
        Sent(3000 + at, RUNNING, 1 + at % 40, after_s / HOUR_S * (at + 1) / (sent + 1), 0, 12.0) for at in range(sent)
    ]
    unsent = [Sent(job, UNSENT, created_h=12.0) for job in range(3000 + sent, 30_000)]
    return a_snapshot(
        [*before, *since, *unsent],
        hosts(40, n=40, hours=0.17, silent_h=0.0),
        submitted_at=later(NOW, -12.0 * HOUR_S),
        active_hosts=40,
        moved_at=later(NOW, -after_s),
    )


@pytest.mark.parametrize(("after_s", "provisional"), [(30.0, True), (899.0, True), (900.0, False)])
def test_forecast_is_provisional_shortly_after_a_pause(after_s: float, provisional: bool) -> None:
    terms = estimate(resumed(3, after_s)).terms

    assert terms is not None and terms.provisional == provisional


@pytest.mark.parametrize("sent", [1, 3, 30])
def test_first_instances_after_a_pause_delay_nothing(sent: int) -> None:
    """The hosts were away, so that few dispatches do not show the rate, but many do."""
    assert expected_h(resumed(sent)) <= expected_h(resumed(0))


def shared(since: int, after_s: float) -> BatchSnapshot:
    """Return a batch that shares the hosts: 150 of 2,500 sent in half an hour before a pause of a minute, `since` after
    it. Earlier batches of its app had all hosts for hours: 1,000 instances in progress, each for 14 min.
    """
    begun_h, job_h = (after_s + 60.0) / HOUR_S, 0.23
    before = [
        Sent(at, SUCCESS, 1 + at % 78, begun_h + 0.03 + at / 300, begun_h - 0.12 + at / 300, 0.6)
        for at in range(50, 150)
    ]
    before += [Sent(at, RUNNING, 1 + at % 78, begun_h + at / 300, 0, 0.6) for at in range(50)]
    out = [
        Sent(150 + at, RUNNING, 1 + at % 78, after_s / HOUR_S * (at + 1) / (since + 1), 0, 0.6) for at in range(since)
    ]
    earlier = [Sent(0, SUCCESS, 1 + at % 190, 2.0 + at / 215 + job_h, 2.0 + at / 215) for at in range(650)]
    return a_snapshot(
        [*before, *out, *(Sent(job, UNSENT, created_h=0.6) for job in range(150 + since, 2500))],
        hosts(190, n=40, hours=job_h, silent_h=0.0),
        earlier,
        submitted_at=later(NOW, -0.6 * HOUR_S),
        sent_weight=20.0,
        active_hosts=731,
        moved_at=later(NOW, -after_s),
        delay_bound_s=Seconds(24 * HOUR_S),
    )


@pytest.mark.parametrize("since, after_s", [(0, 40.0), (12, 49.0), (40, 215.0), (90, 350.0)])
def test_a_resumed_batch_does_not_get_all_hosts(since: int, after_s: float) -> None:
    """It is sent at its own rate, before the pause or since, and not at the app's peak, which would take 0.5 h."""
    terms = estimate(shared(since, after_s)).terms
    assert terms is not None
    own_per_s = max(150 / (0.5 * HOUR_S), since / after_s)

    assert terms.sending_s == pytest.approx((2350 - since) / own_per_s, rel=0.3)


def begun(sent_s: float) -> BatchSnapshot:
    """Return a batch that waited 94 min for its turn, and was sent at 0.4/s for `sent_s` before a pause of a minute."""
    out = [Sent(at, RUNNING, 1 + at % 40, (80.0 + sent_s - 2.5 * at) / HOUR_S) for at in range(int(sent_s / 2.5))]
    batch = LARGE.seen(moved=False)
    return a_snapshot(
        [*out, *(Sent(job, UNSENT, created_h=1.6) for job in range(len(out), LARGE.jobs))],
        hosts(40, n=40, hours=LARGE.job_h, silent_h=0.0),
        [Sent(0, SUCCESS, 1 + at % 40, 20.0 + at / 800, 20.0 + at / 800 - LARGE.job_h) for at in range(400)],
        submitted_at=later(NOW, -1.6 * HOUR_S),
        sent_weight=batch.sent_weight,
        active_hosts=batch.active_hosts,
        moved_at=later(NOW, -20.0),
        delay_bound_s=batch.delay_bound_s,
    )


@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("sent_s", [50.0, 300.0, 900.0])
def test_a_wait_for_its_turn_does_not_delay_a_batch(sent_s: float, moved: bool) -> None:
    """Neither the wait before its first dispatch nor the first minute of dispatches is the rate at which it is sent."""
    batch = begun(sent_s)
    terms = estimate(batch if moved else replace(batch, moved_at=NEVER_MOVED)).terms
    assert terms is not None

    assert 0.5 * LARGE.jobs / 0.7 < terms.sending_s < 1.5 * LARGE.jobs / 0.4


@pytest.mark.parametrize("n_hosts", [9, 40])
def test_a_few_hosts_that_come_late_are_no_wait(n_hosts: int) -> None:
    """Nine hosts may come an hour after the submission by chance, and come back as rarely; forty do not."""
    out = [Sent(at, RUNNING, 1 + at % n_hosts, 0.05 - 0.001 * at, 0, 1.0) for at in range(40)]
    batch = a_snapshot(
        [*out, *(Sent(job, UNSENT, created_h=1.0) for job in range(40, 4000))],
        hosts(40, n=40, hours=0.17, silent_h=0.0),
        submitted_at=later(NOW, -HOUR_S),
        active_hosts=40,
    )
    terms = estimate(batch).terms
    assert terms is not None

    assert (terms.sending_s > 12 * HOUR_S) == (n_hosts == 9)


def waited(wait_h: float, since_h: float, first_h: float = 0.0, per_h: float = 60.0, n: int = 12) -> BatchSnapshot:
    """Return a batch of 3,000 jobs whose first dispatch came after `wait_h`; `n` hosts got `per_h` since then.

    In the first `first_h`, they got ten times as many.
    """
    at_h = [k / (10 * per_h) for k in range(round(10 * per_h * min(first_h, since_h)))]
    at_h += [min(first_h, since_h) + k / per_h for k in range(round(per_h * max(0.0, since_h - first_h)))] or [since_h]
    out = [
        Sent(at, SUCCESS if age_h > 0.17 else RUNNING, 1 + at % n, age_h, age_h - 0.17, wait_h + since_h)
        for at, age_h in enumerate(since_h - after_h for after_h in at_h)
    ]
    return a_snapshot(
        [*out, *(Sent(job, UNSENT, created_h=wait_h + since_h) for job in range(len(out), len(out) + 3000))],
        hosts(40, n=40, hours=0.17, silent_h=0.0),
        submitted_at=later(NOW, -(wait_h + since_h) * HOUR_S),
        active_hosts=40,
    )


def rate_per_h(snapshot: BatchSnapshot) -> float:
    return 3600.0 * sending_of(snapshot, 3000.0, 600.0, 700.0).rate_per_s


def test_the_rate_after_a_wait_does_not_jump_as_time_passes() -> None:
    rates = [rate_per_h(waited(3.0, minutes / 60.0)) for minutes in (30, 60, 71, 72, 73, 90, 200, 400)]

    assert rates == pytest.approx([60.0] * 8, rel=0.15)


def test_first_dispatches_after_a_night_fill_the_hosts() -> None:
    """A first dispatch more than 6 h after submission starts the rate, without the hour in which hosts are filled."""
    assert rate_per_h(waited(14.0, 4.0, first_h=1.0)) < 2 * 60.0
    assert rate_per_h(waited(14.0, 10.0, first_h=1.0)) == pytest.approx(60.0, rel=0.3)


@pytest.mark.parametrize("since_h", [0.0, -2.0 / HOUR_S])
def test_a_first_dispatch_of_this_instant_gives_a_rate(since_h: float) -> None:
    """By a worker's clock it may even be later than now."""
    batch = [Sent(at, RUNNING, 1 + at, since_h, 0, 1.0) for at in range(12)]
    snapshot = a_snapshot(
        [*batch, *(Sent(job, UNSENT, created_h=1.0) for job in range(12, 3000))],
        hosts(40, n=40, hours=0.17, silent_h=0.0),
        submitted_at=later(NOW, -HOUR_S),
        active_hosts=40,
    )

    assert 0.0 < rate_per_h(snapshot) < 5000.0


def test_hosts_that_stay_away_after_a_pause_delay_a_batch() -> None:
    assert expected_h(resumed(100, after_s=4 * HOUR_S)) > 3 * expected_h(resumed(0))


def test_batch_moved_down_is_forecast_later() -> None:
    assert expected_h(LOWER.seen()) > 2 * expected_h(LOWER.seen(moved=False))
    assert expected_h(LOWER.seen(sent=1)) > 2 * expected_h(LOWER.seen(moved=False))


def slow(since: int, after_s: float, ahead: int, per_h: float, earlier: int) -> BatchSnapshot:
    """Return a batch of which `per_h` of 8 h were sent for a day before a move, and `since` of it after the move. The
    app's last batch had `earlier` instances out at once.
    """
    begun_h, job_h, n = after_s / HOUR_S, 8.0, round(24 * per_h)
    at_h = [begun_h + (at + 0.5) / per_h for at in range(n)]
    out = [
        Sent(at, SUCCESS if h > job_h else RUNNING, 1 + at % 40, h, max(0.0, h - job_h), 24.5)
        for at, h in enumerate(at_h)
    ]
    out += [Sent(n + at, RUNNING, 1 + at, begun_h * (at + 1) / (since + 1), 0, 24.5) for at in range(since)]
    last = [Sent(0, SUCCESS, 1 + at % 40, 30.0 + at / 800, 30.0 + at / 800 - job_h) for at in range(earlier)]
    return a_snapshot(
        [*out, *(Sent(job, UNSENT, created_h=24.5) for job in range(n + since, round(94 * per_h)))],
        hosts(40),
        last,
        submitted_at=later(NOW, -24.5 * HOUR_S),
        sent_weight=1.0,
        active_hosts=40,
        moved_at=later(NOW, -after_s),
        queue=AppQueue(ahead=ahead),
    )


@pytest.mark.parametrize("since, after_s", [(0, 30.0), (0, 300.0), (1, 300.0), (3, 300.0), (1, 1800.0)])
@pytest.mark.parametrize("ahead", [0, 100, 5000])
@pytest.mark.parametrize("per_h, earlier", [(3.0, 0), (3.0, 400), (20.0, 0), (20.0, 400)])
def test_a_batch_that_is_sent_stays_as_fast_when_moved_ahead(
    since: int, after_s: float, ahead: int, per_h: float, earlier: int
) -> None:
    """The work that is still ahead of it was ahead before, too. Moved behind, it is not sent faster."""
    moved = slow(since, after_s, ahead, per_h, earlier)
    before = estimate(replace(moved, moved_at=NEVER_MOVED, queue=AppQueue()))
    up, down = (estimate(replace(moved, moved_ahead=one)) for one in (True, False))

    for name in ("q50_at", "q90_at"):
        then_s, up_s, down_s = (getattr(one, name) - NOW for one in (before, up, down))
        assert up_s <= 1.002 * then_s and down_s >= 0.998 * then_s


def test_the_rate_from_before_a_move_ahead_is_no_assumption() -> None:
    moved = slow(0, 300.0, 5000, 20.0, 0)
    alone, ahead = (estimate(replace(moved, moved_ahead=one)).terms for one in (None, True))
    assert alone is not None and ahead is not None

    assert (alone.assumed_rate, ahead.assumed_rate) == (True, False)
    assert ahead.sending_s == pytest.approx(70 * HOUR_S, rel=0.05)


def test_waiting_batch_is_also_forecast_without_work_before_it() -> None:
    """Hosts that cannot run that work take its jobs at once."""
    waiting, alone, held = (
        estimate(one)
        for one in (
            LOWER.seen(),
            replace(LOWER, ahead_then=0).seen(),
            replace(LOWER.seen(), queue=AppQueue(ahead=5, held=True)),
        )
    )
    assert waiting.terms is not None and alone.terms is not None and held.terms is not None

    old = estimate(replace(LOWER.seen(), moved_at=later(NOW, -PROVISIONAL_S))).terms
    assert old is not None and old.assumed_rate and old.at_once_s == 0.0
    assert waiting.terms.at_once_s < waiting.q50_at - NOW
    assert waiting.terms.at_once_s == pytest.approx(alone.q50_at - NOW)
    assert (alone.terms.at_once_s, held.terms.at_once_s) == (0.0, 0.0)


def test_first_instances_do_not_show_the_capacity() -> None:
    """They fill the hosts; a peak counts once an instance of the app has been out for as long as usual."""
    fresh = a_snapshot([Sent(at, RUNNING, 1 + at, 0.01) for at in range(20)], hosts(40), active_hosts=400)
    usual = 0.5 * 400 / 600.0

    assert capacity_of(fresh, 600.0, 1500.0).rate_per_s == pytest.approx(usual)
    assert capacity_of(fresh, 600.0, 30.0).rate_per_s == pytest.approx(20 / 30.0)


def test_a_short_campaign_shows_the_capacity() -> None:
    """The batch of yesterday was sent and returned within an hour, at no time a multiple of 6 h ago."""
    assert capacity_of(LARGE.seen(), 600.0, 0.17 * HOUR_S).rate_per_s == pytest.approx(LARGE.per_s, rel=0.1)


def test_a_batch_waits_at_most_until_it_is_sent_first() -> None:
    waiting, first = LARGE.seen(moved=False), LARGE.seen()
    soon = replace(waiting, queue=replace(waiting.queue, first_s=HOUR_S))

    assert expected_h(first) < expected_h(soon) < expected_h(first) + 1.5 < expected_h(waiting)
