"""Chooses the best app version for a host by app and processor type: BAV(A, T). Pure."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from domain.apps import App, AppVersion, PlanClass, ProcessorType, plan_for
from domain.formatting import both_in_words
from domain.hosts import Coprocessor, Host
from domain.quick import quick_dataclass
from domain.ranking import CutPoints, Percentile, samples
from domain.refusals import Refusal, RefusalCode
from domain.settings import SchedulerSettings
from domain.units import DAY_S, AppVersionId, Instant
from scheduler.busy import usage_of
from scheduler.context import SchedulingContext, believed
from scheduler.gates import percentile_of
from scheduler.runtime import Speed, speed_of

PlanCheck = Callable[[PlanClass, Host], Refusal | None]


def plan_class_refusal(plan: PlanClass, host: Host) -> Refusal | None:
    """Return why the host cannot run versions of this plan class; None if it can.

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
    return _refusal(plan, f"an OS matching {plan.os_pattern!r}", repr(system))


def _has_gpu(plan: PlanClass, host: Host) -> Refusal | None:
    """Check the number of devices, their memory and their driver version."""
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


_ENGINES = {"docker": ("docker/", "podman/"), "virtualbox": ("virtualbox/",)}  # by need: names in Host.software


def _has_software(plan: PlanClass, host: Host) -> Refusal | None:
    if not plan.needs or any(one.startswith(_ENGINES[plan.needs]) for one in host.software.split()):
        return None
    return _refusal(plan, "Docker or Podman" if plan.needs == "docker" else "VirtualBox", host.software or "neither")


CHECKS: tuple[PlanCheck, ...] = (_enough_cpus, _has_gpu, _has_software, _enough_ram, _right_system)


def _refusal(plan: PlanClass, needed: str, has: str) -> Refusal:
    return Refusal(RefusalCode.PLAN_CLASS, f"plan class {plan.name!r} needs {needed}, host has {has}")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


LEAST_EXPLORATION = 0.1  # lower limit of the random factor


@quick_dataclass(frozen=True, slots=True)
class Usable:
    """A version that the host can run now, and the processors occupied by one of its jobs.

    `proven`: it has enough samples on this host to be ranked.
    """

    version: AppVersion
    speed: Speed
    percentile: Percentile
    proven: bool
    quota_left: int
    plan: PlanClass
    usage: float
    cuts: CutPoints | None

    def for_job(self, ncpus: float) -> Usable:
        """Return the version with the plan class for a job that needs `ncpus` CPUs."""
        plan = plan_for(self.plan, ncpus)
        return self if plan is self.plan else replace(self, plan=plan, usage=usage_of(plan))


@quick_dataclass(frozen=True, slots=True)
class Best:
    """BAV(A, T): one version for gated and tight jobs, and one for relaxed jobs, which is drawn with some exploration.

    A version that only appears slow would never be measured if relaxed jobs did not try it; tight jobs do not take that
    risk (docs/formulas.md#app-versions).
    """

    for_gated: Usable
    for_relaxed: Usable


def best_version(
    app: App,
    kind: ProcessorType,
    context: SchedulingContext,
    *,
    sent: Mapping[AppVersionId, int],
    rng: Callable[[], random.Random],
) -> Best | Refusal:
    """Return the best version of an app for the host on one processor type, or why there is none.

    `sent` counts the jobs in this reply per version; `rng` is called only if there is a choice. Gated: the fastest
    version with statistics on this host, or of all versions if none has statistics. Relaxed: the highest speed * (1 +
    N(0,1) / n), at least 0.1 speed, where n is the effective number of speed samples. Ties go to the client's preferred
    platform.
    """
    usable: list[Usable] = []
    refusals: list[Refusal] = []
    for version in _on_platforms(app, kind, context):
        found = _usable(version, context, sent.get(version.app_version_id, 0))
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            usable.append(found)
    if not usable:
        closest = max(refusals, key=lambda one: one.code.traits.closeness, default=None)
        return closest or _nothing_fits(app, kind, context)
    if len(usable) == 1:
        return Best(usable[0], usable[0])
    proven = [one for one in usable if one.proven] or usable
    fastest = max(proven, key=lambda one: one.speed.flop_per_s)
    drawn = {one.version.app_version_id: one.speed.flop_per_s * curiosity(one.speed.samples, rng()) for one in usable}
    return Best(fastest, max(usable, key=lambda one: drawn[one.version.app_version_id]))


def curiosity(speed_samples: float, rng: random.Random) -> float:
    """Return 1 + N(0,1) / n, at least 0.1: a wide range for a version with few samples.

    >>> rng = random.Random(1)
    >>> 0.9 < curiosity(100.0, rng) < 1.1
    True
    """
    return max(LEAST_EXPLORATION, 1.0 + rng.gauss(0.0, 1.0) / max(1.0, speed_samples))


def quota_left(context: SchedulingContext, version: AppVersion, sent: int) -> tuple[int, int]:
    """Return how many more instances of a version the host may get today, and its daily quota.

    Quota = quota per processor and day (initially the setting) * accepted processors.
    """
    settings: SchedulerSettings = context.catalogue.settings.scheduler
    hav = context.havs.get(version.app_version_id)
    per_day = (hav.quota_per_day if hav is not None else 0) or settings.daily_quota_start
    most = per_day * believed(_processors(context, version.processor_type), context.havs)
    today = hav.sent_today if hav is not None and hav.day == day_of(context.now) else 0
    return most - today - sent, most


def day_of(now: Instant) -> int:
    """Return the day to which `sent_today` applies, in whole days since the epoch.

    >>> day_of(Instant(86_400.0 * 3 + 5.0))
    3
    """
    return int(now // DAY_S)


def _on_platforms(app: App, kind: ProcessorType, context: SchedulingContext) -> Iterator[AppVersion]:
    """Yield current versions for this processor type, in the client's order of platforms."""
    current = context.catalogue.current.get(app.app_id, ())
    for platform in context.host.platforms:
        for version in current:
            if version.platform == platform and version.plan_class.processor_type == kind:
                yield version


def _usable(version: AppVersion, context: SchedulingContext, sent: int) -> Usable | Refusal:
    refusal = plan_class_refusal(version.plan_class, context.host) or _more_than_lent(
        version, context.volunteer.max_cpus
    )
    if refusal is not None:
        return refusal
    left, most = quota_left(context, version, sent)
    if left <= 0:
        app = context.catalogue.apps[version.app_id].name
        return Refusal(
            RefusalCode.DAILY_QUOTA,
            "{1}: {2} jobs sent today; failures lower the daily quota, which is now {3}",
            (version.app_version_id, f"{app} {version.number}", most - left, most),
            figures="{1}: {2} jobs sent today, quota {3}",
        )
    settings = context.catalogue.settings
    hav = context.havs.get(version.app_version_id)
    cuts = context.catalogue.cut_points.get((version.app_id, version.processor_type))
    percentile = percentile_of(version, context.havs, context.catalogue, now=context.now)
    ranked = percentile.x is not None  # because that takes as many samples
    return Usable(
        version,
        speed_of(version, context.host, hav, cuts, now=context.now, settings=settings.deadline),
        percentile,
        proven=hav is not None and (ranked or samples(hav, context.now) >= settings.ranking.min_samples),
        quota_left=left,
        plan=version.plan_class,
        usage=usage_of(version.plan_class),
        cuts=cuts,
    )


def _more_than_lent(version: AppVersion, lent: int) -> Refusal | None:
    """Refuse versions that use more CPUs than the volunteer allows per job; 0 = no limit."""
    ncpus = version.plan_class.ncpus
    if not lent or ncpus <= lent:
        return None
    plan = version.plan_class.name
    return Refusal(
        RefusalCode.PLAN_CLASS, f"plan class {plan!r} uses {ncpus:g} CPUs, the volunteer allows at most {lent} per job"
    )


def _processors(context: SchedulingContext, kind: ProcessorType) -> int:
    for want in context.wants:
        if want.processor_type == kind:
            return max(1, want.count)
    return max(1, context.host.ncpus)


def _nothing_fits(app: App, kind: ProcessorType, context: SchedulingContext) -> Refusal:
    """Return the refusal for an app without a version for the processor type, or for the client's platforms."""
    current = context.catalogue.current.get(app.app_id, ())
    platforms = sorted({version.platform for version in current if version.processor_type == kind})
    if not platforms:
        return Refusal(RefusalCode.NO_APP_VERSION, f"app {app.name} has no version for {kind}")
    reported = tuple(context.host.platforms)
    served = {one.platform for versions in context.catalogue.current.values() for one in versions}
    has = "app {0} has no version for {2}, only for {1}"
    if served.isdisjoint(reported):  # then all apps have one sentence
        has, platforms = "no app has a version for {2}, only for {1}", sorted(served)
    words = ", ".join(reported) or "a client without a platform"
    return Refusal(RefusalCode.PLATFORM, has, (app.name, ", ".join(platforms), words, reported), figures="{2}")
