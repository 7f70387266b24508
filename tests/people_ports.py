"""The parts of the store that pages and commands use, for both stores of the tests; `store` documents the methods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from domain.access import Act, ActChoice, Guess, PersonRecord, Right, Role, Session, SignedIn, Stretched, Token
from domain.apps import App, AppFile, AppVersion, PlanClass, VersionState, VersionUse
from domain.batches import Account, Batch, Submitter, TreeRow
from domain.catalogue import Catalogue
from domain.history import FinishedMonth, OutputPage
from domain.host_lists import RecentFailures
from domain.hosts import Host, HostAppVersion
from domain.insight import Caller, HostSample, JobSize, Newcomers, Short, WaitingBatch
from domain.jobs import JobClass
from domain.limits import Limit, Quantity, Scope
from domain.ordered_work import Grant, Permission
from domain.ordering import PlaceInOrder, ServiceLevel
from domain.restrictions import Restricted, Restriction
from domain.samples import Sample
from domain.settings import Settings
from domain.units import (
    AccountId,
    AppId,
    AppVersionId,
    BatchId,
    HostId,
    InstanceId,
    Instant,
    JobId,
    PersonId,
    Seconds,
    SubmitterId,
    TokenId,
    VolunteerId,
)
from domain.views import (
    JobRow,
    ListedInProgress,
    ProcessReport,
    Returned,
    SettingChange,
    Simulation,
    SimulationState,
    Whose,
)
from domain.volunteers import (
    Credentials,
    ListedVolunteer,
    Outcome,
    OwnHost,
    OwnResult,
    OwnTotals,
    ResultPlace,
    Volunteer,
    VolunteerRecord,
)
from hoststats.ports import Table
from store.people import ALL_ACTS, Kind


class SignInPeople(Protocol):
    """People who sign in. Names are unique: AlreadyExistsError, NotFoundError."""

    async def add_person(
        self,
        name: str,
        *,
        role: Role,
        submitter_id: SubmitterId | None,
        password: Stretched,
        one_time_until: Instant | None,
        now: Instant,
    ) -> PersonRecord: ...

    async def person(self, name: str) -> PersonRecord: ...

    async def people(self, *, limit: int, after: PersonId | None = None) -> Sequence[PersonRecord]: ...

    async def people_named(self, names: Iterable[str]) -> Sequence[PersonRecord]: ...

    async def person_names(self, person_ids: Iterable[PersonId]) -> Mapping[PersonId, str]: ...

    async def set_person(
        self, person_id: PersonId, *, role: Role, submitter_id: SubmitterId | None, active: bool
    ) -> PersonRecord: ...

    async def set_password(
        self, person_id: PersonId, password: Stretched, *, one_time_until: Instant | None
    ) -> None: ...


class Sessions(Protocol):
    """Sessions of browsers."""

    async def add_session(self, session: Session) -> None: ...

    async def session_of_person(self, session_hash: bytes, *, now: Instant) -> SignedIn | None: ...

    async def session_of_volunteer(self, session_hash: bytes, *, now: Instant) -> SignedIn | None: ...

    async def sessions(self, person_id: PersonId, *, now: Instant, limit: int) -> Sequence[Session]: ...

    async def renew_session(self, session: Session) -> None: ...

    async def end_session(self, session_hash: bytes) -> None: ...

    async def end_sessions_of_person(self, person_id: PersonId, *, but: bytes = b"") -> int: ...

    async def end_sessions_of_volunteer(self, volunteer_id: VolunteerId, *, but: bytes = b"") -> int: ...


class Tokens(Protocol):
    """API tokens."""

    async def add_token(
        self,
        token_hash: bytes,
        *,
        name: str,
        person_id: PersonId,
        rights: frozenset[Right],
        expires_at: Instant | None,
        now: Instant,
    ) -> Token: ...

    async def token(self, token_hash: bytes) -> tuple[Token, PersonRecord] | None: ...

    async def tokens(
        self, *, person_id: PersonId | None = None, limit: int, after: TokenId | None = None
    ) -> Sequence[Token]: ...

    async def note_token_use(self, token_id: TokenId, *, now: Instant) -> None: ...

    async def revoke_token(self, token_id: TokenId, *, now: Instant) -> Token: ...


class AccessStore(SignInPeople, Sessions, Tokens, Protocol):
    async def begin_attempt(self, guess: Guess, *, now: Instant) -> Seconds: ...

    async def end_attempt(self, guess: Guess, *, now: Instant) -> None: ...

    async def note_act(self, act: Act) -> None: ...

    async def acts(
        self, choice: ActChoice = ALL_ACTS, *, limit: int, before: int | None = None, first: int = 0
    ) -> Sequence[Act]: ...

    async def first_act(self, who: str, *, before: int, among: int) -> int: ...

    async def latest_actions(self, among: int) -> Sequence[str]: ...

    async def act_range(self, choice: ActChoice) -> tuple[int, int]: ...


class People(Protocol):
    """Accounts, submitters and volunteers. Names are unique: AlreadyExistsError, NotFoundError."""

    async def add_account(self, name: str, *, parent: str | None, shares: float) -> Account: ...

    async def accounts(self) -> Sequence[Account]: ...

    async def set_account(self, name: str, *, shares: float) -> Account: ...

    async def add_submitter(self, name: str, *, account: str, shares: float, now: Instant) -> Submitter: ...

    async def submitters(self) -> Sequence[Submitter]: ...

    async def submitter(self, name: str) -> Submitter: ...

    async def set_submitter(self, name: str, *, shares: float) -> Submitter: ...

    async def memberships(self, submitter_id: SubmitterId) -> Mapping[AccountId, float]: ...

    async def move_account(self, name: str, *, parent: str | None) -> None: ...

    async def rename(self, kind: Kind, name: str, new_name: str) -> None: ...

    async def drop(self, kind: Kind, name: str) -> None: ...

    async def tree(self) -> Sequence[TreeRow]: ...

    async def load_tree(
        self, plan: Callable[[Sequence[TreeRow]], Sequence[TreeRow]], *, now: Instant
    ) -> Sequence[TreeRow]: ...

    async def put_membership(self, submitter: str, *, account: str, shares: float) -> None: ...

    async def permit_account(self, name: str, permissions: Sequence[Permission]) -> None: ...

    async def permit_submitter(self, name: str, permissions: Sequence[Permission]) -> None: ...


class RestrictionStore(Protocol):
    async def restrictions(self) -> Sequence[Restriction]: ...

    async def put(self, restriction: Restriction) -> Restriction: ...

    async def batches_stopped(self, kind: Restricted, name: str) -> int: ...

    async def lift(self, kind: Restricted, name: str, *, now: Instant) -> None: ...

    async def abort_jobs(self, kind: Restricted, name: str) -> int: ...

    async def volunteers(self, text: str, *, before: VolunteerId | None, limit: int) -> Sequence[ListedVolunteer]: ...

    async def listed(self, volunteer_ids: Sequence[VolunteerId]) -> Sequence[ListedVolunteer]: ...


class Volunteers(Protocol):
    async def add_volunteer(
        self, email: str, *, name: str, credentials: Credentials, cross_project_id: str, beta: bool, now: Instant
    ) -> VolunteerId: ...

    async def volunteer_by_email(self, email: str) -> VolunteerRecord | None: ...

    async def volunteers(
        self, *, limit: int | None = None, after: VolunteerId | None = None
    ) -> Sequence[VolunteerRecord]: ...

    async def set_volunteer(self, volunteer: Volunteer, *, instead_of: Volunteer | None = None) -> None: ...

    async def set_volunteer_password(self, volunteer_id: VolunteerId, *, salt: bytes, password_hash: bytes) -> None: ...


class Applications(Protocol):
    async def add_app(self, app: App) -> App: ...

    async def apps(self) -> Sequence[App]: ...

    async def set_version_state(self, app_version_id: AppVersionId, state: VersionState) -> None: ...

    async def app(self, name: str) -> App: ...

    async def set_app(self, app: App) -> None: ...

    async def put_plan_class(self, plan_class: PlanClass) -> None: ...

    async def plan_classes(self) -> Mapping[str, PlanClass]: ...

    async def add_file(self, name: str, *, nbytes: int, md5: str, signature: str, now: Instant) -> None: ...

    async def add_app_version(self, version: AppVersion) -> AppVersionId: ...

    async def sign_file(self, name: str, signature: str) -> None: ...

    async def app_files(self) -> Sequence[AppFile]: ...

    async def in_progress_of_version(self, app_version_id: AppVersionId) -> tuple[int, int]: ...

    async def use_of_versions(self, app_id: AppId, *, since: Instant) -> Mapping[AppVersionId, VersionUse]: ...

    async def failures_of_versions(self, *, since: Instant) -> Mapping[AppVersionId, RecentFailures]: ...

    async def load_catalogue(self) -> Catalogue: ...


class SettingStore(Protocol):
    async def settings(self) -> Mapping[str, object]: ...

    async def in_force(self) -> Settings: ...

    async def set_setting(self, key: str, value: object, *, now: Instant, who: str, why: str) -> None: ...

    async def set_settings(self, values: Mapping[str, object], *, now: Instant, who: str, why: str) -> None: ...

    async def setting_changes(self, limit: int, *, before: int | None = None) -> Sequence[SettingChange]: ...

    async def project_pause(self) -> SettingChange | None: ...


class History(Protocol):
    """Jobs of batches that ended long ago, by the month (UTC) in which the batch ended."""

    async def months(self) -> Sequence[FinishedMonth]: ...

    async def outputs(self, month: str, *, after: InstanceId, limit: int) -> OutputPage: ...

    async def purge_month(self, month: str, *, now: Instant) -> None: ...


class Views(Protocol):
    """Read-only views of batches, jobs and hosts."""

    async def batch(self, batch_id: BatchId) -> Batch: ...

    async def batches_with(self, ids: Sequence[BatchId]) -> Sequence[Batch]: ...

    async def whose(self, ids: Sequence[BatchId]) -> Mapping[BatchId, Whose]: ...

    async def classes_of_batch(self, batch_id: BatchId) -> Sequence[JobClass]: ...

    async def jobs(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[JobRow]:
        """Without instances, ascending id."""
        ...

    async def job(self, job_id: JobId) -> JobRow:
        """With its instances."""
        ...

    async def job_of_instance(self, instance_id: InstanceId) -> JobRow: ...

    async def returned(self, batch_id: BatchId, instances: Sequence[InstanceId]) -> Mapping[InstanceId, Returned]:
        """Return what hosts returned for these instances, with the recorded outputs by name."""
        ...

    async def hosts(self, *, limit: int, after: HostId | None = None) -> Sequence[Host]: ...

    async def host(self, host_id: HostId) -> tuple[Host, Sequence[HostAppVersion]]: ...

    async def account_name(self, account_id: AccountId) -> str: ...

    async def submitter_name(self, submitter_id: SubmitterId) -> str: ...

    async def app_name(self, app_id: AppId) -> str: ...


class Insight(Protocol):
    """Read-only queries about calling hosts and waiting work. Takes no locks."""

    async def standings(
        self, groups: Sequence[Sequence[AppVersion]], *, active_since: Instant, now: Instant, one_in: int = 1
    ) -> Sequence[tuple[Table, Newcomers]]: ...

    async def recent_callers(self, limit: int) -> Sequence[Caller]: ...

    async def active_callers(self, limit: int, *, active_since: Instant) -> tuple[Sequence[Caller], int]: ...

    async def caller(self, host_id: HostId) -> Caller: ...

    async def waiting_batches(self, limit: int) -> Sequence[WaitingBatch]: ...

    async def short(self, batch_ids: Sequence[BatchId], *, active_since: Instant) -> Mapping[BatchId, Short]: ...

    async def sampled_hosts(self, limit: int, *, active_since: Instant, most_held: int = 0) -> HostSample: ...

    async def job_sizes(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, JobSize]: ...


class ProcessReports(Protocol):
    """Reports that each process of the cluster stores every few seconds."""

    async def note(self, name: str, kind: str, report: Mapping[str, object], *, now: Instant) -> None: ...

    async def since(self, at: Instant, *, kind: str | None = None) -> Sequence[ProcessReport]: ...

    async def failures_of_gone(self, since: Instant, *, before: Instant) -> Sequence[Mapping[str, object]]: ...

    async def duty_deadlines(self, since: Instant) -> Mapping[str, Instant]: ...


class Samples(Protocol):
    """Samples of the project's figures over time."""

    async def write(self, step_s: int, at: Instant, figures: Mapping[str, float]) -> None: ...

    async def last(self, step_s: int, until: Instant) -> Instant | None: ...

    async def between(self, step_s: int, from_at: Instant, to_at: Instant) -> Sequence[Sample]: ...

    async def delete(self, step_s: int, *, before: Instant, after: Instant) -> None: ...

    async def active_hosts(self, since: Instant) -> int: ...


class OrderingRules(Protocol):
    """Grants, limits, usage, and the breakdown of each batch's place."""

    async def grants(self) -> Sequence[Grant]: ...

    async def put_grant(
        self, account_id: AccountId, *, granted_su: float, starts_at: Instant, period_s: Seconds
    ) -> None: ...

    async def drop_grant(self, account_id: AccountId) -> None: ...

    async def limits(self) -> Sequence[Limit]: ...

    async def set_host_labels(self, host_id: HostId, labels: Sequence[str]) -> None: ...

    async def put_limit(self, limit: Limit) -> None: ...

    async def drop_limit(self, scope: Scope, quantity: Quantity, name: str | None) -> None: ...

    async def with_fresh(self, batch_ids: Sequence[BatchId]) -> Collection[BatchId]: ...

    async def around(
        self, place: tuple[int, float, BatchId], limit: int, *, without: Collection[BatchId]
    ) -> tuple[Sequence[BatchId], Sequence[BatchId]]: ...

    async def set_user_priority(self, batch_id: BatchId, priority: int) -> None: ...

    async def set_moved(self, batch_id: BatchId, by_at: Instant) -> None: ...

    async def release(self, batch_id: BatchId) -> None: ...

    async def reset_usage(self, *, submitter: str | None, account: str | None) -> int: ...

    async def set_service(
        self,
        batch_id: BatchId,
        *,
        level: ServiceLevel | None,
        queue: str | None,
        tiers: Mapping[ServiceLevel, int] | None = None,
    ) -> None: ...

    async def set_account(self, batch_id: BatchId, account_id: AccountId) -> None: ...

    async def set_deadline(self, batch_id: BatchId, deadline_at: Instant) -> None: ...

    async def in_order(self, limit: int) -> Sequence[BatchId]: ...

    async def places(
        self, batch_ids: Sequence[BatchId], apps: Collection[AppId], *, without: Collection[BatchId]
    ) -> Mapping[BatchId, PlaceInOrder]: ...

    async def breakdowns(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Mapping[str, object]]: ...


class Simulations(Protocol):
    """Simulations requested at the console or over the API."""

    async def add(
        self, asked: Mapping[str, object], *, who: str, now: Instant, heard_since: Instant, most: int
    ) -> int | None: ...

    async def note(self, simulation_id: int, done_fraction: float, *, now: Instant) -> bool: ...

    async def end(
        self,
        simulation_id: int,
        state: SimulationState,
        *,
        now: Instant,
        result: Mapping[str, object] | None = None,
        failure: str | None = None,
    ) -> bool: ...

    async def simulations(self, limit: int) -> Sequence[Simulation]: ...

    async def simulation(self, simulation_id: int) -> Simulation: ...


class VolunteerViews(Protocol):
    """Reads the data of one volunteer only."""

    async def hosts(self, volunteer_id: VolunteerId, *, before: HostId | None, limit: int) -> Sequence[OwnHost]: ...

    async def host(self, volunteer_id: VolunteerId, host_id: HostId) -> OwnHost: ...

    async def held(
        self, volunteer_id: VolunteerId, *, host_id: HostId | None, limit: int
    ) -> Sequence[ListedInProgress]: ...

    async def results(
        self,
        volunteer_id: VolunteerId,
        *,
        outcome: Outcome | None,
        host_id: HostId | None,
        after: ResultPlace | None,
        limit: int,
    ) -> Sequence[OwnResult]: ...

    async def totals(self, volunteer_id: VolunteerId) -> OwnTotals: ...
