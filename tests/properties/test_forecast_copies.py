"""Properties of copies, queues and aborted instances in every forecast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from administration.ordering.places import urgent_of
from batch_estimator.chain import Copies, FreshLaw, RetryRules, helped_by, tail_begins_s
from batch_estimator.completion import loosened
from batch_estimator.estimate import estimate
from batch_estimator.peak import SampledInstances, in_progress
from batch_estimator.snapshot import AppQueue, BatchSnapshot, InstanceStanding, Tail
from batch_estimator.survival import watched_of
from domain.apps import CPU
from domain.batches import QoS, is_late
from domain.catalogue import Catalogue
from domain.forecasting import SendPlace
from domain.settings import Settings
from domain.units import Instant, Seconds
from tests.builders import a_batch
from tests.properties.test_forecasts import quantiles, snapshots
from tests.unit.batch_estimator.snapshots import BOUND_S, NOW, Sent, a_snapshot, hosts
from tests.unit.scheduler.arrays import some_cuts

X = np.geomspace(1.0, 3e6, 60)

tails = st.builds(
    Tail,
    open_jobs=st.integers(0, 30),
    unsent=st.none() | st.floats(0.0, 10.0),
    late_factor=st.floats(0.0, 3.0),
)
shares = st.lists(st.floats(0.0, 1.0), min_size=len(X), max_size=len(X)).map(lambda values: np.array(sorted(values)))


@given(snapshots(), tails)
@settings(deadline=None)
def test_quantiles_with_copies_ascend_and_are_finite(snapshot: BatchSnapshot, tail: Tail) -> None:
    q10_at, q50_at, q90_at = quantiles(estimate(replace(snapshot, tail=tail)))

    assert NOW <= q10_at <= q50_at <= q90_at < NOW + 1e4 * BOUND_S


@given(shares, st.floats(0.0, 1e6), st.floats(0.01, 0.9))
def test_a_copy_never_makes_a_job_later(served: np.ndarray, copied_s: float, lost: float) -> None:
    law = FreshLaw(np.array([9.0]), np.array([1.0]), np.array([lost]), np.ones(1))
    copies = Copies(0.0, 0.7, float(np.exp(9.0)))
    chain = copies.chain(law, RetryRules(BOUND_S, 600.0, 0.02, 600.0))

    helped = helped_by(served[None, :], np.array([copied_s]), chain, wait_s=600.0, x=X)[0]

    assert np.all(helped >= served - 1e-12) and np.all(helped <= 1.0 + 1e-12)


@given(tails, st.integers(0, 20), st.lists(st.floats(0.0, 100.0), min_size=60, max_size=60))
def test_a_larger_tail_never_begins_later(tail: Tail, more: int, open_jobs: list[float]) -> None:
    still_open = np.array(sorted(open_jobs, reverse=True))
    larger = replace(tail, open_jobs=tail.open_jobs + more)

    begins_s, earlier_s = (tail_begins_s(one, still_open, X, unsent_by_s=1e5) for one in (tail, larger))

    assert earlier_s <= begins_s <= 1e5


@given(shares)
def test_what_is_unknown_keeps_a_law_a_law(share: np.ndarray) -> None:
    found = loosened(share, X)

    assert np.all(np.diff(found) >= -1e-12)
    assert found.min() >= 0.0 and found.max() <= 1.0 + 1e-12


@given(st.integers(0, 5000), st.integers(1, 5000), st.booleans())
@settings(deadline=None, max_examples=30)
def test_more_work_ahead_never_makes_a_batch_earlier(ahead: int, more: int, others: bool) -> None:
    jobs = [Sent(job, InstanceStanding.UNSENT, created_h=1.0) for job in range(20)]
    waiting = a_snapshot(jobs, hosts(20, n=5), active_hosts=50)

    def queue(number: int) -> AppQueue:
        return AppQueue(ahead_of_others=number) if others else AppQueue(ahead=number)

    before, after = (quantiles(estimate(replace(waiting, queue=queue(number)))) for number in (ahead, ahead + more))

    assert all(late >= early * (1.0 - 1e-12) for early, late in zip(before, after, strict=True))


@given(st.lists(st.tuples(st.floats(-1e6, 0.0), st.none() | st.floats(0.0, 1e6)), max_size=20))
def test_no_fewer_than_none_are_in_progress(lives: list[tuple[float, float | None]]) -> None:
    sent_at = np.array([sent for sent, _ in lives])
    ended_at = np.array([np.nan if lasts is None else min(0.0, sent + lasts) for sent, lasts in lives])

    none = SampledInstances(np.zeros(0), np.zeros(0), np.zeros(0, np.int64), 1.0)
    exact = in_progress(sent_at, ended_at, none, since=-1e6, now=0.0, lasts_s=1e3)
    sample = SampledInstances(sent_at, ended_at, np.arange(len(lives)), 1.0)
    sampled = in_progress(none.sent_at, none.ended_at, sample, since=-1e6, now=0.0, lasts_s=1e3)

    assert exact.now == np.isnan(ended_at).sum() <= exact.most <= len(lives)
    assert sampled.most == pytest.approx(exact.most)
    assert sampled.now == exact.now


@given(snapshots())
@settings(deadline=None)
def test_an_instance_aborted_now_counts_as_silent_until_now(snapshot: BatchSnapshot) -> None:
    rows = snapshot.instances
    running = rows.standing == InstanceStanding.IN_PROGRESS
    aborted = replace(
        rows,
        standing=np.where(running, InstanceStanding.ABORTED, rows.standing),
        reported_at=np.where(running, snapshot.now, rows.reported_at),
    )
    entries = np.zeros(len(rows.job), dtype=np.int64)

    before, after = (watched_of(replace(snapshot, instances=each), entries) for each in (rows, aborted))

    assert np.array_equal(before.ln_s, after.ln_s) and np.array_equal(before.silent, after.silent)


@given(st.sampled_from(QoS), st.none() | st.floats(-1e6, 1e6).map(Instant), st.floats(0.0, 10.0), st.floats(0.0, 1.0))
def test_sent_first_is_what_positions_say(qos: QoS, due: Instant | None, factor: float, fraction: float) -> None:
    """Forecasts rank as the pages of the order do: of those sent first, late ones last; unpaid ones last of all."""
    changed = Settings().changed("deadline.first_factor", factor).changed("scheduler.afap_first_fraction", fraction)
    cuts = some_cuts(retry_turnaround_s=Seconds(1e5))
    catalogue = Catalogue(settings=changed, cut_points={(cuts.app_id, CPU): cuts})
    batch = a_batch(app_id=cuts.app_id, qos=qos, deadline_at=due)
    now = Instant(0.0)

    group, last = [SendPlace(qos, due, unpaid, 1, 0.0).rank(cuts.app_id, catalogue, now)[0] for unpaid in (False, True)]

    is_first = bool(urgent_of([batch], catalogue, now))
    assert group == (int(is_late(due, now)) if is_first else 2) < last
