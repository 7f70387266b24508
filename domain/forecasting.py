"""Input of the completion estimator: a batch, its hosts and its app, as tables of numbers with numpy type names.

No field is null: NaN is an instant that has not happened, -1 an unknown host or app version. Row order is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Generic, TypeAlias, TypeVar

from domain.batches import UNNUMBERED, QoS, is_late
from domain.catalogue import Catalogue
from domain.jobs import InstanceState
from domain.units import DAY_S, MINUTE_S, AppId, BatchId, Flop, Instant, Seconds, later

OTHERS_MOST = 5_000  # maximum number of (host, app version) rows of hosts without an instance of the batch
SENT_MOST = 2_000  # maximum number of instances of other batches, sent within
SENT_WITHIN_S = Seconds(30 * DAY_S)
ACTIVE_WITHIN_S = Seconds(7 * DAY_S)  # a host counts as active if it contacted the server within this time

# `needed`: number of results that must agree, per job with adaptive replication; at most the job's instances.
# `uncounted`: number of instances before the job's latest retry, which count towards no limit; cancelled ones left out.
JOB_FIELDS: tuple[tuple[str, str], ...] = (
    ("job_id", "i8"),
    ("fpops_est_flop", "f8"),
    ("is_open", "?"),
    ("needed", "i4"),
    ("uncounted", "i4"),
)

# `standing`: STANDINGS. `counted`: a CountedAs, the sum of its (host, app version) row that includes the instance.
INSTANCE_FIELDS: tuple[tuple[str, str], ...] = (
    ("job_id", "i8"),
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("standing", "i2"),
    ("counted", "i2"),
    ("created_at", "f8"),
    ("sent_at", "f8"),
    ("due_at", "f8"),
    ("timeout_at", "f8"),
    ("reported_at", "f8"),
)
# Undecayed sums over all work of the app, including this batch; log_: of ln(turnaround in seconds) of valid results.
FORECAST_HAV_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("log_n", "i8"),
    ("log_sum", "f8"),
    ("log_sum_sq", "f8"),
    ("n_error", "i8"),
    ("n_timeout", "i8"),
    ("n_due", "i8"),
    ("last_rpc_at", "f8"),
)
# The same fields for a sample of at most OTHERS_MOST out of `found` rows.
SAMPLED_HAV_FIELDS: tuple[tuple[str, str], ...] = (*FORECAST_HAV_FIELDS, ("found", "i8"))
# A sample of at most SENT_MOST out of `found` rows. Rows with the same number in `page` were chosen together.
SENT_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("standing", "i2"),
    ("sent_at", "f8"),
    ("reported_at", "f8"),
    ("fpops_est_flop", "f8"),
    ("found", "i8"),
    ("page", "i8"),
)

# The numbers of batch_estimator.snapshot.InstanceStanding. Cancelled instances are in no table.
STANDINGS: Mapping[InstanceState, int] = MappingProxyType(
    {
        InstanceState.UNSENT: 0,
        InstanceState.IN_PROGRESS: 1,
        InstanceState.REPORTED: 2,
        InstanceState.INCONCLUSIVE: 2,
        InstanceState.VALID: 2,
        InstanceState.TOO_LATE: 2,
        InstanceState.FAILED: 3,
        InstanceState.ABORTED: 6,
        InstanceState.TIMED_OUT: 4,
        InstanceState.INVALID: 5,
    }
)


SendRank: TypeAlias = tuple[int, int, float, BatchId]  # batches with a smaller one are sent first


@dataclass(frozen=True, slots=True)
class SendPlace:
    """What decides in which sequence most requests take batches: those sent first, late ones last, the others, and
    unpaid ones; within each, the order, and at last the id.
    """

    qos: QoS
    deadline_at: Instant | None
    unpaid: bool
    tier: int
    key: float
    batch_id: BatchId = UNNUMBERED

    def first_from(self, app_id: AppId, catalogue: Catalogue) -> Instant:
        """Return after which instant a batch of the app is sent first."""
        return catalogue.sent_first_from(app_id, self.qos, self.deadline_at, unpaid=self.unpaid)

    def rank(self, app_id: AppId, catalogue: Catalogue, now: Instant) -> SendRank:
        """Return the rank of a batch of the app.

        >>> urgent, other = (SendPlace(qos, None, False, 7, 0.5, 3) for qos in (QoS.AFAP, QoS.THROUGHPUT))
        >>> late = SendPlace(QoS.SHORT_DEADLINE, Instant(-9.0), False, 7, 0.5, 3)
        >>> unpaid = SendPlace(QoS.AFAP, None, True, 7, 0.5, 3)
        >>> [place.rank(AppId(1), Catalogue(), Instant(0.0)) for place in (urgent, late, other, unpaid)]
        [(0, 7, 0.5, 3), (1, 7, 0.5, 3), (2, 7, 0.5, 3), (3, 7, 0.5, 3)]
        """
        is_first = self.first_from(app_id, catalogue) < now
        group = 3 if self.unpaid else int(is_late(self.deadline_at, now)) if is_first else 2
        return group, self.tier, self.key, self.batch_id


FIRST_PLACE = SendPlace(QoS.AFAP, None, False, -(2**31), -math.inf)  # before every batch

NEVER_FIRST = Instant(math.inf)
NEVER_MOVED = Instant(-math.inf)
MOVED_S = 30.0  # dispatches are counted for this long before a forecast uses a batch's new place
MOVING_S = 15 * MINUTE_S  # dispatches of this long show the rate until then
PROVISIONAL_S = 15 * MINUTE_S  # a rate since a move of less than this ago rests on few dispatches
PAUSE_S = Seconds(10 * MINUTE_S)  # after a shorter pause, the hosts that were away come at once: no new rate


def is_moving(moved_at: Instant | None, now: Instant) -> bool:
    """Return whether a batch's last move takes effect later, or did so less than MOVED_S ago.

    >>> [is_moving(at, Instant(1000.0)) for at in (None, Instant(1060.0), Instant(971.0), Instant(970.0))]
    [False, True, True, False]
    """
    return moved_at is not None and later(moved_at, MOVED_S) > now


def began_in_pause(paused_at: Instant, now: Instant) -> Instant | None:
    """Return since when a batch's sending rate must have begun to start again when a pause ends now; None: at any time.

    >>> began_in_pause(Instant(0.0), Instant(PAUSE_S)), began_in_pause(Instant(1.0), Instant(PAUSE_S))
    (None, 1.0)
    """
    return None if paused_at <= now - PAUSE_S else paused_at


def counted_since(moved_at: Instant | None, now: Instant, *, submitted_at: Instant) -> Instant:
    """Return since when dispatches show a batch's sending rate: its last move. Until that counts, the last 15 minutes
    do: forecasts are rare then, and an earlier move is not known. In a batch's first 15 minutes, all dispatches count.

    >>> moves = None, Instant(5000.0), Instant(4971.0), Instant(4970.0)
    >>> [counted_since(at, Instant(5000.0), submitted_at=Instant(0.0)) for at in moves]
    [-inf, 4100.0, 4100.0, 4970.0]
    >>> counted_since(Instant(5000.0), Instant(5000.0), submitted_at=Instant(4100.0))
    -inf
    """
    if moved_at is None or not is_moving(moved_at, now):
        return NEVER_MOVED if moved_at is None else moved_at
    recent_at = later(now, -MOVING_S)
    return recent_at if recent_at > submitted_at else NEVER_MOVED


def moved_ahead(tier: int, foremost_tier: int | None) -> bool | None:
    """Return whether a batch's tier is ahead of the foremost one that it had before its moves (True) or behind (False).

    None: neither, because it was not moved since its last pause, or only within its tier.

    >>> [moved_ahead(-40, 0), moved_ahead(40, 0), moved_ahead(0, 0), moved_ahead(0, None)]
    [True, False, None, None]
    """
    return None if foremost_tier is None or tier == foremost_tier else tier < foremost_tier


class CountedAs(IntEnum):
    """The sums in a (host, app version) row that an instance may count towards."""

    NOTHING = 0
    VALID = 1
    ERROR = 2
    TIMED_OUT = 3


def counted_as(state: InstanceState, *, has_sample: bool) -> CountedAs:
    """Return the sum that counts an instance. An aborted instance with a turnaround sample counts as a timeout."""
    match state:
        case InstanceState.VALID:
            return CountedAs.VALID
        case InstanceState.FAILED | InstanceState.INVALID:
            return CountedAs.ERROR
        case InstanceState.TIMED_OUT:
            return CountedAs.TIMED_OUT
        case InstanceState.ABORTED if has_sample:
            return CountedAs.TIMED_OUT
        case _:
            return CountedAs.NOTHING


@dataclass(frozen=True, slots=True)
class BatchTerms:
    """An active batch and the properties of hosts that can compute for it.

    `delay_bound_s` is the maximum over its classes. `median_flop_per_s` is the median over the processors of active
    hosts, NaN without any; `active_processors` is the average number of those available. `ahead` unsent instances of
    the app and `ahead_of_others` of other apps, which need `flop_of_others`, precede the batch's own (`SendPlace`),
    until it is sent first from `first_from` on. All are 0 if some of its jobs were sent, nothing blocks it and it was
    never moved. `held`: a limit blocks the batch. `moved_at`: the last move that counts (`counted_since`).
    `moved_ahead`: whether it is ahead of its places before its moves. `withdrawn`: the app's withdrawn
    versions.
    """

    batch_id: BatchId
    app_id: AppId
    created_at: Instant
    delay_bound_s: Seconds
    qos: QoS
    active_hosts: int
    median_flop_per_s: float
    active_processors: float
    ahead: int = 0
    ahead_of_others: int = 0
    flop_of_others: float = 0.0
    held: bool = False
    moved_at: Instant = NEVER_MOVED
    first_from: Instant = NEVER_FIRST
    moved_ahead: bool | None = None
    withdrawn: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A planned batch with the requirements it places on the app's hosts.

    `delay_bound_s` is the maximum over its jobs; `jobs_of` gives the number of jobs by size and quorum. Batches with a
    smaller rank of `place` are sent first.
    """

    app_id: AppId
    qos: QoS
    delay_bound_s: Seconds
    jobs_of: Mapping[tuple[Flop, int], int]
    deadline_at: Instant | None = None
    place: SendPlace = FIRST_PLACE

    @property
    def jobs_total(self) -> int:
        return sum(self.jobs_of.values())


Table = TypeVar("Table")


@dataclass(frozen=True, slots=True)
class BatchTables(Generic[Table]):
    """The tables for one batch.

    `havs` has one row per (host, app version) in `instances` or `sent`, with zeros if none is stored. `others` is a
    sample of the app's other rows, each representing `others_weight` rows; the same holds for `sent` and `sent_weight`.
    """

    terms: BatchTerms
    jobs: Table  # JOB_FIELDS
    instances: Table  # INSTANCE_FIELDS, of the batch, without cancelled ones
    havs: Table  # FORECAST_HAV_FIELDS
    others: Table  # SAMPLED_HAV_FIELDS
    others_weight: float
    sent: Table  # SENT_FIELDS, of the app's other batches
    sent_weight: float


@dataclass(frozen=True, slots=True)
class AppTables(Generic[Table]):
    """The tables of BatchTables that are common to all batches of an app, for use with a new batch.

    `ahead`, `ahead_of_others`, `flop_of_others` and `first_from`: of the new batch, as in BatchTerms. `withdrawn`: as
    there.
    """

    active_hosts: int
    median_flop_per_s: float
    active_processors: float
    havs: Table  # FORECAST_HAV_FIELDS, of the instances in `sent`
    others: Table  # SAMPLED_HAV_FIELDS
    others_weight: float
    sent: Table  # SENT_FIELDS, of all the app's batches
    sent_weight: float
    ahead: int
    ahead_of_others: int
    flop_of_others: float = 0.0
    first_from: Instant = NEVER_FIRST
    withdrawn: frozenset[int] = frozenset()
