"""What the ordering of batches reads, what it remembers of them, and what one ordering changes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from domain.batches import Account, Batch
from domain.limits import Limit, Scope
from domain.ordering import QueueClock, Request, ServiceLevel
from domain.units import DAY_S, AccountId, BatchId, Flop, FlopPerSecond, Instant, Seconds, SubmitterId
from domain.usage import DecayedUsage

LeafId = tuple[SubmitterId, AccountId]  # a submitter in one of its accounts


class Permission(StrEnum):
    """What a submitter needs to be allowed. Given to a submitter, or to an account for all in it and below it."""

    EXPEDITE = "expedite"  # the service level
    RAISE = "raise"  # a user priority above 0
    DEADLINE = "deadline"  # deadlines of its batches count in the order


@dataclass(frozen=True, slots=True)
class OrderNotes:
    """What the ordering remembers of a batch.

    `sent` is its counter at the last ordering; `charged` instances count as usage, since `charged_at` in the mean,
    `used` of them are back. An instance takes `used_fraction` of its estimate, looked for when `sampled` jobs were
    valid. What is under way is charged `rate`, the price when it was sent. `bypassed`: orderings in a row in which
    later batches were sent and nothing of this one.
    """

    clock: QueueClock = field(default=QueueClock())
    bypassed: int = 0
    sent: int = 0
    charged: int = 0
    used: int = 0
    charged_at: Instant = Instant(0.0)
    used_fraction: float = 1.0
    sampled: int = 0
    rate: float = 1.0


@dataclass(frozen=True, slots=True)
class OrderedBatch:
    """One batch as the ordering sees it. `request` is the most that any of its jobs asks for, GPUs left out.

    `job_flop` is the mean estimate of its jobs. `notes` None: the ordering has not seen it yet.
    `explained`: there is a breakdown of it. `charged_s` is what its submitter's logical time was charged for it when it
    was submitted, `refunded_s` what of that has been given back.
    """

    batch: Batch
    batch_flop: Flop
    request: Request
    job_flop: Flop
    max_errors: int = 1
    notes: OrderNotes | None = None
    explained: bool = True
    charged_s: Seconds = Seconds(0.0)
    refunded_s: Seconds = Seconds(0.0)


@dataclass(frozen=True, slots=True)
class Member:
    """A submitter in one of its accounts, with its shares there and its own permissions."""

    submitter_id: SubmitterId
    name: str
    account_id: AccountId
    shares: float = 1.0
    permissions: tuple[str, ...] = ()

    @property
    def leaf(self) -> LeafId:
        return self.submitter_id, self.account_id


@dataclass(frozen=True, slots=True)
class LeafUsage:
    """What a submitter used in an account; `accuracies` are actual / estimate of its last jobs, newest first."""

    leaf: LeafId
    usage: DecayedUsage = field(default=DecayedUsage())
    accuracies: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowUsage:
    """What was used in one window of time, without decay."""

    leaf: LeafId
    level: ServiceLevel
    starts_at: Instant
    length_s: Seconds
    flop: float


@dataclass(frozen=True, slots=True)
class Grant:
    """Service units of an account for one period; nothing is carried over into the next.

    `reserved_su` is what its work under way will cost by estimate.
    """

    account_id: AccountId
    granted_su: float
    period_start_at: Instant
    period_s: Seconds
    used_su: float = 0.0
    reserved_su: float = 0.0

    @property
    def left_su(self) -> float:
        return self.granted_su - self.used_su - self.reserved_su

    def at(self, now: Instant) -> Grant:
        """The grant in the period `now` lies in: a new one has used nothing; what is under way stays reserved.

        >>> Grant(AccountId(1), 10.0, Instant(0.0), Seconds(100.0), 8.0).at(Instant(250.0)).period_start_at
        200.0
        """
        passed = (now - self.period_start_at) // self.period_s if self.period_s > 0.0 else 0.0
        if passed < 1.0:
            return self
        return replace(self, period_start_at=Instant(self.period_start_at + passed * self.period_s), used_su=0.0)

    def charged(self, used_su: float) -> Grant:
        """The grant with so much more used, or less where that is negative."""
        return replace(self, used_su=max(0.0, self.used_su + used_su))


ACTIVE_HOST_S = 7 * DAY_S  # a host that called within this counts for the reference and for the pool's speed


@dataclass(frozen=True, slots=True)
class Reference:
    """A host as hosts are: the median of each resource over active hosts. Looked for at `at`.

    `most` is what the largest has of each, `pool_flop_per_s` the speed of all together; 0 hosts: one core at 1e9.
    """

    at: Instant
    host: Request = field(default=Request())
    most: Request = field(default=Request())
    flop_per_s: FlopPerSecond = FlopPerSecond(1e9)
    pool_flop_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LeafStanding:
    """How a submitter in an account stands, or stood at the last ordering. None: not known, neither good nor bad.

    Deltas are percentage points of target less usage; `account` is the submitter's own, `group` the topmost
    above it. `held_pe` counts instances under way until report, error or due date.
    """

    fairshare_ratio: float | None = None
    fairshare_rank: float | None = None
    user_delta: float = 0.0
    group_delta: float = 0.0
    account_delta: float = 0.0
    accuracy: float | None = None
    held_pe: float = 0.0


@dataclass(frozen=True, slots=True)
class OrderingView:
    """Everything one ordering goes by. `serial` is the last ordering's."""

    serial: int
    batches: Sequence[OrderedBatch] = ()
    accounts: Sequence[Account] = ()
    members: Sequence[Member] = ()
    usage: Sequence[LeafUsage] = ()
    windows: Sequence[WindowUsage] = ()
    grants: Sequence[Grant] = ()
    limits: Sequence[Limit] = ()
    reference: Reference | None = None


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A batch's place in the order, the limits that hold it (None: none), and what its counter `sent` may come to.

    `unpaid` and `job_pe` as in Batch.
    """

    batch_id: BatchId
    tier: int
    key: float
    hold: str | None = None
    sent_most: int | None = None
    unpaid: bool = False
    job_pe: float = 1.0


@dataclass(frozen=True, slots=True)
class LogicalCorrection:
    """What a batch that is over should have been charged in its submitter's logical time, and what it is, refunds
    taken off."""

    batch_id: BatchId
    submitter_id: SubmitterId
    charged_s: Seconds
    due_s: Seconds


@dataclass(frozen=True, slots=True)
class OrderingCharges:
    """What one ordering charges and notes, written whole or not at all. `windows` hold what is added to them.

    A batch of `corrections` is forgotten, too, once its submitter's logical time is moved by what is due less what was
    charged: at once, unless the submitter is submitting just now.
    """

    serial: int  # it goes by
    now: Instant
    reference: Reference
    notes: Mapping[BatchId, OrderNotes] = field(default_factory=dict)
    forgotten: Sequence[BatchId] = ()
    corrections: Sequence[LogicalCorrection] = ()
    usage: Sequence[LeafUsage] = ()
    windows: Sequence[WindowUsage] = ()
    windows_from: Instant = Instant(0.0)  # those that ended before are forgotten
    grants: Sequence[Grant] = ()
    standings: Mapping[LeafId, LeafStanding] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubmissionOrder:
    """What a new batch's place and the right to submit it depend on besides logical time, as of the last ordering.

    `active` counts the active batches of its submitter, account, app and queue.
    """

    standing: LeafStanding | None = None
    reference: Reference | None = None
    grant: Grant | None = None
    limits: Sequence[Limit] = ()
    active: Mapping[Scope, int] = field(default_factory=dict)
