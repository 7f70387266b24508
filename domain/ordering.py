"""Input of ordering policies, and the breakdown of each priority they compute. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.units import AccountId, AppId, BatchId, Flop, Instant, Seconds, SubmitterId


class ServiceLevel(StrEnum):
    """The importance of a batch, independent of its quality of service (`QoS`)."""

    EXPEDITE = "expedite"  # requires a permission of the account or submitter
    NORMAL = "normal"
    STANDBY = "standby"  # ordered last, but exempt from size and run-time limits


@dataclass(frozen=True, slots=True)
class QueueClock:
    """A batch's effective queue time: `accrued_s` until `since`, plus the time since then.

    With `since` None the clock is stopped, because nothing is unsent or a limit blocks the batch.

    >>> QueueClock(Seconds(60.0), Instant(100.0)).waited_s(Instant(130.0))
    90.0
    """

    accrued_s: Seconds = Seconds(0.0)
    since: Instant | None = None

    def waited_s(self, now: Instant) -> Seconds:
        return self.accrued_s if self.since is None else Seconds(self.accrued_s + max(0.0, now - self.since))

    def runs(self, now: Instant) -> QueueClock:
        """Return the clock started at `now`; unchanged if it is already running."""
        return QueueClock(self.accrued_s, now) if self.since is None else self

    def pauses(self, now: Instant) -> QueueClock:
        """Return the clock stopped at `now`, with the time accrued until then."""
        return QueueClock(self.waited_s(now))


@dataclass(frozen=True, slots=True)
class Request:
    """The resources that one job requests or that a host has, with GPUs by type."""

    cores: float = 1.0
    memory_bytes: float = 0.0
    disk_bytes: float = 0.0
    gpus: tuple[tuple[str, float], ...] = ()

    def amounts(self) -> Mapping[str, float]:
        """Return the amounts by resource name.

        >>> Request(2.0, gpus=(("NVIDIA", 1.0),)).amounts()["gpu NVIDIA"]
        1.0
        """
        named = {"procs": self.cores, "memory": self.memory_bytes, "disk": self.disk_bytes}
        return named | {f"gpu {kind}": number for kind, number in self.gpus}


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """The facts about one batch that policies use. An unknown value is None and counts as 0."""

    batch_id: BatchId
    submitter_id: SubmitterId
    account_id: AccountId
    submitted_at: Instant
    logical_end_at: Instant = Instant(0.0)
    app_id: AppId | None = None
    queue: str = "normal"
    level: ServiceLevel = ServiceLevel.NORMAL
    user_priority: int = 0  # -1024 to 0, or up to 1023 with a permission
    clock: QueueClock = QueueClock()
    deadline_at: Instant | None = None
    request: Request = Request()
    job_runtime_s: Seconds | None = None  # estimate for one job on the reference host
    batch_flop: Flop | None = None
    unsent: int = 0
    bypassed: int = 0  # number of times a suitable host got lower-ranked work instead
    soft_limits: tuple[str, ...] = ()  # descriptions of the soft limits it exceeds
    held: bool = False  # by its submitter
    unpaid: bool = False  # its queue does not charge work

    @property
    def leaf(self) -> tuple[SubmitterId, AccountId]:
        """Return the leaf whose fair share applies to the batch: its submitter in its account."""
        return self.submitter_id, self.account_id


@dataclass(frozen=True, slots=True)
class Contribution:
    """One term of a priority: points = weight * min(value, cap). `value` None: unknown, 0 points.

    `component` groups terms for tables. `weight` is the term's weight times its component's weight. A term that
    subtracts a component's excess over its cap has weight 1 and a note.
    """

    name: str
    component: str
    raw: float | None
    unit: str
    value: float | None
    cap: float | None
    weight: float
    points: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Clamp:
    """The bound that a total was clamped to, and the result."""

    bound: str
    result: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The explanation of a batch's place. `total` is the sum of all points, added in order, before clamping.

    `queue` is the effective queue and why the batch is in it, or "" in a preview.
    """

    batch_id: BatchId
    policy: str
    computed_at: Instant
    tier: int
    total: float
    components: tuple[Contribution, ...] = ()
    limits: tuple[str, ...] = ()
    clamp: Clamp | None = None
    usage_snapshot_id: int | None = None
    queue: str = ""

    @property
    def key(self) -> float:
        """Return the order key. Within a tier, smaller keys go first."""
        return key_of(self.total)

    @property
    def result(self) -> float:
        return self.total if self.clamp is None else self.clamp.result

    def as_record(self) -> dict[str, object]:
        """Return the breakdown as plain JSON values, for storage and for replies."""
        names = ("name", "component", "raw", "unit", "value", "cap", "weight", "points", "note")
        return {
            "batch": self.batch_id,
            "policy": self.policy,
            "computed_at": self.computed_at,
            "tier": self.tier,
            "total": self.total,
            "result": self.result,
            "components": [{name: getattr(one, name) for name in names} for one in self.components],
            "clamp": None if self.clamp is None else {"bound": self.clamp.bound, "result": self.clamp.result},
            "limits": list(self.limits),
            "usage_snapshot_id": self.usage_snapshot_id,
        }


@dataclass(frozen=True, slots=True)
class PlaceInOrder:
    """A batch's position among all `of` active batches; 1 = first."""

    place: int
    of: int


def key_of(total: float) -> float:
    """Return the order key for a priority: its negative (never -0.0), because smaller keys go first.

    A policy that orders by an instant uses a weight of -1, so that the key is that instant.
    """
    return 0.0 - total


def total_of(points: Iterable[float]) -> float:
    """Return the sum of points, added in order and rounded after each addition. Every total is computed this way.

    >>> total_of([0.1, 0.2, 0.3])
    0.6000000000000001
    """
    total = 0.0
    for one in points:
        total += one
    return total
