"""Applications, plan classes, files and app versions over dictionaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.apps import App, AppFile, AppVersion, PlanClass
from domain.catalogue import Catalogue, current_versions
from domain.errors import AlreadyExistsError, NotFoundError
from domain.host_classes import ClassesByApp
from domain.hosts import DecayedSums, HostAppVersion
from domain.settings import Settings
from domain.units import AppId, AppVersionId
from store.memory.registry import StoredFile
from store.memory.reserving import reserved_in
from store.memory.work import OnTables
from store.settings import is_accelerated, with_relaxed

INHERITED_SAMPLES = 5.0  # most a new version starts with, of each kind of sums (docs/formulas.md#app-versions)
INHERITED_VALID = 11  # most consecutive valid results a new version starts with


class MemoryApplications(OnTables):
    async def add_app(self, app: App) -> App:
        registry = self._registry
        if app.name in registry.app_ids:
            raise AlreadyExistsError("app", app.name)
        app = replace(app, app_id=AppId(len(registry.apps) + 1))
        registry.apps[app.app_id] = app
        registry.app_ids[app.name] = app.app_id
        return app

    async def apps(self) -> Sequence[App]:
        return list(self._registry.apps.values())

    async def app(self, name: str) -> App:
        return self._registry.app(name)

    async def put_plan_class(self, plan_class: PlanClass) -> None:
        self._registry.plan_classes[plan_class.name] = plan_class

    async def plan_classes(self) -> Mapping[str, PlanClass]:
        return dict(sorted(self._registry.plan_classes.items()))

    async def add_app_version(self, version: AppVersion) -> AppVersionId:
        registry = self._registry
        if version.app_id not in registry.apps:
            raise NotFoundError("app", version.app_id)
        if version.plan_class.name not in registry.plan_classes:
            raise NotFoundError("plan class", version.plan_class.name)
        if any(_identity(known) == _identity(version) for known in registry.versions.values()):
            raise AlreadyExistsError("app version", f"{version.platform} {version.version_num}")
        for file in version.files:
            if file.name not in registry.files:
                raise NotFoundError("file", file.name)
        app_version_id = AppVersionId(len(registry.versions) + 1)
        self._inherit(app_version_id, version)
        registry.versions[app_version_id] = replace(version, app_version_id=app_version_id)
        return app_version_id

    def _inherit(self, app_version_id: AppVersionId, version: AppVersion) -> None:
        """Give the new version its predecessor's statistics, of little weight."""
        older = [
            known
            for known in self._registry.versions.values()
            if _line(known) == _line(version) and known.version_num < version.version_num
        ]
        if not older:
            return
        predecessor = max(older, key=lambda known: known.version_num).app_version_id
        for host in self._work.hosts.values():
            if predecessor in host.havs:
                self._work.put_hav(_inherited(host.havs[predecessor], app_version_id))

    async def load_catalogue(self) -> Catalogue:
        """From then on the quotas of its settings hold."""
        versions = self._versions()
        self._registry.settings, unfit = Settings.from_stored(self._registry.changed_settings)
        return Catalogue(
            apps=dict(self._registry.apps),
            versions=versions,
            current=current_versions(versions),
            cut_points=with_relaxed(self._registry.cut_points.values(), self._registry.relaxed_gates),
            settings=self._registry.settings,
            unfit_settings=unfit,
            acceleration=self._registry.acceleration if is_accelerated(self._registry.settings) else None,
            reserved=reserved_in(self._registry),
            host_classes=ClassesByApp.made(self._registry.host_classes),
        )

    def _versions(self) -> dict[AppVersionId, AppVersion]:
        """The versions with the files and plan classes of the moment."""
        registry = self._registry
        return {
            app_version_id: replace(
                version,
                plan_class=registry.plan_classes[version.plan_class.name],
                files=tuple(_as_registered(file, registry.files[file.name]) for file in version.files),
            )
            for app_version_id, version in registry.versions.items()
        }


def _line(version: AppVersion) -> tuple[AppId, str, str]:
    return (version.app_id, version.platform, version.plan_class.name)


def _identity(version: AppVersion) -> tuple[AppId, str, str, int]:
    return (*_line(version), version.version_num)


def _as_registered(file: AppFile, registered: StoredFile) -> AppFile:
    return replace(file, nbytes=registered.nbytes, md5=registered.md5, signature=registered.signature)


def _inherited(row: HostAppVersion, app_version_id: AppVersionId) -> HostAppVersion:
    kept = min(1.0, INHERITED_SAMPLES / row.log_n) if row.log_n > 0 else 1.0
    return HostAppVersion(
        row.host_id,
        app_version_id,
        consecutive_valid=min(row.consecutive_valid, INHERITED_VALID),
        quota_per_day=row.quota_per_day,
        speed=_lightened(row.speed),
        tight=_lightened(row.tight),
        relaxed=_lightened(row.relaxed),
        inherited_from=row.app_version_id,
        log_n=min(row.log_n, int(INHERITED_SAMPLES)),
        log_sum=row.log_sum * kept,
        log_sum_sq=row.log_sum_sq * kept,
        tight_missed_n=row.tight_missed_n * min(1.0, INHERITED_SAMPLES / max(row.tight.n, INHERITED_SAMPLES)),
        clean_since_at=row.clean_since_at,
    )


def _lightened(sums: DecayedSums) -> DecayedSums:
    kept = min(1.0, INHERITED_SAMPLES / sums.n) if sums.n > 0 else 1.0
    return DecayedSums(sums.n * kept, sums.total * kept, sums.total_sq * kept, sums.at)
