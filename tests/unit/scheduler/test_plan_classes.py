"""What a plan class asks of a host."""

from __future__ import annotations

from typing import Any

import pytest

from domain.apps import NVIDIA, PlanClass, ProcessorType
from domain.hosts import Coprocessor
from domain.refusals import RefusalCode
from domain.units import FlopPerSecond
from scheduler.plan_classes import plan_class_refusal
from tests.builders import a_host

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
    ("asks", "detail"),
    [
        ({"ncpus": 8.0}, "plan class 'any' needs 8 CPUs, host has 4"),
        ({"min_host_ncpus": 5}, "plan class 'any' needs 5 CPUs, host has 4"),
        ({"min_host_ram_bytes": 9e9}, "plan class 'any' needs 9 GB of RAM, host has 8 GB"),
        (
            {"os_pattern": "^Windows"},
            "plan class 'any' needs a system like '^Windows', host has 'Linux Debian 12 [6.1.0]'",
        ),
        ({"gpu_type": NVIDIA, "gpu_count": 3.0}, "plan class 'any' needs 3 NVIDIA, host has 2"),
        (
            {"gpu_type": NVIDIA, "min_gpu_ram_bytes": 5e9},
            "plan class 'any' needs 5 GB of NVIDIA memory, host has 4 GB",
        ),
        (
            {"gpu_type": NVIDIA, "min_driver_version": 52000},
            "plan class 'any' needs NVIDIA driver 52000, host has 51000",
        ),
        ({"gpu_type": ProcessorType("fake_gpu")}, "plan class 'any' needs 1 fake_gpu, host has 0"),
    ],
)
def test_a_refused_plan_class_names_both_numbers(asks: dict[str, Any], detail: str) -> None:
    refusal = plan_class_refusal(PlanClass("any", **asks), HOST)
    assert refusal is not None
    assert (refusal.code, refusal.detail) == (RefusalCode.PLAN_CLASS, detail)


def test_a_coprocessor_of_any_name_is_matched_by_its_type() -> None:
    host = a_host(coprocessors=(Coprocessor(ProcessorType("fake_gpu"), 1),))
    assert plan_class_refusal(PlanClass("fake", gpu_type=ProcessorType("fake_gpu")), host) is None


def test_a_share_of_no_device_is_refused() -> None:
    host = a_host(coprocessors=(Coprocessor(NVIDIA, 0),))
    assert plan_class_refusal(PlanClass("half", gpu_type=NVIDIA, gpu_count=0.5), host) is not None
