"""Replies about the order of batches, shares and thresholds."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

Moved = TypedDict("Moved", {"key": str, "from": Any, "to": Any})  # a setting with its old and new value
PolicyMoved = TypedDict("PolicyMoved", {"from": str, "to": str})


class ContributionShown(TypedDict):
    """One term of a priority: `points` = weight * min(value, cap)."""

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
    """The bound that a total was clamped to, and the result."""

    bound: str
    result: float


class PlaceReasonShown(TypedDict):
    """The terms of a batch's place in an order. Their points add up to `total`."""

    batch: int
    policy: str
    computed_at: float
    tier: int
    total: float
    result: float
    components: list[ContributionShown]
    clamp: ClampShown | None
    limits: list[str]
    usage_snapshot_id: int | None


class PriorityShown(TypedDict):
    """A batch's place in the order, and the terms whose points sum to `total`. `place` 1 is the first; `waiting` counts
    its unsent instances. `age_s`: the time since `computed_at`. `level`, `asked_queue` and `user_priority` are the
    values on which the place rests; a change acts at the next ordering pass, that of a level that is a tier at once.
    """

    batch: int
    place: int | None
    submitter: str
    waiting: int
    policy: str
    computed_at: float
    age_s: float
    tier: int
    total: float
    result: float
    components: list[ContributionShown]
    clamp: ClampShown | None
    limits: list[str]
    usage_snapshot_id: int | None
    queue: str
    hold: str | None
    level: NotRequired[str]
    asked_queue: NotRequired[str]
    user_priority: NotRequired[int]


class PrioritiesShown(TypedDict):
    """Batches with never sent jobs in the order of the last ordering pass. `unordered`: batches not ordered yet."""

    batches: list[PriorityShown]
    unordered: list[int]


class PlaceMoved(TypedDict):
    """A batch's place before and after a change; 1 = first."""

    batch: int
    place: int
    would_be: int
    held: str | None
    would_be_held: str | None


class OrderPreviewed(TypedDict):
    """The effect of settings on the current order. `batches` is the number of active batches; `places` has those
    with jobs that were never sent, except paused ones and those that no host can run; `reasons` explains the first
    places in the new order.
    """

    changes: list[Moved]
    policy: PolicyMoved
    batches: int
    places: list[PlaceMoved]
    reasons: list[PlaceReasonShown]


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
    """An account, or a submitter in an account. `depth` 0 is the top level. Fractions are of the whole tree."""

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


class CredentialUsageShown(TypedDict):
    """Usage compared with its target, in percent of the delivered amount: over all windows with their weights, and for
    each window, newest first. `section` is user, group, account or level; `target` is empty if there is none.
    """

    section: str
    name: str
    target: str
    percent: float
    off_target: bool
    windows: list[float]


class WindowsShown(TypedDict):
    """Recent usage windows, newest first: start and delivered FLOP of each, and the usage of each name."""

    window_s: float
    starts_at: list[float]
    delivered_flop: list[float]
    usage: list[CredentialUsageShown]


class UsedShown(TypedDict):
    """Usage of returned work. `starts_at` (of a day, week or month), `account`, `submitter`: null if not asked for."""

    starts_at: float | None
    account: str | None
    submitter: str | None
    instances: int
    flop: float
    cpu_s: float
    memory_byte_s: float
    gpu_s: float
    used_su: float


class UsageReported(TypedDict):
    """Usage from `first_day` to `last_day`, both included, UTC, in sums by the words of `by`."""

    first_day: str
    last_day: str
    by: list[str]
    usage: list[UsedShown]


class UsageReset(TypedDict):
    """`records` is the number of changed records, one per submitter and account with usage."""

    records: int


class SharesSet(TypedDict):
    """`submitter` is present only if its shares were set: in `account`, or in its own account if that is None."""

    account: str | None
    submitter: NotRequired[str]
    shares: float


class Permitted(TypedDict):
    account: NotRequired[str]
    submitter: NotRequired[str]
    permissions: list[str]


class ThresholdShown(TypedDict):
    """A threshold with its effects and latest change. `source` is default or set. `previewed`: previews can show the
    effect of changing it.
    """

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
    """Stale cut points, because of which the bootstrap rule applies to this app on this type of processor."""

    app: str
    processor_type: str
    computed_at: float


class GateSide(TypedDict):
    """The hosts that pass a gate: ranked hosts, newcomers, and requests per hour. `fast` ranked hosts are fast enough,
    and pass if they are also reliable enough. If `threshold` is below `asked`, `because` has the reason.
    """

    asked: float
    threshold: float
    because: str
    havs: int
    fast: int
    newcomers: int
    calls_per_hour: float


class GatePreviewed(TypedDict):
    gate: str
    old: GateSide
    new: GateSide


class TypePreviewed(TypedDict):
    """Recently active hosts, by app and type of processor. A small population has too few hosts to rank: `measured` is
    the number with enough results.
    """

    app: str
    processor_type: str
    havs: int
    newcomers: int
    small_population: bool
    would_be_small: bool
    measured: int
    would_be_measured: int
    gates: list[GatePreviewed]


class WaitSide(TypedDict):
    """Time needed to send the waiting jobs, one per request; None if no passing host sends requests."""

    threshold: float
    calls_per_hour: float
    send_s: float | None


class WaitPreviewed(TypedDict):
    """Waiting jobs behind a gate."""

    app: str
    gate: str
    jobs: int
    old: WaitSide
    new: WaitSide


class ThresholdsPreviewed(TypedDict):
    """The effect of thresholds on hosts as of `hosts_read_at` and on currently waiting jobs.

    If `one_in` is more than 1, counts and rates of hosts are estimated from one host in so many.
    """

    computed_at: float
    hosts_read_at: float
    one_in: int
    stale_cut_points: list[StaleShown]
    changes: list[Moved]
    hosts: list[TypePreviewed]
    waiting: list[WaitPreviewed]
