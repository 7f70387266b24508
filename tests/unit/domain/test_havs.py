"""Changes of the statistics of a (host, app version) by events."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from domain.havs import HavDelta, HavEvent, HavEventKind, applied, combine
from domain.hosts import STATS_HALF_LIFE_S, DecayedSums, HostAppVersion
from domain.units import AppVersionId, HostId, Instant
from tests.builders import NOW, a_hav

KINDS = HavEventKind
START, MOST = 50, 500
INT4_MOST = 2**31 - 1  # maximum of a delta's database column


def an_event(kind: HavEventKind = KINDS.VALID, **changes: Any) -> HavEvent:
    return replace(HavEvent(HostId(1), AppVersionId(1), kind, NOW), **changes)


def after(row: HostAppVersion, *events: HavEvent, most: int = MOST) -> HostAppVersion:
    """The row after the events, combined in one delta."""
    [delta] = combine(events, quota_most=most)
    return applied(row, delta, quota_start=START)


def after_each(row: HostAppVersion, *events: HavEvent, most: int = MOST) -> HostAppVersion:
    """The row after the events, one by one."""
    for event in events:
        row = after(row, event, most=most)
    return row


SAMPLES = st.none() | st.floats(-3.0, 5.0)
AT_ONCE = st.builds(
    an_event,
    st.sampled_from(KINDS),
    tight=st.booleans(),
    ln_turnaround_ratio=SAMPLES,
    ln_turnaround=SAMPLES,
    speed_s_per_flop=st.none() | st.floats(1e-12, 1e-6),
    late=st.booleans(),
)
SUMS = st.builds(
    lambda n, mean, spread: DecayedSums(n, n * mean, n * (mean * mean + spread), Instant(NOW - 86400.0)),
    st.floats(0.0, 50.0),
    st.floats(-3.0, 5.0),
    st.floats(0.0, 2.0),
)
ROWS = st.builds(
    a_hav,
    consecutive_valid=st.integers(0, 40),
    quota_per_day=st.integers(100, 500),
    speed=SUMS,
    tight=SUMS,
    relaxed=SUMS,
    n_valid=st.integers(0, 100),
    n_error=st.integers(0, 100),
    n_timeout=st.integers(0, 100),
)


def figures(row: HostAppVersion) -> list[float]:
    sums = [value for s in (row.speed, row.tight, row.relaxed) for value in (s.n, s.total, s.total_sq, s.at)]
    sums += [row.tight_missed_n, row.clean_since_at or 0.0]
    counts = [row.consecutive_valid, row.quota_per_day, row.n_valid, row.n_error, row.n_timeout]
    return [*sums, *counts]


@given(ROWS, st.lists(AT_ONCE, min_size=1, max_size=12))
def test_combined_events_of_one_instant_equal_single_ones(row: HostAppVersion, events: list[HavEvent]) -> None:
    most = 500 * 2**12  # out of reach of the events: at the quota's bounds only single events are exact

    assert figures(after(row, *events, most=most)) == pytest.approx(
        figures(after_each(row, *events, most=most)), rel=1e-9, abs=1e-9
    )


@given(ROWS, st.lists(st.tuples(AT_ONCE, st.floats(0.0, 9e6)), min_size=1, max_size=12))
def test_combined_events_of_many_days_decay_like_single_ones(
    row: HostAppVersion, events: list[tuple[HavEvent, float]]
) -> None:
    ordered = [replace(one, at=Instant(NOW + after_s)) for one, after_s in sorted(events, key=lambda pair: pair[1])]
    most = 500 * 2**12

    together, one_by_one = after(row, *ordered, most=most), after_each(row, *ordered, most=most)

    assert [
        (sums.n, sums.total, sums.total_sq, sums.at) for sums in (together.speed, together.tight, together.relaxed)
    ] == [
        pytest.approx((sums.n, sums.total, sums.total_sq, sums.at), rel=1e-9, abs=1e-9)
        for sums in (one_by_one.speed, one_by_one.tight, one_by_one.relaxed)
    ]
    assert together.tight_missed_n == pytest.approx(one_by_one.tight_missed_n, rel=1e-9, abs=1e-9)


@given(ROWS, st.lists(AT_ONCE, min_size=1, max_size=60), st.integers(1, 1000))
def test_a_quota_is_at_least_one_and_at_most_the_setting(
    row: HostAppVersion, events: list[HavEvent], most: int
) -> None:
    for changed in (after(row, *events, most=most), after_each(row, *events, most=most)):
        assert 1 <= changed.quota_per_day <= most


@given(ROWS, st.lists(AT_ONCE | AT_ONCE.map(lambda e: replace(e, replaces=1.5)), min_size=1, max_size=12))
def test_no_count_and_no_number_of_samples_is_ever_negative(row: HostAppVersion, events: list[HavEvent]) -> None:
    changed = after(row, *events)

    assert min(changed.n_timeout, changed.n_error, changed.n_valid, changed.consecutive_valid) >= 0
    assert min(changed.tight.n, changed.relaxed.n, changed.speed.n) >= 0


@given(
    st.integers(1, 700),
    st.lists(st.sampled_from([KINDS.VALID, KINDS.ERROR, KINDS.TIMED_OUT]), min_size=1, max_size=40),
    st.sampled_from([1, 7, 500]),
)
@example(500, [KINDS.VALID, *[KINDS.ERROR] * 20], 500)
@example(5, [*[KINDS.ERROR] * 20, KINDS.VALID], 500)
def test_quota_of_combined_events_equals_single_ones(quota: int, kinds: list[HavEventKind], most: int) -> None:
    row, events = a_hav(quota_per_day=quota), [an_event(kind) for kind in kinds]

    assert after(row, *events, most=most).quota_per_day == after_each(row, *events, most=most).quota_per_day


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2000))
def test_a_delta_fits_the_database_however_many_events_it_sums(kinds: list[HavEventKind]) -> None:
    [delta] = combine((an_event(kind) for kind in kinds), quota_most=MOST)

    assert abs(delta.quota_added) <= INT4_MOST
    assert math.isfinite(delta.quota_factor)


@pytest.mark.parametrize("valid", [32, 64, 2000])
def test_one_error_before_many_valid_results_leaves_a_full_quota(valid: int) -> None:
    row = a_hav(quota_per_day=50)
    events = [an_event(KINDS.ERROR), *[an_event()] * valid]

    changed = after(row, *events)

    assert (changed.quota_per_day, changed.consecutive_valid) == (MOST, valid)
    assert abs(combine(events, quota_most=MOST)[0].quota_added) <= INT4_MOST


def test_a_valid_result_adds_one_in_a_row_and_doubles_the_quota() -> None:
    changed = after(a_hav(consecutive_valid=4, quota_per_day=50), an_event())

    assert (changed.consecutive_valid, changed.quota_per_day, changed.n_valid) == (5, 100, 1)


@pytest.mark.parametrize(
    ("kind", "errors", "timeouts"), [(KINDS.ERROR, 1, 0), (KINDS.INVALID, 1, 0), (KINDS.TIMED_OUT, 0, 1)]
)
def test_failure_resets_consecutive_valid_and_lowers_quota(kind: HavEventKind, errors: int, timeouts: int) -> None:
    changed = after(a_hav(consecutive_valid=40, quota_per_day=500), an_event(kind))

    assert (changed.consecutive_valid, changed.quota_per_day) == (0, 499)
    assert (changed.n_error, changed.n_timeout, changed.n_valid) == (errors, timeouts, 0)


def test_valid_results_after_a_failure_count_from_zero() -> None:
    changed = after(a_hav(consecutive_valid=40), an_event(), an_event(KINDS.ERROR), an_event(), an_event())

    assert changed.consecutive_valid == 2


def test_a_row_without_a_quota_starts_from_the_setting() -> None:
    assert after(a_hav(quota_per_day=0), an_event(KINDS.ERROR)).quota_per_day == START - 1


def test_failures_without_end_leave_one_job_a_day() -> None:
    assert after_each(a_hav(quota_per_day=3), *[an_event(KINDS.ERROR)] * 10).quota_per_day == 1


def test_what_was_there_has_half_its_weight_after_a_half_life() -> None:
    old = DecayedSums(8.0, 16.0, 40.0, NOW)
    later = Instant(NOW + STATS_HALF_LIFE_S)
    row = a_hav(speed=old, tight=old, relaxed=old)

    changed = after(row, an_event(at=later, ln_turnaround_ratio=1.0))

    assert changed.relaxed == DecayedSums(5.0, 9.0, 21.0, later)
    assert changed.tight == changed.speed == DecayedSums(4.0, 8.0, 20.0, later)


def test_an_event_from_before_the_rows_stamp_makes_nothing_grow() -> None:
    old = DecayedSums(8.0, 16.0, 40.0, NOW)
    row = a_hav(speed=old, tight=old, relaxed=old)

    changed = after(row, an_event(at=Instant(NOW - 1e6), ln_turnaround_ratio=1.0))

    assert changed.relaxed == DecayedSums(9.0, 17.0, 41.0, NOW)


def test_tight_and_relaxed_samples_are_kept_apart() -> None:
    changed = after(a_hav(), an_event(tight=True, ln_turnaround_ratio=2.0), an_event(ln_turnaround_ratio=3.0))

    assert (changed.tight.n, changed.tight.total, changed.tight.total_sq) == (1.0, 2.0, 4.0)
    assert (changed.relaxed.n, changed.relaxed.total, changed.relaxed.total_sq) == (1.0, 3.0, 9.0)


def test_speed_and_undecayed_sums_take_their_own_samples() -> None:
    events = [an_event(speed_s_per_flop=2e-9, ln_turnaround=8.0), an_event(ln_turnaround=6.0)]
    [delta] = combine(events, quota_most=MOST)

    assert (delta.speed.n, delta.speed.total) == (1.0, 2e-9)
    assert (delta.log_n, delta.log_sum, delta.log_sum_sq) == (2, 14.0, 100.0)


@pytest.mark.parametrize("tight", [False, True])
def test_a_late_valid_result_takes_its_time_out_back(tight: bool) -> None:
    timed_out = an_event(KINDS.TIMED_OUT, tight=tight, ln_turnaround_ratio=1.5)
    late = an_event(tight=tight, ln_turnaround_ratio=2.0, replaces=1.5)
    straight = an_event(tight=tight, ln_turnaround_ratio=2.0)

    changed, expected = after_each(a_hav(), timed_out, late), after_each(a_hav(), straight)

    assert (changed.tight, changed.relaxed) == (expected.tight, expected.relaxed)
    assert (changed.n_timeout, changed.n_valid) == (0, 1)


@given(
    row=ROWS,
    waited_s=st.floats(0.0, 60 * 86_400.0),
    sample=st.floats(2.3, 12.0),
    tight=st.booleans(),
)
def test_sample_taken_back_leaves_no_trace(row: HostAppVersion, waited_s: float, sample: float, tight: bool) -> None:
    timed_out = an_event(KINDS.TIMED_OUT, tight=tight, ln_turnaround_ratio=sample)
    straight = an_event(at=Instant(NOW + waited_s), tight=tight, ln_turnaround_ratio=2.0)
    late = replace(straight, replaces=sample, replaces_at=timed_out.at)

    changed, expected = after_each(row, timed_out, late), after_each(row, straight)

    for ours, theirs in ((changed.tight, expected.tight), (changed.relaxed, expected.relaxed)):
        sums = (theirs.n, theirs.total, theirs.total_sq)
        assert (ours.n, ours.total, ours.total_sq) == pytest.approx(sums, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("kind", [KINDS.ERROR, KINDS.INVALID])
def test_late_failure_keeps_the_time_out_sample(kind: HavEventKind) -> None:
    timed_out = an_event(KINDS.TIMED_OUT, tight=True, ln_turnaround_ratio=1.5)

    changed = after_each(a_hav(), timed_out, an_event(kind, tight=True, replaces=1.5))

    assert (changed.tight.n, changed.tight.total, changed.tight_missed_n) == (1.0, 1.5, 1.0)
    assert (changed.n_timeout, changed.n_error) == (0, 1)


def test_deltas_come_one_per_host_and_version_in_key_order() -> None:
    keys = [(2, 1), (1, 2), (1, 1), (2, 1), (1, 2)]
    events = [an_event(host_id=HostId(host), app_version_id=AppVersionId(version)) for host, version in keys]

    deltas = combine(events, quota_most=MOST)

    assert [(delta.host_id, delta.app_version_id, delta.n_valid) for delta in deltas] == [
        (1, 1, 1),
        (1, 2, 2),
        (2, 1, 2),
    ]


def test_a_delta_is_of_the_latest_of_its_events() -> None:
    [delta] = combine((an_event(at=Instant(at)) for at in (100.0, 300.0, 200.0)), quota_most=MOST)

    assert delta.at == 300.0


def test_no_events_are_no_deltas() -> None:
    assert combine([], quota_most=MOST) == []


def test_an_empty_delta_only_brings_the_sums_forward() -> None:
    row = a_hav(consecutive_valid=3, quota_per_day=70, relaxed=DecayedSums(1.0, 2.0, 4.0, NOW), clean_since_at=NOW)

    assert applied(row, HavDelta(HostId(1), AppVersionId(1), NOW), quota_start=START) == replace(
        row, speed=DecayedSums(at=NOW), tight=DecayedSums(at=NOW)
    )


def test_missed_tight_due_date_counts_once() -> None:
    late = an_event(tight=True, ln_turnaround_ratio=2.0, late=True)
    silent = an_event(KINDS.TIMED_OUT, tight=True, ln_turnaround_ratio=2.5)
    after_all = replace(late, replaces=2.5, replaces_at=NOW)

    assert after(a_hav(), late).tight_missed_n == 1.0
    assert after(a_hav(), silent).tight_missed_n == 1.0
    assert after(a_hav(), silent, after_all).tight_missed_n == 1.0
    assert after(a_hav(), an_event(tight=True, ln_turnaround_ratio=0.5)).tight_missed_n == 0.0
    assert after(a_hav(), replace(late, tight=False)).tight_missed_n == 0.0


def test_clean_since_last_failure_or_first_event() -> None:
    later = Instant(NOW + 60.0)

    first = after(a_hav(), an_event())
    assert first.clean_since_at == NOW
    assert after(first, an_event(at=later)).clean_since_at == NOW
    assert after(first, an_event(KINDS.ERROR, at=later)).clean_since_at == later
