"""Forecasts of a batch's completion as they are kept and shown, and how good they were. Pure values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from domain.batches import Batch
from domain.settings import EstimatorSettings
from domain.units import DAY_S, HOUR_S, AppId, BatchId, HostId, Instant, Seconds

THIN_AFTER_S = DAY_S  # a forecast of an active batch is kept for this long at least,
PART_S = Seconds(6 * HOUR_S)  # and then the changes, the checkpoints and the first in each of these
FAR_BOUNDS = 10.0  # delay bounds ahead that are no forecast any more
REMAINING_FRACTION = 0.01  # of the time that was left are validations gathered
ENDED_PARTS = 100  # of an ended batch's life, if those are longer


class Trigger(StrEnum):
    """Why a batch was forecast."""

    SUBMISSION = "submission"  # it never was before
    VALIDATION = "validation"  # jobs of it are over that were not when it was forecast last
    TIMER = "timer"
    MANUAL = "manual"  # somebody asked for it


class Method(StrEnum):
    """What the forecast rests on, best first."""

    COMPLETE = "complete"  # nothing is open
    WARM = "warm"  # sums of the app's other work on these hosts
    COLD = "cold"  # a new app: this batch's own replies and silences
    APRIORI = "a_priori"  # what the jobs ask for; nothing came back yet
    FALLBACK = "fallback"  # the model gave no answer


class Change(StrEnum):
    """What became of the published completion time."""

    FIRST = "first"
    HELD = "held"
    MOVED = "moved"
    PASSED = "passed"  # the old one lay in the past


class HoldKind(StrEnum):
    """What a batch can wait for."""

    NOT_SENT = "not_sent"
    IN_PROGRESS = "in_progress"
    OVERDUE = "overdue"  # out for longer than three replies in four from that host take
    QUORUM = "quorum"  # out as well, to agree with a result that is there
    RETRIES = "retries"  # a retry to be sent


@dataclass(frozen=True, slots=True)
class ForecastHold:
    """One kind of what holds the batch.

    `doubt_fraction` is its part of the doubt that the batch is complete at q90: its sum of -ln H over
    the sum of all. `host_ids` are the hosts with most of it, at most five.
    """

    kind: HoldKind
    slots: int
    doubt_fraction: float
    host_ids: tuple[HostId, ...]
    because: str


@dataclass(frozen=True, slots=True)
class Terms:
    """The fitted quantities a forecast rests on."""

    jobs_open: int
    jobs_with_success: int  # open all the same: their quorum lacks another
    sending_s: Seconds  # until the last first instance is sent, at the present rate
    loss_fraction: float  # of instances that never come back
    error_fraction: float  # of replies
    retries_expected: float  # of the instances out now, by their time-outs
    median_turnaround_s: Seconds  # of a first instance of this batch
    shift: float  # ln of how much longer this batch's jobs take than the app's others


@dataclass(frozen=True, slots=True)
class ForecastRecord:
    """A forecast as it was made: q10, q50, q90, what it rests on, and what became of the published C(B).

    `completion_at` is C(B) from then on and `because` why it changed or was held. `method_because` says what the
    quantiles rest on, or what the model failed at. `checkpoint_fraction` (0.1, 0.5, 0.9): this is the first forecast
    with so many of the jobs over, and will be scored. `at_risk`: why a short deadline will hardly be kept; `flag`: why
    an operator should look at the batch; None where all is well. `terms` and `holds` are dropped when a batch ends.
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
    at_risk: str | None = None
    flag: str | None = None
    terms: Terms | None = None
    holds: tuple[ForecastHold, ...] = ()


@dataclass(frozen=True, slots=True)
class ForecastPoint:
    """A forecast as a chart has it: what it said when so many of the jobs were over."""

    made_at: Instant
    q50_at: Instant
    q90_at: Instant
    method: Method
    over_fraction: float


class ForecastState(StrEnum):
    """Whether a batch has a forecast that people are shown, or why not."""

    SHOWN = "shown"
    NOT_YET = "not_yet"  # it was never forecast
    FIRST_RESULTS = "first_results"  # nothing is known of the app's turnarounds before the first results are back
    FAR = "far"  # q90 is more than FAR_BOUNDS delay bounds ahead
    FAILED = "failed"  # the model gave no answer
    ENDED = "ended"


def forecast_state(method: Method, ahead_s: float, delay_bound_s: Seconds) -> ForecastState:
    """Whether a forecast whose q90 is `ahead_s` ahead is shown.

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
    """Whether the q50 and q90 of a kept forecast are shown to people."""
    return forecast_state(record.method, record.q90_at - record.made_at, delay_bound_s)


def batch_state(batch: Batch, last: ForecastRecord | None) -> ForecastState:
    """The same of a batch with its last forecast, if there is one: its q50 is published only where it is shown."""
    if batch.ended_at is not None:
        return ForecastState.ENDED
    if last is None:
        return ForecastState.NOT_YET
    ahead_s = math.inf if batch.completion_q50_at is None else 0.0
    return forecast_state(last.method, ahead_s, Seconds(1.0))


@dataclass(frozen=True, slots=True)
class ForecastAge:
    """When an active batch was forecast last, if ever, and how many of its jobs are over since.

    `completion_at` is C(B) as it is published.
    """

    batch_id: BatchId
    made_at: Instant | None
    completion_at: Instant | None
    jobs_over_then: int
    jobs_over: int  # validated or failed

    @property
    def dirty(self) -> bool:
        return self.jobs_over != self.jobs_over_then

    def wait_s(self, settings: EstimatorSettings) -> Seconds:
        """How long validations are gathered at most after the last forecast, before they make another.

        max(`pause_s`, 1 % of the time that was left), but at most `timer_s`.

        >>> ForecastAge(BatchId(1), Instant(1000.0), Instant(21000.0), 4, 5).wait_s(EstimatorSettings())
        200.0
        """
        left_s = (
            self.completion_at - self.made_at if self.completion_at is not None and self.made_at is not None else 0.0
        )
        return Seconds(min(settings.timer_s, max(settings.pause_s, REMAINING_FRACTION * left_s)))


@dataclass(frozen=True, slots=True)
class ForecastStanding:
    """An active batch as a forecast of it begins: itself, its last forecast's age, and its app's spread.

    `delay_bound_s` is the greatest of its classes'; `least_spare_instances` the least number of instances a job of one
    may have beyond its quorum; `checkpoint_fraction` the last checkpoint that a forecast of the model is kept of.
    """

    batch: Batch
    age: ForecastAge
    delay_bound_s: Seconds
    least_spare_instances: int
    spread: float
    checkpoint_fraction: float | None = None


@dataclass(frozen=True, slots=True)
class KeptForecast:
    """A forecast to be scored, with the `spread` it was made at."""

    batch_id: BatchId
    progress_fraction: float
    made_at: Instant
    q10_at: Instant
    q50_at: Instant
    q90_at: Instant
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class EndedBatch:
    """A batch that ended since it was forecast last, with its checkpoints' forecasts that the model made."""

    batch: Batch
    delay_bound_s: Seconds
    kept: tuple[KeptForecast, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """A kept forecast against the end of its batch.

    `error_fraction` is (q50 - end) / makespan, `remaining_error_fraction` (q50 - end) / what was left;
    `pinball` the mean loss of the three quantiles in delay bounds. `needed_spread` is the spread at
    which q90 would have been the end exactly.
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
    """An app's forecasts: shares of ends below each quantile, median errors, mean pinball loss."""

    batches: int
    coverage_q10: float
    coverage_q50: float
    coverage_q90: float
    median_error_fraction: float  # without sign
    median_remaining_error_fraction: float  # without sign
    bias_fraction: float
    pinball: float


@dataclass(frozen=True, slots=True)
class AppAccuracy:
    """How good an app's forecasts were as of `scored_at`, and the spread of the next ones, with its reason."""

    app_id: AppId
    scored_at: Instant
    accuracy: Accuracy
    spread: float
    spread_because: str


@dataclass(frozen=True, slots=True)
class ForecastHealth:
    """How forecasting goes for one app: what metrics tell of it.

    Of its active batches `never_forecast` have none yet; the last forecasts of the others were made between `oldest_at`
    and `latest_at` (None: there are no others). `accuracy` None: no batch was scored yet.
    """

    app_id: AppId
    app_name: str
    active_batches: int
    never_forecast: int
    oldest_at: Instant | None
    latest_at: Instant | None
    accuracy: AppAccuracy | None


def ended_part_s(batch: Batch) -> Seconds:
    """Of how many seconds each an ended batch keeps a forecast that changed nothing: about 100 in all."""
    lived_s = 0.0 if batch.ended_at is None else batch.ended_at - batch.created_at
    return Seconds(max(PART_S, lived_s / ENDED_PARTS))
