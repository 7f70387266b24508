"""BAV(A, T): the best app version for a host."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from domain.apps import CPU, NVIDIA, AppVersion, PlanClass, ProcessorType
from domain.hosts import Coprocessor, DecayedSums
from domain.refusals import Refusal, RefusalCode
from domain.units import DAY_S, AppId, AppVersionId, FlopPerSecond
from scheduler.context import SchedulingContext
from scheduler.versions import Best, best_version, plan_class_refusal, quota_left
from tests.builders import LINUX, NOW, a_hav, a_host, a_plan_class, a_volunteer, an_app, an_app_version
from tests.facts import missing
from tests.unit.scheduler.arrays import a_catalogue, a_want, an_asking

PLAIN = an_app_version()
TODAY = int(NOW // DAY_S)


def measured(flop_per_s: float, n: float = 20.0, **changes: Any) -> dict[str, Any]:
    return {
        "speed": DecayedSums(n, n / flop_per_s, n / flop_per_s**2, NOW),
        "relaxed": DecayedSums(n, 0.0, 0.0, NOW),
        **changes,
    }


def version(number: int, **changes: Any) -> AppVersion:
    return an_app_version(app_version_id=number, **changes)


def best(
    context: SchedulingContext, kind: Any = CPU, *, seed: int = 0, sent: dict[AppVersionId, int] | None = None
) -> Best:
    rng = random.Random(seed)
    found = best_version(an_app(), kind, context, sent=sent or {}, rng=lambda: rng)
    assert isinstance(found, Best), found
    return found


def refusal(context: SchedulingContext, kind: Any = CPU, sent: dict[AppVersionId, int] | None = None) -> Refusal:
    found = best_version(an_app(), kind, context, sent=sent or {}, rng=random.Random)
    assert isinstance(found, Refusal), found
    return found


def numbered(found: Best) -> tuple[int, int]:
    return found.for_gated.version.app_version_id, found.for_relaxed.version.app_version_id


def test_the_only_version_is_the_best_for_everything() -> None:
    found = best(an_asking())
    assert found.for_gated is found.for_relaxed
    assert found.for_gated.version == PLAIN
    assert not found.for_gated.proven


def test_version_above_the_volunteers_cpu_limit_is_not_used() -> None:
    wide = version(2, plan_class=a_plan_class(name="mt", ncpus=4.0))
    context = an_asking(host=a_host(ncpus=8), volunteer=a_volunteer(max_cpus=2), catalogue=a_catalogue(PLAIN, wide))
    assert numbered(best(context)) == (PLAIN.app_version_id, PLAIN.app_version_id)
    found = refusal(replace(context, catalogue=a_catalogue(wide)))
    assert found.code is RefusalCode.PLAN_CLASS
    assert "uses 4 CPUs" in found.detail and "at most 2" in found.detail


def test_the_fastest_version_is_the_best_for_gated_jobs() -> None:
    two = version(2, plan_class=a_plan_class(name="sse", ncpus=1.0, cpu_speed_fraction=1.5))
    assert numbered(best(an_asking(catalogue=a_catalogue(PLAIN, two))))[0] == 2


def test_gated_jobs_get_the_fastest_version_with_statistics() -> None:
    new = version(2, plan_class=a_plan_class(name="avx", ncpus=1.0, cpu_speed_fraction=9.0))
    havs = {AppVersionId(1): a_hav(**measured(1e9))}
    found = best(an_asking(catalogue=a_catalogue(PLAIN, new), havs=havs))
    assert found.for_gated.version == PLAIN
    assert found.for_gated.proven


def test_relaxed_jobs_sometimes_try_hardly_measured_versions() -> None:
    new = version(2, plan_class=a_plan_class(name="avx", ncpus=1.0, cpu_speed_fraction=0.9))
    havs = {AppVersionId(1): a_hav(**measured(1e9))}
    context = an_asking(catalogue=a_catalogue(PLAIN, new), havs=havs)
    drawn = Counter(numbered(best(context, seed=seed)) for seed in range(200))
    assert set(drawn) == {(1, 1), (1, 2)}
    assert 50 < drawn[1, 2] < 150


def test_relaxed_jobs_get_the_fastest_of_well_measured_versions() -> None:
    slow = version(2, plan_class=a_plan_class(name="avx", ncpus=1.0))
    havs = {
        AppVersionId(1): a_hav(**measured(1e9, n=500.0)),
        AppVersionId(2): a_hav(app_version_id=2, **measured(8e8, n=500.0)),
    }
    context = an_asking(catalogue=a_catalogue(PLAIN, slow), havs=havs)
    assert {numbered(best(context, seed=seed)) for seed in range(100)} == {(1, 1)}


def test_equally_fast_versions_follow_the_clients_platforms() -> None:
    old = version(2, platform="i686-pc-linux-gnu")
    context = an_asking(catalogue=a_catalogue(PLAIN, old), host=a_host(platforms=("i686-pc-linux-gnu", LINUX)))
    assert numbered(best(context))[0] == 2


def test_only_the_newest_version_of_a_plan_class_is_given() -> None:
    context = an_asking(catalogue=a_catalogue(version(1, version_num=100), version(2, version_num=101)))
    assert numbered(best(context)) == (2, 2)


def test_a_gpu_version_is_for_the_gpu_only() -> None:
    cuda = version(2, plan_class=a_plan_class(name="cuda", gpu_type=NVIDIA))
    host = a_host(coprocessors=(Coprocessor(NVIDIA, 1, FlopPerSecond(1e12)),))
    context = an_asking(catalogue=a_catalogue(PLAIN, cuda), host=host, wants=(a_want(NVIDIA, count=1), a_want()))
    assert numbered(best(context, NVIDIA)) == (2, 2)
    assert numbered(best(context, CPU)) == (1, 1)


# ------------------------------------------------------------------ refusals


def test_an_app_without_a_version_for_the_processor_says_so() -> None:
    found = refusal(an_asking(), NVIDIA)
    assert (found.code, missing(found.detail, "app pi", "NVIDIA")) == (RefusalCode.NO_APP_VERSION, [])


def test_platform_refusal_names_both_platforms() -> None:
    linux = version(1)
    windows = replace(version(2, platform="windows_x86_64"), app_id=AppId(9))
    catalogue = a_catalogue(linux)
    others = replace(catalogue, current={**catalogue.current, AppId(9): (windows,)})

    found = refusal(an_asking(catalogue=others, host=a_host(platforms=("windows_x86_64",))))

    assert found.code is RefusalCode.PLATFORM
    assert not missing(found.detail, "app pi", LINUX, "windows_x86_64")
    assert found.terms[-1] == ("windows_x86_64",)


def test_platform_of_no_app_is_one_refusal_for_all_apps() -> None:
    found = refusal(an_asking(host=a_host(platforms=("windows_x86_64",))))

    assert found.code is RefusalCode.PLATFORM
    assert missing(found.detail, "pi", LINUX, "windows_x86_64") == ["pi"]


def test_unfit_plan_class_is_reported() -> None:
    large = version(1, plan_class=a_plan_class(ncpus=64.0))
    found = refusal(an_asking(catalogue=a_catalogue(large)))
    assert (found.code, missing(found.detail, "'mt'", "needs 64 CPUs", "host has 2")) == (RefusalCode.PLAN_CLASS, [])


def test_used_up_quota_takes_precedence_over_plan_class() -> None:
    large = version(2, plan_class=a_plan_class(ncpus=64.0))
    havs = {AppVersionId(1): a_hav(quota_per_day=3, day=TODAY, sent_today=6)}
    found = refusal(an_asking(catalogue=a_catalogue(PLAIN, large), havs=havs))
    assert found.code is RefusalCode.DAILY_QUOTA
    assert not missing(found.detail, "pi 1.00:", "6 jobs", "now 6")
    assert found.terms[0] == PLAIN.app_version_id


# ------------------------------------------------------------------ quota


def test_the_quota_is_per_processor() -> None:
    havs = {AppVersionId(1): a_hav(quota_per_day=3, day=TODAY, sent_today=4)}
    assert quota_left(an_asking(havs=havs), PLAIN, 0) == (2, 6)


def test_yesterdays_jobs_do_not_count() -> None:
    havs = {AppVersionId(1): a_hav(quota_per_day=3, day=TODAY - 1, sent_today=4)}
    assert quota_left(an_asking(havs=havs), PLAIN, 1) == (5, 6)


def test_a_host_without_a_row_has_the_start_quota() -> None:
    context = an_asking(catalogue=a_catalogue(scheduler__daily_quota_start=5))
    assert quota_left(context, PLAIN, 3) == (7, 10)
    assert quota_left(an_asking(catalogue=context.catalogue, havs={AppVersionId(1): a_hav()}), PLAIN, 0) == (10, 10)


def test_jobs_of_this_reply_count() -> None:
    context = an_asking(catalogue=a_catalogue(scheduler__daily_quota_start=1))
    assert best(context, sent={AppVersionId(1): 1}).for_gated.quota_left == 1
    assert refusal(context, sent={AppVersionId(1): 2}).code is RefusalCode.DAILY_QUOTA


GPU = Coprocessor(NVIDIA, 2, FlopPerSecond(1e12), ram_bytes=4e9, driver_version=51000)
HOST = a_host(ncpus=4, ram_bytes=8e9, os_name="Linux Debian", os_version="12 [6.1.0]", coprocessors=(GPU,))


@pytest.mark.parametrize(
    "fits",
    [
        {},
        {"ncpus": 4.0},
        {"min_host_ncpus": 4},
        {"min_host_ram_bytes": 8e9},
        {"os_pattern": "Debian 1[12]"},
        {"gpu_type": NVIDIA, "gpu_count": 2.0, "min_gpu_ram_bytes": 4e9, "min_driver_version": 51000},
        {"gpu_type": NVIDIA, "gpu_count": 0.5},
    ],
)
def test_a_plan_class_that_fits_is_not_refused(fits: dict[str, Any]) -> None:
    assert plan_class_refusal(PlanClass("any", **fits), HOST) is None


@pytest.mark.parametrize(
    ("asks", "needs", "has"),
    [
        ({"ncpus": 8.0}, "8 CPUs", "4"),
        ({"min_host_ncpus": 5}, "5 CPUs", "4"),
        ({"min_host_ram_bytes": 9e9}, "9 GB of RAM", "8 GB"),
        ({"os_pattern": "^Windows"}, "an OS matching '^Windows'", "'Linux Debian 12 [6.1.0]'"),
        ({"gpu_type": NVIDIA, "gpu_count": 3.0}, "3 NVIDIA", "2"),
        ({"gpu_type": NVIDIA, "min_gpu_ram_bytes": 5e9}, "5 GB of NVIDIA memory", "4 GB"),
        ({"gpu_type": NVIDIA, "min_driver_version": 52000}, "NVIDIA driver 52000", "51000"),
        ({"gpu_type": ProcessorType("fake_gpu")}, "1 fake_gpu", "0"),
    ],
)
def test_a_refused_plan_class_names_both_numbers(asks: dict[str, Any], needs: str, has: str) -> None:
    refusal = plan_class_refusal(PlanClass("any", **asks), HOST)
    assert refusal is not None
    assert refusal.code is RefusalCode.PLAN_CLASS
    assert not missing(refusal.detail, "'any'", f"needs {needs}", f"host has {has}")


def test_a_coprocessor_of_any_name_is_matched_by_its_type() -> None:
    host = a_host(coprocessors=(Coprocessor(ProcessorType("fake_gpu"), 1),))
    assert plan_class_refusal(PlanClass("fake", gpu_type=ProcessorType("fake_gpu")), host) is None


def test_a_share_of_no_device_is_refused() -> None:
    host = a_host(coprocessors=(Coprocessor(NVIDIA, 0),))
    assert plan_class_refusal(PlanClass("half", gpu_type=NVIDIA, gpu_count=0.5), host) is not None


@pytest.mark.parametrize(
    ("needs", "software", "fits"),
    [
        ("", "", True),
        ("docker", "", False),
        ("docker", "docker/24.0.7", True),
        ("docker", "virtualbox/7.0 podman/4.9.3", True),
        ("docker", "virtualbox/7.0", False),
        ("virtualbox", "virtualbox/7.0", True),
        ("virtualbox", "docker/24.0.7", False),
    ],
)
def test_needed_software_must_be_reported(needs: str, software: str, fits: bool) -> None:
    found = plan_class_refusal(a_plan_class(needs=needs), a_host(software=software))

    assert (found is None) == fits
    assert found is None or (found.code is RefusalCode.PLAN_CLASS and (software or "neither") in found.detail)
