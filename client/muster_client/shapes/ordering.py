"""The order of batches, shares and thresholds as the API tells of them."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

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
