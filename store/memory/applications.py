"""Stores apps, people, volunteers, settings and the state of periodic tasks in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.acceleration import Acceleration
from domain.apps import App, AppFile, AppVersion, PlanClass
from domain.batches import Account, Submitter
from domain.catalogue import Catalogue, current_versions
from domain.errors import AlreadyExistsError, NotFoundError
from domain.forecasting import began_in_pause
from domain.host_classes import ClassesByApp
from domain.hosts import DecayedSums, HostAppVersion
from domain.ranking import RelaxedGate
from domain.settings import Settings
from domain.units import AccountId, AppId, AppVersionId, Instant, SubmitterId, VolunteerId
from domain.views import SettingChange
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from store.memory.registry import RegisteredFile
from store.memory.reserving import reserved_in
from store.memory.work import OnTables
from store.settings import PAUSE, is_accelerated, with_relaxed

INHERITED_SAMPLES = 5.0  # maximum inherited by a new version, per kind of sums (docs/formulas.md#app-versions)
INHERITED_VALID = 11  # maximum of consecutive valid results inherited by a new version


class MemoryApplications(OnTables):
    async def add_app(self, app: App) -> App:
        registry = self._registry
        if app.name in registry.app_ids:
            raise AlreadyExistsError("app", app.name)
        app = replace(app, app_id=AppId(len(registry.apps) + 1))
        registry.apps[app.app_id] = app
        registry.app_ids[app.name] = app.app_id
        return app

    async def app(self, name: str) -> App:
        return self._registry.app(name)

    async def put_plan_class(self, plan_class: PlanClass) -> None:
        self._registry.plan_classes[plan_class.name] = plan_class

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
        """Copy the predecessor's statistics to the new version with a small weight."""
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
        """Load the catalogue. The quotas in its settings apply immediately."""
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
            restrictions=self._restrictions(),
        )

    def _versions(self) -> dict[AppVersionId, AppVersion]:
        """Return the versions with their current files and plan classes."""
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


def _as_registered(file: AppFile, registered: RegisteredFile) -> AppFile:
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


class MemoryPeople(OnTables):
    async def accounts(self) -> Sequence[Account]:
        return list(self._registry.accounts.values())

    async def add_submitter(self, name: str, *, account: str, shares: float, now: Instant) -> Submitter:
        """Add a submitter. `now` is ignored, because no query of this store uses the creation time."""
        del now
        registry = self._registry
        account_id = registry.account(account).account_id
        if name in registry.submitter_ids:
            raise AlreadyExistsError("submitter", name)
        submitter = Submitter(SubmitterId(max(registry.submitters, default=0) + 1), name, account_id, shares)
        registry.submitters[submitter.submitter_id] = submitter
        registry.submitter_ids[name] = submitter.submitter_id
        return submitter

    async def submitters(self) -> Sequence[Submitter]:
        return list(self._registry.submitters.values())

    async def submitter(self, name: str) -> Submitter:
        return self._registry.submitter(name)

    async def set_submitter(self, name: str, *, shares: float) -> Submitter:
        submitter = replace(self._registry.submitter(name), shares=shares)
        self._registry.submitters[submitter.submitter_id] = submitter
        return submitter

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        return dict(sorted(self._registry.memberships.get(submitter_id, {}).items()))


class MemoryVolunteers(OnTables):
    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        registry = self._registry
        email = email.lower()
        if email in registry.volunteer_ids_by_email:
            raise AlreadyExistsError("volunteer", email)
        if credentials.authenticator_hash in registry.volunteer_ids_by_hash:
            raise AlreadyExistsError("volunteer with the account key of", email)
        volunteer = Volunteer(
            VolunteerId(len(registry.volunteers) + 1),
            name,
            now,
            email_hash=hashlib.md5(email.encode(), usedforsecurity=False).hexdigest(),
            cross_project_id=cross_project_id,
            external_cpid=hashlib.md5((cross_project_id + email).encode(), usedforsecurity=False).hexdigest(),
            beta=beta,
        )
        registry.volunteers[volunteer.volunteer_id] = VolunteerRecord(volunteer, email, credentials)
        registry.volunteer_ids_by_email[email] = volunteer.volunteer_id
        registry.volunteer_ids_by_hash[credentials.authenticator_hash] = volunteer.volunteer_id
        return volunteer.volunteer_id


class MemorySettings(OnTables):
    async def settings(self) -> Mapping[str, object]:
        return dict(sorted(self._registry.changed_settings.items()))

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        await self.set_settings({key: value}, now=now, who=who, why=why)

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        registry = self._registry
        pauses = (one.changed_at for one in registry.setting_changes if one.key == PAUSE and one.from_value is not True)
        paused_at = max(pauses, default=now)
        for key, value in sorted(values.items()):
            old = registry.changed_settings.pop(key, None)
            if value is not None:
                registry.changed_settings[key] = value
            change_id = len(registry.setting_changes) + 1
            registry.setting_changes.append(SettingChange(key, old, value, now, who, why, change_id))
            if key == PAUSE and old is True and value is not True:
                self._work.note_resumed(now, began_in_pause(paused_at, now))


class MemoryNotes(OnTables):
    async def note_relaxed_gates(self, gates: Sequence[RelaxedGate], *, now: Instant) -> None:
        del now  # this store has no query for the times
        self._registry.relaxed_gates = tuple(gates)

    async def note_acceleration(self, acceleration: Acceleration) -> None:
        self._registry.acceleration = acceleration
