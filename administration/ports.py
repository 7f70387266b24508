"""Database protocols for administration."""

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
        """Return the submitter's shares in accounts other than its own."""
        ...

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None:
        """Let a submitter submit in another account, with these shares."""
        ...

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None:
        """Replace the permissions of all who submit in or below the account."""
        ...

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None: ...


class Volunteers(Protocol):
    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId:
        """Raises AlreadyExistsError if the e-mail (lower case) exists."""
        ...

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None: ...

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]:
        """By id; all of them without a limit."""
        ...

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None:
        """Raises NotFoundError, and ConflictError if it changed since `instead_of` was read."""
        ...

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None:
        """The account key stays. Raises NotFoundError."""
        ...


class Applications(Protocol):
    async def add_app(self, app: App) -> App:
        """`app.app_id` is ignored. Raises AlreadyExistsError."""
        ...

    async def apps(self) -> Sequence[App]: ...

    async def app(self, name: str) -> App: ...

    async def set_app(self, app: App) -> None: ...

    async def put_plan_class(self, plan_class: PlanClass) -> None:
        """Insert or replace."""
        ...

    async def plan_classes(self) -> Mapping[str, PlanClass]: ...

    async def add_file(self, name: str, *, nbytes: int, md5: str, signature: str, now: Instant) -> None:
        """Idempotent for equal contents; raises AlreadyExistsError if the name has other contents."""
        ...

    async def add_app_version(self, version: AppVersion) -> AppVersionId:
        """Add a version with its files, which must be registered. It inherits its predecessor's HAV rows. Raises
        AlreadyExistsError for the same (app, platform, version_num, plan class).
        """
        ...

    async def sign_file(self, name: str, signature: str) -> None:
        """Replace the signature of an app file after a key change."""
        ...

    async def app_files(self) -> Sequence[AppFile]: ...

    async def load_catalogue(self) -> Catalogue:
        """Load the whole catalogue, including settings."""
        ...


class SettingStore(Protocol):
    async def settings(self) -> Mapping[str, object]:
        """Return changed settings only, by key."""
        ...

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None:
        """Store and audit in one transaction; None restores the default."""
        ...

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None:
        """Store several settings, all or none."""
        ...

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]:
        """Newest first; `before` is a change_id that continues a listing."""
        ...


class History(Protocol):
    """Jobs of batches that ended long ago, by the month (UTC) in which the batch ended."""

    async def months(self) -> Sequence[FinishedMonth]:
        """Return every month that ever had data, earliest first."""
        ...

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage:
        """Return names of uploaded outputs, of the next `limit` instances after `after`."""
        ...

    async def purge_month(self, month: str, *, now: Instant) -> None:
        """Delete the month's jobs and instances permanently. Batches and their counters stay."""
        ...


class Views(Protocol):
    """Read-only views of batches, jobs and hosts."""

    async def batch(self, batch_id: BatchId) -> Batch: ...

    async def batches(self, *, limit: int, before: BatchId | None = None) -> Sequence[Batch]:
        """Newest first; `before` continues a listing."""
        ...

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]:
        """Return the batches with these ids, by id; missing ones are left out."""
        ...

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]:
        """Return the owners of these batches, if they exist."""
        ...

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]: ...

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        """Without instances, ascending id."""
        ...

    async def job(self, job_id: JobId) -> JobRow:
        """With its instances."""
        ...

    async def job_of_instance(self, instance_id: InstanceId) -> JobRow:
        """Return the job of an instance of any age, with all its instances. Raises NotFoundError."""
        ...

    async def uploads_of(
        self, batch_id: BatchId, instances: Sequence[InstanceId]
    ) -> Mapping[InstanceId, tuple[Upload, ...]]:
        """Return the recorded outputs of these instances, by name; no entry for instances without outputs."""
        ...

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]: ...

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]: ...

    async def account_name(self, account_id: AccountId) -> str: ...

    async def submitter_name(self, submitter_id: SubmitterId) -> str: ...

    async def app_name(self, app_id: AppId) -> str: ...


class Insight(Protocol):
    """Read-only queries about calling hosts and waiting work. Takes no locks."""

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant
    ) -> Sequence[tuple[Table, Newcomers]]:
        """For each group of versions of one processor type, return the hosts that called since `active_since`:

        a new table (domain.insight.STANDING_FIELDS) of their rows with these versions, and the hosts without such a row
        that have one of the versions' platforms and the coprocessor they need.
        """
        ...

    async def recent_callers(self, limit: int) -> Sequence[Caller]:
        """Return the hosts that called last, latest first."""
        ...

    async def caller(self, host_id: HostId) -> Caller:
        """Raises NotFoundError."""
        ...

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]:
        """Return active batches with unsent instances, in order."""
        ...

    async def work_ahead(self, batch_id: BatchId) -> WorkAhead: ...

    async def short(self, batch_ids: Sequence[BatchId], *, active_since: Instant) -> Mapping[BatchId, Short]:
        """Return the batches that no recently active host can finish, because of limits per volunteer or host."""
        ...

    async def sampled_hosts(self, limit: int, *, active_since: Instant) -> HostSample:
        """Return at most `limit` recently active hosts; the same ones as long as the same hosts are active."""
        ...

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]: ...


class ProcessReports(Protocol):
    """Reports that each process of the cluster stores every few seconds."""

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None:
        """Replaces the process's last report; deletes processes that have been silent for a day."""
        ...

    async def since(self, at: Instant) -> Sequence[ProcessReport]:
        """Sorted by kind and name."""
        ...

    async def failures_of_gone(self, since: Instant, *, before: Instant) -> Sequence[Mapping[str, object]]:
        """Return the `failed` part of the last reports of workers that stopped in that span, by name."""
        ...

    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]:
        """Return the last deadline of each background task, from processes that reported since."""
        ...


class ExplainReads(Protocol):
    """The reading half of the ledger."""

    async def read(self, key: RequestKey) -> RequestView: ...


class ExplainStore(Protocol):
    """The parts of the database that explanations read."""

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
