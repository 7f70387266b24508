"""Which app version suits a host best, per app and processor type: BAV(A, T). Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from domain.apps import App, AppVersion, ProcessorType
from domain.quick import quick_dataclass
from domain.ranking import CutPoints, Percentile, samples
from domain.refusals import Refusal, RefusalCode
from domain.settings import SchedulerSettings
from domain.units import DAY_S, AppVersionId, Instant
from scheduler.asking import Asking
from scheduler.busy import usage_of
from scheduler.gates import percentile_of
from scheduler.need import believed
from scheduler.plan_classes import plan_class_refusal
from scheduler.runtime import Speed, speed_of

LEAST_EXPLORATION = 0.1  # the random factor's floor (POLICY 3)

# Of several reasons, the one that came closest to a version is told.
CLOSEST_FIRST = (RefusalCode.DAILY_QUOTA, RefusalCode.PLAN_CLASS, RefusalCode.PLATFORM, RefusalCode.NO_APP_VERSION)


@quick_dataclass(frozen=True, slots=True)
class Usable:
    """A version the host can run now, and how many of its processors a job of it occupies.

    `proven`: it has enough samples on this host to be ranked.
    """

    version: AppVersion
    speed: Speed
    percentile: Percentile
    proven: bool
    quota_left: int
    usage: float
    cuts: CutPoints | None


@quick_dataclass(frozen=True, slots=True)
class Best:
    """BAV(A, T): for gated and tight jobs, and, drawn with some curiosity, for relaxed ones.

    A version that only looks slow would never be measured if relaxed jobs did not try it; tight jobs
    take no such risk (POLICY 3, D18).
    """

    for_gated: Usable
    for_relaxed: Usable


def best_version(
    app: App,
    kind: ProcessorType,
    asking: Asking,
    *,
    sent: Mapping[AppVersionId, int],
    rng: Callable[[], random.Random],
) -> Best | Refusal:
    """The best version of an app for the host on one processor type, or why there is none.

    `sent` counts what this reply already gives per version; `rng` is called only when there is a choice.
    Gated: the fastest of those with statistics on this host, of all while none has any. Relaxed: the
    greatest speed * (1 + N(0,1) / n), at least 0.1 speed, n the effective speed samples. Ties go to the
    client's preferred platform.
    """
    usable: list[Usable] = []
    refusals: list[Refusal] = []
    for version in _on_platforms(app, kind, asking):
        found = _usable(version, asking, sent.get(version.app_version_id, 0))
        if isinstance(found, Refusal):
            refusals.append(found)
        else:
            usable.append(found)
    if not usable:
        return _closest(refusals) or _nothing_fits(app, kind, asking)
    if len(usable) == 1:
        return Best(usable[0], usable[0])
    proven = [one for one in usable if one.proven] or usable
    fastest = max(proven, key=lambda one: one.speed.flop_per_s)
    drawn = {one.version.app_version_id: one.speed.flop_per_s * curiosity(one.speed.samples, rng()) for one in usable}
    return Best(fastest, max(usable, key=lambda one: drawn[one.version.app_version_id]))


def curiosity(speed_samples: float, rng: random.Random) -> float:
    """1 + N(0,1) / n, at least 0.1: wide for a version that was hardly tried (POLICY 3).

    >>> rng = random.Random(1)
    >>> 0.9 < curiosity(100.0, rng) < 1.1
    True
    """
    return max(LEAST_EXPLORATION, 1.0 + rng.gauss(0.0, 1.0) / max(1.0, speed_samples))


def quota_left(asking: Asking, version: AppVersion, sent: int) -> tuple[int, int]:
    """How many more instances of a version the host may get today, and how many it may get in all.

    All = quota per processor and day (the setting's start value while there is no row) * processors that are believed.
    """
    settings: SchedulerSettings = asking.catalogue.settings.scheduler
    hav = asking.havs.get(version.app_version_id)
    per_day = (hav.quota_per_day if hav is not None else 0) or settings.daily_quota_start
    most = per_day * believed(_processors(asking, version.processor_type), asking.havs)
    today = hav.sent_today if hav is not None and hav.day == day_of(asking.now) else 0
    return most - today - sent, most


def day_of(now: Instant) -> int:
    """The day `sent_today` counts for: whole days since the epoch.

    >>> day_of(Instant(86_400.0 * 3 + 5.0))
    3
    """
    return int(now // DAY_S)


def _on_platforms(app: App, kind: ProcessorType, asking: Asking) -> Iterator[AppVersion]:
    """Current versions for this processor type, in the client's order of platforms."""
    current = asking.catalogue.current.get(app.app_id, ())
    for platform in asking.host.platforms:
        for version in current:
            if version.platform == platform and version.plan_class.processor_type == kind:
                yield version


def _usable(version: AppVersion, asking: Asking, sent: int) -> Usable | Refusal:
    refusal = plan_class_refusal(version.plan_class, asking.host) or _more_than_lent(version, asking.volunteer.max_cpus)
    if refusal is not None:
        return refusal
    left, most = quota_left(asking, version, sent)
    if left <= 0:
        return Refusal(
            RefusalCode.DAILY_QUOTA,
            f"{most - left} jobs sent today with version {version.version_num}, quota is {most}",
        )
    settings = asking.catalogue.settings
    hav = asking.havs.get(version.app_version_id)
    cuts = asking.catalogue.cut_points.get((version.app_id, version.processor_type))
    standing = percentile_of(version, asking.havs, asking.catalogue, now=asking.now)
    ranked = standing.x is not None  # which takes as many samples
    return Usable(
        version,
        speed_of(version, asking.host, hav, cuts, now=asking.now, settings=settings.deadline),
        standing,
        proven=hav is not None and (ranked or samples(hav, asking.now) >= settings.ranking.min_samples),
        quota_left=left,
        usage=usage_of(version.plan_class),
        cuts=cuts,
    )


def _more_than_lent(version: AppVersion, lent: int) -> Refusal | None:
    """A version for more CPUs than the volunteer lends one job; 0 = any number."""
    ncpus = version.plan_class.ncpus
    if not lent or ncpus <= lent:
        return None
    plan = version.plan_class.name
    return Refusal(
        RefusalCode.PLAN_CLASS, f"plan class {plan!r} uses {ncpus:g} CPUs, the volunteer lends one job at most {lent}"
    )


def _processors(asking: Asking, kind: ProcessorType) -> int:
    for want in asking.wants:
        if want.processor_type == kind:
            return max(1, want.count)
    return max(1, asking.host.ncpus)


def _closest(refusals: Sequence[Refusal]) -> Refusal | None:
    return min(refusals, key=lambda one: CLOSEST_FIRST.index(one.code), default=None)


def _nothing_fits(app: App, kind: ProcessorType, asking: Asking) -> Refusal:
    """No version for the type at all, or none for the client's platforms."""
    current = asking.catalogue.current.get(app.app_id, ())
    platforms = sorted({version.platform for version in current if version.processor_type == kind})
    if not platforms:
        return Refusal(RefusalCode.NO_APP_VERSION, f"app {app.name} has no version for {kind}")
    told = ", ".join(asking.host.platforms) or "none"
    return Refusal(RefusalCode.PLATFORM, f"app {app.name} runs on {', '.join(platforms)}; the client said {told}")
