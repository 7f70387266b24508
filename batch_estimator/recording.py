"""What is kept and published of a forecast, and how loud is it said? Pure."""

from __future__ import annotations

import numpy as np

from batch_estimator.forecast import Forecast
from batch_estimator.publish import at_risk, operator_flag, publication
from batch_estimator.selfcheck import checkpoint_passed
from batch_estimator.snapshot import Snapshot
from domain.batches import QoS
from domain.forecasts import ForecastRecord, ForecastStanding, Method, Trigger
from domain.units import Instant

WITHOUT_EVIDENCE = (Method.FALLBACK, Method.APRIORI)


def recorded(forecast: Forecast, standing: ForecastStanding, trigger: Trigger, *, most_spent: int) -> ForecastRecord:
    """The forecast with what becomes of the published C(B), its warnings, and whether it will be scored.

    `most_spent` is of the open job that has had the most instances beyond what it needs. The floor is for long
    deadlines, risk for short ones.
    """
    batch, counts = standing.batch, standing.batch.counts
    published = publication(
        forecast,
        previous_at=batch.completion_at,
        long_deadline=batch.qos is QoS.LONG_DEADLINE,
        delay_bound_s=standing.delay_bound_s,
        last_first_dispatch_at=batch.last_first_dispatch_at,
    )
    return ForecastRecord(
        batch.batch_id,
        forecast.now,
        trigger,
        forecast.q10_at,
        forecast.q50_at,
        forecast.q90_at,
        forecast.method,
        forecast.because,
        standing.spread,
        published.completion_at,
        published.change,
        published.because,
        counts.jobs_total,
        counts.jobs_validated,
        counts.jobs_failed,
        checkpoint_fraction=_checkpoint(forecast, standing),
        at_risk=_risk(forecast, batch.deadline_at),
        flag=_flag(forecast, standing, most_spent),
        terms=forecast.terms,
        holds=forecast.holds,
    )


def most_spent_of(snapshot: Snapshot) -> int:
    """Instances beyond the successes it needs of the open job that has the most; 0 when none is open.

    Cancelled ones do not count: they are not in the snapshot.
    """
    jobs = snapshot.jobs
    spent = np.bincount(snapshot.instances.job, minlength=len(jobs.is_open)) - jobs.needed
    return int(spent[jobs.is_open].max(initial=0))


def _checkpoint(forecast: Forecast, standing: ForecastStanding) -> float | None:
    """What stands in for a forecast is not scored: the checkpoint is left for the model's next one."""
    if forecast.method is Method.FALLBACK:
        return None
    jobs_total = standing.batch.counts.jobs_total
    return checkpoint_passed(standing.checkpoint_fraction, standing.age.jobs_over, jobs_total=jobs_total)


def _risk(forecast: Forecast, deadline_at: Instant | None) -> str | None:
    """Without evidence nothing is said of a deadline."""
    return None if deadline_at is None or forecast.method in WITHOUT_EVIDENCE else at_risk(forecast, deadline_at)


def _flag(forecast: Forecast, standing: ForecastStanding, most_spent: int) -> str | None:
    if forecast.method is Method.FALLBACK:
        return f"no forecast: {forecast.because}"
    spent_fraction = most_spent / max(1, standing.least_spare_instances)
    return operator_flag(forecast, delay_bound_s=standing.delay_bound_s, most_spent_fraction=spent_fraction)
