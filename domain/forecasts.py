"""Stored forecasts of batch completion times, and their accuracy. Pure values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from statistics import NormalDist
from typing import Protocol

from domain.batches import Batch
from domain.forecasting import MOVED_S, is_moving
from domain.settings import EstimatorSettings
from domain.units import DAY_S, HOUR_S, MINUTE_S, AppId, BatchId, HostId, Instant, Seconds, later

THIN_AFTER_S = DAY_S  # all forecasts of an active batch are kept for this long;
PART_S = Seconds(6 * HOUR_S)  # after that, changes, checkpoints and the first forecast in each interval of this length
FAR_BOUNDS = 10.0  # forecasts this many delay bounds ahead are not shown
COLLECTED_FRACTION = 0.01  # of the remaining time, or of all jobs: for how long ended jobs are collected
FIRST_JOBS = 64  # while fewer jobs have ended, each doubling of their number is forecast at once
ENDED_PARTS = 100  # an ended batch keeps one forecast per this fraction of its life, if that is longer than PART_S


class Trigger(StrEnum):
    """Why a forecast was made."""

    SUBMISSION = "submission"  # the batch has no forecast yet
    VALIDATION = "validation"  # jobs have finished since the last forecast
    TIMER = "timer"
    MANUAL = "manual"  # a user requested it


class Method(StrEnum):
    """How a forecast was computed, best method first."""

    COMPLETE = "complete"  # no open jobs
    WARM = "warm"  # from sums over the app's other work on these hosts
    COLD = "cold"  # new app: from this batch's own results and overdue instances
    APRIORI = "a_priori"  # from the jobs' requirements; no results yet
    FALLBACK = "fallback"  # the model gave no result


class Change(StrEnum):
    """How the published completion time changed."""

    FIRST = "first"
    HELD = "held"
    MOVED = "moved"
    PASSED = "passed"  # the old value was in the past


class HoldKind(StrEnum):
    """A reason why a batch has not completed."""

    NOT_SENT = "not_sent"
    IN_PROGRESS = "in_progress"
    OVERDUE = "overdue"  # in progress for longer than usual for that host, by its past results, not by the due date
    QUORUM = "quorum"  # in progress normally, to agree with a returned result
    RETRIES = "retries"  # a retry has not been sent yet


@dataclass(frozen=True, slots=True)
class ForecastHold:
    """One cause of delay for a batch.

    `doubt_fraction` is its share of the doubt that the batch completes by q90: its sum of -ln H divided by the sum over
    all causes. `host_ids` are the hosts that contribute most, at most five.
    """

    kind: HoldKind
    slots: int
    doubt_fraction: float
    host_ids: tuple[HostId, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Terms:
    """The fitted parameters of a forecast."""

    jobs_open: int
    jobs_with_success: int  # open jobs with a success whose quorum needs another one
    sending_s: Seconds  # until the last first instance is sent at the current rate
    loss_fraction: float  # fraction of instances that are never returned
    error_fraction: float  # fraction of returned instances with an error
    retries_expected: float  # in progress, without another one of their jobs, that do not succeed before their timeouts
    median_turnaround_s: Seconds  # of a first instance of this batch
    shift: float  # ln of the ratio of this batch's job durations to those of the app's other jobs
    slow_turnaround_s: Seconds = Seconds(0.0)  # exceeded by 1 % of the results; 0 if an older version made the forecast
    error_turnaround_s: Seconds = Seconds(0.0)  # mean time until an error is reported; 0 as above
    assumed_rate: bool = False  # sending_s is the wait for the batch's turn and the app's usual rate, not its own rate
    at_once_s: Seconds = Seconds(0.0)  # until q50 without the work before a new or moved batch; 0: little sooner
    provisional: bool = False  # the batch was moved or resumed less than PROVISIONAL_S before, and few jobs sent since


@dataclass(frozen=True, slots=True)
class ForecastRecord:
    """A stored forecast: q10, q50, q90, their basis, and the effect on the published C(B).

    `completion_at` is C(B) after this forecast, and `because` the reason why it changed or was kept. `method_because`
    explains the basis of the quantiles, or the model's failure. `checkpoint_fraction` (0.1, 0.5, 0.9): this was the
    first forecast with that fraction of jobs finished, and will be scored. `flag`: why an operator should check the
    batch, None if no check is needed. `terms` and `holds` are deleted when a batch ends. `moved_at`: when the batch was
    moved last, only of its latest forecast.
    """

    batch_id: BatchId
    made_at: Instant
    trigger: Trigger
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant
    method: Method
    method_because: str
    spread: float
    completion_at: Instant
    change: Change
    because: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    checkpoint_fraction: float | None = None
    flag: str | None = None
    terms: Terms | None = None
    holds: tuple[ForecastHold, ...] = ()
    moved_at: Instant | None = None


WITHOUT_EVIDENCE = (Method.FALLBACK, Method.APRIORI)  # methods whose quantiles rest on no result


class Quantiles(Protocol):
    """What a risk needs of a forecast."""

    @property
    def q10_at(self) -> Instant: ...
    @property
    def q50_at(self) -> Instant: ...
    @property
    def q90_at(self) -> Instant: ...
    @property
    def method(self) -> Method: ...


@dataclass(frozen=True, slots=True)
class DeadlineRisk:
    """A deadline that an active batch has missed or may miss.

    `probability` that the batch ends after the deadline: above 0.1 (less is no risk), and 1 once it has passed.
    `late_by_s`: from the deadline to the latest end (q90); after the deadline, the time since then.
    """

    deadline_at: Instant
    late_by_s: Seconds
    probability: float
    missed: bool


def risk_of(deadline_at: Instant | None, last: Quantiles | None, now: Instant) -> DeadlineRisk | None:
    """Return the risk of a deadline of an active batch, or None. A forecast without evidence shows no risk.

    The probability is interpolated linearly between the quantiles. A deadline before q10 is met with the probability
    of the lognormal law through q10 and q50 of the remaining time (docs/formulas.md).

    >>> from types import SimpleNamespace
    >>> late = SimpleNamespace(q10_at=10.0, q50_at=20.0, q90_at=40.0, method=Method.WARM)
    >>> risk_of(Instant(30.0), late, Instant(0.0))
    DeadlineRisk(deadline_at=30.0, late_by_s=10.0, probability=0.3, missed=False)
    >>> [round(risk_of(Instant(at), late, Instant(0.0)).probability, 4) for at in (1.0, 5.0, 8.0, 10.0)]
    [1.0, 0.9948, 0.9549, 0.9]
    >>> risk_of(Instant(30.0), late, Instant(31.0))
    DeadlineRisk(deadline_at=30.0, late_by_s=1.0, probability=1.0, missed=True)
    >>> risk_of(Instant(40.0), late, Instant(0.0))
    """
    if deadline_at is None:
        return None
    if now >= deadline_at:
        return DeadlineRisk(deadline_at, Seconds(now - deadline_at), 1.0, missed=True)
    if last is None or last.method in WITHOUT_EVIDENCE or last.q90_at <= deadline_at:
        return None
    in_time = _before_q10(deadline_at - now, last.q10_at - now, last.q50_at - now) if deadline_at < last.q10_at else 0.1
    for (low_at, low), (high_at, high) in pairwise(((last.q10_at, 0.1), (last.q50_at, 0.5), (last.q90_at, 0.9))):
        if low_at <= deadline_at < high_at:
            in_time = low + (high - low) * (deadline_at - low_at) / (high_at - low_at)
    return DeadlineRisk(deadline_at, Seconds(last.q90_at - deadline_at), round(1.0 - in_time, 4), missed=False)


Z10 = NormalDist().inv_cdf(0.1)


def _before_q10(within_s: float, q10_s: float, q50_s: float) -> float:
    """Return P(complete within `within_s`), which is less than q10: Phi(z10 ln(q50 / t) / ln(q50 / q10)).

    >>> round(_before_q10(10.0, 10.0, 20.0), 4), _before_q10(600.0, 46800.0, 46800.0)
    (0.1, 0.0)
    """
    spread = math.log(q50_s / q10_s)
    return NormalDist().cdf(Z10 * math.log(q50_s / within_s) / spread) if spread > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """A point of the forecast chart: the forecast at a given number of finished jobs."""

    made_at: Instant
    q50_at: Instant
    q90_at: Instant
    method: Method
    over_fraction: float


class ForecastState(StrEnum):
    """Whether a batch's forecast is shown, and if not, why."""

    SHOWN = "shown"
    NOT_YET = "not_yet"  # no forecast yet
    FIRST_RESULTS = "first_results"  # the app's turnarounds are unknown before the first results
    FAR = "far"  # q90 is at least FAR_BOUNDS delay bounds ahead
    FAILED = "failed"  # the model gave no result
    ENDED = "ended"
    UNSCHEDULABLE = "unschedulable"  # no active host can run some of its jobs
    PAUSED = "paused"  # the batch, its app or queue, or the project is paused
    BLOCKED = "blocked"  # a limit blocks the batch, and it has no forecast that rests on results
    JOBS_FAILED = "jobs_failed"  # every job that has ended failed, and no forecast rests on results
    MOVED = "moved"  # the latest forecast is of before a move, end of a pause or retry, or counts sending that ended


# States in which the latest forecast, if there is one, says nothing about the batch.
WITHOUT_FORECAST = frozenset(
    {ForecastState.NOT_YET, ForecastState.UNSCHEDULABLE, ForecastState.BLOCKED, ForecastState.JOBS_FAILED}
)


def forecast_state(method: Method, ahead_s: float, delay_bound_s: Seconds) -> ForecastState:
    """Return the state of a forecast whose q90 is `ahead_s` seconds ahead, which decides whether it is shown.

    >>> forecast_state(Method.WARM, 86400.0, Seconds(86400.0)).value
    'shown'
    >>> forecast_state(Method.APRIORI, 86400.0, Seconds(86400.0)).value
    'first_results'
    """
    if method is Method.FALLBACK:
        return ForecastState.FAILED
    if method is Method.APRIORI:
        return ForecastState.FIRST_RESULTS
    return ForecastState.FAR if ahead_s > FAR_BOUNDS * delay_bound_s else ForecastState.SHOWN


def state_of(record: ForecastRecord | ForecastPoint, delay_bound_s: Seconds) -> ForecastState:
    """Return the state of a stored forecast, which decides whether its q50 and q90 are shown."""
    return forecast_state(record.method, record.q90_at - record.made_at, delay_bound_s)


SENT_S = 10 * MINUTE_S  # of sending in a forecast: it is not shown after all was sent sooner


def batch_state(batch: Batch, last: ForecastRecord | None) -> ForecastState:
    """Return the state of a batch's latest forecast, if any. Its q50 is published only if the forecast is shown.

    Before a forecast rests on results, the state is what keeps the batch from having any.
    """
    if batch.ended_at is not None:
        return ForecastState.ENDED
    ahead_s, counts = math.inf if batch.completion_q50_at is None else 0.0, batch.counts
    state = ForecastState.NOT_YET if last is None else forecast_state(last.method, ahead_s, Seconds(1.0))
    if state not in (ForecastState.NOT_YET, ForecastState.FIRST_RESULTS):
        if last is None:
            return state
        sending_s = 0.0 if last.terms is None else last.terms.sending_s
        is_before = (counts.unsent > 0 or sending_s > 0.0) and is_moving(last.moved_at, last.made_at)
        is_sent = counts.unsent == 0 and sending_s >= SENT_S
        is_retried = counts.jobs_failed < last.jobs_failed
        return ForecastState.MOVED if is_before or is_sent or is_retried else state
    if batch.hold is not None and counts.unsent:
        return ForecastState.BLOCKED
    return ForecastState.JOBS_FAILED if counts.jobs_failed and not counts.jobs_validated else state


def is_provisional(batch: Batch, last: ForecastRecord | None) -> bool:
    """Return whether a batch's latest forecast rests on few jobs sent since a move, and others are still unsent."""
    return last is not None and last.terms is not None and last.terms.provisional and batch.counts.unsent > 0


@dataclass(frozen=True, slots=True)
class ForecastAge:
    """When an active batch was last forecast, if ever, and how many jobs have finished since.

    `completion_at` is the published C(B), `q50_at` the expected end, None if it is not shown. The batch got its place
    at `moved_at`, None if it was never moved. `is_sent`: the last forecast counted time for sending, and since
    then every instance was sent.
    """

    batch_id: BatchId
    made_at: Instant | None
    completion_at: Instant | None
    jobs_over_then: int
    jobs_over: int  # validated or failed
    jobs_total: int
    moved_at: Instant | None = None
    q50_at: Instant | None = None
    is_sent: bool = False

    @property
    def is_superseded(self) -> bool:
        """Return whether the last forecast does not count the batch's last move."""
        return self.made_at is not None and is_moving(self.moved_at, self.made_at)

    @property
    def dirty(self) -> bool:
        return self.jobs_over != self.jobs_over_then

    @property
    def jobs_to_come(self) -> int:
        """Return how many more jobs must end for a forecast after `pause_s`: 1 % of all since the last one."""
        return max(1, math.ceil(COLLECTED_FRACTION * self.jobs_total)) - (self.jobs_over - self.jobs_over_then)

    def wait_s(self, settings: EstimatorSettings) -> Seconds:
        """Return the maximum time after the last forecast during which validations are collected before the next one.

        `pause_s` once 1 % of the jobs have ended, before that max(`pause_s`, 1 % of the remaining time), at most
        `timer_s`. None for the first results, which change a forecast based on estimates alone from days to minutes.

        >>> then = Instant(1000.0), Instant(21000.0)
        >>> [ForecastAge(1, *then, *over, 150).wait_s(EstimatorSettings()) for over in ((4, 5), (4, 6), (0, 1))]
        [200.0, 60.0, 0.0]
        """
        if self.jobs_over_then < FIRST_JOBS and self.jobs_over >= max(1, 2 * self.jobs_over_then):
            return Seconds(0.0)
        if self.jobs_to_come <= 0:
            return Seconds(min(settings.timer_s, settings.pause_s))
        left_s = (
            self.completion_at - self.made_at if self.completion_at is not None and self.made_at is not None else 0.0
        )
        return Seconds(min(settings.timer_s, max(settings.pause_s, COLLECTED_FRACTION * left_s)))

    def due_at(self, now: Instant, settings: EstimatorSettings) -> Instant:
        """Return when a forecast is due: immediately if there is none, otherwise after validations or by the timer.

        After a move, the next one is due `MOVED_S` after it took effect, and none before. A batch that has not ended
        when expected, whose last instance was sent or whose failed jobs are retried is due at once, but not within
        `pause_s`. No batch waits longer than `timer_s`, 15 minutes, however often it is moved.

        >>> after_20_000_s = ForecastAge(1, Instant(1000.0), Instant(21000.0), 4, jobs_over=5, jobs_total=150)
        >>> after_20_000_s.due_at(Instant(1100.0), EstimatorSettings())
        1200.0
        >>> nothing_new = ForecastAge(1, Instant(1000.0), Instant(21000.0), 5, jobs_over=5, jobs_total=150)
        >>> nothing_new.due_at(Instant(1100.0), EstimatorSettings())
        1900.0
        >>> retried = ForecastAge(1, Instant(1000.0), Instant(21000.0), 5, jobs_over=4, jobs_total=150)
        >>> retried.due_at(Instant(1100.0), EstimatorSettings())
        1060.0
        >>> moved = ForecastAge(1, Instant(1000.0), Instant(21000.0), 5, 5, 150, moved_at=Instant(1090.0))
        >>> moved.due_at(Instant(1100.0), EstimatorSettings())
        1120.0
        """
        if self.made_at is None:
            return now
        by_at = later(self.made_at, settings.timer_s)
        if self.moved_at is not None and self.is_superseded:
            return min(by_at, later(self.moved_at, MOVED_S))
        if self.q50_at is not None:
            by_at = min(by_at, max(self.q50_at, later(self.made_at, settings.pause_s)))
        if self.is_sent or self.jobs_over < self.jobs_over_then:  # fewer are over: failed jobs are retried
            by_at = min(by_at, later(self.made_at, settings.pause_s))
        return min(by_at, later(self.made_at, self.wait_s(settings))) if self.dirty else by_at


@dataclass(frozen=True, slots=True)
class ForecastStanding:
    """An active batch when its forecast starts, with the age of its last forecast and its app's spread.

    `delay_bound_s` is the maximum over its classes. `least_spare_instances` is the minimum over its classes of the
    number of instances a job may have beyond its quorum. `checkpoint_fraction` is the latest checkpoint with a stored
    forecast by the model.
    """

    batch: Batch
    age: ForecastAge
    delay_bound_s: Seconds
    least_spare_instances: int
    spread: float
    checkpoint_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class KeptForecast:
    """A forecast that will be scored, and the `spread` with which it was made."""

    batch_id: BatchId
    progress_fraction: float
    made_at: Instant
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """A batch that ended after its last forecast, with the model's forecasts at the batch's checkpoints."""

    batch: Batch
    delay_bound_s: Seconds
    kept: tuple[KeptForecast, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """A stored forecast compared with the actual end of its batch.

    `error_fraction` is (q50 - end) / makespan, `remaining_error_fraction` (q50 - end) / remaining time. `pinball` is
    the mean pinball loss of the three quantiles, in delay bounds. `needed_spread` is the spread at which q90 would have
    equalled the actual end.
    """

    batch_id: BatchId
    progress_fraction: float
    ended_at: Instant
    below_q10: bool
    below_q50: bool
    below_q90: bool
    error_fraction: float
    remaining_error_fraction: float
    pinball: float
    needed_spread: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy of an app's forecasts: fractions of ends below each quantile, median errors, mean pinball loss."""

    batches: int
    coverage_q10: float
    coverage_q50: float
    coverage_q90: float
    median_error_fraction: float  # absolute value
    median_remaining_error_fraction: float  # absolute value
    bias_fraction: float
    pinball: float


@dataclass(frozen=True, slots=True)
class AppAccuracy:
    """The accuracy of an app's forecasts as of `scored_at`, and the spread for the next ones with its reason."""

    app_id: AppId
    scored_at: Instant
    accuracy: Accuracy
    spread: float
    spread_because: str


@dataclass(frozen=True, slots=True)
class ForecastHealth:
    """The state of an app's forecasts, for metrics.

    `never_forecast` active batches have no forecast yet. The latest forecasts of the rest were made between `oldest_at`
    and `latest_at` (None if there are none). `accuracy` is None before the first batch is scored.
    """

    app_id: AppId
    app_name: str
    active_batches: int
    never_forecast: int
    oldest_at: Instant | None
    latest_at: Instant | None
    accuracy: AppAccuracy | None


def ended_part_s(batch: Batch) -> Seconds:
    """Return the interval in seconds at which an ended batch's unchanged forecasts are kept, about 100 in total."""
    lived_s = 0.0 if batch.ended_at is None else batch.ended_at - batch.created_at
    return Seconds(max(PART_S, lived_s / ENDED_PARTS))
