"""Simulated computers built from host records."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from administration.thresholds.recent import held_by_batch, measured_hosts
from domain.apps import NVIDIA, AppVersion, PlanClass
from domain.hosts import Coprocessor, DecayedSums
from domain.insight import RecentHost, RecentInstance
from domain.units import AppId, AppVersionId, BatchId, Flop, FlopPerSecond, Seconds, later
from simulator.population import MeasuredHost
from tests.builders import NOW, a_hav, a_host, an_app_version

PLAIN = an_app_version()
CUDA = an_app_version(app_version_id=AppVersionId(2), plan_class=PlanClass("cuda", 0.5, NVIDIA))
VERSIONS = {one.app_version_id: one for one in (PLAIN, CUDA)}
SIZES = {AppId(1): Flop(3.6e12)}  # an hour at 1 Gflop/s


def a_record(version: AppVersion = PLAIN, *, s_per_flop: float, turnaround_s: float = 7200.0, **changes: Any) -> Any:
    """Return a record of ten valid results with this speed and turnaround."""
    values: dict[str, Any] = {
        "app_version_id": version.app_version_id,
        "n_valid": 10,
        "speed": DecayedSums(10.0, 10.0 * s_per_flop, at=NOW),
        "log_n": 10,
        "log_sum": 10.0 * math.log(turnaround_s),
    }
    return a_hav(**(values | changes))


def measured(*hosts: RecentHost) -> tuple[MeasuredHost, ...]:
    return measured_hosts(hosts, VERSIONS, SIZES, NOW)


def test_stretch_is_measured_over_benchmark_time() -> None:
    [one] = measured(RecentHost(a_host(flop_per_s=FlopPerSecond(2e9)), havs=(a_record(s_per_flop=1e-9),)))

    assert one.stretch == pytest.approx(2.0)


def test_buffer_is_turnaround_less_run_time() -> None:
    host = a_host(on_fraction=0.5)
    [one] = measured(RecentHost(host, havs=(a_record(s_per_flop=1e-9, turnaround_s=50_000.0),)))

    assert one.buffer_s == pytest.approx(50_000.0 - 3.6e12 * 1e-9 / 0.5)
    assert one.on_fraction == 0.5


def test_short_turnaround_gives_an_empty_buffer() -> None:
    [one] = measured(RecentHost(a_host(), havs=(a_record(s_per_flop=1e-9, turnaround_s=60.0),)))

    assert one.buffer_s == 0.0


def test_computer_without_record_gets_the_median() -> None:
    known = [
        RecentHost(a_host(), Seconds(interval_s), (a_record(s_per_flop=speed, turnaround_s=1e5),))
        for interval_s, speed in ((7200.0, 1e-9), (10_800.0, 2e-9), (14_400.0, 4e-9))
    ]
    *_, newcomer = measured(*known, RecentHost(a_host()))

    assert newcomer.stretch == pytest.approx(2.0)
    assert newcomer.buffer_s == pytest.approx(1e5 - 7200.0)


def test_defaults_apply_without_any_record() -> None:
    [one] = measured(RecentHost(a_host()))

    assert (one.stretch, one.buffer_s) == (1.0, 0.6 * 86400.0)
    assert (one.loss_fraction, one.error_fraction) == (0.0, 0.0)


def held_by(host: RecentHost, *ages_s: float, version: AppVersion = PLAIN) -> RecentHost:
    """Return the host with instances in progress, sent so long ago and due in an hour."""
    rows = [RecentInstance(BatchId(3), version.app_version_id, later(NOW, -age), later(NOW, 3600.0)) for age in ages_s]
    return replace(host, held=tuple(rows))


@pytest.mark.parametrize("jobs, share", [(4, 1 / 4), (8, 1 / 4), (16, 1 / 2)])
def test_share_follows_from_the_jobs_in_progress(jobs: int, share: float) -> None:
    """Sixteen jobs of an hour that return after four hours keep four of eight processors busy. Four or eight get a
    quarter of a processor each; whether the host has more to give to further jobs is not known.
    """
    host = replace(a_host(ncpus=8), created_at=later(NOW, -30 * 86400.0), last_rpc_at=NOW)
    known = RecentHost(host, havs=(a_record(s_per_flop=1e-9, turnaround_s=4 * 3600.0),))

    [one, other] = measured(held_by(known, *(jobs * [60.0])), RecentHost(a_host()))

    assert one.share == pytest.approx(share)
    assert other.share == one.share


def test_share_is_at_least_what_was_returned() -> None:
    """Ten jobs of an hour in 20 hours keep half a processor busy; its job in progress gets a sixteenth of one."""
    host = replace(a_host(ncpus=4), created_at=later(NOW, -20 * 3600.0), last_rpc_at=NOW)
    known = RecentHost(host, havs=(a_record(s_per_flop=1e-9, turnaround_s=16 * 3600.0),))
    [one] = measured(held_by(known, 60.0))

    assert one.share == pytest.approx(1 / 8)


def test_host_without_jobs_now_gets_the_share_of_the_others() -> None:
    """Ten results in a year say little about the share that it gives when it has work."""
    host = replace(a_host(ncpus=8), created_at=later(NOW, -365 * 86400.0), last_rpc_at=NOW)
    idle = RecentHost(host, havs=(a_record(s_per_flop=1e-9),))

    [alone] = measured(idle)
    [_, beside] = measured(held_by(idle, *(8 * [60.0])), idle)

    assert [alone.share, beside.share] == pytest.approx([1.0, 1 / 2])


def test_jobs_in_progress_are_done_by_their_age() -> None:
    """A job of an hour waits for three hours in a queue of four."""
    host = RecentHost(a_host(), havs=(a_record(s_per_flop=1e-9, turnaround_s=4 * 3600.0),))
    found = held_by_batch([RecentHost(a_host()), held_by(host, 9e4, 3.25 * 3600.0, 60.0)], VERSIONS, SIZES, NOW)

    [old, running, new] = found[BatchId(3)]
    assert [one.done_fraction for one in (old, running, new)] == pytest.approx([0.9, 0.25, 0.0])
    assert (running.volunteer, running.age_s, running.due_s) == (1, 3.25 * 3600.0, 3600.0)


def test_long_wait_makes_a_result_unlikely() -> None:
    """Of a host with a standard deviation of ln 2 around a mean of an hour, 1 in 6 results takes two hours or more."""
    spread = a_record(s_per_flop=1e-10, turnaround_s=3600.0)
    spread = replace(spread, log_sum_sq=spread.log_sum**2 / 10 + 9 * math.log(2.0) ** 2)
    found = held_by_batch([held_by(RecentHost(a_host(), havs=(spread,)), 7200.0, 3600.0)], VERSIONS, SIZES, NOW)

    assert [one.later_fraction for one in found[BatchId(3)]] == pytest.approx([0.1587, 0.5], abs=1e-4)


def test_computer_keeps_its_record_without_its_jobs() -> None:
    known = RecentHost(a_host(), Seconds(600.0), (a_record(s_per_flop=1e-9),))

    assert [one.known for one in measured(held_by(known, 60.0))] == [known]


def test_next_call_is_expected_after_the_usual_interval() -> None:
    host = replace(a_host(), last_rpc_at=later(NOW, -600.0))
    [one, silent, unknown] = measured(
        RecentHost(host, Seconds(3600.0)), RecentHost(host, Seconds(60.0)), RecentHost(host)
    )

    assert [each.asks_after_s for each in (one, silent, unknown)] == [3000.0, 0.0, 85_800.0]


def test_loss_and_error_shares_are_shrunk_to_overall() -> None:
    good = [RecentHost(a_host(), havs=(a_record(s_per_flop=1e-9, n_valid=90),)) for _ in range(9)]
    bad = RecentHost(a_host(), havs=(a_record(s_per_flop=1e-9, n_valid=0, n_error=40, n_timeout=50),))
    *others, last = measured(*good, bad)

    lost_of_all, failed_of_all = 50 / 900, 40 / 850
    assert last.loss_fraction == pytest.approx((50 + 20 * lost_of_all) / 110)
    assert last.error_fraction == pytest.approx((40 + 20 * failed_of_all) / 60)
    assert [one.loss_fraction for one in others] == 9 * [pytest.approx(20 * lost_of_all / 110)]


def test_measured_values_are_clamped() -> None:
    [one] = measured(
        RecentHost(
            a_host(on_fraction=0.0), Seconds(1.0), havs=(a_record(s_per_flop=1.0, turnaround_s=1e9, n_timeout=990),)
        )
    )

    assert (one.stretch, one.on_fraction) == (10.0, 0.05)
    assert one.loss_fraction == 0.9


def test_gpu_efficiency_is_measured_from_its_jobs() -> None:
    card = Coprocessor(NVIDIA, 2, FlopPerSecond(1e12), 4e9, 50_000)
    host = a_host(coprocessors=(card,))
    [one] = measured(RecentHost(host, havs=(a_record(CUDA, s_per_flop=1 / 2.5e10),)))

    assert one.gpu is not None
    assert (one.gpu.type, one.gpu.count) == (NVIDIA, 2)
    assert one.gpu.efficiency == pytest.approx((2.5e10 - 0.5e9) / 1e12)


def test_platform_with_a_version_is_preferred() -> None:
    one, other = measured(
        RecentHost(a_host(platforms=("exotic", PLAIN.platform))), RecentHost(a_host(platforms=("exotic",)))
    )

    assert (one.platform, other.platform) == (PLAIN.platform, "exotic")


def test_computer_without_platform_is_left_out() -> None:
    assert measured(RecentHost(a_host(platforms=()))) == ()


def test_computers_of_a_volunteer_share_an_owner() -> None:
    host = a_host()
    one, other = measured(RecentHost(host), RecentHost(replace(host, ncpus=8)))

    assert (one.owner, other.ncpus) == (other.owner, 8)
