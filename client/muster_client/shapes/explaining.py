"""Explanations: why work waits, how due dates were computed, and what a host would get."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from muster_client.shapes.forecasts import BatchAhead, RiskShown
from muster_client.shapes.ordering import StaleShown
from muster_client.shapes.work import InstanceShown, ListedInstanceShown


class ReasonShown(TypedDict):
    code: str
    why: str


class WantShown(TypedDict):
    """A host's assumed request for one type of processor."""

    processor_type: str
    count: float
    idle: float
    req_s: float


class LeaseShown(TypedDict):
    """A host's latest lease for a big job. `holds`: it is valid. `supposed`: the next request would create it."""

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
    domain_name: str
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
    silent: bool
    in_progress: list[ExplainedInstance]


class StandingShown(TypedDict):
    """A host's standing with an app: either `refused` and `why`, or all the other fields."""

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


class GivenTerms(TypedDict):
    """The terms of a due date at dispatch. `start_s` and `queue_s` are the host's busy times."""

    rule: str
    start_s: float
    queue_s: float
    runtime_s: float
    safe_runtime_s: float
    p: float | None
    gate: str
    threshold: float


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
    terms: GivenTerms


class RefusedAtLarge(TypedDict):
    """Why the server refused a whole request or an app."""

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


class GroupRefusal(TypedDict):
    """A condition that the host does not meet. `help`: what would help, or empty."""

    code: str
    why: str
    help: str


class GroupShown(TypedDict):
    """A group of equivalent slots, with its `place` in the sequence in which the request searches them, the stages that
    search it, and each evaluation of it.

    `refusals`: why it gave no job, each condition once; none if the request was filled before. Of a group that gave
    jobs, why it did not give more. If the host can use the app on one type of processor, other types do not count.
    """

    place: int
    stages: list[str]
    batch_id: int
    name: str
    app: str | None
    job_class_id: int
    urgent: bool
    slots: int
    given: int
    refusals: list[GroupRefusal]
    looks: list[LookShown]


class HostCondition(TypedDict):
    """How many groups of jobs one check refuses this host, of which batches and apps, and why most of them. `by_label`:
    a queue refuses it because of its labels, which operators set. `help`: what would help, or empty.
    """

    code: str
    groups: int
    batch_ids: list[int]
    apps: list[str]
    by_label: bool
    why: str
    suggestion: SuggestionShown | None
    help: str


class LeftOutShown(TypedDict):
    """A batch with unsent instances that the job array does not have, and why."""

    batch_id: int
    name: str
    unsent: int
    why: str


class HostExplained(TypedDict):
    """What a host would get if it contacted the server now, and why not more; `groups` are the first of `groups_total`.

    `array` is the job array used: `worker` for that of the replying worker, `filled` for one filled from the database
    for this reply. `would_search`: a real request would also search the database for more jobs. `conditions` are the
    checks that refuse groups of jobs, the most frequent first. `left_out`: among the first 200 batches in the order,
    those with unsent instances that the array does not have.
    """

    verdict: str
    conditions: list[HostCondition]
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
    left_out: list[LeftOutShown]


class KeptShown(TypedDict):
    """The slot reserved for a batch in every job array."""

    since: float
    for_s: float


class WouldTake(TypedDict):
    """The hosts that would get jobs; `idle_hosts` of them could start one now."""

    hosts: int
    idle_hosts: int
    calls_per_hour: float
    jobs: int


class OptionShown(TypedDict):
    """A value, and how many of the refused hosts (or groups) pass the check with it."""

    value: float
    passes: int


class SuggestionShown(TypedDict):
    """Values of `key`, a field of the jobs or a setting, that let more hosts pass a check; the least change first.

    `asked` is the value in force and `set_to` the value set, which differs while a gate is temporarily lowered; `words`
    has the same as a sentence.
    """

    key: str
    asked: float
    set_to: float
    options: list[OptionShown]
    words: str


class HeldBack(TypedDict):
    """How many sampled hosts have this as their first reason for refusal, and one host's message.

    `example_brief` has only the numbers of `example`. `suggestion` is None if no single value would change the outcome.
    `help`: what would help, or empty.
    """

    code: str
    of_hosts: str
    hosts: int
    suggestion: SuggestionShown | None
    help: str
    calls_per_hour: float
    example: str
    example_brief: str
    example_host_id: int


class SampleShown(TypedDict):
    """What the hosts with the latest requests would get. `hosts` were evaluated, at most 50.

    `waiting` hosts get no job now, but could later, without any change. `free_s`: until the first of the hosts that
    would get jobs or, without these, of the waiting hosts is free; None if unknown.
    """

    hosts: int
    waiting: int
    free_s: float | None
    calls_per_hour: float
    would_take: WouldTake
    held_back: list[HeldBack]


class OrderShown(TypedDict):
    """A batch's place in the order. `queue`: its effective queue and the reason, None until it is ordered; `hold`: what
    blocks it, None if nothing does. `queue_hosts`: the conditions of the queue it was submitted to on hosts.
    `place`: its position among the `of` batches that are sent now, in the sequence in which most requests take them,
    None if it is not, or if all its jobs are sent; `sent_first`: why they take it before the order, None if they do
    not. `batches_ahead` come before it; at least `gated_ahead` of their `unsent_ahead` instances only go to hosts above
    a gate, some of its own to any. `first_ahead`: the first three of these batches.
    """

    queue: str | None
    hold: str | None
    queue_hosts: str | None
    order_tier: int
    order_key: float
    logical_end_at: float
    batches_ahead: int
    unsent_ahead: int
    gated_ahead: int
    first_ahead: list[BatchAhead]
    sent_first: str | None
    place: int | None
    of: int | None


class AwaitedShown(TypedDict):
    """The instances in progress of a batch whose instances have all been sent. `jobs_open` of its `jobs` have no valid
    result yet. `copies` of the instances are copies, the first `copied_because`. `overdue` are past their due dates.
    `hosts`, `copies` and `overdue` are lower bounds if `is_part`: the batch has more than were read. `oldest`: up to 20
    instances, sent longest ago first.
    """

    jobs: int
    jobs_open: int
    instances: int
    copies: int
    copied_because: str
    hosts: int
    host_ids: list[int]
    oldest_sent_at: float
    first_due_at: float
    last_due_at: float
    overdue: int
    oldest: list[ListedInstanceShown]
    is_part: bool


class RemedyShown(TypedDict):
    """What may help. `link`: a page of the console, below its root. `right`: what it requires."""

    words: str
    link: str
    right: str


class BatchExplained(TypedDict):
    """Why a batch is not progressing. `complete_at` is the completion target of its strictest jobs. `awaited` is None
    unless it waits only for instances in progress. `fails`: which version of its app fails; empty for none. `retries`
    counts unusable instances; `copies_unsent` of late jobs and `retries_unsent` are counted up to 5000 together. Of a
    batch that is late, `verdict` is one sentence, with `remedies` against it, and `facts` are further ones.
    """

    verdict: str
    facts: list[str]
    remedies: list[RemedyShown]
    forecast_state: str
    fails: str
    at_risk: RiskShown | None
    awaited: AwaitedShown | None
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
    copies_unsent: int
    retries_unsent: int
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
    """An unsent instance: its data in the feeder, the hosts of its siblings, and the decisions for sampled hosts."""

    verdict: str
    instance_id: int
    retries: int | None
    copied_because: str | None
    sibling_returned: bool | None
    hr_class: int | None
    sibling_hosts: list[int]
    one_per: Literal["volunteer", "host"] | None
    in_array: bool
    stale_cut_points: list[StaleShown]
    sample: SampleShown | None


class JobExplained(TypedDict):
    """Why a job's unsent instances wait. `hold`: what blocks its batch, as in OrderShown."""

    verdict: str
    computed_at: float
    job_id: int
    batch_id: int
    state: str
    failure: str
    canonical_instance_id: int | None
    hold: str | None
    batches_ahead: int
    unsent_ahead: int
    instances: list[InstanceShown]
    waiting: list[WaitingShown]


class DueShown(TypedDict):
    """The due date sent to the host, and its reason. `terms` None: not stored."""

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
    """What an idle host of the same kind would get today: either `refused` and `why`, or all other fields."""

    refused: NotRequired[str]
    why: NotRequired[str]
    due_in_s: NotRequired[float]
    tight: NotRequired[bool]
    row: NotRequired[int]
    gate: NotRequired[str]
    threshold: NotRequired[float]
    because: NotRequired[str]


class TodayShown(TypedDict):
    """The terms of the due date, recomputed today."""

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
    """How an instance's due date was computed. `due` is None for an unsent instance."""

    verdict: str
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
