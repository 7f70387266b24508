"""Input, stored state and result of an ordering pass over batches. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from domain.batches import Account, Batch
from domain.limits import Limit, Scope
from domain.ordering import QueueClock, Request, ServiceLevel
from domain.units import DAY_S, AccountId, BatchId, Flop, FlopPerSecond, Instant, Seconds, SubmitterId
from domain.usage import Amounts, Charge, DecayedUsage

LeafId = tuple[SubmitterId, AccountId]  # a submitter in one of its accounts


class Permission(StrEnum):
    """A permission, granted to a submitter, or to an account for all submitters at or below it."""

    EXPEDITE = "expedite"  # use the service level expedite
    RAISE = "raise"  # set a user priority above 0
    DEADLINE = "deadline"  # deadlines of the submitter's batches affect the order


@dataclass(frozen=True, slots=True)
class OrderNotes:
    """The state of a batch that is stored between two ordering passes.

    `sent` is its counter at the last pass. `charged` instances count as usage, on average since `charged_at`; `used` of
    them have been returned. `used_fraction` is the mean ratio of actual to estimated usage, last computed when
    `sampled` jobs were valid. Work in progress is charged at `rate`, the price when it was sent. `bypassed`: number of
    consecutive passes in which later batches were sent but nothing from this one.
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
    """One batch as input to an ordering pass. `request` is the maximum over its jobs, without GPUs.

    `job_flop` is the mean estimate of its jobs. `notes` is None before its first pass. `explained`: a breakdown is
    stored. Submission charged `charged_s` to the submitter's logical time, of which `refunded_s` has been refunded. The
    batch starts after the batches in `awaited` have ended. The batches in `unmet` have failed jobs, or were aborted or
    purged; because of them it starts only when an operator or its submitter releases it.
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
    awaited: tuple[BatchId, ...] = ()
    unmet: tuple[BatchId, ...] = ()

    def waits_for(self) -> tuple[str, ...]:
        """Return the reasons why the batch's jobs must wait for other batches."""
        never = "ended with some jobs not valid: release this batch, or abort it"
        return (
            *(f"waits for batch {batch_id} to end" for batch_id in self.awaited),
            *(f"batch {batch_id} {never}" for batch_id in self.unmet),
        )


@dataclass(frozen=True, slots=True)
class Member:
    """A submitter in one of its accounts, with the shares and permissions that apply there."""

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
    """A submitter's usage in an account. `accuracies` are actual / estimated usage of its last jobs, newest first."""

    leaf: LeafId
    usage: DecayedUsage = field(default=DecayedUsage())
    accuracies: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class WindowUsage:
    """Usage in one time window, without decay."""

    leaf: LeafId
    level: ServiceLevel
    starts_at: Instant
    length_s: Seconds
    flop: float


@dataclass(frozen=True, slots=True)
class DayUsage:
    """What the instances used that were returned since the last ordering, for the history of usage."""

    leaf: LeafId
    used: Amounts = field(default=Amounts())
    instances: int = 0
    used_su: float = 0.0

    def plus(self, charge: Charge) -> DayUsage:
        return DayUsage(
            self.leaf,
            self.used.plus(charge.used),
            self.instances + charge.returned,
            self.used_su + charge.used_su,
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """An account's service units for one period. Unused units expire with the period.

    `reserved_su` is the estimated cost of its work in progress.
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

    @property
    def ends_at(self) -> Instant:
        return Instant(self.period_start_at + self.period_s)

    def at(self, now: Instant) -> Grant:
        """Return the grant as of `now`. In a new period nothing is used yet, but work in progress remains reserved.

        >>> Grant(AccountId(1), 10.0, Instant(0.0), Seconds(100.0), 8.0).at(Instant(250.0)).period_start_at
        200.0
        """
        passed = (now - self.period_start_at) // self.period_s if self.period_s > 0.0 else 0.0
        if passed < 1.0:
            return self
        return replace(self, period_start_at=Instant(self.period_start_at + passed * self.period_s), used_su=0.0)

    def charged(self, used_su: float) -> Grant:
        """Return the grant after `used_su` was added to its usage (negative: subtracted)."""
        return replace(self, used_su=max(0.0, self.used_su + used_su))


ACTIVE_HOST_S = 7 * DAY_S  # hosts that contacted the server within this time define the reference and the pool's speed


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference host: for each resource, the median over active hosts, as of `at`.

    `most` is the maximum of each resource, `pool_flop_per_s` the total speed; without hosts, one core at 1e9 flop/s.
    `newest_host_id` is the largest host id at that time, 0 without hosts.
    """

    at: Instant
    host: Request = field(default=Request())
    most: Request = field(default=Request())
    flop_per_s: FlopPerSecond = FlopPerSecond(1e9)
    pool_flop_per_s: float = 0.0
    newest_host_id: int = 0


@dataclass(frozen=True, slots=True)
class LeafStanding:
    """A submitter's standing in an account, now or at the last pass. None means unknown and is treated as neutral.

    Deltas are target minus usage in percentage points. `account` is the submitter's own account, `group` its topmost
    ancestor. `held_pe` counts instances in progress until they are reported, fail or reach their due date.
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
    """The complete input of one ordering pass. `serial` is the number of the last pass, `newest_host_id` the largest
    host id, 0 without hosts.
    """

    serial: int
    batches: Sequence[OrderedBatch] = ()
    accounts: Sequence[Account] = ()
    members: Sequence[Member] = ()
    usage: Sequence[LeafUsage] = ()
    windows: Sequence[WindowUsage] = ()
    grants: Sequence[Grant] = ()
    limits: Sequence[Limit] = ()
    reference: Reference | None = None
    newest_host_id: int = 0


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A batch's place in the order, the limits that block it (None: none), and the maximum for its counter `sent`.

    `unpaid` and `job_pe` are as in Batch. `level`: for which the tier was computed; a batch whose level has changed
    since keeps its tier.
    """

    batch_id: BatchId
    tier: int
    key: float
    hold: str | None = None
    sent_most: int | None = None
    unpaid: bool = False
    job_pe: float = 1.0
    level: ServiceLevel | None = None


@dataclass(frozen=True, slots=True)
class LogicalCorrection:
    """A finished batch's correct charge to its submitter's logical time (`due_s`), and the current one less refunds."""

    batch_id: BatchId
    submitter_id: SubmitterId
    charged_s: Seconds
    due_s: Seconds


@dataclass(frozen=True, slots=True)
class OrderingCharges:
    """The charges and state changes from one ordering pass, written atomically. `windows` has the amounts to add.

    A batch in `corrections` is also forgotten once its submitter's logical time has been changed by `due_s` -
    `charged_s`. This happens immediately, unless the submitter is submitting at that moment.
    """

    serial: int  # of the pass it is based on
    now: Instant
    reference: Reference
    notes: Mapping[BatchId, OrderNotes] = field(default_factory=dict)
    forgotten: Sequence[BatchId] = ()
    corrections: Sequence[LogicalCorrection] = ()
    usage: Sequence[LeafUsage] = ()
    windows: Sequence[WindowUsage] = ()
    windows_from: Instant = Instant(0.0)  # windows that ended earlier are deleted
    used: Sequence[DayUsage] = ()
    days_from: Instant = Instant(0.0)  # the history has earlier days by the month
    grants: Sequence[Grant] = ()
    standings: Mapping[LeafId, LeafStanding] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubmissionOrder:
    """The inputs for a new batch's place and admission as of the last ordering pass, except logical time.

    `active` counts the active batches of its submitter, its account, its app and its queue.
    """

    standing: LeafStanding | None = None
    reference: Reference | None = None
    grant: Grant | None = None
    limits: Sequence[Limit] = ()
    active: Mapping[Scope, int] = field(default_factory=dict)
