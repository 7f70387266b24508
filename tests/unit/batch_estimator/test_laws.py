"""Fitted distributions on data with a known answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from batch_estimator.chain import FreshLaw, RetryRules, retry_chain
from batch_estimator.estimate import estimate
from batch_estimator.loss import bound_of, failures_of, loss_fraction, silence_law
from batch_estimator.outstanding import Outstanding, merged, served_by
from batch_estimator.sending import is_waiting, rate_of, sending_of
from batch_estimator.snapshot import AppQueue, BatchSnapshot, InstanceStanding
from batch_estimator.survival import SurvivalData, thinned
from batch_estimator.turnaround import censored_normal, posterior, whole_levels
from domain.forecasting import NEVER_MOVED
from domain.units import HOUR_S, MINUTE_S, Instant, later
from tests.unit.batch_estimator.snapshots import BOUND_S, NOW, Sent, a_snapshot, hosts

RULES = RetryRules(bound_s=BOUND_S, wait_s=600.0, error_fraction=0.05, error_s=0.1 * BOUND_S)
LAW = FreshLaw(
    np.array([np.log(HOUR_S), np.log(6 * HOUR_S)]), np.array([0.5, 0.8]), np.array([0.05, 0.2]), np.full(2, 0.5)
)


def outstanding(count: int, **changes: float) -> Outstanding:
    rng = np.random.default_rng(3)
    age = rng.uniform(60.0, BOUND_S, count)
    lost = np.full(count, changes.get("lost", 0.05))
    return Outstanding(age, BOUND_S - age, np.full(count, np.log(3 * HOUR_S)), np.full(count, 0.7), lost, age * 0.1)


def test_censored_values_restore_the_law_that_made_them() -> None:
    rng = np.random.default_rng(1)
    values, limits = rng.normal(2.0, 1.0, 4000), rng.normal(2.0, 1.0, 4000)

    mean, variance = censored_normal(values[values < limits], limits[values >= limits], 0.0)

    assert mean == pytest.approx(2.0, abs=0.12)
    assert variance == pytest.approx(1.0, abs=0.15)


def test_a_young_apps_levels_are_corrected_for_what_is_still_out() -> None:
    rng = np.random.default_rng(2)
    z, age = rng.normal(0.5, 1.0, 600), rng.uniform(-1.0, 1.0, 600)
    sampled = SurvivalData(np.minimum(z, age), z > age, np.zeros(600, dtype=np.int64), age)

    mu, _ = whole_levels(np.zeros(1), np.ones(1), sampled)

    assert 0.25 < mu[0] < 0.6  # 3 % count as lost, so it stays below


def test_a_loss_rate_is_found_under_censoring() -> None:
    rng = np.random.default_rng(4)
    z, lost, age = rng.logistic(0.0, 1 / 1.702, 4000), rng.random(4000) < 0.15, rng.normal(1.0, 1.0, 4000)

    loss = loss_fraction(age[lost | (z > age)], 4000)

    assert loss.fraction == pytest.approx(0.15, abs=0.03)


def test_without_a_time_out_passed_nothing_is_taken_for_lossless() -> None:
    assert loss_fraction(np.full(400, -3.0), 400).fraction == pytest.approx(0.03, abs=0.003)


def test_errors_of_a_withdrawn_version_count_no_more() -> None:
    failed = [Sent(job, InstanceStanding.ERROR, host=job + 1) for job in range(10)]
    snapshot = a_snapshot(failed, hosts(20, n=5, n_error=8), failed)

    withdrawn = failures_of(replace(snapshot, withdrawn=frozenset({1})))

    assert failures_of(snapshot).n == 10 + 20 * 8
    assert (withdrawn.n, withdrawn.fraction) == (0.0, 0.03)


def test_a_batch_of_slower_jobs_shifts_by_as_much() -> None:
    z = np.random.default_rng(5).normal(0.7, 1.0, 600)

    assert posterior(0.0, z, np.ones(600), np.zeros(600, dtype=bool)).mean == pytest.approx(0.7, abs=0.1)


def test_silent_instances_shift_the_batch_as_well() -> None:
    shift = posterior(0.0, np.full(60, 0.5), np.ones(60), np.ones(60, dtype=bool))

    assert shift.mean > 0.2


def test_a_chain_is_a_distribution_that_reaches_one() -> None:
    chain = retry_chain(LAW, RULES)

    assert chain.served[0] == pytest.approx(0.0, abs=1e-6)
    assert np.all(np.diff(chain.served) >= -1e-9)
    assert chain.served[-1] == pytest.approx(1.0, abs=1e-6)


def test_a_chain_agrees_with_instances_played_one_by_one() -> None:
    rng = np.random.default_rng(6)
    rules = RetryRules(BOUND_S, 600.0, 0.0, 600.0)
    law = FreshLaw(np.array([np.log(4 * HOUR_S)]), np.array([1.0]), np.array([0.2]), np.ones(1))
    ends = []
    for _ in range(4000):
        start, best = 0.0, np.inf
        for _ in range(12):
            turn = np.exp(np.log(4 * HOUR_S) + rng.logistic(0.0, 1 / 1.702)) if rng.random() > 0.2 else np.inf
            best = min(best, start + turn)
            if best <= start + BOUND_S:
                break
            start += BOUND_S + 600.0
        ends.append(best)

    chain = retry_chain(law, rules)

    for days in (0.25, 0.8, 1.3, 2.2, 3.3):
        assert float(chain.by(np.array([days * BOUND_S]))[0]) == pytest.approx(
            np.mean(np.array(ends) <= days * BOUND_S), abs=0.02
        )


def test_silences_restore_the_law_that_made_them() -> None:
    rng = np.random.default_rng(7)
    silences = 3 * HOUR_S * (rng.random(5000) ** (-1 / 1.2) - 1.0)

    law = silence_law(silences[silences < 40 * 86400.0], np.ones(int((silences < 40 * 86400.0).sum())))

    heard = law.ended(np.array([10 * HOUR_S]), np.array([10 * HOUR_S]))
    assert heard[0] == pytest.approx(1.0 - (13.0 / 23.0) ** 2.2, abs=0.05)


def test_merging_hardly_changes_what_all_slots_together_say() -> None:
    out = outstanding(2000)
    x = np.linspace(0.0, 4 * BOUND_S, 60)
    chain = retry_chain(LAW, RULES)
    classes = merged(out, np.ones(2000), BOUND_S)

    whole = np.log(np.maximum(served_by(out, x, np.ones((2000, 60)), chain, RULES), 1e-300)).sum(axis=0)
    few = classes.weight @ np.log(
        np.maximum(served_by(classes.mean, x, np.ones((len(classes.weight), 60)), chain, RULES), 1e-300)
    )

    assert len(classes.weight) <= 240
    assert classes.weight.sum() == pytest.approx(2000.0)
    np.testing.assert_allclose(np.exp(few), np.exp(whole), atol=0.03)


def test_slot_is_served_later_with_higher_loss() -> None:
    x = np.linspace(0.0, 5 * BOUND_S, 80)
    chain, ended = retry_chain(LAW, RULES), np.ones((50, 80))

    assert np.all(
        served_by(outstanding(50, lost=0.5), x, ended, chain, RULES)
        <= served_by(outstanding(50, lost=0.05), x, ended, chain, RULES) + 1e-9
    )


def test_steady_sending_rate_is_found_for_any_usual_rate() -> None:
    ages = np.arange(0.0, 100.0, 0.1) * HOUR_S

    rate, log_sd = rate_of(ages, 100 * HOUR_S, 500.0, 1e-6)

    assert rate * HOUR_S == pytest.approx(10.0, rel=0.35)
    assert rate_of(ages, 100 * HOUR_S, 500.0, 10 / HOUR_S)[0] * HOUR_S == pytest.approx(10.0, rel=0.05)
    assert log_sd < 0.5


def test_bursts_make_the_rate_unsure() -> None:
    steady = np.linspace(0.0, 48.0, 480) * HOUR_S
    bursts = np.where(np.arange(480) < 240, 1.0, 30.0) * HOUR_S

    assert (
        rate_of(bursts, 60 * HOUR_S, 480.0, 10 / HOUR_S)[1] > rate_of(steady, 60 * HOUR_S, 480.0, 10 / HOUR_S)[1] + 0.1
    )


MOVED_S = 2 * MINUTE_S  # since the move, in which two of 1,000 instances were sent per second


def a_moved_batch(*, since_move: int, moved_at: Instant) -> BatchSnapshot:
    """A batch of 1,000 jobs, of which ten were sent in the two hours before its move to the first place."""
    running, unsent = InstanceStanding.IN_PROGRESS, InstanceStanding.UNSENT
    sent = [Sent(job, running, job + 1, sent_h=0.1 + 0.19 * job, created_h=2.0) for job in range(10)]
    quick = [MOVED_S / HOUR_S * (1 + step) / (since_move + 1) for step in range(since_move)]
    sent += [Sent(10 + at, running, 10 + at % 50, sent_h=ago_h, created_h=2.0) for at, ago_h in enumerate(quick)]
    rest = [Sent(job, unsent, created_h=2.0) for job in range(10 + since_move, 1000)]
    return a_snapshot([*sent, *rest], hosts(50), submitted_at=later(NOW, -2 * HOUR_S), moved_at=moved_at)


def test_moved_batch_is_sent_at_its_rate_since_the_move() -> None:
    moved_at = later(NOW, -MOVED_S)
    moved = a_moved_batch(since_move=240, moved_at=moved_at)
    unmoved = replace(moved, moved_at=NEVER_MOVED)

    new, old = [sending_of(one, 750.0, 8 * HOUR_S, 9 * HOUR_S).rate_per_s for one in (moved, unmoved)]

    assert new == pytest.approx(240 / MOVED_S, rel=0.25)
    assert old < 240 / HOUR_S
    assert (
        estimate(moved).q90_at
        < estimate(unmoved).q90_at
        < estimate(a_moved_batch(since_move=0, moved_at=NEVER_MOVED)).q90_at
    )


def test_moved_batch_waits_until_a_first_instance_is_sent() -> None:
    """A retry goes before the batch's other instances, and shows nothing about their rate."""
    moved = a_moved_batch(since_move=0, moved_at=later(NOW, -MOVED_S))
    retry = Sent(0, InstanceStanding.IN_PROGRESS, 9, sent_h=0.01, created_h=0.5)
    rows = [Sent(0, InstanceStanding.ERROR, 1, sent_h=1.0, back_h=0.6, created_h=2.0), retry]
    retried = a_snapshot(rows, submitted_at=later(NOW, -2 * HOUR_S), moved_at=moved.moved_at)

    assert (is_waiting(moved), is_waiting(retried), is_waiting(replace(retried, moved_at=NEVER_MOVED))) == (
        True,
        True,
        False,
    )
    assert estimate(moved).q50_at <= estimate(replace(moved, moved_at=NEVER_MOVED)).q50_at
    terms = estimate(moved).terms
    assert terms is not None and terms.assumed_rate


def test_retry_that_waits_long_is_expected_to_wait_as_long_again() -> None:
    """Earlier retries waited a minute each. This one is behind the work of other batches."""
    failed, running, unsent = InstanceStanding.ERROR, InstanceStanding.IN_PROGRESS, InstanceStanding.UNSENT
    rows = [Sent(job, failed, job + 1, sent_h=5.0, back_h=1.1, created_h=9.0) for job in range(6)]
    rows += [Sent(job, running, job + 11, sent_h=1.0 - 1 / 60, created_h=1.0) for job in range(5)]

    def waits_s(created_h: float, **changes: Any) -> float:
        last = Sent(5, unsent, created_h=created_h)
        snapshot = replace(a_snapshot([*rows, last], submitted_at=later(NOW, -9 * HOUR_S)), **changes)
        return sending_of(snapshot, 0.0, HOUR_S, 2 * HOUR_S).retry_wait_s

    assert [waits_s(at_h) for at_h in (0.01, 0.5, 3.0)] == pytest.approx([MINUTE_S, 0.5 * HOUR_S, 3 * HOUR_S])
    assert waits_s(3.0, moved_at=later(NOW, -0.5 * HOUR_S)) == pytest.approx(0.5 * HOUR_S)
    assert waits_s(3.0, queue=AppQueue(first_s=0.25 * HOUR_S)) == pytest.approx(0.25 * HOUR_S)


def test_thinning_keeps_the_same_instances_in_any_order() -> None:
    rng = np.random.default_rng(8)
    sent_at = rng.uniform(0.0, 1e6, 3000)
    whole = SurvivalData(rng.normal(size=3000), rng.random(3000) < 0.5, rng.integers(0, 90, 3000), sent_at)
    order = rng.permutation(3000)
    mixed = SurvivalData(whole.ln_s[order], whole.silent[order], whole.entry[order], sent_at[order])

    kept = thinned(whole, 500)

    assert len(kept.ln_s) == 500
    assert sorted(kept.sent_at) == sorted(thinned(mixed, 500).sent_at)


def given(hours: float, sent: list[Sent]) -> BatchSnapshot:
    """Return a batch whose instances have bounds of these hours."""
    snapshot = a_snapshot(sent, hosts(40))
    rows = snapshot.instances
    return replace(snapshot, instances=replace(rows, timeout_at=rows.sent_at + hours * HOUR_S))


def under_way(count: int, sent_h: float = 4.0) -> list[Sent]:
    return [Sent(job, InstanceStanding.IN_PROGRESS, host=1 + job % 40, sent_h=sent_h) for job in range(count)]


def test_it_is_what_the_batchs_instances_are_given() -> None:
    assert bound_of(given(20.0, under_way(5))) == 20 * HOUR_S


def test_it_is_the_delay_bound_while_few_were_sent() -> None:
    unsent = [Sent(job, InstanceStanding.UNSENT) for job in range(4, 30)]
    assert bound_of(given(20.0, under_way(4) + unsent)) == BOUND_S
    assert bound_of(a_snapshot(unsent, hosts(40))) == BOUND_S


def test_it_is_never_more_than_the_delay_bound() -> None:
    assert bound_of(given(20_000.0, under_way(9))) == BOUND_S


def test_instances_sent_last_say_what_is_given_now() -> None:
    early, late = under_way(80, sent_h=30.0), under_way(50, sent_h=2.0)
    snapshot = given(20.0, early + late)
    rows = snapshot.instances
    timeout_at = np.where(np.arange(130) < 80, rows.sent_at + BOUND_S, rows.timeout_at)
    assert bound_of(replace(snapshot, instances=replace(rows, timeout_at=timeout_at))) == 20 * HOUR_S


def test_retries_are_given_what_retries_were_given() -> None:
    retries = [replace(one, created_h=5.0) for one in under_way(5)]
    snapshot = given(20.0, under_way(30) + retries)
    rows = snapshot.instances
    timeout_at = np.where(np.arange(35) < 30, rows.timeout_at, rows.sent_at + 9 * HOUR_S)
    assert bound_of(replace(snapshot, instances=replace(rows, timeout_at=timeout_at))) == 9 * HOUR_S


def test_urgent_batch_is_forecast_before_its_delay_bounds() -> None:
    sent = under_way(60)
    hurried, leisurely = estimate(given(20.0, sent)), estimate(a_snapshot(sent, hosts(40)))
    assert hurried.q90_at - hurried.now < 0.6 * (leisurely.q90_at - leisurely.now)
