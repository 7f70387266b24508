"""What administration needs from the database: one small protocol per kind of thing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.apps import App, AppFile, AppVersion, PlanClass
from domain.batches import Account, Batch, Submitter
from domain.catalogue import Catalogue
from domain.dispatch import RequestKey, RequestView, Upload
from domain.history import FinishedMonth, OutputPage
from domain.hosts import Host, HostAppVersion
from domain.insight import Caller, HostSample, JobSize, Newcomers, Short, WaitingBatch, WorkAhead
from domain.jobs import JobClass
from domain.ordered_work import Permission
from domain.units import (
    AccountId,
    AppId,
    AppVersionId,
    BatchId,
    HostId,
    InstanceId,
    Instant,
    JobId,
    SubmitterId,
    VolunteerId,
)
from domain.views import JobRow, ProcessReport, SettingChange, Whose
from domain.volunteers import Credentials, Volunteer, VolunteerRecord
from feeder.ports import WaitingWork
from hoststats.ports import Table


class People(Protocol):
    """Accounts, submitters and volunteers. Names are unique: AlreadyExistsError, NotFoundError."""

    async def add_account(self, name: str, *, parent: str | None, shares: float) -> Account: ...

    async def accounts(self) -> Sequence[Account]: ...

    async def set_account(self, name: str, *, shares: float) -> Account: ...

    async def add_submitter(self, name: str, *, account: str, shares: float, now: Instant) -> Submitter: ...

    async def submitters(self) -> Sequence[Submitter]: ...

    async def submitter(self, name: str) -> Submitter: ...

    async def set_submitter(self, name: str, *, shares: float) -> Submitter: ...

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]:
        """The submitter's shares in further accounts, besides its own."""
        ...

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None:
        """Let a submitter submit in a further account, with these shares."""
        ...

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None:
        """What all who submit in the account or below it may do, instead of what they might."""
        ...

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None: ...


class Volunteers(Protocol):
    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        """AlreadyExistsError when the e-mail (lower case) is known."""
        ...

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None: ...

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        """By id; all of them unless a limit is told."""
        ...

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        """Write the name and the preferences, with when they were changed. NotFoundError.

        ConflictError when they were changed since `instead_of` was read.
        """
        ...

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        """The account key stays. NotFoundError."""
        ...


class Applications(Protocol):
    async def add_app(self, app: App) -> App:
        """`app.app_id` is ignored. AlreadyExistsError."""
        ...

    async def apps(self) -> Sequence[App]: ...

    async def app(self, name: str) -> App: ...

    async def set_app(self, app: App) -> None: ...

    async def put_plan_class(self, plan_class: PlanClass) -> None:
        """Insert or replace."""
        ...

    async def plan_classes(self) -> Mapping[str, PlanClass]: ...

    async def add_file(self, name: str, *, nbytes: int, md5: str, signature: str, now: Instant) -> None:
        """Idempotent for equal contents; AlreadyExistsError when the name stands for others."""
        ...

    async def add_app_version(self, version: AppVersion) -> AppVersionId:
        """With its files, which must be registered. AlreadyExistsError for the same
        (app, platform, version_num, plan class). The predecessor's HAV rows are inherited."""
        ...

    async def sign_file(self, name: str, signature: str) -> None:
        """Replace the signature of an app file, after a change of the signing key."""
        ...

    async def app_files(self) -> Sequence[AppFile]: ...

    async def load_catalogue(self) -> Catalogue:
        """Everything of it, settings included."""
        ...


class SettingStore(Protocol):
    async def settings(self) -> Mapping[str, object]:
        """Changed settings only, by key."""
        ...

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        """Write and audit in one transaction; None takes the default back."""
        ...

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        """The same for several, all or none."""
        ...

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]:
        """Newest first; `before` is a change_id that continues a listing."""
        ...


class History(Protocol):
    """Jobs of batches that ended long ago, by the month (UTC) in which their batch ended."""

    async def months(self) -> Sequence[FinishedMonth]:
        """Every month there ever was something of, earliest first."""
        ...

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage:
        """Names of uploaded outputs, of the next `limit` instances behind `after`."""
        ...

    async def purge_month(self, month: str, *, now: Instant) -> None:
        """Forget the month's jobs and instances for ever. Batches and their counters stay."""
        ...


class Views(Protocol):
    """Read-only looks at batches, jobs and hosts."""

    async def batch(self, batch_id: BatchId) -> Batch: ...

    async def batches(self, *, limit: int, before: BatchId | None = None) -> Sequence[Batch]:
        """Newest first; `before` continues a listing."""
        ...

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        """Those of them that there are, by id."""
        ...

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]:
        """Whose these are, those of them that there are."""
        ...

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]: ...

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        """Without instances, ascending id."""
        ...

    async def job(self, job_id: JobId) -> JobRow:
        """With its instances."""
        ...

    async def job_of_instance(self, instance_id: InstanceId) -> JobRow:
        """The job of an instance of any age, with all its instances. NotFoundError."""
        ...

    async def uploads_of(
        self, batch_id: BatchId, instances: Sequence[InstanceId]
    ) -> Mapping[InstanceId, tuple[Upload, ...]]:
        """What these instances of a batch brought, by name; of those that brought nothing nothing."""
        ...

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]: ...

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]: ...

    async def account_name(self, account_id: AccountId) -> str: ...

    async def submitter_name(self, submitter_id: SubmitterId) -> str: ...

    async def app_name(self, app_id: AppId) -> str: ...


class Insight(Protocol):
    """What operators ask about hosts that call and work that waits. Nothing is locked, nothing changes."""

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]:
        """Of each group of versions, which are for one type of processor, what is known of hosts that called since:

        a new table (domain.insight.STANDING_FIELDS) of their rows with these versions; and those without such a row
        that have one of the versions' platforms, and the coprocessor they need.
        """
        ...

    async def recent_callers(self, limit: int) -> Sequence[Caller]:
        """The hosts that called last, the latest first."""
        ...

    async def caller(self, host_id: HostId) -> Caller:
        """NotFoundError."""
        ...

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        """Active batches with unsent instances, in order."""
        ...

    async def work_ahead(self, batch_id: BatchId) -> WorkAhead: ...

    async def short(self, batch_ids: Sequence[BatchId], *, active_since: Instant) -> Mapping[BatchId, Short]:
        """Those batches that no host that called since can finish, because of limits per volunteer or host."""
        ...

    async def sampled_hosts(self, limit: int, *, active_since: Instant) -> HostSample:
        """At most `limit` of the hosts that called since; the same ones as long as the same are active."""
        ...

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]: ...


class ProcessReports(Protocol):
    """What each process of the cluster says of itself every few seconds."""

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        """Instead of what it said before; those that were silent for a day are forgotten."""
        ...

    async def since(self, at: Instant) -> Sequence[ProcessReport]:
        """By kind and name."""
        ...

    async def failures_of_gone(self, since: Instant, *, before: Instant) -> Sequence[Mapping[str, object]]:
        """What workers that spoke last in that span say `failed`, by their names; nothing else of their reports."""
        ...

    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        """The last deadline of each background duty, of processes that reported since."""
        ...


class ExplainReads(Protocol):
    """The reading half of the ledger."""

    async def read(self, key: RequestKey) -> RequestView: ...


class ExplainStore(Protocol):
    """The database as explanations see it."""

    @property
    def ledger(self) -> ExplainReads: ...
    @property
    def waiting(self) -> WaitingWork: ...
    @property
    def applications(self) -> Applications: ...
    @property
    def views(self) -> Views: ...
    @property
    def insight(self) -> Insight: ...
