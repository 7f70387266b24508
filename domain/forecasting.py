"""What does the completion estimator read of a batch, its hosts and its app? Tables of numbers, as numpy names types.

No field is ever null: an instant that has not happened is NaN, a host or app version that is not known yet is -1. The
rows come in any order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from domain.batches import QoS
from domain.jobs import InstanceState
from domain.units import DAY_S, AppId, BatchId, Flop, Instant, Seconds

OTHERS_MOST = 5_000  # (host, app version) rows of hosts without an instance of the batch,
SENT_MOST = 2_000  # and those of this many other instances, sent within
SENT_WITHIN_S = Seconds(30 * DAY_S)
ACTIVE_WITHIN_S = Seconds(7 * DAY_S)  # a host that called within this is active

# `needed`: how many results must agree, as adaptive replication has it for each job; at most its instances.
JOB_FIELDS: tuple[tuple[str, str], ...] = (
    ("job_id", "i8"),
    ("fpops_est_flop", "f8"),
    ("is_open", "?"),
    ("needed", "i4"),
)

# `standing`: STANDINGS. `counted`: in which of its (host, app version)'s sums it is, a CountedAs.
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
# Undecayed sums over all work of the app, this batch's included; log_: of ln(turnaround in seconds) of valid results.
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
# The same of a sample; `found` rows were found before all but OTHERS_MOST were left out.
SAMPLED_HAV_FIELDS: tuple[tuple[str, str], ...] = (*FORECAST_HAV_FIELDS, ("found", "i8"))
# A sample; `found` rows were found before all but SENT_MOST were left out.
SENT_FIELDS: tuple[tuple[str, str], ...] = (
    ("host_id", "i4"),
    ("app_version_id", "i4"),
    ("standing", "i2"),
    ("sent_at", "f8"),
    ("reported_at", "f8"),
    ("fpops_est_flop", "f8"),
    ("found", "i8"),
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


def send_rank(qos: QoS, deadline_at: Instant | None, *, unpaid: bool) -> int:
    """Which batches are sent first, wherever they stand in the queue; equal ranks keep its order.

    >>> send_rank(QoS.AFAP, None, unpaid=False), send_rank(QoS.SHORT_DEADLINE, Instant(9.0), unpaid=False)
    (0, 1)
    >>> send_rank(QoS.THROUGHPUT, None, unpaid=False), send_rank(QoS.AFAP, None, unpaid=True)
    (2, 3)
    """
    if unpaid:
        return 3
    if qos is QoS.AFAP:
        return 0
    return 1 if deadline_at is not None else 2


class CountedAs(IntEnum):
    """Which of the sums of its (host, app version) hold an instance."""

    NOTHING = 0
    VALID = 1
    ERROR = 2
    TIMED_OUT = 3


def counted_as(state: InstanceState, *, has_sample: bool) -> CountedAs:
    """An aborted instance that left a turnaround sample was given up at its due date: a time-out."""
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
    """An active batch, and who could compute for it.

    `delay_bound_s` is the greatest of its classes'. `median_flop_per_s` is of the active hosts' processors, NaN while
    there are none; `active_processors` is how many of these are available on average. `ahead` unsent instances of the
    app and `ahead_of_others` of other apps are sent before its own (`send_rank`), and a limit holds it if `held`; the
    two are 0 where something of it was sent and nothing holds it.
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
    held: bool = False


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch somebody may submit: what it asks of its app's hosts.

    `delay_bound_s` and `quorum` are the greatest of its jobs'; `jobs_of_flop` is how many jobs there are of each size.
    """

    app_id: AppId
    qos: QoS
    delay_bound_s: Seconds
    quorum: int
    jobs_of_flop: Mapping[Flop, int]
    deadline_at: Instant | None = None

    @property
    def jobs_total(self) -> int:
        return sum(self.jobs_of_flop.values())


Table = TypeVar("Table")


@dataclass(frozen=True, slots=True)
class BatchTables(Generic[Table]):
    """A batch in tables.

    `havs` has the row of each (host, app version) in `instances` or `sent`, zeros where none is stored; `others` a
    sample of the app's rows at large, each of which stands for `others_weight` before any were left out; so each of
    `sent` for `sent_weight`.
    """

    terms: BatchTerms
    jobs: Table  # JOB_FIELDS
    instances: Table  # INSTANCE_FIELDS, of the batch, not cancelled
    havs: Table  # FORECAST_HAV_FIELDS
    others: Table  # SAMPLED_HAV_FIELDS
    others_weight: float
    sent: Table  # SENT_FIELDS, of the app's other batches
    sent_weight: float


@dataclass(frozen=True, slots=True)
class AppTables(Generic[Table]):
    """What a new batch of an app would meet: the tables of BatchTables that are not the batch's own."""

    active_hosts: int
    median_flop_per_s: float
    active_processors: float
    havs: Table  # FORECAST_HAV_FIELDS, of those in `sent`
    others: Table  # SAMPLED_HAV_FIELDS
    others_weight: float
    sent: Table  # SENT_FIELDS, of all the app's batches
    sent_weight: float
