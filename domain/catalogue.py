"""Data that requests use besides the data of their host: apps, versions, cut points. Pure.

A catalogue is an immutable snapshot that is replaced as a whole every few seconds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from domain.acceleration import Acceleration
from domain.apps import App, AppVersion, ProcessorType, VersionState, on_host
from domain.batches import Batch, QoS, first_from
from domain.deadline_rules import traits_of
from domain.errors import InvalidInputError
from domain.host_classes import NO_CLASSES, ClassesByApp
from domain.ranking import CutPoints, are_stale
from domain.reservations import NOTHING_RESERVED, Reserved
from domain.restrictions import Restrictions
from domain.settings import Settings
from domain.units import AppId, AppVersionId, HostId, Instant, Seconds

MOST_REQUESTS = 0.5  # as a fraction


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Apps, their current versions, and cut points.

    `versions` holds every version that instances may still refer to; `current` only those used for new work: offered,
    with the highest number of their (app, platform, plan class).
    """

    apps: Mapping[AppId, App] = field(default_factory=dict)
    versions: Mapping[AppVersionId, AppVersion] = field(default_factory=dict)
    current: Mapping[AppId, tuple[AppVersion, ...]] = field(default_factory=dict)
    cut_points: Mapping[tuple[AppId, ProcessorType], CutPoints] = field(default_factory=dict)
    settings: Settings = Settings()
    unfit_settings: tuple[InvalidInputError, ...] = ()  # invalid stored settings, for which the defaults are used
    acceleration: Acceleration | None = None  # for deadline.rule = accelerated; None: another rule, or no result yet
    reserved: Reserved = NOTHING_RESERVED  # slots and leases for big jobs
    host_classes: ClassesByApp = NO_CLASSES  # for homogeneous redundancy
    restrictions: Restrictions = field(default_factory=dict)  # bans, limits and pauses
    stale_since: Mapping[tuple[AppId, ProcessorType], Instant] = field(
        default_factory=dict
    )  # when each stale set of cut points was computed

    def is_sent(self, app_id: AppId) -> bool:
        """Return whether jobs of an app are sent: it is not deprecated, and has a current version."""
        app = self.apps.get(app_id)
        return bool(self.current.get(app_id)) and not (app is not None and app.deprecated)

    def sent_apps(self) -> list[AppId]:
        """Return the apps whose jobs are sent."""
        return [app_id for app_id in self.current if self.is_sent(app_id)]

    def processor_types(self, app_id: AppId) -> frozenset[ProcessorType]:
        """Return the processor types for which an app has current versions."""
        return frozenset(version.processor_type for version in self.current.get(app_id, ()))

    def retry_turnarounds_s(self, app_id: AppId) -> list[Seconds]:
        """Return the known retry turnarounds (T_retry) for an app, one per processor type."""
        found = (cuts.retry_turnaround_s for (of_app, _), cuts in self.cut_points.items() if of_app == app_id)
        return [one for one in found if one is not None]

    def first_from(self, app_id: AppId, qos: QoS, deadline_at: Instant | None) -> Instant:
        """Return after which instant requests prefer a batch to deferrable work, on any processor type."""
        deadline, within_s = self.settings.deadline, 0.0
        if not traits_of(deadline).afap_first:
            return Instant(math.inf)
        if deadline_at is not None and deadline.first_factor > 0.0:
            within_s = deadline.first_factor * max(self.retry_turnarounds_s(app_id), default=math.inf)
        return first_from(qos, deadline_at, within_s=within_s)

    def sent_first_from(self, app_id: AppId, qos: QoS, deadline_at: Instant | None, *, unpaid: bool) -> Instant:
        """Return after which instant most requests take a batch before the others. Unpaid batches are always last."""
        if unpaid or self.settings.scheduler.afap_first_fraction < MOST_REQUESTS:
            return Instant(math.inf)
        return self.first_from(app_id, qos, deadline_at)

    def on_host(self, ncpus: int) -> Catalogue:
        """Return the catalogue for a host of that many CPUs, which versions may use all of."""
        wide = {i: one for i, one in self.versions.items() if one.plan_class.all_cpus}
        if not wide:
            return self
        made = {i: replace(one, plan_class=on_host(one.plan_class, ncpus)) for i, one in wide.items()}
        current = {
            app_id: tuple(made.get(one.app_version_id, one) for one in versions)
            for app_id, versions in self.current.items()
        }
        return replace(self, versions={**self.versions, **made}, current=current)

    def has_version_for(self, app_id: AppId, kind: ProcessorType) -> bool:
        """Return whether an app has a current version for this processor type."""
        return any(version.processor_type == kind for version in self.current.get(app_id, ()))

    def low_turnaround(self, batch: Batch, host_id: HostId) -> bool | None:
        """Return whether the host has the low turnaround that an accelerated batch requires; None for other batches."""
        found = self.acceleration
        if found is None or not found.covers(batch.batch_id, batch.app_id):
            return None
        return host_id in found.hosts

    def median_safe_runtime_s(self, app_id: AppId) -> Seconds | None:
        """Return the median R_q over an app's hosts for the processor type they use most; None if unknown."""
        known = [cuts for (of_app, _), cuts in self.cut_points.items() if of_app == app_id]
        most = max((cuts for cuts in known if cuts.median_safe_runtime_s is not None), key=_rows, default=None)
        return most.median_safe_runtime_s if most is not None else None


class CatalogueSource(Protocol):
    """Provides the current catalogue."""

    def catalogue(self) -> Catalogue: ...


def without_stale(catalogue: Catalogue, now: Instant) -> Catalogue:
    """Remove stale cut points, as if their populations had never been ranked.

    `stale_since` of the result lists the removed populations with the times of their cut points.
    """
    known, ranking = catalogue.cut_points, catalogue.settings.ranking
    stale = {key: cuts.computed_at for key, cuts in known.items() if are_stale(cuts, now, ranking)}
    if not stale:
        return catalogue
    fresh = {key: cuts for key, cuts in known.items() if key not in stale}
    return replace(catalogue, cut_points=fresh, stale_since=stale)


def _rows(cuts: CutPoints) -> tuple[int, str]:
    return cuts.n, cuts.processor_type


def current_versions(versions: Mapping[AppVersionId, AppVersion]) -> dict[AppId, tuple[AppVersion, ...]]:
    """Return the versions for new work by app: for each platform and plan class, the highest version number.

    >>> a = AppVersion(AppVersionId(1), AppId(1), "linux", 100)
    >>> b = AppVersion(AppVersionId(2), AppId(1), "linux", 101)
    >>> [v.version_num for v in current_versions({1: a, 2: b})[1]]
    [101]
    """
    newest: dict[tuple[AppId, str, str], AppVersion] = {}
    for version in versions.values():
        if version.state is not VersionState.OFFERED:
            continue
        key = (version.app_id, version.platform, version.plan_class.name)
        if key not in newest or version.version_num > newest[key].version_num:
            newest[key] = version
    by_app: dict[AppId, tuple[AppVersion, ...]] = {}
    for key in sorted(newest):
        by_app[key[0]] = (*by_app.get(key[0], ()), newest[key])
    return by_app
