"""Small snapshots, built row by row; a test gives only the relevant values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from batch_estimator.snapshot import BatchSnapshot, HavRows, InstanceRows, JobRows, SentRows
from batch_estimator.snapshot import InstanceStanding as S
from domain.units import DAY_S, HOUR_S, Instant, Seconds

NOW = Instant(1_800_000_000.0)
BOUND_S = Seconds(7 * DAY_S)
SUBMITTED_AT = Instant(NOW - 2 * DAY_S)


@dataclass(frozen=True, slots=True)
class Sent:
    """An instance of job `job`; ages in hours before NOW. `host` -1 and standing UNSENT: not sent."""

    job: int
    standing: S
    host: int = -1
    sent_h: float = 24.0
    back_h: float = 12.0
    created_h: float = 48.0


@dataclass(frozen=True, slots=True)
class Record:
    """A host's other work for the app: `n` results of about `hours` each."""

    host: int
    n: int = 5
    hours: float = 8.0
    n_error: int = 0
    n_timeout: int = 0
    n_due: int = 5
    silent_h: float = 1.0


def instance_rows(sent: Sequence[Sent], bound_s: float = BOUND_S) -> InstanceRows:
    """Return the columns of these instances."""
    was_sent = np.array([each.standing is not S.UNSENT for each in sent], dtype=bool)
    back = np.array(
        [each.standing in (S.SUCCESS, S.ERROR, S.INVALID) for each in sent],
        dtype=bool,
    )
    sent_at = np.where(was_sent, NOW - HOUR_S * _floats(each.sent_h for each in sent), np.nan)
    return InstanceRows(
        job=_ints(each.job for each in sent),
        host_id=_ints(each.host for each in sent),
        app_version_id=np.where(was_sent, 1, -1).astype(np.int64),
        standing=_ints(each.standing for each in sent),
        created_at=NOW - HOUR_S * _floats(each.created_h for each in sent),
        sent_at=sent_at,
        timeout_at=sent_at + bound_s,
        reported_at=np.where(back, NOW - HOUR_S * _floats(each.back_h for each in sent), np.nan),
    )


def hav_rows(records: Sequence[Record]) -> HavRows:
    """Return the columns of these hosts' records, all with version 1; results spread by 0.5 in ln."""
    n = _ints(each.n for each in records)
    mean = np.log(HOUR_S * _floats(each.hours for each in records)) if records else np.zeros(0)
    return HavRows(
        host_id=_ints(each.host for each in records),
        app_version_id=np.ones(len(records), dtype=np.int64),
        n_success=n,
        sum_ln=n * mean,
        sum_ln_sq=n * (mean**2 + 0.25),
        n_error=_ints(each.n_error for each in records),
        n_timeout=_ints(each.n_timeout for each in records),
        n_due=_ints(each.n_due for each in records),
        last_rpc_at=NOW - HOUR_S * _floats(each.silent_h for each in records),
        weight=np.ones(len(records)),
    )


def sent_rows(sent: Sequence[Sent]) -> SentRows:
    """Return the columns of a sample of other work."""
    rows = instance_rows(sent)
    return SentRows(
        rows.host_id, rows.app_version_id, rows.standing, rows.sent_at, rows.reported_at, np.arange(len(sent))
    )


def a_snapshot(
    sent: Sequence[Sent], records: Sequence[Record] = (), sample: Sequence[Sent] = (), **changes: Any
) -> BatchSnapshot:
    """Return a batch with as many jobs as `sent` names; those with a success for each of the quorum are done."""
    quorum = changes.pop("quorum", 1)
    jobs = max((each.job for each in sent), default=-1) + 1
    successes = np.bincount([each.job for each in sent if each.standing is S.SUCCESS], minlength=jobs)
    snapshot = BatchSnapshot(
        now=NOW,
        submitted_at=SUBMITTED_AT,
        delay_bound_s=BOUND_S,
        jobs=JobRows(np.full(jobs, 1e13), successes < quorum, np.full(jobs, quorum), np.zeros(jobs, dtype=np.int64)),
        instances=instance_rows(sent),
        havs=hav_rows(records),
        sent=sent_rows(sample),
        mean_ln_fpops=float(np.log(1e13)) if records else float("nan"),
        active_hosts=50,
        median_flop_per_s=4e9,
    )
    return replace(snapshot, **changes)


def hosts(count: int, **record: Any) -> list[Record]:
    """Return hosts 1 to `count` with similar records."""
    return [Record(host, **record) for host in range(1, count + 1)]


def taken(rows: Any, order: Any) -> Any:
    """Return the same rows in another order."""
    return type(rows)(*(getattr(rows, column.name)[order] for column in fields(rows)))


def _ints(values: Any) -> Any:
    return np.array([int(each) for each in values], dtype=np.int64)


def _floats(values: Any) -> Any:
    return np.array([float(each) for each in values], dtype=np.float64)
