"""Which successes does the batch still lack, and what is expected to bring each? Pure. ESTIMATOR 5.6.

An open job lacks the successes it needs less those it has; each lack is a slot. A slot is served by an instance in
progress, waits for an unsent one, or for one that has yet to be made. Instances of the job beyond that,
and timed-out ones that may still reply, help.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from batch_estimator.sending import URGENT_AFTER_S
from batch_estimator.snapshot import Bools, InstanceRows, Ints, Snapshot, Standing


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """What is open. Positions are rows of the instance columns.

    `agreeing`, per position of `in_progress`: its job has a success already, and lacks another. `helper` is, per
    position of `in_progress`, the position of another outstanding instance of the same job that is not needed but would
    do, or -1; `retry_helper` likewise per retry to be sent.
    """

    in_progress: Ints
    agreeing: Bools
    helper: Ints
    first_unsent: int
    retries_unsent: int
    retry_helper: Ints
    jobs: int
    jobs_with_success: int


def open_slots(snapshot: Snapshot) -> Open:
    """Count what is lacking and match it with what is out."""
    rows, jobs = snapshot.instances, snapshot.jobs
    n_jobs = len(jobs.is_open)
    of_open = jobs.is_open[rows.job] if n_jobs else np.zeros(0, dtype=bool)
    successes = _per_job(rows.job, of_open & (rows.standing == Standing.SUCCESS), n_jobs)
    need = np.where(jobs.is_open, np.maximum(jobs.needed - successes, 1), 0)

    running = np.flatnonzero(of_open & (rows.standing == Standing.IN_PROGRESS))
    running = running[np.lexsort((rows.host_id[running], rows.sent_at[running], rows.job[running]))]
    rank = _rank_in_group(rows.job[running])
    serving = rank < need[rows.job[running]]
    need = need - _per_job(rows.job, _mask(running[serving], len(rows.job)), n_jobs)

    unsent = of_open & (rows.standing == Standing.UNSENT)
    urgent = unsent & (rows.created_at > snapshot.submitted_at + URGENT_AFTER_S)
    urgent_per_job = np.minimum(_per_job(rows.job, urgent, n_jobs), need)
    first_per_job = np.minimum(_per_job(rows.job, unsent & ~urgent, n_jobs), need - urgent_per_job)
    to_make = need - urgent_per_job - first_per_job
    never_sent = _per_job(rows.job, of_open & (rows.standing != Standing.UNSENT), n_jobs) == 0
    retries = urgent_per_job + np.where(never_sent, 0, to_make)
    first = first_per_job + np.where(never_sent, to_make, 0)

    spare = np.concatenate([running[~serving], np.flatnonzero(of_open & (rows.standing == Standing.TIMED_OUT))])
    helper = _helpers(rows, spare, n_jobs)
    retry_jobs = np.repeat(np.arange(n_jobs), retries)
    return Open(
        running[serving],
        successes[rows.job[running[serving]]] > 0,
        helper[rows.job[running[serving]]],
        int(first.sum()),
        len(retry_jobs),
        helper[retry_jobs],
        int(jobs.is_open.sum()),
        int(((successes > 0) & jobs.is_open).sum()),
    )


def _per_job(job: Ints, chosen: Bools, n_jobs: int) -> Ints:
    return np.bincount(job[chosen], minlength=n_jobs)


def _mask(positions: Ints, length: int) -> Bools:
    mask = np.zeros(length, dtype=bool)
    mask[positions] = True
    return mask


def _rank_in_group(group: Ints) -> Ints:
    """0, 1, 2, ... within each run of equal values.

    >>> _rank_in_group(np.array([4, 4, 7, 9, 9, 9])).tolist()
    [0, 1, 0, 0, 1, 2]
    """
    if len(group) == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    return np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group))))


def _helpers(rows: InstanceRows, spare: Ints, n_jobs: int) -> Ints:
    """Per job its spare instance that was sent last, of those sent at once the greatest host's; -1 if there is none."""
    helper = np.full(n_jobs, -1, dtype=np.int64)
    by_sending = spare[np.lexsort((rows.host_id[spare], rows.sent_at[spare]))]
    helper[rows.job[by_sending]] = by_sending
    return helper
