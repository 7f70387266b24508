"""What an ordering policy knows of a batch, and the record of what it made of it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.units import AccountId, AppId, BatchId, Flop, Instant, Seconds, SubmitterId


class ServiceLevel(StrEnum):
    """How important a batch is held to be. Not the promise a batch is given (`QoS`)."""

    EXPEDITE = "expedite"  # needs a permission of the account or submitter
    NORMAL = "normal"
    STANDBY = "standby"  # last, but free of size and run-time limits


@dataclass(frozen=True, slots=True)
class QueueClock:
    """How long a batch has waited while it could have been served: `accrued_s` until `since`, and on from there.

    `since` None: the clock stands still (nothing to send, or a limit holds the batch).

    >>> QueueClock(Seconds(60.0), Instant(100.0)).waited_s(Instant(130.0))
    90.0
    """

    accrued_s: Seconds = Seconds(0.0)
    since: Instant | None = None

    def waited_s(self, now: Instant) -> Seconds:
        return self.accrued_s if self.since is None else Seconds(self.accrued_s + max(0.0, now - self.since))

    def runs(self, now: Instant) -> QueueClock:
        """The clock going on from `now`; unchanged when it runs already."""
        return QueueClock(self.accrued_s, now) if self.since is None else self

    def pauses(self, now: Instant) -> QueueClock:
        """The clock standing still from `now` on, with what it has accrued."""
        return QueueClock(self.waited_s(now))


@dataclass(frozen=True, slots=True)
class Request:
    """What one job asks for, or what a host has. GPUs by type."""

    cores: float = 1.0
    memory_bytes: float = 0.0
    disk_bytes: float = 0.0
    gpus: tuple[tuple[str, float], ...] = ()

    def amounts(self) -> Mapping[str, float]:
        """Amounts by the resource's name.

        >>> Request(2.0, gpus=(("NVIDIA", 1.0),)).amounts()["gpu NVIDIA"]
        1.0
        """
        named = {"procs": self.cores, "memory": self.memory_bytes, "disk": self.disk_bytes}
        return named | {f"gpu {kind}": number for kind, number in self.gpus}


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What policies know of one batch. Anything that is not known is None and counts as nothing."""

    batch_id: BatchId
    submitter_id: SubmitterId
    account_id: AccountId
    submitted_at: Instant
    logical_end_at: Instant = Instant(0.0)
    app_id: AppId | None = None
    queue: str = "normal"
    level: ServiceLevel = ServiceLevel.NORMAL
    user_priority: int = 0  # -1024 to 0, to 1023 with a permission
    clock: QueueClock = QueueClock()
    deadline_at: Instant | None = None
    request: Request = Request()
    job_runtime_s: Seconds | None = None  # one job's estimate on the reference host
    batch_flop: Flop | None = None
    unsent: int = 0
    bypassed: int = 0  # times a host that could have served it was given lower-ranked work
    soft_limits: tuple[str, ...] = ()  # sentences on the soft limits it is over
    held: bool = False  # by its submitter
    unpaid: bool = False  # its queue's work is charged nothing

    @property
    def leaf(self) -> tuple[SubmitterId, AccountId]:
        """Whose fair-share counts: the submitter in the batch's account."""
        return self.submitter_id, self.account_id


@dataclass(frozen=True, slots=True)
class Contribution:
    """One term of a priority: points = weight * min(value, cap). `value` None: unknown, and 0 points.

    `component` groups terms for tables. `weight` is the term's times its component's. A term that takes off
    what a component has over its cap has weight 1 and says so in its note.
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
    """The bound a total ran into, and what it became."""

    bound: str
    result: float


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Why a batch stands where it stands. `total` is the sum of all points in order, before any clamp."""

    batch_id: BatchId
    policy: str
    computed_at: Instant
    tier: int
    total: float
    components: tuple[Contribution, ...] = ()
    limits: tuple[str, ...] = ()
    clamp: Clamp | None = None
    usage_snapshot_id: int | None = None

    @property
    def key(self) -> float:
        """The batch's order key: within a tier the smallest goes first."""
        return key_of(self.total)

    @property
    def result(self) -> float:
        return self.total if self.clamp is None else self.clamp.result

    def as_record(self) -> dict[str, object]:
        """The breakdown as it is stored and answered: plain values that are JSON."""
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
    """Where a batch stands among all `of` active ones, 1 = first."""

    place: int
    of: int


def key_of(total: float) -> float:
    """The order key of a priority: its negative (never -0.0), since the smallest key goes first.

    A policy that orders by an instant gives it the weight -1, which makes the key that instant.
    """
    return 0.0 - total


def total_of(points: Iterable[float]) -> float:
    """The sum of points in their order, rounded after each: what every total is by definition.

    >>> total_of([0.1, 0.2, 0.3])
    0.6000000000000001
    """
    total = 0.0
    for one in points:
        total += one
    return total
