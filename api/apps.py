"""Applications, their versions and files, and plan classes over the API."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

import msgspec

from administration.apps import change_app, new_app, plan_class_of
from administration.hosts import FAILED_WITHIN_S
from administration.show import app_as_json, shown
from api.paging import Page, page_of_all
from api.table import NOTED, Ask, NoParams, operation
from api.versions import edited_part
from domain.access import Right
from domain.apps import AppVersion, OnePerVolunteer, VersionState, VersionUse
from domain.bounds import BOUNDS
from domain.clock import Clock
from domain.errors import NotFoundError
from domain.units import AppVersionId, later
from muster_client import shapes
from store.applications import PostgresApplications

APP_EDITED = ("user_friendly_name", "beta", "deprecated", "adaptive_copies", "one_per_host", "one_per_volunteer")


class NewAppBody(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    user_friendly_name: str = ""
    beta: bool = False
    adaptive_copies: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0
    one_per_host: bool = True
    one_per_volunteer: OnePerVolunteer = OnePerVolunteer.QUORUM


class AppBody(msgspec.Struct, forbid_unknown_fields=True):
    """Omitted fields keep their values. Jobs of a deprecated app are not sent."""

    user_friendly_name: str | None = None
    beta: bool | None = None
    deprecated: bool | None = None
    adaptive_copies: Annotated[int, msgspec.Meta(ge=0, le=10)] | None = None
    one_per_host: bool | None = None
    one_per_volunteer: OnePerVolunteer | None = None


class AppParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class VersionsParams(Page, forbid_unknown_fields=True, kw_only=True):
    name: str


class VersionParams(msgspec.Struct, forbid_unknown_fields=True):
    app_version_id: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class VersionBody(msgspec.Struct, forbid_unknown_fields=True):
    """deprecated: no more jobs. withdrawn: lost jobs are not sent again either. aborted: hosts also drop its jobs."""

    state: VersionState


class AppsApi:
    TAG = "applications"

    def __init__(self, applications: PostgresApplications, clock: Clock) -> None:
        self._applications = applications
        self._clock = clock

    @operation("GET", "/apps", "Applications with their current versions.")
    async def list_apps(self, ask: Ask[Page, None]) -> shapes.AppPage:
        catalogue = await self._applications.load_catalogue()
        apps = list(catalogue.apps.values())
        return page_of_all(
            shapes.AppPage, apps, ask.params, lambda app: app.app_id, lambda app: app_as_json(app, catalogue)
        )

    @operation("POST", "/apps", "Add an application.", right=Right.OPERATE, status=201, errors=(409,))
    async def add_app(self, ask: Ask[NoParams, NewAppBody]) -> shapes.NewApp:
        return shown(shapes.NewApp, await self._applications.add_app(new_app(**msgspec.structs.asdict(ask.body))))

    @operation(
        "PATCH",
        "/apps/{name}",
        "Change an application. Running services apply it within seconds.",
        right=Right.OPERATE,
        errors=(404,),
        shown_by="app",
    )
    async def set_app(self, ask: Ask[AppParams, AppBody]) -> shapes.AppShown:
        before, changes = await self._applications.app(ask.params.name), msgspec.structs.asdict(ask.body)
        changed = await change_app(self._applications, before.name, **changes)
        ask.request[NOTED] = {"was": {name: getattr(before, name) for name in changes if changes[name] is not None}}
        return app_as_json(changed, await self._applications.load_catalogue())

    @operation(
        "GET",
        "/apps/{name}",
        "An application with its current versions.",
        errors=(404,),
        edited=edited_part(*APP_EDITED),
    )
    async def app(self, ask: Ask[AppParams, None]) -> shapes.AppDetail:
        found = await self._applications.app(ask.params.name)
        catalogue = await self._applications.load_catalogue()
        versions = catalogue.current.get(found.app_id, ())
        return {**app_as_json(found, catalogue), "current": [version_as_json(one) for one in versions]}

    @operation("GET", "/apps/{name}/versions", "All versions of an application, newest first.", errors=(404,))
    async def app_versions(self, ask: Ask[VersionsParams, None]) -> shapes.VersionPage:
        app = await self._applications.app(ask.params.name)
        catalogue = await self._applications.load_catalogue()
        found = [one for one in catalogue.versions.values() if one.app_id == app.app_id]
        found.sort(key=lambda one: one.app_version_id, reverse=True)
        return page_of_all(shapes.VersionPage, found, ask.params, lambda one: one.app_version_id, version_as_json)

    @operation(
        "GET",
        "/apps/{name}/use",
        "Hosts, results and failures of an application's versions: counters since each version was added, and failures "
        "in the last week, among the last 10,000 of all applications.",
        errors=(404,),
    )
    async def app_use(self, ask: Ask[AppParams, None]) -> shapes.AppUse:
        app, since = await self._applications.app(ask.params.name), later(self._clock.now(), -FAILED_WITHIN_S)
        used = await self._applications.use_of_versions(app.app_id, since=since)
        failed = await self._applications.failures_of_versions(since=since)
        versions = (await self._applications.load_catalogue()).versions
        return {
            "use": [
                shown(
                    shapes.VersionUseShown,
                    used.get(number, VersionUse(number)),
                    one,
                    plan_class=one.plan_class.name,
                    failures=shown(shapes.FailuresShown, failed[number], since=since) if number in failed else None,
                )
                for number, one in sorted(versions.items(), reverse=True)
                if one.app_id == app.app_id
            ]
        }

    @operation(
        "GET",
        "/app-versions/{app_version_id}",
        "An app version with its files.",
        errors=(404,),
        edited=edited_part("state"),
    )
    async def app_version(self, ask: Ask[VersionParams, None]) -> shapes.OneVersion:
        return await self._version(AppVersionId(ask.params.app_version_id))

    @operation(
        "PATCH",
        "/app-versions/{app_version_id}",
        "Deprecate, withdraw or offer an app version. Running services apply it within seconds.",
        right=Right.OPERATE,
        errors=(404,),
        shown_by="app_version",
    )
    async def set_app_version(self, ask: Ask[VersionParams, VersionBody]) -> shapes.OneVersion:
        version_id = AppVersionId(ask.params.app_version_id)
        ask.request[NOTED] = {"was": {"state": (await self._version(version_id))["state"]}}
        await self._applications.set_version_state(version_id, ask.body.state)
        return await self._version(version_id)

    async def _version(self, version_id: AppVersionId) -> shapes.OneVersion:
        version = (await self._applications.load_catalogue()).versions.get(version_id)
        if version is None:
            raise NotFoundError("app version", version_id)
        return shown(shapes.OneVersion, version, plan_class=version.plan_class.name)


def version_as_json(version: AppVersion) -> shapes.VersionShown:
    files = [file.name for file in version.files]
    return shown(shapes.VersionShown, version, plan_class=version.plan_class.name, files=files)


def _within(name: str) -> msgspec.Meta:
    return msgspec.Meta(ge=BOUNDS[name].low, le=BOUNDS[name].high)


def _whole_within(name: str) -> msgspec.Meta:
    return msgspec.Meta(ge=int(BOUNDS[name].low), le=int(BOUNDS[name].high))


class PlanClassParams(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class PlanClassBody(msgspec.Struct, forbid_unknown_fields=True):
    """`gpu_type`: NVIDIA, ATI, intel_gpu or a custom type; omit it for CPU plan classes."""

    ncpus: Annotated[float, _within("plan_class.ncpus")] = 1.0
    gpu_type: str | None = None
    gpu_count: Annotated[float, _within("gpu_count")] = 1.0
    min_gpu_ram_bytes: Annotated[float, _within("min_gpu_ram_bytes")] = 0.0
    min_driver_version: Annotated[int, _whole_within("min_driver_version")] = 0
    min_host_ncpus: Annotated[int, _whole_within("min_host_ncpus")] = 1
    min_host_ram_bytes: Annotated[float, _within("min_host_ram_bytes")] = 0.0
    os_pattern: str = ""
    cpu_speed_fraction: Annotated[float, _within("cpu_speed_fraction")] = 1.0
    gpu_speed_fraction: Annotated[float, _within("gpu_speed_fraction")] = 0.1
    needs: Literal["", "docker", "virtualbox"] = ""
    arguments: str = ""
    all_cpus: bool = False


class PlanClassesApi:
    TAG = "applications"

    def __init__(self, applications: PostgresApplications) -> None:
        self._applications = applications

    @operation("GET", "/plan-classes", "Plan classes, by name.")
    async def plan_classes(self, ask: Ask[Page, None]) -> shapes.PlanClassPage:
        classes = list((await self._applications.plan_classes()).values())
        return page_of_all(
            shapes.PlanClassPage, classes, ask.params, lambda one: one.name, partial(shown, shapes.PlanClassShown)
        )

    @operation(
        "GET",
        "/plan-classes/{name}",
        "A plan class.",
        errors=(404,),
        edited=edited_part(*PlanClassBody.__struct_fields__),
    )
    async def plan_class(self, ask: Ask[PlanClassParams, None]) -> shapes.PlanClassShown:
        found = (await self._applications.plan_classes()).get(ask.params.name)
        if found is None:
            raise NotFoundError("plan class", ask.params.name)
        return shown(shapes.PlanClassShown, found)

    @operation(
        "PUT", "/plan-classes/{name}", "Define or change a plan class.", right=Right.OPERATE, shown_by="plan_class"
    )
    async def set_plan_class(self, ask: Ask[PlanClassParams, PlanClassBody]) -> shapes.PlanClassShown:
        new = plan_class_of({"name": ask.params.name, **msgspec.structs.asdict(ask.body)})
        await self._applications.put_plan_class(new)
        return shown(shapes.PlanClassShown, new)
