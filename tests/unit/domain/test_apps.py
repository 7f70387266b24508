"""App versions and the processors they run on."""

from __future__ import annotations

import pytest

from domain.apps import CPU, INTEL_GPU, NVIDIA, PlanClass, ProcessorType
from tests.builders import an_app_version


def test_a_version_without_a_plan_class_runs_on_the_cpu() -> None:
    assert an_app_version().processor_type == CPU


@pytest.mark.parametrize("gpu_type", [NVIDIA, INTEL_GPU, ProcessorType("a new kind")])
def test_a_gpu_version_has_the_processor_type_of_its_plan_class(gpu_type: ProcessorType) -> None:
    assert an_app_version(plan_class=PlanClass("gpu", gpu_type=gpu_type)).processor_type == gpu_type


def test_a_plan_class_of_many_cpus_is_still_cpu() -> None:
    assert PlanClass("mt", ncpus=16.0).processor_type == CPU
