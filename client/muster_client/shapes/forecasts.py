"""Forecasts, previews and their accuracy."""

from __future__ import annotations

from typing import TypedDict


class TermsShown(TypedDict):
    """The terms of a forecast. `sending_s` is the time until the last first instance is sent: at the batch's own rate
    or, with `assumed_rate`, after the wait for its turn at the app's usual rate. `retries_expected` is the number of
    instances in progress that are expected to fail or time out; jobs with another instance in progress do not count.
    1 % of the results take more than `slow_turnaround_s`; an error is reported after `error_turnaround_s` on average.
    Both are 0 if unknown. `at_once_s` is the time until q50 if hosts took the batch's jobs at once, because they cannot
    run the work before it; 0 if that is little sooner than q50, or 15 minutes after its submission or move.
    """

    jobs_open: int
    jobs_with_success: int
    sending_s: float
    loss_fraction: float
    error_fraction: float
    retries_expected: float
    median_turnaround_s: float
    slow_turnaround_s: float
    error_turnaround_s: float
    shift: float
    assumed_rate: bool
    at_once_s: float


class HoldShown(TypedDict):
    """A cause of a batch's delay, with its share of the probability that the batch is incomplete at q90."""

    kind: str
    slots: int
    doubt_fraction: float
    host_ids: list[int]
    because: str


class RiskShown(TypedDict):
    """A deadline that an active batch has missed or may miss. `probability` that it ends after the deadline: above
    0.1, and 1 once the deadline has passed. `late_by_s`: from the deadline to the latest end (q90), or to now once it
    has passed.
    """

    deadline_at: float
    late_by_s: float
    probability: float
    missed: bool


class ForecastShown(TypedDict):
    """A forecast with its terms. `completion_at` is the time published with it, `because` the reason for it."""

    made_at: float
    trigger: str
    q10_at: float | None
    q50_at: float | None
    q90_at: float | None
    method: str
    method_because: str
    spread: float
    completion_at: float
    change: str
    because: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    flag: str | None
    terms: TermsShown | None
    holds: list[HoldShown]


class BatchAhead(TypedDict):
    """A batch whose `unsent` instances go before those of another batch."""

    batch_id: int
    name: str
    unsent: int


class PreviewShown(TypedDict):
    """The forecast for a batch that has not been submitted. `start` says when its jobs would be sent: requests take
    jobs of `batches_ahead` other batches first, with `unsent_ahead` instances; `first_ahead`: the first three of these.
    `unable`: why none of the last 50 hosts can run its jobs, while the forecast supposes that hosts can; empty if one
    can, and for a batch that was submitted.
    """

    computed_at: float
    jobs_total: int
    deadline_at: float | None
    q10_at: float | None
    q50_at: float | None
    q90_at: float | None
    completion_at: float
    forecast_state: str
    method: str
    method_because: str
    because: str
    at_risk: RiskShown | None
    unsent_ahead: int
    batches_ahead: int
    first_ahead: list[BatchAhead]
    start: str
    unable: str
    terms: TermsShown | None
    holds: list[HoldShown]


class AccuracyShown(TypedDict):
    """The accuracy of an app's forecasts: the share of batches complete by each quantile, and errors as fractions of
    time.
    """

    scored_at: float
    batches: int
    coverage_q10: float
    coverage_q50: float
    coverage_q90: float
    median_error_fraction: float
    median_remaining_error_fraction: float
    bias_fraction: float
    pinball: float
    spread: float
    spread_because: str


class ForecastsShown(TypedDict):
    """A batch's published forecasts in chronological order, and the accuracy of its app's forecasts. `provisional`: the
    expected end rests on few jobs, because the batch was moved or resumed shortly before the last forecast.
    """

    computed_at: float
    batch_id: int
    name: str
    app: str
    qos: str
    state: str
    created_at: float
    ended_at: float | None
    deadline_at: float | None
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    completion_at: float | None
    completion_q50_at: float | None
    completion_q90_at: float | None
    provisional: bool
    forecast_state: str
    at_risk: RiskShown | None
    forecasts: list[ForecastShown]
    accuracy: AccuracyShown | None


class AppForecastsShown(TypedDict):
    """The health of an app's forecasts: number of active batches, ages of their latest forecasts, and accuracy."""

    app: str
    active_batches: int
    never_forecast: int
    oldest_age_s: float | None
    latest_age_s: float | None
    accuracy: AccuracyShown | None


class ForecastHealthShown(TypedDict):
    apps: list[AppForecastsShown]


class ProgressShown(TypedDict):
    """A batch's progress, as sent by its event stream."""

    batch_id: int
    state: str
    jobs_total: int
    jobs_validated: int
    jobs_failed: int
    unsent: int
    in_progress: int
    retries: int
    sent: int
    reported: int
    deadlines_missed: int
    completion_at: float | None
    completion_q50_at: float | None
    completion_q90_at: float | None
    ended_at: float | None
