"""Does a host have what a plan class needs? A row of small checks. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from domain.apps import PlanClass
from domain.formatting import both_in_words
from domain.hosts import Coprocessor, Host
from domain.refusals import Refusal, RefusalCode

PlanCheck = Callable[[PlanClass, Host], Refusal | None]


def plan_class_refusal(plan: PlanClass, host: Host) -> Refusal | None:
    """Why the host cannot run versions of this plan class; None when it can.

    >>> from domain.apps import NVIDIA
    >>> plan_class_refusal(PlanClass("cuda", gpu_type=NVIDIA), Host(1, 1)).detail
    "plan class 'cuda' needs 1 NVIDIA, host has 0"
    """
    for check in CHECKS:
        refusal = check(plan, host)
        if refusal is not None:
            return refusal
    return None


def _enough_cpus(plan: PlanClass, host: Host) -> Refusal | None:
    needed = max(float(plan.min_host_ncpus), plan.ncpus)
    if host.ncpus >= needed:
        return None
    return _refusal(plan, f"{needed:g} CPUs", f"{host.ncpus}")


def _enough_ram(plan: PlanClass, host: Host) -> Refusal | None:
    if host.ram_bytes >= plan.min_host_ram_bytes:
        return None
    needed, has = both_in_words(plan.min_host_ram_bytes, host.ram_bytes)
    return _refusal(plan, f"{needed} of RAM", has)


def _right_system(plan: PlanClass, host: Host) -> Refusal | None:
    if not plan.os_pattern:
        return None
    system = f"{host.os_name} {host.os_version}"
    if _compiled(plan.os_pattern).search(system):
        return None
    return _refusal(plan, f"a system like {plan.os_pattern!r}", repr(system))


def _has_gpu(plan: PlanClass, host: Host) -> Refusal | None:
    """The devices themselves: enough of them, with enough memory and a driver that is new enough."""
    if plan.gpu_type is None:
        return None
    gpu = next((one for one in host.coprocessors if one.type == plan.gpu_type), Coprocessor(plan.gpu_type, 0))
    if gpu.count < plan.gpu_count or gpu.count == 0:
        return _refusal(plan, f"{plan.gpu_count:g} {plan.gpu_type}", f"{gpu.count}")
    if gpu.ram_bytes < plan.min_gpu_ram_bytes:
        needed, has = both_in_words(plan.min_gpu_ram_bytes, gpu.ram_bytes)
        return _refusal(plan, f"{needed} of {gpu.type} memory", has)
    if gpu.driver_version < plan.min_driver_version:
        return _refusal(plan, f"{gpu.type} driver {plan.min_driver_version}", f"{gpu.driver_version}")
    return None


CHECKS: tuple[PlanCheck, ...] = (_enough_cpus, _has_gpu, _enough_ram, _right_system)


def _refusal(plan: PlanClass, needed: str, has: str) -> Refusal:
    return Refusal(RefusalCode.PLAN_CLASS, f"plan class {plan.name!r} needs {needed}, host has {has}")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
