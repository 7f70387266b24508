"""Converts the acceptance benchmark's snapshots for the estimator, and converts the estimator's forecasts back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from batch_estimator.estimate import estimate as estimate_batch
from batch_estimator.snapshot import BatchSnapshot, HavRows, InstanceRows, JobRows, SentRows
from domain.units import Instant, Seconds


def estimate(snapshot: Any, quantiles: Sequence[float]) -> list[float]:
    """Return the 10, 50 and 90 % quantiles as absolute times, ascending."""
    forecast = estimate_batch(converted(snapshot))
    at = {0.1: forecast.q10_at, 0.5: forecast.q50_at, 0.9: forecast.q90_at}
    return [at[share] for share in quantiles]


def converted(s: Any) -> BatchSnapshot:
    """Convert a snapshot column by column. The benchmark's states have the same numbers as `Standing`."""
    return BatchSnapshot(
        Instant(s.now),
        Instant(s.submit_time),
        Seconds(s.delay_bound),
        JobRows(
            s.job_fpops,
            s.job_state == 0,
            np.full(len(s.job_fpops), s.quorum),
            np.zeros(len(s.job_fpops), dtype=np.int64),
        ),
        InstanceRows(
            s.inst_job,
            s.inst_host,
            s.inst_av,
            s.inst_state,
            s.inst_created,
            s.inst_sent,
            s.inst_deadline,
            s.inst_recv,
        ),
        HavRows(
            s.hav_host,
            s.hav_av,
            s.hav_n,
            s.hav_slog,
            s.hav_sslog,
            s.hav_nerr,
            s.hav_ntimeout,
            s.hav_ndue,
            s.hav_last_rpc,
            np.ones(len(s.hav_host)),
        ),
        SentRows(s.rec_host, s.rec_av, s.rec_state, s.rec_sent, s.rec_recv, np.arange(len(s.rec_host))),
        s.pop_mlog_fpops,
        s.pop_active_hosts,
        s.pop_flops,
    )
