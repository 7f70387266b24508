"""What the API answers: the same keys that commands print with --json.

An instant (`*_at`) is in seconds since the epoch, UTC; None is not yet, or not known.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Json = dict[str, Any]  # Any: a document whose keys the page of the resource tells


class BatchShown(TypedDict):
    """A batch with its counters. `at_risk` says why its deadline will hardly be kept."""

    batch_id: int
    name: str
    app: str
    submitter: str
    account: str
    qos: str
    state: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    unsent: int
    in_progress: int
    retries: int
    sent: int
    reported: int
    deadlines_missed: int
    created_at: float
    ended_at: float | None
    deadline_at: float | None
    logical_end_at: float
    completion_at: float | None
    completion_q50_at: float | None
    completion_q90_at: float | None
    at_risk: str | None
    order_tier: int
    order_key: float
    user_priority: int
    level: str
    queue: str
    hold: str | None


class BatchPage(TypedDict):
    batches: list[BatchShown]
    next_cursor: str | None


class Submitted(TypedDict):
    """A new batch, without an id where that was a preview; `forecast` None: when it ends could not be said now."""

    batch_id: NotRequired[int]
    forecast: Json | None


class Importance(TypedDict):
    batch_id: int
    user_priority: int
    level: str
    queue: str
    account: str
    deadline_at: float | None


class UploadShown(TypedDict):
    name: str
    nbytes: int
    md5: str


class InstanceShown(TypedDict):
    """One sending of a job to a host. `because` says how its due date came about."""

    instance_id: int
    state: str
    retries: int
    tight: bool
    host_id: int | None
    app_version_id: int | None
    sent_at: float | None
    due_at: float | None
    reported_at: float | None
    est_runtime_s: float | None
    elapsed_s: float | None
    exit_status: int | None
    reason: str
    because: str
    stderr: str
    uploads: list[UploadShown]


class OneInstance(InstanceShown):
    job_id: int
    batch_id: int


class JobShown(TypedDict):
    """A job; in a list without its instances."""

    job_id: int
    batch_id: int
    state: str
    command_line: str
    failure: str
    canonical_instance_id: int | None
    instances: list[InstanceShown]


class JobPage(TypedDict):
    jobs: list[JobShown]
    next_cursor: str | None


class AccountShown(TypedDict):
    account_id: int
    name: str
    parent: str | None
    shares: float


class AccountPage(TypedDict):
    accounts: list[AccountShown]
    next_cursor: str | None


class NewAccount(TypedDict):
    account_id: int
    name: str


class SubmitterShown(TypedDict):
    submitter_id: int
    name: str
    account: str
    shares: float
    logical_at: float


class SubmitterPage(TypedDict):
    submitters: list[SubmitterShown]
    next_cursor: str | None


class NewSubmitter(TypedDict):
    submitter_id: int
    name: str


class NewVolunteer(TypedDict):
    """`authenticator` is the account key, shown only now."""

    volunteer_id: int
    authenticator: str


class VolunteerShown(TypedDict):
    volunteer_id: int
    email: str
    name: str
    created_at: float
    beta: bool
    no_gpu: bool
    max_jobs: int


class VolunteerPage(TypedDict):
    volunteers: list[VolunteerShown]
    next_cursor: str | None


class AppShown(TypedDict):
    app_id: int
    name: str
    user_friendly_name: str
    beta: bool
    deprecated: bool
    adaptive_copies: int
    versions: list[str]


class AppPage(TypedDict):
    apps: list[AppShown]
    next_cursor: str | None


class NewApp(TypedDict):
    app_id: int
    name: str


class VersionShown(TypedDict):
    """A current version of an app."""

    app_version_id: int
    platform: str
    version_num: int
    plan_class: str
    processor_type: str
    api_version: str
    files: list[str]


class AppDetail(AppShown):
    current: list[VersionShown]


class NewVersion(TypedDict):
    app_version_id: int


class FileShown(TypedDict):
    name: str
    nbytes: int
    md5: str


class CoprocessorShown(TypedDict):
    type: str
    count: int
    peak_flop_per_s: float
    ram_bytes: float
    driver_version: int


class HostShown(TypedDict):
    """A computer as it described itself last."""

    host_id: int
    volunteer_id: int
    domain_name: str
    created_at: float
    last_rpc_at: float
    ncpus: int
    flop_per_s: float
    ram_bytes: float
    disk_free_bytes: float
    on_fraction: float
    active_fraction: float
    platforms: list[str]
    os_name: str
    os_version: str
    cpu_vendor: str
    cpu_model: str
    client_version: int
    coprocessors: list[CoprocessorShown]


class HostPage(TypedDict):
    hosts: list[HostShown]
    next_cursor: str | None


class HavShown(TypedDict):
    """What is known of a host with one app version. `*_n` of turnaround are the decayed weights of its samples."""

    app_version_id: int
    consecutive_valid: int
    quota_per_day: int
    sent_today: int
    n_valid: int
    n_error: int
    n_timeout: int
    n_due: int
    tight_n: float
    relaxed_n: float


class HostDetail(HostShown):
    app_versions: list[HavShown]


class HeldShown(TypedDict):
    instance_id: int
    job_id: int
    batch_id: int
    app: str
    sent_at: float
    due_at: float
    est_runtime_s: float
    tight: bool


class HeldPage(TypedDict):
    instances: list[HeldShown]
    next_cursor: str | None


class SettingShown(TypedDict):
    """A knob; `changed`: it does not have its default."""

    key: str
    value: Any
    default: Any
    changed: bool
    meaning: str


class SettingsShown(TypedDict):
    """Every knob's value by its key, and what it is."""

    settings: dict[str, Any]
    details: list[SettingShown]


class SettingSet(TypedDict):
    key: str
    value: Any


SettingChangeShown = TypedDict(
    "SettingChangeShown", {"changed_at": float, "key": str, "from": Any, "to": Any, "by": str, "why": str}
)
ChangeMade = TypedDict("ChangeMade", {"key": str, "from": Any, "to": Any, "by": str, "why": str})


class SettingChangePage(TypedDict):
    changes: list[SettingChangeShown]
    next_cursor: str | None


class Changed(TypedDict):
    changed: list[ChangeMade]


class ThresholdsShown(TypedDict):
    thresholds: list[Json]


class PrioritiesShown(TypedDict):
    """Batches in order with the reasons of the last ordering; `unordered` wait for their first."""

    batches: list[Json]
    unordered: list[int]


class WeightsShown(TypedDict):
    policy: str
    terms: list[Json]


class SharesShown(TypedDict):
    tree: list[Json]


class TableShown(TypedDict):
    columns: list[str]
    rows: list[list[Any]]


class GrantShown(TypedDict):
    account: str
    granted_su: float
    used_su: float
    reserved_su: float
    left_su: float
    period_start_at: float
    period_s: float


class GrantPage(TypedDict):
    grants: list[GrantShown]
    next_cursor: str | None


class LimitShown(TypedDict):
    """`name` None is everybody's."""

    scope: str
    quantity: str
    name: str | None
    soft: float | None
    hard: float | None
    counts: str


class LimitPage(TypedDict):
    limits: list[LimitShown]
    next_cursor: str | None


class ForecastHealthShown(TypedDict):
    apps: list[Json]


class PersonShown(TypedDict):
    """Somebody who signs in. `one_time_until`: the password was given by another and is good until then."""

    name: str
    role: str
    submitter_id: int | None
    active: bool
    created_at: float
    one_time_until: float | None


class PersonPage(TypedDict):
    people: list[PersonShown]
    next_cursor: str | None


class InvitedShown(TypedDict):
    """`password` is shown only now, and has to be changed at the first sign-in."""

    person: PersonShown
    password: str
    until: float


class WhoShown(TypedDict):
    """Who asks, and what this request may do."""

    name: str
    role: str
    scopes: list[str]
    submitter_id: int | None
    must_change_password: bool
    signed_in_with: str


class TokenShown(TypedDict):
    token_id: int
    name: str
    person_id: int
    scopes: list[str]
    created_at: float
    expires_at: float | None
    last_used_at: float | None
    revoked_at: float | None


class TokenPage(TypedDict):
    tokens: list[TokenShown]
    next_cursor: str | None


class NewTokenShown(TypedDict):
    """`value` is the token, shown only now."""

    value: str
    token: TokenShown


class ActShown(TypedDict):
    """What somebody did. `what` is the operation."""

    acted_at: float
    who: str
    what: str
    target: str
    detail: Json
    address: str


class ActPage(TypedDict):
    acts: list[ActShown]
    next_cursor: str | None


class SessionsEnded(TypedDict):
    ended: int


class ProcessShown(TypedDict):
    """What a process said of itself. `kind` is worker or background."""

    name: str
    kind: str
    reported_at: float
    report: Json


class ProcessPage(TypedDict):
    processes: list[ProcessShown]
    next_cursor: str | None
