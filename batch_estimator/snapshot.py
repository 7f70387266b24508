"""Defines the estimator's input: a batch, its hosts, its app and the tail settings at one instant. Pure.

Columns are numpy arrays, one element per row; row order is undefined. Instants are seconds on one clock, NaN for events
that have not happened.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from domain.batches import QoS
from domain.errors import InvalidInputError
from domain.forecasting import NEVER_MOVED
from domain.settings import FeederSettings, LifecycleSettings
from domain.units import Instant, Seconds

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class InstanceStanding(IntEnum):
    """The state of an instance, as far as forecasts distinguish it."""

    UNSENT = 0  # created, not sent yet
    IN_PROGRESS = 1  # sent, no reply, not timed out
    SUCCESS = 2  # reported success; may still wait for its quorum
    ERROR = 3  # the host reported a failure
    TIMED_OUT = 4  # no reply by its timeout; a late reply would still count
    INVALID = 5  # reported success, but the result was wrong
    ABORTED = 6  # ended without a reply, by the server or the owner


@dataclass(frozen=True, slots=True, eq=False)
class JobRows:
    """The jobs of the batch. Other columns refer to a job by its position here."""

    fpops_flop: Floats
    is_open: Bools  # neither valid nor failed
    needed: Ints  # successes that must agree
    uncounted: Ints  # instances before the job's latest retry, which count towards no limit


@dataclass(frozen=True, slots=True, eq=False)
class InstanceRows:
    """All instances of the batch, except cancelled ones."""

    job: Ints  # position in the job columns
    host_id: Ints  # -1 while unsent
    app_version_id: Ints  # -1 while unsent
    standing: Ints  # InstanceStanding
    created_at: Floats
    sent_at: Floats
    timeout_at: Floats  # the timeout: due date plus grace period
    reported_at: Floats


@dataclass(frozen=True, slots=True, eq=False)
class HavRows:
    """Sums per (host, app version) over the app's work, excluding this batch.

    Contains each (host, app version) with an instance of the batch, with zeros if it has no other work, and a sample of
    the remaining ones. `weight` is the number of rows that a sampled row represents.
    """

    host_id: Ints
    app_version_id: Ints
    n_success: Ints
    sum_ln: Floats  # of ln(turnaround in seconds) over successes
    sum_ln_sq: Floats
    n_error: Ints
    n_timeout: Ints  # timed out without a reply so far
    n_due: Ints  # instances, finished or not, whose timeout has passed
    last_rpc_at: Floats  # the host's last contact
    weight: Floats


@dataclass(frozen=True, slots=True, eq=False)
class SentRows:
    """A sample of the app's other instances that were sent in the last 30 days."""

    host_id: Ints
    app_version_id: Ints
    standing: Ints
    sent_at: Floats
    reported_at: Floats
    page: Ints  # of the stored table: the rows of a page were sampled together


@dataclass(frozen=True, slots=True)
class AppQueue:
    """The queue ahead of the batch's unsent instances, after how many seconds these go before it, and whether a limit
    blocks them.
    """

    ahead: int = 0  # of the same app
    ahead_of_others: int = 0  # of other apps
    flop_of_others: float = 0.0  # what these need, 0 if unknown
    held: bool = False
    first_s: float = math.inf

    @property
    def is_behind(self) -> bool:
        """Return whether the batch waits for its turn behind other work."""
        return not self.held and self.ahead + self.ahead_of_others > 0


@dataclass(frozen=True, slots=True)
class Tail:
    """The conditions under which the last jobs of a batch are copied (lifecycle/tail.py).

    The tail begins once `open_jobs` jobs are open, or once `unsent` first instances are unsent (None: only the former).
    From then on, a job is copied when all its instances have been in progress for `late_factor` times the usual
    turnaround.
    """

    open_jobs: int
    unsent: float | None
    late_factor: float


@dataclass(frozen=True, slots=True, eq=False)
class BatchSnapshot:
    """The estimator's input about a batch at `now`. Raises InvalidInputError for inconsistent columns.

    `delay_bound_s` is a new instance's time from sending to timeout. `mean_ln_fpops` is the mean over the jobs behind
    `havs`, NaN if there are none. `median_flop_per_s` is per processor of an active host; `active_processors` weights
    each host by its on fraction. Each row of `sent` represents `sent_weight` instances, NaN if unknown. `tail` is None
    if no copies are made. Dispatches before `moved_at` do not show the sending rate at the batch's new place, but limit
    it: it is not lower if `moved_ahead` is True, and not higher if it is False (the batch was moved behind other work).
    `withdrawn`: the app's withdrawn versions.
    """

    now: Instant
    submitted_at: Instant
    delay_bound_s: Seconds
    jobs: JobRows
    instances: InstanceRows
    havs: HavRows
    sent: SentRows
    mean_ln_fpops: float
    active_hosts: int
    median_flop_per_s: float
    queue: AppQueue = AppQueue()
    sent_weight: float = float("nan")
    active_processors: float = float("nan")
    tail: Tail | None = None
    moved_at: Instant = NEVER_MOVED
    moved_ahead: bool | None = None
    withdrawn: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if not (np.isfinite(self.now) and np.isfinite(self.submitted_at)):
            raise InvalidInputError("now, submitted_at", "two instants", (self.now, self.submitted_at))
        if not (np.isfinite(self.delay_bound_s) and self.delay_bound_s > 0):
            raise InvalidInputError("delay_bound_s", "more than 0", self.delay_bound_s)
        for name in ("jobs", "instances", "havs", "sent"):
            _same_lengths(name, getattr(self, name))
        if len(self.jobs.needed) and int(self.jobs.needed.min()) < 1:
            raise InvalidInputError("jobs.needed", "at least 1", int(self.jobs.needed.min()))
        if len(self.instances.job) and int(self.instances.job.max()) >= len(self.jobs.is_open):
            raise InvalidInputError("instances.job", f"less than {len(self.jobs.is_open)}", self.instances.job.max())


def _same_lengths(name: str, rows: JobRows | InstanceRows | HavRows | SentRows) -> None:
    lengths = {column.name: len(getattr(rows, column.name)) for column in fields(rows)}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(name, "columns of equal length", lengths)


def tail_of(qos: QoS, jobs: int, *, feeder: FeederSettings, lifecycle: LifecycleSettings) -> Tail | None:
    """Return the tail settings for a batch with this number of jobs; None if copies are disabled.

    >>> tail_of(QoS.THROUGHPUT, 1000, feeder=FeederSettings(), lifecycle=LifecycleSettings(tail_fraction=0.1))
    Tail(open_jobs=100, unsent=None, late_factor=1.0)
    """
    if lifecycle.tail_overhead_fraction <= 0.0 or lifecycle.tail_late_factor <= 0.0:
        return None
    return Tail(
        open_jobs=max(math.ceil(lifecycle.tail_fraction * jobs), feeder.tail_jobs),
        unsent=lifecycle.tail_unsent_fraction * jobs if qos is QoS.AFAP else None,
        late_factor=lifecycle.tail_late_factor,
    )
