"""Stores apps, plan classes, files and app versions in PostgreSQL and loads the catalogue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

import asyncpg

from domain.acceleration import Acceleration
from domain.apps import App, AppFile, AppVersion, PlanClass, VersionState, VersionUse
from domain.catalogue import Catalogue, current_versions
from domain.errors import AlreadyExistsError, NotFoundError
from domain.host_lists import LOOKED_AT, RecentFailures
from domain.ranking import RelaxedGate
from domain.restrictions import Restrictions
from domain.settings import Settings
from domain.units import AppId, AppVersionId, Instant
from store import rows
from store.pool import Connection, Database
from store.queries import load
from store.reserving import read_classes, read_reserved
from store.restrictions import restriction_of
from store.rows import columns_of, mapper, values_of
from store.settings import ACCELERATION, RELAXED_GATES, is_accelerated, read_report, with_relaxed

_plan_class_values = values_of(
    "name ncpus gpu_type gpu_count min_gpu_ram_bytes min_driver_version min_host_ncpus min_host_ram_bytes os_pattern"
    " cpu_speed_fraction gpu_speed_fraction needs arguments all_cpus"
)
_version_values = values_of("app_id platform version_num plan_class.name api_version created_at")
_file_columns = columns_of("main_program open_name copy_file executable")


_version_use = mapper(VersionUse)
_failures = mapper(RecentFailures)


@dataclass(frozen=True, slots=True)
class _Versions:
    """All app versions and restrictions as of a change. None: no change was read yet."""

    last_change: UUID | None
    by_id: Mapping[AppVersionId, AppVersion]
    current: Mapping[AppId, tuple[AppVersion, ...]]
    restrictions: Restrictions


class PostgresApplications:
    """Stores apps, plan classes, versions and their files. `noted` receives the settings of each loaded catalogue."""

    def __init__(self, database: Database, noted: Callable[[Settings], None]) -> None:
        self._database = database
        self._noted = noted
        self._versions = _Versions(None, {}, {}, {})
        self._stored: Mapping[str, object] = {}
        self._settings = Settings.from_stored({})

    async def add_app(self, app: App) -> App:
        """Add an app, ignoring `app.app_id`. Raises AlreadyExistsError."""
        row = await self._database.fetch_one("insert_app", app.name, *rows.app_settings(app))
        if row is None:
            raise AlreadyExistsError("app", app.name)
        return rows.app(row)

    async def apps(self) -> Sequence[App]:
        return [rows.app(row) for row in await self._database.fetch("list_apps")]

    async def app(self, name: str) -> App:
        return rows.app(await self._database.fetch_known("app_by_name", name, kind="app"))

    async def set_app(self, app: App) -> None:
        await self._database.fetch_known("update_app", app.app_id, *rows.app_settings(app), kind="app")

    async def put_plan_class(self, plan_class: PlanClass) -> None:
        """Insert or replace a plan class."""
        await self._database.fetch("upsert_plan_class", *_plan_class_values(plan_class))

    async def plan_classes(self) -> Mapping[str, PlanClass]:
        return {row["name"]: rows.plan_class(row) for row in await self._database.fetch("list_plan_classes")}

    async def add_file(self, name: str, *, nbytes: int, md5: str, signature: str, now: Instant) -> None:
        """Add a file, or do nothing if it already exists. Raises AlreadyExistsError if its contents differ."""

        async def write(connection: Connection) -> None:
            file = [name], [nbytes], [md5]
            await connection.execute(load("insert_files"), *file, [""], now)
            if await connection.fetchval(load("files_that_differ"), *file) is not None:
                raise AlreadyExistsError("file", name)
            await connection.execute(load("sign_unsigned_file"), name, signature)

        await self._database.in_transaction(write)

    async def add_app_version(self, version: AppVersion) -> AppVersionId:
        """Add a version with its files, which must be registered. It inherits its predecessor's HAV rows.

        Raises AlreadyExistsError for the same (app, platform, version_num, plan class).
        """

        async def write(connection: Connection) -> AppVersionId:
            version_id = await _insert_version(connection, version)
            await _insert_version_files(connection, version_id, version.files)
            await connection.execute(load("inherit_statistics"), version_id)
            return version_id

        return await self._database.in_transaction(write)

    async def set_version_state(self, app_version_id: AppVersionId, state: VersionState) -> None:
        """Raises NotFoundError."""
        columns = rows.version_state(state)
        await self._database.fetch_known("update_app_version", app_version_id, *columns, kind="app version")

    async def in_progress_of_version(self, app_version_id: AppVersionId) -> tuple[int, int]:
        """Return the number of instances in progress with a version, and on how many hosts."""
        row = await self._database.fetch_one("in_progress_of_version", app_version_id)
        return (0, 0) if row is None else (row["in_progress"], row["hosts"])

    async def use_of_versions(self, app_id: AppId, *, since: Instant) -> Mapping[AppVersionId, VersionUse]:
        """Return the use of an app's versions that have been used. A host is recent if its counters changed since."""
        found = await self._database.fetch("use_of_versions", app_id, since)
        return {row["app_version_id"]: _version_use(row) for row in found}

    async def failures_of_versions(self, *, since: Instant) -> Mapping[AppVersionId, RecentFailures]:
        """Return the failures of all apps' versions since an instant, at most the last LOOKED_AT together."""
        found = await self._database.fetch("failures_of_versions", since, LOOKED_AT)
        return {row["app_version_id"]: _failures(row) for row in found}

    async def sign_file(self, name: str, signature: str) -> None:
        """Replace the signature of an app file after a key change."""
        await self._database.fetch_known("sign_file", name, signature, kind="file")

    async def app_files(self) -> Sequence[AppFile]:
        found = [rows.app_file(row) for row in await self._database.fetch("list_app_version_files")]
        return list({file.name: file for file in found}.values())

    async def load_catalogue(self) -> Catalogue:
        """Load the whole catalogue, including settings."""
        catalogue, self._versions = await self._database.in_transaction(self._read_catalogue, snapshot=True)
        self._noted(catalogue.settings)
        return catalogue

    async def _read_catalogue(self, connection: Connection) -> tuple[Catalogue, _Versions]:
        apps = [rows.app(row) for row in await connection.fetch(load("list_apps"))]
        versions = await _changed_versions(connection, self._versions)
        cuts = [rows.cut_points(row) for row in await connection.fetch(load("current_cut_points"))]
        changed = {row["key"]: rows.decoded(row["value"]) for row in await connection.fetch(load("list_settings"))}
        if changed != self._stored:  # checking settings takes milliseconds, and workers do this every two seconds
            self._stored, self._settings = changed, Settings.from_stored(changed)
        settings, unfit = self._settings
        relaxed = await read_report(connection, RELAXED_GATES, tuple[RelaxedGate, ...]) or ()
        acceleration = await read_report(connection, ACCELERATION, Acceleration) if is_accelerated(settings) else None
        reserved, host_classes = await read_reserved(connection), await read_classes(connection)
        catalogue = Catalogue(
            apps={app.app_id: app for app in apps},
            versions=versions.by_id,
            current=versions.current,
            cut_points=with_relaxed(cuts, relaxed),
            settings=settings,
            unfit_settings=unfit,
            acceleration=acceleration,
            reserved=reserved,
            host_classes=host_classes,
            restrictions=versions.restrictions,
        )
        return catalogue, versions


async def _insert_version(connection: Connection, version: AppVersion) -> AppVersionId:
    try:
        version_id = await connection.fetchval(
            load("insert_app_version"), *_version_values(version), *rows.version_state(version.state)
        )
    except asyncpg.ForeignKeyViolationError as error:
        if "plan_class" in str(error.constraint_name):
            raise NotFoundError("plan class", version.plan_class.name) from error
        raise NotFoundError("app", version.app_id) from error
    if version_id is None:
        shown = f"{version.version_num} for {version.platform} {version.plan_class.name}".strip()
        raise AlreadyExistsError("app version", shown)
    return AppVersionId(version_id)


async def _insert_version_files(connection: Connection, version_id: AppVersionId, files: Sequence[AppFile]) -> None:
    found = await connection.fetch(load("file_ids"), [file.name for file in files])
    ids = {row["name"]: row["file_id"] for row in found}
    for file in files:
        if file.name not in ids:
            raise NotFoundError("file", file.name)
    file_ids = [ids[file.name] for file in files]
    await connection.execute(load("insert_app_version_files"), version_id, file_ids, *_file_columns(files))


async def _changed_versions(connection: Connection, before: _Versions) -> _Versions:
    """Return the app versions and restrictions, or `before` if nothing has changed since."""
    last = await connection.fetchval(load("last_app_change"))
    if last is not None and last == before.last_change:
        return before
    by_id = await read_versions(connection)
    restricted = map(restriction_of, await connection.fetch(load("list_restrictions")))
    return _Versions(last, by_id, current_versions(by_id), {(one.kind, one.name): one for one in restricted})


async def read_versions(connection: Connection) -> dict[AppVersionId, AppVersion]:
    """Return all app versions with their files and plan classes."""
    plan_classes = {row["name"]: rows.plan_class(row) for row in await connection.fetch(load("list_plan_classes"))}
    files: dict[int, list[AppFile]] = defaultdict(list)
    found = await connection.fetch(load("list_app_version_files"))
    for version_id, group in groupby(found, key=lambda row: int(row["app_version_id"])):
        files[version_id] = [rows.app_file(row) for row in group]
    return {
        row["app_version_id"]: rows.app_version(
            row, plan_classes[row["plan_class"]], tuple(files[row["app_version_id"]])
        )
        for row in await connection.fetch(load("list_app_versions"))
    }
