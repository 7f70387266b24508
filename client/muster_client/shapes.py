"""What the API returns: the keys that commands print with --json.

An instant (`*_at`) is in seconds since the epoch, UTC; None is not yet, or not known.

Generated from the server's `api.shapes` by `python -m api.client_types`; not to be edited.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

__all__ = [
    "AccountPage",
    "AccountShown",
    "AccountStanding",
    "AccuracyShown",
    "ActPage",
    "ActShown",
    "AppDetail",
    "AppForecastsShown",
    "AppPage",
    "AppShown",
    "BatchExplained",
    "BatchPage",
    "BatchShown",
    "ChangeMade",
    "Changed",
    "ClampShown",
    "ContributionShown",
    "CoprocessorShown",
    "DueShown",
    "Explained",
    "ExplainedHost",
    "ExplainedInstance",
    "FailuresShown",
    "FileShown",
    "ForecastHealthShown",
    "ForecastShown",
    "ForecastsShown",
    "GatePreviewed",
    "GateSide",
    "GivenTerms",
    "GrantPage",
    "GrantShown",
    "GrantTaken",
    "GroupShown",
    "HavShown",
    "HeldBack",
    "HeldPage",
    "HeldShown",
    "HoldShown",
    "HostDetail",
    "HostExplained",
    "HostPage",
    "HostShown",
    "IdleAnswer",
    "Importance",
    "InstanceExplained",
    "InstanceShown",
    "InvitedShown",
    "JobExplained",
    "JobPage",
    "JobShown",
    "Json",
    "KeptShown",
    "LeaseShown",
    "LimitLifted",
    "LimitPage",
    "LimitShown",
    "ListedHostShown",
    "LookShown",
    "Moved",
    "NewAccount",
    "NewApp",
    "NewSubmitter",
    "NewTokenShown",
    "NewVersion",
    "NewVolunteer",
    "NobodyShown",
    "OneInstance",
    "OrderPreviewed",
    "OrderShown",
    "OutcomeShown",
    "OutputShown",
    "PassedOver",
    "PercentileShown",
    "PercentilesShown",
    "Permitted",
    "PersonPage",
    "PersonShown",
    "PlaceMoved",
    "PlanClassPage",
    "PlanClassShown",
    "PolicyMoved",
    "PreviewShown",
    "PrioritiesShown",
    "PriorityShown",
    "ProcessPage",
    "ProcessShown",
    "ProgressShown",
    "RankedPartShown",
    "RankingRunShown",
    "RankingShown",
    "ReasonShown",
    "RefusedAtLarge",
    "RefusedShown",
    "ResultPage",
    "ResultShown",
    "SampleShown",
    "SessionsEnded",
    "SettingChangePage",
    "SettingChangeShown",
    "SettingSet",
    "SettingShown",
    "SettingsShown",
    "ShareShown",
    "SharesSet",
    "SharesShown",
    "SimulationShown",
    "SlowShown",
    "StaleShown",
    "StandingShown",
    "Submitted",
    "SubmitterPage",
    "SubmitterShown",
    "SubmitterStanding",
    "TableShown",
    "TermsShown",
    "ThresholdShown",
    "ThresholdsPreviewed",
    "ThresholdsShown",
    "TodayShown",
    "TokenPage",
    "TokenShown",
    "TricklePage",
    "TrickleShown",
    "TypePreviewed",
    "UploadShown",
    "VersionShown",
    "VolunteerPage",
    "VolunteerShown",
    "WaitPreviewed",
    "WaitSide",
    "WaitingShown",
    "WantShown",
    "WeightShown",
    "WeightsShown",
    "WhoShown",
    "WouldGet",
    "WouldTake",
]


Moved = TypedDict("Moved", {"key": str, "from": Any, "to": Any})  # a setting, and what it would be
PolicyMoved = TypedDict("PolicyMoved", {"from": str, "to": str})


class ContributionShown(TypedDict):
    """One term of a priority: `points` = weight times the lesser of value and cap."""

    name: str
    component: str
    raw: float | None
    unit: str
    value: float | None
    cap: float | None
    weight: float
    points: float
    note: str


class ClampShown(TypedDict):
    """The bound a total ran into, and what it became."""

    bound: str
    result: float


class PriorityShown(TypedDict):
    """Why a batch stands where it stands: terms whose points sum to `total`. `place` 1 is the first of all."""

    batch: int
    place: int | None
    policy: str
    computed_at: float
    tier: int
    total: float
    result: float
    components: list[ContributionShown]
    clamp: ClampShown | None
    limits: list[str]
    usage_snapshot_id: int | None
    queue: str
    hold: str | None


class PrioritiesShown(TypedDict):
    """Batches in order with the reasons of the last ordering; `unordered` wait for their first."""

    batches: list[PriorityShown]
    unordered: list[int]


class PlaceMoved(TypedDict):
    """Where a batch stands, and would stand, 1 = first."""

    batch: int
    place: int
    would_be: int
    held: str | None
    would_be_held: str | None


class OrderPreviewed(TypedDict):
    """What settings would do to the order of this moment; `batches` are all that are active."""

    changes: list[Moved]
    policy: PolicyMoved
    batches: int
    places: list[PlaceMoved]


class WeightShown(TypedDict):
    level: str
    term: str
    component: str
    unit: str
    weight: float
    cap: float | None


class WeightsShown(TypedDict):
    policy: str
    terms: list[WeightShown]


class ShareShown(TypedDict):
    """An account, or a submitter in one; `depth` 0 is the top. Fractions are of the whole."""

    depth: int
    account: str
    submitter: str | None
    shares: float
    share_fraction: float
    usage: float
    usage_fraction: float
    effective_fraction: float
    fairshare_ratio: float
    level_weight: float | None
    fairshare_rank: float | None


class SharesShown(TypedDict):
    tree: list[ShareShown]


class SharesSet(TypedDict):
    """`submitter` only where its shares were set: in `account`, or in its own where that is None."""

    account: str | None
    submitter: NotRequired[str]
    shares: float


class Permitted(TypedDict):
    account: NotRequired[str]
    submitter: NotRequired[str]
    permissions: list[str]


class ThresholdShown(TypedDict):
    """A threshold with its effect, and who changed it last. `source` is default or set; `previewed`: by numbers."""

    key: str
    value: Any
    default: Any
    source: str
    unit: str
    meaning: str
    higher: str
    lower: str
    previewed: bool
    changed_at: float | None
    changed_by: str | None
    why: str | None


class ThresholdsShown(TypedDict):
    thresholds: list[ThresholdShown]


class StaleShown(TypedDict):
    """Cut points too old to judge by: the bootstrap rule holds for the app on that kind of processor."""

    app: str
    processor_type: str
    computed_at: float


class GateSide(TypedDict):
    """Who passes a gate: hosts' records, newcomers, and calls an hour. `threshold` may be lowered from `asked`."""

    asked: float
    threshold: float
    havs: int
    newcomers: int
    calls_per_hour: float


class GatePreviewed(TypedDict):
    gate: str
    old: GateSide
    new: GateSide


class TypePreviewed(TypedDict):
    """Hosts that called lately, of an app and a kind of processor."""

    app: str
    processor_type: str
    havs: int
    newcomers: int
    small_population: bool
    gates: list[GatePreviewed]


class WaitSide(TypedDict):
    """How long until waiting jobs are sent at one a call; None: nobody who passes calls."""

    threshold: float
    calls_per_hour: float
    send_s: float | None


class WaitPreviewed(TypedDict):
    """Gated jobs that wait now."""

    app: str
    gate: str
    jobs: int
    old: WaitSide
    new: WaitSide


class ThresholdsPreviewed(TypedDict):
    """What thresholds would do, by the hosts as they were at `hosts_read_at` and the work of this moment."""

    computed_at: float
    hosts_read_at: float
    stale_cut_points: list[StaleShown]
    changes: list[Moved]
    hosts: list[TypePreviewed]
    waiting: list[WaitPreviewed]


class TermsShown(TypedDict):
    """What a forecast rests on. `sending_s`: until the last first instance is sent, at the present rate."""

    jobs_open: int
    jobs_with_success: int
    sending_s: float
    loss_fraction: float
    error_fraction: float
    retries_expected: float
    median_turnaround_s: float
    shift: float


class HoldShown(TypedDict):
    """One kind of what a batch waits for, with its part of the doubt that the batch is complete at q90."""

    kind: str
    slots: int
    doubt_fraction: float
    host_ids: list[int]
    because: str


class ForecastShown(TypedDict):
    """A forecast with what it rests on; `completion_at` is what was published then, and `because` why."""

    made_at: float
    trigger: str
    q10_at: float | None
    q50_at: float | None
    q90_at: float | None
    method: str
    method_because: str
    spread: float
    completion_at: float
    change: str
    because: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    at_risk: str | None
    flag: str | None
    terms: TermsShown | None
    holds: list[HoldShown]


class PreviewShown(TypedDict):
    """What would be published of a batch that is not submitted yet."""

    computed_at: float
    jobs_total: int
    deadline_at: float | None
    q10_at: float | None
    q50_at: float | None
    q90_at: float | None
    completion_at: float
    forecast_state: str
    method: str
    method_because: str
    because: str
    at_risk: str | None
    terms: TermsShown | None
    holds: list[HoldShown]


class AccuracyShown(TypedDict):
    """How good an app's forecasts were: shares of ends below each quantile, errors as fractions of the time."""

    scored_at: float
    batches: int
    coverage_q10: float
    coverage_q50: float
    coverage_q90: float
    median_error_fraction: float
    median_remaining_error_fraction: float
    bias_fraction: float
    pinball: float
    spread: float
    spread_because: str


class ForecastsShown(TypedDict):
    """What is published of a batch, its forecasts in order of time, and how good its app's are."""

    computed_at: float
    batch_id: int
    name: str
    app: str
    qos: str
    state: str
    created_at: float
    ended_at: float | None
    deadline_at: float | None
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    completion_at: float | None
    completion_q50_at: float | None
    completion_q90_at: float | None
    forecast_state: str
    at_risk: str | None
    forecasts: list[ForecastShown]
    accuracy: AccuracyShown | None


class AppForecastsShown(TypedDict):
    """How forecasting goes for an app: its active batches, the ages of their last forecasts, and how good they were."""

    app: str
    active_batches: int
    never_forecast: int
    oldest_age_s: float | None
    latest_age_s: float | None
    accuracy: AccuracyShown | None


class ForecastHealthShown(TypedDict):
    apps: list[AppForecastsShown]


class ProgressShown(TypedDict):
    """How far a batch is: what a stream of its events tells each time."""

    batch_id: int
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
    completion_at: float | None
    completion_q50_at: float | None
    completion_q90_at: float | None
    ended_at: float | None


Json = dict[str, Any]  # Any: a document whose keys the page of the resource tells


class BatchShown(TypedDict):
    """A batch with its counters. `at_risk` says why its deadline will hardly be kept, or why no host can finish it.

    `waits_for`: "another volunteer" or "another host", where only such a one could finish it.
    """

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
    forecast_state: str
    at_risk: str | None
    waits_for: str | None
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
    forecast: PreviewShown | None


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


class TrickleShown(TypedDict):
    """A message that an app sent while its job ran. `sent_at` is by the host's clock."""

    sent_at: float
    received_at: float
    variety: str
    text: str


class TricklePage(TypedDict):
    trickles: list[TrickleShown]
    next_cursor: str | None


class JobShown(TypedDict):
    """A job; in a list without its instances."""

    job_id: int
    batch_id: int
    state: str
    command_line: str
    failure: str
    canonical_instance_id: int | None
    instances: list[InstanceShown]


class OutputShown(TypedDict):
    """An output of a job's result. `state`: here, gone (its file is not there any more), not_brought (optional)."""

    name: str
    file_name: str | None
    nbytes: int | None
    md5: str | None
    state: str


class ResultShown(TypedDict):
    """The outputs that the canonical instance of a job brought; `because` says why there is no result."""

    job_id: int
    batch_id: int
    state: str
    canonical_instance_id: int | None
    because: str | None
    outputs: list[OutputShown]


class ResultPage(TypedDict):
    results: list[ResultShown]
    next_cursor: str | None


class JobPage(TypedDict):
    jobs: list[JobShown]
    next_cursor: str | None


class AppShown(TypedDict):
    app_id: int
    name: str
    user_friendly_name: str
    beta: bool
    deprecated: bool
    adaptive_copies: int
    one_per_host: bool
    one_per_volunteer: Literal["quorum", "always", "never"]
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


class PlanClassShown(TypedDict):
    """What versions with the class use, and need of a host. `gpu_type` None: they run on CPUs."""

    name: str
    ncpus: float
    gpu_type: str | None
    gpu_count: float
    min_gpu_ram_bytes: float
    min_driver_version: int
    min_host_ncpus: int
    min_host_ram_bytes: float
    os_pattern: str
    cpu_speed_fraction: float
    gpu_speed_fraction: float


class PlanClassPage(TypedDict):
    plan_classes: list[PlanClassShown]
    next_cursor: str | None


class NewVersion(TypedDict):
    app_version_id: int


class FileShown(TypedDict):
    name: str
    nbytes: int
    md5: str


class ProcessShown(TypedDict):
    """What a process said of itself. `kind` is worker or background."""

    name: str
    kind: str
    reported_at: float
    report: Json


class ProcessPage(TypedDict):
    processes: list[ProcessShown]
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


class AccountStanding(TypedDict):
    account_id: int
    shares: float
    permissions: list[str]


class SubmitterStanding(TypedDict):
    """`further_accounts`: its shares in other accounts than its own, by their names."""

    submitter_id: int
    shares: float
    further_accounts: dict[str, float]
    permissions: list[str]


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
    no_cpu: bool
    no_gpu: bool
    max_jobs: int
    max_cpus: int
    apps: list[str]


class VolunteerPage(TypedDict):
    volunteers: list[VolunteerShown]
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


class GrantTaken(TypedDict):
    account: str
    granted_su: None


class LimitShown(TypedDict):
    """`name` None is everybody's."""

    scope: str
    quantity: str
    name: str | None
    soft: float | None
    hard: float | None
    counts: str


class LimitLifted(TypedDict):
    scope: str
    quantity: str
    name: str | None
    dropped: bool


class LimitPage(TypedDict):
    limits: list[LimitShown]
    next_cursor: str | None


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
    person: str
    scopes: list[str]
    created_at: float
    expires_at: float | None
    last_used_at: float | None
    revoked_at: float | None


class TokenPage(TypedDict):
    tokens: list[TokenShown]
    next_cursor: str | None


class NewTokenShown(TypedDict):
    """`value` is the token, shown only now. `waits_because`: what has to happen before it serves, if anything."""

    value: str
    token: TokenShown
    waits_because: str | None


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


class ReasonShown(TypedDict):
    code: str
    why: str


class WantShown(TypedDict):
    """What a host is supposed to ask for of one kind of processor."""

    processor_type: str
    count: float
    idle: float
    req_s: float


class LeaseShown(TypedDict):
    """A host's last lease for a big job; `holds`: it is not over. `supposed`: its next request would make this."""

    batch_id: int
    host_id: int
    processor_type: str
    cores: float
    made_at: float
    start_at: float
    starts_in_s: float
    expires_at: float
    holds: bool
    supposed: bool
    ended_at: float | None
    because: str


class ExplainedInstance(TypedDict):
    instance_id: int
    due_at: float
    est_runtime_s: float
    tight: bool


class ExplainedHost(TypedDict):
    host_id: int
    volunteer_id: int
    ncpus: int
    flop_per_s: float
    ram_bytes: float
    disk_free_bytes: float
    availability_fraction: float
    platforms: list[str]
    last_rpc_at: float
    silent_s: float
    calls_per_hour: float
    in_progress: list[ExplainedInstance]


class StandingShown(TypedDict):
    """How a host stands with an app: `refused` and `why`, or everything else."""

    app: str
    processor_type: str
    refused: NotRequired[str]
    why: NotRequired[str]
    version: NotRequired[str]
    app_version_id: NotRequired[int]
    p: NotRequired[float | None]
    p_because: NotRequired[str]
    flop_per_s: NotRequired[float]
    speed_samples: NotRequired[float]
    slack_factor: NotRequired[float]
    quota_left: NotRequired[int]


class WouldGet(TypedDict):
    instance_id: int
    job_id: int
    batch_id: int
    app: str
    app_version_id: int
    due_at: float
    due_in_s: float
    est_runtime_s: float
    tight: bool
    because: str


class RefusedAtLarge(TypedDict):
    """What a whole request, or an app, was refused for."""

    app: str | None
    processor_type: str | None
    code: str
    why: str


class PassedOver(TypedDict):
    code: str
    slots: int
    why: str


LookShown = TypedDict(
    "LookShown",
    {
        "processor_type": str,
        "pass": str,
        "given": int,
        "code": str | None,
        "why": str | None,
        "passed_over": list[PassedOver],
    },
)


class GroupShown(TypedDict):
    """A group of like slots at its `place`, and each look that was taken at it."""

    place: int
    batch_id: int
    app: str | None
    job_class_id: int
    urgent: bool
    slots: int
    given: int
    looks: list[LookShown]


class HostExplained(TypedDict):
    """What a host would get if it asked now, and why not more; `groups` are the first of `groups_total`.

    `array` is the job array that was decided on: `worker`, that of the worker that answers, or `filled`, one filled
    from the database for this answer. `would_search`: a request would also search the database for more jobs.
    """

    computed_at: float
    array: str
    would_search: bool
    host: ExplainedHost
    refused: ReasonShown | None
    wants: list[WantShown]
    lease: LeaseShown | None
    stale_cut_points: list[StaleShown]
    standing: list[StandingShown]
    would_get: list[WouldGet]
    refused_at_large: list[RefusedAtLarge]
    groups: list[GroupShown]
    groups_total: int


class KeptShown(TypedDict):
    """The slot that every job array keeps for a batch."""

    since: float
    for_s: float


class WouldTake(TypedDict):
    hosts: int
    calls_per_hour: float
    jobs: int


class HeldBack(TypedDict):
    """How many of the hosts asked meet a reason first, with the sentence of one of them."""

    code: str
    hosts: int
    calls_per_hour: float
    example: str
    example_host_id: int


class SampleShown(TypedDict):
    """What the hosts that called last would do."""

    hosts: int
    calls_per_hour: float
    would_take: WouldTake
    held_back: list[HeldBack]


class OrderShown(TypedDict):
    order_tier: int
    order_key: float
    logical_end_at: float
    batches_ahead: int
    unsent_ahead: int


class BatchExplained(TypedDict):
    """What holds a batch back. `complete_at` is when its strictest jobs are to be complete."""

    computed_at: float
    batch_id: int
    name: str
    app: str
    qos: str
    state: str
    order: OrderShown
    complete_at: float | None
    complete_in_s: float | None
    completion_at: float | None
    deadline_at: float | None
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    unsent: int
    in_progress: int
    retries: int
    gate: str
    in_every_worker: bool
    kept: KeptShown | None
    lease: LeaseShown | None
    slots: int
    slots_total: int
    stale_cut_points: list[StaleShown]
    sample: SampleShown | None


class WaitingShown(TypedDict):
    """An unsent instance: as the feeder reads it, who had its siblings, and what hosts say."""

    instance_id: int
    retries: int | None
    sibling_returned: bool | None
    hr_class: int | None
    sibling_hosts: list[int]
    one_per: Literal["volunteer", "host"] | None
    in_array: bool
    stale_cut_points: list[StaleShown]
    sample: SampleShown | None


class JobExplained(TypedDict):
    computed_at: float
    job_id: int
    batch_id: int
    state: str
    failure: str
    canonical_instance_id: int | None
    batches_ahead: int
    unsent_ahead: int
    instances: list[InstanceShown]
    waiting: list[WaitingShown]


class GivenTerms(TypedDict):
    """What a due date followed from at dispatch. `start_s` and `queue_s` are the host's busy times."""

    rule: str
    start_s: float
    queue_s: float
    runtime_s: float
    safe_runtime_s: float
    p: float | None
    gate: str
    threshold: float


class DueShown(TypedDict):
    """What the host was told, and why. `terms` None: it was sent before they were kept."""

    sent_at: float
    due_at: float
    allowed_s: float
    because: str
    terms: GivenTerms | None
    tight: bool
    est_runtime_s: float | None
    allowed_over_runtime: float | None
    delay_bound_s: float
    is_delay_bound: bool
    timeout_at: float | None
    grace_s: float | None
    timeout_by_settings_at: float | None


class IdleAnswer(TypedDict):
    """What an idle host like it would get today: `refused` and `why`, or everything else."""

    refused: NotRequired[str]
    why: NotRequired[str]
    due_in_s: NotRequired[float]
    tight: NotRequired[bool]
    row: NotRequired[int]
    gate: NotRequired[str]
    threshold: NotRequired[float]
    because: NotRequired[str]


class TodayShown(TypedDict):
    """The same terms as they are today."""

    flop_per_s: float
    speed_samples: float
    availability_fraction: float
    runtime_s: float
    slack_factor: float
    safe_runtime_s: float
    delay_bound_s: float
    complete_in_s: float | None
    retry_turnaround_s: float
    p: float | None
    p_because: str
    stale_cut_points: list[StaleShown]
    idle_host_would_get: IdleAnswer


class OutcomeShown(TypedDict):
    state: str
    job_state: str
    is_canonical: bool
    reported_at: float | None
    turnaround_s: float | None
    late_s: float | None
    elapsed_s: float | None
    exit_status: int | None
    reason: str
    turnaround_sample: float | None


class InstanceExplained(TypedDict):
    """How an instance's due date came about; `due` None while it is unsent."""

    computed_at: float
    instance_id: int
    job_id: int
    batch_id: int
    qos: str
    state: str
    retries: int
    copied_because: str | None
    host_id: int | None
    app_version_id: int | None
    due: DueShown | None
    today: TodayShown | None
    outcome: OutcomeShown
    waiting: list[WaitingShown]


Explained = HostExplained | BatchExplained | JobExplained | InstanceExplained


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


class SlowShown(TypedDict):
    """An app version that a host is slow with: `x` of its hosts were slower at the last full ranking."""

    app_version_id: int
    x: float
    relative_turnaround: float | None


class FailuresShown(TypedDict):
    """What went wrong on a host since `since`: a week ago, or the first of the last 10,000 failures of all hosts.

    Of batches that ended longer than the setting `storage.keep_ended_s` ago nothing is counted.
    """

    errors: int
    invalid: int
    timed_out: int
    last_at: float
    since: float


class ListedHostShown(HostShown):
    """A host of a list. `n_*` count over all app versions, an invalid result as an error.

    `slow` and `failures` are null where hosts are not listed for them.
    """

    in_progress: int
    n_valid: int
    n_error: int
    n_timeout: int
    slow: SlowShown | None
    failures: FailuresShown | None


class HostPage(TypedDict):
    hosts: list[ListedHostShown]
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


class RankedPartShown(TypedDict):
    """What a ranking found of an app on a kind of processor. `small_population`: the bootstrap rule holds."""

    app_id: int
    app_name: str
    processor_type: str
    rows: int
    population: int
    ranked: int
    newcomers: int
    small_population: bool
    median_score: float | None
    median_safe_runtime_s: float | None
    retry_turnaround_s: float | None


class RankingRunShown(TypedDict):
    """A ranking of hosts. `full`: with the percentiles of every row, not the cut points alone."""

    generation: int
    full: bool
    started_at: float
    seconds: float
    apps: int
    rows: int
    ranked: int
    parts: list[RankedPartShown]


class RankingShown(TypedDict):
    """The last ranking of hosts; None before the first."""

    run: RankingRunShown | None


class PercentileShown(TypedDict):
    """Where a host stands with an app version: `p` = min(x, y); `x` and `y` None by the bootstrap rule."""

    app_version_id: int
    p: float
    x: float | None
    y: float | None


class PercentilesShown(TypedDict):
    percentiles: list[PercentileShown]


class SimulationShown(TypedDict):
    """What was asked for in the background: `running`, `done`, `failed`, `cancelled`, or `lost` with its process.

    `result` is there once it is done, `failure` says why it is not.
    """

    simulation_id: int
    asked_at: float
    asked_by: str
    asked: Json
    state: str
    done_fraction: float
    result: Json | None
    failure: str | None


class RefusedShown(TypedDict):
    """A kind of slot of a batch that every host refused that called lately, by all workers together. Each slot and each
    host is counted once; `codes` count hosts by the latest reason of a worker."""

    batch_id: int
    job_class_id: int
    urgent: bool
    waiting: int
    hosts: int
    codes: dict[str, int]
    since_at: float
    rotated_out: bool
    advice: str


class NobodyShown(TypedDict):
    refused: list[RefusedShown]
