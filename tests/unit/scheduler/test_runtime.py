"""Runtimes from the host's own record, where available."""

from __future__ import annotations

import math

import pytest

from domain.apps import NVIDIA
from domain.hosts import Coprocessor, DecayedSums
from domain.settings import DeadlineSettings
from domain.units import Flop, FlopPerSecond, Instant, Seconds
from lifecycle.turnaround import censored_sample
from scheduler.runtime import a_priori_flop_per_s, projected_flop_per_s, slack_factor, speed_of
from tests.builders import NOW, a_hav, a_host, a_plan_class, an_app_version
from tests.unit.scheduler.arrays import some_cuts

SETTINGS = DeadlineSettings()
R = Seconds(1.0)


def same_ratio(ratio: float, n: float) -> DecayedSums:
    """`n` equal samples of ln(turnaround / R)."""
    return DecayedSums(n, n * math.log(ratio), n * math.log(ratio) ** 2, NOW)


def test_host_without_a_record_has_its_benchmark_speed() -> None:
    host = a_host(flop_per_s=FlopPerSecond(1e9), on_fraction=0.5, active_fraction=0.5)
    speed = speed_of(an_app_version(), host, None, None, now=NOW, settings=SETTINGS)
    assert speed.flop_per_s == 1e9
    assert speed.runtime_s(Flop(3.6e12)) == 4 * 3600.0  # a quarter of the time


def test_a_gpu_version_runs_while_the_gpu_may() -> None:
    version = an_app_version(plan_class=a_plan_class(ncpus=1.0, gpu_type=NVIDIA, gpu_count=0.5))
    host = a_host(
        on_fraction=0.8,
        active_fraction=1.0,
        gpu_active_fraction=0.5,
        coprocessors=(Coprocessor(NVIDIA, 1, FlopPerSecond(1e12)),),
    )
    speed = speed_of(version, host, None, None, now=NOW, settings=SETTINGS)
    assert speed.a_priori_flop_per_s == 1e9 + 0.5 * 1e12 * 0.1
    assert speed.availability_fraction == 0.4


def test_a_plan_class_of_several_cpus_uses_them_at_its_share() -> None:
    version = an_app_version(plan_class=a_plan_class(ncpus=4.0, cpu_speed_fraction=0.75))
    assert a_priori_flop_per_s(version, a_host(flop_per_s=FlopPerSecond(2e9))) == 6e9


@pytest.mark.parametrize("nonsense", [0.0, -5.0, 1.0])
def test_a_host_that_tells_nonsense_still_has_a_finite_runtime(nonsense: float) -> None:
    host = a_host(flop_per_s=FlopPerSecond(nonsense), on_fraction=0.0)
    speed = speed_of(an_app_version(), host, None, None, now=NOW, settings=SETTINGS)
    assert speed.runtime_s(Flop(1e12)) == 1e12 / 1e6 / 0.01


def test_measurements_outweigh_the_benchmark_as_they_come() -> None:
    a_priori = FlopPerSecond(1e9)
    shares = [projected_flop_per_s(DecayedSums(n, n * 1e-10), a_priori) / 1e10 for n in (1.0, 4.0, 9.0, 99.0)]
    assert [round(share, 3) for share in shares] == [0.316, 0.631, 0.794, 0.977]


def test_a_measurement_is_believed_up_to_250_times_the_benchmark() -> None:
    measured = DecayedSums(1e9, 1e9 * 1e-15)
    assert projected_flop_per_s(measured, FlopPerSecond(1e9)) == pytest.approx(250e9, rel=1e-6)


def test_old_measurements_count_less() -> None:
    old = a_hav(speed=DecayedSums(4.0, 4e-10, 4e-20, Instant(NOW - 28 * 86400.0)))
    speed = speed_of(an_app_version(), a_host(), old, None, now=NOW, settings=SETTINGS)
    assert speed.samples == 1.0
    assert speed.flop_per_s == pytest.approx(math.sqrt(1e9 * 1e10))


def test_slack_is_the_settings_until_there_is_data() -> None:
    few = some_cuts(tight_n=49.0, tight_mean=0.1, tight_sd=0.1)
    assert slack_factor(DecayedSums(), few, settings=SETTINGS) == pytest.approx(2.5)
    assert slack_factor(DecayedSums(), None, settings=DeadlineSettings(slack_factor=4.0)) == pytest.approx(4.0)


def test_slack_is_the_apps_while_the_host_has_no_data() -> None:
    cuts = some_cuts(tight_n=50.0, tight_mean=0.2, tight_sd=0.3)
    assert slack_factor(DecayedSums(), cuts, settings=SETTINGS) == pytest.approx(math.exp(0.2 + 1.2816 * 0.3))


def test_slack_moves_to_the_hosts_own_record() -> None:
    cuts = some_cuts(tight_n=50.0, tight_mean=0.2, tight_sd=0.3)
    factors = [slack_factor(same_ratio(1.5, n), cuts, settings=SETTINGS) for n in (0.0, 10.0, 1e6)]
    assert factors[0] < factors[1] < 2.0  # the distance of the two means widens the spread at first
    assert factors[2] == pytest.approx(1.5, rel=1e-2)


def test_time_outs_do_not_drive_the_slack_up_without_end() -> None:
    """Half of all tight instances are lost; each leaves ln of its allowed time over R."""
    slack = 2.5
    for _ in range(20):
        lost = censored_sample(sent_at=NOW, due_at=Instant(NOW + slack), now=Instant(NOW + 1.1 * slack), yardstick_s=R)
        spread = some_cuts(tight_n=100.0, tight_mean=lost / 2, tight_sd=lost / 2)
        half = DecayedSums(50.0, 25 * lost, 25 * lost**2, NOW)
        slack = slack_factor(half, spread, settings=SETTINGS)

    assert slack == pytest.approx(10.0)
    assert slack_factor(same_ratio(90.0, 1e6), None, settings=DeadlineSettings(slack_factor=20.0)) == pytest.approx(
        20.0
    )


def test_a_median_instead_of_a_quantile_leaves_out_the_spread() -> None:
    cuts = some_cuts(tight_n=50.0, tight_mean=0.2, tight_sd=0.3)
    found = slack_factor(DecayedSums(), cuts, settings=DeadlineSettings(reliability_quantile_z=0.0))
    assert found == pytest.approx(math.exp(0.2))


def test_safe_runtime_of_short_jobs_has_the_minimum_slack() -> None:
    speed = speed_of(an_app_version(), a_host(), None, None, now=NOW, settings=SETTINGS)
    assert speed.safe_runtime_s(Seconds(60.0), Seconds(3600.0)) == 3660.0
    assert speed.safe_runtime_s(Seconds(60.0), Seconds(0.0)) == pytest.approx(150.0)
