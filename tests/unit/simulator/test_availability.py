from __future__ import annotations

import math
from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.units import DAY_S, HOUR_S, Instant
from simulator.availability import Availability, Hours, HyperExponential, Law, LogNormal, OnOff, Weibull, intervals_of
from simulator.scenario import MONDAY
from tests.unit.simulator.machines import START, at, on_during

HOURLY = OnOff(Weibull(0.6, 3 * HOUR_S), LogNormal(1 * HOUR_S, 0.8))


def availability(process: OnOff, hours: Hours | None = None, *, seed: int = 1, timezone_s: float = 0.0) -> Availability:
    source = np.random.SeedSequence(seed)
    return Availability(
        intervals_of(process, hours, seed=source, start_at=MONDAY, timezone_s=timezone_s), start_at=MONDAY
    )


def test_time_counts_only_while_it_is_on() -> None:
    times = on_during((0.0, 2.0), (5.0, 6.0))

    assert times.worked_s(at(1.0)) == HOUR_S
    assert times.worked_s(at(3.0)) == 2 * HOUR_S
    assert times.worked_s(at(5.5)) == 2.5 * HOUR_S
    assert times.worked_s(at(99.0)) == 3 * HOUR_S


def test_work_is_over_when_it_was_on_long_enough() -> None:
    times = on_during((0.0, 2.0), (5.0, 6.0))

    assert times.when(1 * HOUR_S) == at(1.0)
    assert times.when(2.5 * HOUR_S) == at(5.5)
    assert times.when(3.5 * HOUR_S) == math.inf


def test_it_is_on_again_with_the_next_interval() -> None:
    times = on_during((1.0, 2.0), (5.0, 6.0))

    assert [times.on_from(at(h)) for h in (0.0, 1.5, 2.0, 6.0)] == [at(1.0), at(1.5), at(5.0), math.inf]


def test_nothing_is_on_after_it_left() -> None:
    leaving = Availability(
        iter([(START, START + 100.0), (START + 200.0, START + 300.0)]), start_at=START, end_at=START + 50
    )

    assert leaving.worked_s(START + 400.0) == 50.0
    assert leaving.on_from(START + 60.0) == math.inf


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0.0, 30 * DAY_S), min_size=1, max_size=20))
def test_worked_and_when_are_inverse_in_any_order(seed: int, after_s: list[float]) -> None:
    times, others = availability(HOURLY, seed=seed), availability(HOURLY, seed=seed)
    for one in after_s:
        worked_s = times.worked_s(MONDAY + one)
        assert times.worked_s(times.when(worked_s)) == pytest.approx(worked_s, abs=1e-3)
        assert worked_s == 0.0 or times.when(worked_s) <= MONDAY + one + 1e-3
    assert [others.worked_s(MONDAY + one) for one in sorted(after_s)] == [
        times.worked_s(MONDAY + one) for one in sorted(after_s)
    ]


@pytest.mark.parametrize(
    "process",
    [
        HOURLY,
        OnOff(HyperExponential((0.8, 0.2), (HOUR_S, 12 * HOUR_S)), Weibull(1.0, 2 * HOUR_S)),
        OnOff(LogNormal(2 * HOUR_S, 1.0), HyperExponential((0.5, 0.5), (0.2 * HOUR_S, 6 * HOUR_S))),
    ],
    ids=["weibull-lognormal", "hyperexponential-exponential", "lognormal-hyperexponential"],
)
def test_the_share_of_time_it_is_on_converges_to_the_processes(process: OnOff) -> None:
    days = 4000
    share = availability(process).worked_s(MONDAY + days * DAY_S) / (days * DAY_S)

    assert share == pytest.approx(process.fraction, rel=0.05)


def test_the_share_that_is_on_is_the_same_at_the_start_and_later() -> None:
    heavy = OnOff(Weibull(0.393, 2.964 * HOUR_S), LogNormal(0.5565 * HOUR_S, 1.6))
    hosts = [availability(heavy, seed=seed) for seed in range(1500)]

    for day in (0.0, 1.0, 20.0):
        share = sum(one.on_from(MONDAY + day * DAY_S) == MONDAY + day * DAY_S for one in hosts) / len(hosts)
        assert share == pytest.approx(heavy.fraction, abs=0.05)


def test_office_hosts_are_on_in_local_office_hours() -> None:
    office = availability(OnOff(), Hours(8.0, 10.0, 0.0, sd_hours=0.0), timezone_s=2 * HOUR_S)  # 6 to 16 h UTC

    assert office.on_from(MONDAY) == MONDAY + 6 * HOUR_S
    assert office.on_from(MONDAY + 16 * HOUR_S) == MONDAY + DAY_S + 6 * HOUR_S
    friday_evening = MONDAY + 4 * DAY_S + 17 * HOUR_S
    assert office.on_from(friday_evening) == MONDAY + 7 * DAY_S + 6 * HOUR_S


def test_hours_and_process_are_independent() -> None:
    hours = Hours(8.0, 12.0, 6.0)
    weeks = 400
    share = availability(HOURLY, hours).worked_s(MONDAY + weeks * 7 * DAY_S) / (weeks * 7 * DAY_S)

    assert share == pytest.approx(HOURLY.fraction * hours.fraction, rel=0.05)


def test_hours_round_the_clock_are_always_on() -> None:
    on = availability(OnOff(), Hours(0.0, 24.0, 24.0, sd_hours=0.0))

    assert on.worked_s(MONDAY + 100 * DAY_S) == pytest.approx(100 * DAY_S)


@given(st.integers(0, 2**32 - 1))
def test_intervals_follow_each_other(seed: int) -> None:
    found = list(
        islice(
            intervals_of(HOURLY, Hours(9.0, 14.0, 8.0), seed=np.random.SeedSequence(seed), start_at=Instant(MONDAY)), 40
        )
    )

    assert all(a < b for a, b in found)
    assert all(one[1] <= two[0] for one, two in pairwise(found))
    assert found[0][0] >= MONDAY


LAWS: list[Law] = [Weibull(0.8, 3600.0), LogNormal(3600.0, 0.8), HyperExponential((0.7, 0.3), (600.0, 36000.0))]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_is_drawn_has_the_mean(law: Law) -> None:
    drawn = law.draw(np.random.default_rng(1), 200_000)

    assert drawn.min() >= 0.0
    assert drawn.mean() == pytest.approx(law.mean_s, rel=0.02)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_length_biased_draw_has_the_expected_mean(law: Law) -> None:
    rng = np.random.default_rng(2)
    plain = law.draw(rng, 400_000)
    biased = np.array([law.length_biased_s(rng) for _ in range(20_000)])

    assert biased.mean() == pytest.approx((plain**2).mean() / plain.mean(), rel=0.06)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_scaled_law_has_a_scaled_mean(law: Law) -> None:
    assert law.scaled(3.0).mean_s == pytest.approx(3.0 * law.mean_s)
