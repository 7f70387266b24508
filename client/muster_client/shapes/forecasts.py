"""Forecasts, previews and how good they are, as the API tells of them."""

from __future__ import annotations

from typing import TypedDict


class TermsShown(TypedDict):
    """What a forecast rests on. `sending_s`: until the last first instance is sent, at the present rate."""

    jobs_open: int
    jobs_with_success: int
    sending_s: float
    loss_fraction: float
    error_fraction: float
    retries_expected: float
    median_turnaround_s: float
    shift: float


class HoldShown(TypedDict):
    """One kind of what a batch waits for, with its part of the doubt that the batch is complete at q90."""

    kind: str
    slots: int
    doubt_fraction: float
    host_ids: list[int]
    because: str


class ForecastShown(TypedDict):
    """A forecast with what it rests on; `completion_at` is what was published then, and `because` why."""

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
    at_risk: str | None
    flag: str | None
    terms: TermsShown | None
    holds: list[HoldShown]


class PreviewShown(TypedDict):
    """What would be published of a batch that is not submitted yet."""

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
    at_risk: str | None
    terms: TermsShown | None
    holds: list[HoldShown]


class AccuracyShown(TypedDict):
    """How good an app's forecasts were: shares of ends below each quantile, errors as fractions of the time."""

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
    """What is published of a batch, its forecasts in order of time, and how good its app's are."""

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
    forecast_state: str
    at_risk: str | None
    forecasts: list[ForecastShown]
    accuracy: AccuracyShown | None


class AppForecastsShown(TypedDict):
    """How forecasting goes for an app: its active batches, the ages of their last forecasts, and how good they were."""

    app: str
    active_batches: int
    never_forecast: int
    oldest_age_s: float | None
    latest_age_s: float | None
    accuracy: AccuracyShown | None


class ForecastHealthShown(TypedDict):
    apps: list[AppForecastsShown]


class ProgressShown(TypedDict):
    """How far a batch is: what a stream of its events tells each time."""

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
