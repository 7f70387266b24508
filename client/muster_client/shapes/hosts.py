"""Replies about hosts, their instances and ranking, and unschedulable work."""

from __future__ import annotations

from typing import TypedDict

from muster_client.shapes.administration import RestrictionShown
from muster_client.shapes.work import Json


class CoprocessorShown(TypedDict):
    type: str
    count: int
    peak_flop_per_s: float
    ram_bytes: float
    driver_version: int


class HostShown(TypedDict):
    """A host, as last reported by its client, and its credit in cobblestones. Operators set its `labels`."""

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
    software: str
    coprocessors: list[CoprocessorShown]
    labels: list[str]


class HostLabels(TypedDict):
    host_id: int
    labels: list[str]


class SlowShown(TypedDict):
    """An app version for which a host is slow. `x`: share of slower hosts in the last full ranking."""

    app_version_id: int
    x: float
    relative_turnaround: float | None


class FailuresShown(TypedDict):
    """Failures since an instant."""

    errors: int
    invalid: int
    timed_out: int
    last_at: float
    since: float


class HostFailuresShown(FailuresShown):
    """A failing host's failures among its `results` of the last day, without those that wait for validation.

    `of_versions` of the failures are of app versions that fail on half of their hosts, by which it is not judged.
    """

    results: int
    of_versions: int


class VersionUseShown(TypedDict):
    """What hosts did with an app version since it was added; `errors` include invalid results.

    `recent_hosts` had a result or timeout in the last week. `failures` of the last week; None: none.
    """

    app_version_id: int
    version_num: int
    platform: str
    plan_class: str
    state: str
    hosts: int
    recent_hosts: int
    valid: int
    errors: int
    timed_out: int
    failures: FailuresShown | None


class AppUse(TypedDict):
    use: list[VersionUseShown]


class ListedHostShown(HostShown):
    """A host in a list. `n_*` are totals over all app versions; invalid results count as errors.

    `slow` and `failures` are null in lists of other kinds.
    """

    in_progress: int
    n_valid: int
    n_error: int
    n_timeout: int
    slow: SlowShown | None
    failures: HostFailuresShown | None


class HostPage(TypedDict):
    hosts: list[ListedHostShown]
    next_cursor: str | None


class HavShown(TypedDict):
    """A host's statistics for one app version. The `*_n` of turnarounds are the samples' decayed weights."""

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


class HostResult(TypedDict):
    """An instance that was sent to a host, in any state but in progress. `credit` None: none was granted."""

    instance_id: int
    job_id: int
    batch_id: int
    app: str
    state: str
    sent_at: float
    due_at: float
    reported_at: float | None
    est_runtime_s: float
    elapsed_s: float | None
    turnaround_s: float | None
    tight: bool
    is_late: bool
    reason: str
    credit: float | None


class HostResultPage(TypedDict):
    results: list[HostResult]
    next_cursor: str | None


class RankedPartShown(TypedDict):
    """The ranking of an app on one type of processor. `small_population`: the bootstrap rule applies."""

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
    """A ranking of hosts. `full`: it includes the percentile of every row, not only the cut points."""

    generation: int
    full: bool
    started_at: float
    seconds: float
    apps: int
    rows: int
    ranked: int
    parts: list[RankedPartShown]


class RankingShown(TypedDict):
    """The latest ranking of hosts, None before the first one."""

    run: RankingRunShown | None


class PercentileShown(TypedDict):
    """A host's percentile for an app version, `p` = min(x, y). `x` and `y` are None under the bootstrap rule."""

    app_version_id: int
    p: float
    x: float | None
    y: float | None


class PercentilesShown(TypedDict):
    percentiles: list[PercentileShown]


class SimulationShown(TypedDict):
    """A background simulation: `running`, `done`, `failed`, `cancelled`, or `lost` (its process disappeared).

    `result` is set when it is done, `failure` (the error message) if it failed.
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
    """A kind of slot of a batch that no host runs. Each slot and each host counts once; `codes` counts hosts by reason.

    `is_certain`: it is unschedulable, because none of `hosts` of the `active_hosts` of the last day can run it.
    Otherwise, the hosts are those that asked and refused it so far; it is judged after `more_hosts` more refusals or
    `more_s` more seconds. `queue_needs`: the condition of its `queue` that hosts do not meet. `lost`: why no version
    of its app gets jobs, empty if one does; then the row has all unsent instances of the batch, as job class 0.
    `judged_at`: when it was judged; it is judged again every minute, and after a ban, or a change of the batch's queue
    or the app's versions.
    """

    batch_id: int
    job_class_id: int
    urgent: bool
    waiting: int
    hosts: int
    codes: dict[str, int]
    since_at: float
    rotated_out: bool
    more_hosts: int
    more_s: float
    is_certain: bool
    active_hosts: int | None
    queue: str
    queue_needs: str
    lost: str
    judged_at: float | None
    verdict: str
    advice: str


class UnschedulableShown(TypedDict):
    """Work that every recent host refused, and work that operators paused. `left_out` further batches of apps without
    a version for new work are not listed.
    """

    refused: list[RefusedShown]
    left_out: int
    paused: list[RestrictionShown]
