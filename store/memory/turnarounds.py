"""Which hosts have a low turnaround? As domain/acceleration.py counts it, over numbers that are kept for each batch."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from domain.acceleration import LEAST_RESULTS, LOW_BELOW, TIMED_OUT, LowTurnaround, is_accelerable
from domain.jobs import InstanceState
from domain.units import AppId, BatchId, HostId, InstanceId, JobId, Seconds
from store.binary_copy import Table
from store.memory.kept_table import KeptTable
from store.memory.rows import StoredBatch, StoredInstance, StoredJob

NAN = float("nan")
NOBODY = 0  # in the place of a host: neither back nor timed out
RETURN_FIELDS = (("job_id", "i8"), ("host_id", "i8"), ("turnaround_s", "f8"))  # NaN: timed out
NEARLY = 1e-9  # sums of so many numbers as there are results differ by less, in whatever order they were added

CAME_BACK = frozenset(
    (
        InstanceState.REPORTED,
        InstanceState.INCONCLUSIVE,
        InstanceState.VALID,
        InstanceState.INVALID,
        InstanceState.TOO_LATE,
    )
)

Floats: TypeAlias = NDArray[np.float64]


class BatchReturns:
    """What came back of a batch, brought up to date when it is read. `changed` are the jobs that were touched since."""

    def __init__(self, batch: StoredBatch, jobs: Sequence[StoredJob]) -> None:
        self.changed: set[JobId] = {JobId(job_id) for job_id in batch.job_ids}
        self._all = jobs
        self._places: dict[InstanceId, int] = {}
        self._kept = KeptTable(RETURN_FIELDS, len(batch.job_ids))

    def rows(self) -> Table:
        """RETURN_FIELDS of what is back or timed out; a copy."""
        if self.changed:
            instances = [row for job_id in sorted(self.changed) for row in self._all[job_id - 1].instances]
            places = self._places
            self._kept.write(
                [places.setdefault(row.instance_id, len(places)) for row in instances], [_fields(r) for r in instances]
            )
            self.changed.clear()
        rows = self._kept.rows
        found: Table = rows[rows["host_id"] != NOBODY]
        return found


def _fields(row: StoredInstance) -> tuple[object, ...]:
    """RETURN_FIELDS."""
    if row.state is InstanceState.TIMED_OUT:
        return row.job.job_id, row.host_id, NAN
    if row.state not in CAME_BACK:
        return row.job.job_id, NOBODY, NAN
    assert row.sent_at is not None and row.reported_at is not None
    return row.job.job_id, row.host_id, row.reported_at - row.sent_at


def without(rows: Table, jobs: Collection[JobId]) -> Table:
    """The rows of other jobs than these."""
    if not jobs:
        return rows
    found: Table = rows[~np.isin(rows["job_id"], np.fromiter(jobs, np.int64, len(jobs)))]
    return found


def low_turnaround_of(batches: Iterable[tuple[BatchId, AppId, Table]]) -> LowTurnaround:
    """The same as `domain.acceleration.low_turnaround`, of RETURN_FIELDS of each batch with its app."""
    median_of: dict[BatchId, Seconds] = {}
    hosts: list[NDArray[np.int64]] = []
    shares: list[Floats] = []
    back_to: dict[AppId, set[int]] = {}
    for batch_id, app_id, rows in batches:
        turnaround_s = rows["turnaround_s"]
        is_back = ~np.isnan(turnaround_s)
        if int(is_back.sum()) < LEAST_RESULTS:
            continue
        m = median_of[batch_id] = Seconds(float(np.median(turnaround_s[is_back])))
        hosts.append(rows["host_id"])
        shares.append(np.where(is_back, turnaround_s / m if m > 0 else 1.0, TIMED_OUT))
        back_to.setdefault(app_id, set()).update(np.unique(rows["host_id"][is_back]).tolist())
    if not median_of:
        return LowTurnaround()
    low = frozenset(map(HostId, _low(np.concatenate(hosts), np.concatenate(shares))))
    apps = frozenset(app_id for app_id, some in back_to.items() if is_accelerable(len(some), len(some & low)))
    return LowTurnaround(low, apps, median_of)


def _low(hosts: NDArray[np.int64], shares: Floats) -> list[int]:
    """Hosts with a mean below LOW_BELOW. Added up all at once; one by one where the last digits decide."""
    counts = np.bincount(hosts)
    means = np.bincount(hosts, weights=shares) / np.maximum(1, counts)
    is_close = (counts > 0) & (np.abs(means - LOW_BELOW) < NEARLY)
    for host in np.flatnonzero(is_close).tolist():
        means[host] = fmean(shares[hosts == host].tolist())
    found: list[int] = np.flatnonzero((counts > 0) & (means < LOW_BELOW)).tolist()
    return found
