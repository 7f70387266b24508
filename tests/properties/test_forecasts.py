"""Properties of every forecast, for any batch and hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from batch_estimator.estimate import estimate
from batch_estimator.loss import Silence, host_loss, loss_fraction
from batch_estimator.publish import Forecast, publication
from batch_estimator.selfcheck import adapted_spread
from batch_estimator.sending import is_urgent
from batch_estimator.snapshot import AppQueue, BatchSnapshot
from batch_estimator.snapshot import InstanceStanding as S
from domain.forecasts import FAR_BOUNDS, Change, Method, Score
from domain.units import DAY_S, HOUR_S, BatchId, Instant, Seconds
from tests.unit.batch_estimator.snapshots import BOUND_S, NOW, Record, Sent, a_snapshot, taken

HOSTS = 14
SENT_STANDINGS = [
    S.IN_PROGRESS,
    S.SUCCESS,
    S.ERROR,
    S.TIMED_OUT,
    S.INVALID,
]
AT_ONCE_S = 2.0


@st.composite
def sent_instances(draw: st.DrawFn, job: int) -> Sent:
    standing = draw(st.sampled_from([S.UNSENT, *SENT_STANDINGS]))
    if standing is S.UNSENT:
        return Sent(job, standing, created_h=draw(st.floats(0.0, 48.0)))
    oldest_h = 500.0 if standing is S.TIMED_OUT else 167.0
    youngest_h = 168.0 if standing is S.TIMED_OUT else 0.0
    sent_h = draw(st.floats(youngest_h, oldest_h))
    return Sent(job, standing, draw(st.integers(1, HOSTS)), sent_h, draw(st.floats(0.0, sent_h)), created_h=sent_h)


@st.composite
def snapshots(draw: st.DrawFn) -> BatchSnapshot:
    """Generate a batch of a few jobs; hosts with and without a record; a sample of other work or none."""
    sent = [
        draw(sent_instances(job)) for job in range(draw(st.integers(1, 12))) for _ in range(draw(st.integers(1, 3)))
    ]
    records = [
        Record(
            host,
            draw(st.integers(0, 20)),
            draw(st.floats(0.05, 200.0)),
            draw(st.integers(0, 5)),
            draw(st.integers(0, 5)),
            draw(st.integers(5, 30)),
            draw(st.floats(0.0, 400.0)),
        )
        for host in range(1, draw(st.integers(0, HOSTS)) + 1)
    ]
    sample = [draw(sent_instances(0)) for _ in range(draw(st.integers(0, 8)))]
    sample = [each for each in sample if each.standing is not S.UNSENT]
    return a_snapshot(sent, records, sample, quorum=draw(st.integers(1, 3)), active_hosts=draw(st.integers(0, 50)))


def quantiles(forecast: Forecast) -> list[float]:
    return [forecast.q10_at, forecast.q50_at, forecast.q90_at]


@given(snapshots(), st.floats(0.5, 4.0))
@settings(deadline=None)
def test_quantiles_are_finite_ascend_and_are_never_before_now(snapshot: BatchSnapshot, spread: float) -> None:
    q10_at, q50_at, q90_at = quantiles(estimate(snapshot, spread=spread))

    assert NOW <= q10_at <= q50_at <= q90_at < NOW + 1e4 * BOUND_S


@given(snapshots(), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_the_order_of_rows_does_not_matter(snapshot: BatchSnapshot, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mixed = replace(
        snapshot,
        instances=taken(snapshot.instances, rng.permutation(len(snapshot.instances.job))),
        havs=taken(snapshot.havs, rng.permutation(len(snapshot.havs.host_id))),
        sent=taken(snapshot.sent, rng.permutation(len(snapshot.sent.host_id))),
    )

    np.testing.assert_allclose(quantiles(estimate(mixed)), quantiles(estimate(snapshot)), rtol=0.0, atol=AT_ONCE_S)


@given(snapshots(), st.data())
@settings(deadline=None)
def test_more_instances_lost_on_a_host_never_make_it_earlier(snapshot: BatchSnapshot, data: st.DataObject) -> None:
    records = len(snapshot.havs.host_id)
    more = np.array(data.draw(st.lists(st.integers(0, 20), min_size=records, max_size=records)), dtype=np.int64)
    worse = replace(snapshot, havs=replace(snapshot.havs, n_timeout=snapshot.havs.n_timeout + more))

    for before_at, after_at in zip(quantiles(estimate(snapshot)), quantiles(estimate(worse)), strict=True):
        assert after_at >= before_at - AT_ONCE_S


@given(snapshots(), st.booleans(), st.floats(30.0, 40 * HOUR_S), st.integers(0, 200), st.integers(0, 200))
@settings(deadline=None)
def test_a_move_ahead_delays_and_one_behind_hastens_nothing(
    snapshot: BatchSnapshot, moved_ahead: bool, since_s: float, ahead: int, of_others: int
) -> None:
    """The same batch at the same time, unmoved and moved, with some of its instances sent before and since the move."""
    moved_at = Instant(NOW - since_s)
    moved = replace(snapshot, moved_at=moved_at, moved_ahead=moved_ahead, queue=AppQueue(ahead, of_others))
    rows = snapshot.instances
    assume(bool(np.any(rows.sent_at[~is_urgent(snapshot)] < moved_at)))

    for before_at, after_at in zip(quantiles(estimate(snapshot)), quantiles(estimate(moved)), strict=True):
        later_s, near_s = after_at - before_at, AT_ONCE_S + 0.01 * (before_at - NOW)
        assert later_s <= near_s if moved_ahead else later_s >= -near_s


@given(snapshots())
@settings(deadline=None)
def test_the_parts_of_the_doubt_make_a_whole(snapshot: BatchSnapshot) -> None:
    holds = estimate(snapshot).holds

    assert all(0.0 <= hold.doubt_fraction <= 1.0 for hold in holds)
    assert not holds or sum(hold.doubt_fraction for hold in holds) <= 1.0 + 1e-3


@given(st.floats(0.1, 5.0), st.floats(60.0, 1e6), st.floats(0.0, 1e6), st.floats(0.0, 1e6), st.floats(0.0, 1e7))
def test_longer_silence_never_predicts_earlier_contact(
    shape: float, scale_s: float, silent_s: float, longer_s: float, after_s: float
) -> None:
    law = Silence(shape, scale_s)
    heard = law.ended(np.array([silent_s, silent_s + longer_s]), np.array([after_s, after_s]))

    assert heard[1] <= heard[0] + 1e-12


@given(st.lists(st.floats(-5.0, 8.0), max_size=30), st.floats(-5.0, 8.0), st.integers(0, 100))
def test_another_silent_instance_never_lowers_the_loss(z: list[float], another: float, replied: int) -> None:
    before = loss_fraction(np.array(z), len(z) + replied + 1)
    after = loss_fraction(np.array([*z, another]), len(z) + replied + 1)

    assert after.fraction >= before.fraction - 1e-9


@given(st.floats(0.001, 0.9), st.floats(0.001, 0.9), st.integers(0, 20), st.integers(0, 20))
def test_a_hosts_loss_rises_with_the_apps_and_with_its_own(low: float, high: float, few: int, more: int) -> None:
    low, high = min(low, high), max(low, high)
    mild = host_loss(low, np.array([few]), np.array([40]))[0]
    harsh = host_loss(high, np.array([few + more]), np.array([40]))[0]

    assert harsh >= mild - 1e-12


@given(
    st.floats(0.0, 100.0),
    st.floats(0.0, 100.0),
    st.none() | st.floats(-10.0, 100.0),
    st.none() | st.floats(-10.0, 0.0),
    st.booleans(),
)
def test_published_value_is_old_or_new_and_in_the_future(
    q50_days: float, more_days: float, previous_days: float | None, dispatched_days: float | None, is_long: bool
) -> None:
    def at(days: float | None) -> Instant | None:
        return None if days is None else Instant(NOW + days * DAY_S)

    q50_at, q90_at = Instant(NOW + q50_days * DAY_S), Instant(NOW + (q50_days + more_days) * DAY_S)
    forecast = Forecast(NOW, NOW, q50_at, q90_at, Method.WARM, "")
    last_at, previous_at = at(dispatched_days), at(previous_days)
    made = publication(
        forecast,
        previous_at=previous_at,
        long_deadline=is_long,
        delay_bound_s=Seconds(BOUND_S),
        last_first_dispatch_at=last_at,
    )

    floor_at = NOW if last_at is None or not is_long else last_at + BOUND_S
    is_far = q90_at > NOW + FAR_BOUNDS * BOUND_S
    new_at = max(min(q90_at, NOW + FAR_BOUNDS * BOUND_S), floor_at)
    assert made.completion_at >= max(NOW, floor_at)
    if made.change is Change.HELD:
        assert made.completion_at == previous_at and previous_at is not None and previous_at > NOW
        assert is_far or abs(new_at - previous_at) <= max(0.15 * (previous_at - NOW), 0.05 * BOUND_S)
    else:
        assert made.completion_at == (floor_at if is_far and made.change is Change.MOVED else new_at)


@given(st.lists(st.tuples(st.booleans(), st.floats(-50.0, 50.0)), max_size=120), st.floats(0.5, 4.0))
def test_spread_stays_within_its_bounds(ends: list[tuple[bool, float]], spread: float) -> None:
    scores = [
        Score(BatchId(number), 0.5, Instant(NOW + number), False, False, covered, 0.0, 0.0, 0.0, needed)
        for number, (covered, needed) in enumerate(ends)
    ]

    new, because = adapted_spread(spread, scores)

    assert 0.5 <= new <= 4.0 and because
    assert new == spread or len(scores) >= 30
