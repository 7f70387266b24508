"""Keeps tables of numbers in sync with objects: a batch's jobs and instances, hosts, turnarounds.

When a table is read, the rows of changed objects are rewritten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from statistics import fmean
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from domain.acceleration import LEAST_RESULTS, LOW_BELOW, TIMED_OUT, LowTurnaround, is_accelerable
from domain.forecasting import INSTANCE_FIELDS, JOB_FIELDS, STANDINGS, counted_as
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceState, JobState
from domain.units import AppId, AppVersionId, BatchId, HostId, InstanceId, JobId, Seconds
from lifecycle.states import SUCCEEDED
from store.binary_copy import Fields, Table, native_dtype
from store.memory.rows import StoredBatch, StoredHost, StoredInstance, StoredJob

FIRST_ROWS = 64


class KeptTable:
    """Rows by index, from 0 without gaps. The table grows by half its size.

    >>> kept = KeptTable((("host_id", "i4"), ("p", "f4")))
    >>> kept.write([1, 0], [(7, 0.5), (8, 1.0)])
    >>> kept.rows.tolist()
    [(8, 1.0), (7, 0.5)]
    """

    def __init__(self, fields: Fields, rows: int = FIRST_ROWS) -> None:
        self._table = np.zeros(max(rows, FIRST_ROWS), native_dtype(fields))
        self._size = 0

    @property
    def rows(self) -> Table:
        """The current rows. Callers that keep them must copy them."""
        return self._table[: self._size]

    def write(self, places: Sequence[int], rows: Sequence[tuple[object, ...]]) -> None:
        """Write these rows at these indices."""
        if not places:
            return
        self._size = max(self._size, max(places) + 1)
        if self._size > len(self._table):
            grown = np.zeros(self._size + self._size // 2, self._table.dtype)
            grown[: len(self._table)] = self._table
            self._table = grown
        self._table[np.array(places)] = np.array(rows, self._table.dtype)


NAN = float("nan")
CANCELLED = -1  # replaces a standing, or a job's number of missing copies


class BatchColumns:
    """A batch's tables, updated when they are read. `changed` are the jobs changed since the last read.

    The first instance of each job has its job's index; the few further instances follow.
    """

    def __init__(self, batch: StoredBatch, jobs: Sequence[StoredJob]) -> None:
        self.changed: set[JobId] = set()
        self._batch = batch
        self._all = jobs
        self._first = batch.job_ids.start
        self._further: dict[InstanceId, int] = {}
        self._jobs = KeptTable(JOB_FIELDS, len(batch.job_ids))
        self._instances = KeptTable(INSTANCE_FIELDS, len(batch.job_ids))
        self._write(batch.job_ids)

    def jobs(self) -> Table:
        """Return a copy of JOB_FIELDS for all jobs that were not cancelled."""
        self._update()
        rows = self._jobs.rows
        found: Table = rows[rows["needed"] != CANCELLED]
        return found

    def instances(self) -> Table:
        """Return a copy of INSTANCE_FIELDS for all instances unless they or their jobs were cancelled."""
        self._update()
        rows = self._instances.rows
        found: Table = rows[rows["standing"] != CANCELLED]
        return found

    def _update(self) -> None:
        if self.changed:
            self._write(sorted(self.changed))
            self.changed.clear()

    def _write(self, job_ids: Sequence[int]) -> None:
        jobs = [self._all[job_id - 1] for job_id in job_ids]
        self._jobs.write([job.job_id - self._first for job in jobs], [_job(job) for job in jobs])
        created_at = self._batch.new.created_at
        places, rows = [], []
        for job in jobs:
            gone = job.state is JobState.CANCELLED
            for number, row in enumerate(job.instances):
                places.append(self._further_place(row) if number else job.job_id - self._first)
                rows.append(_instance(row, created_at, gone=gone))
        self._instances.write(places, rows)

    def _further_place(self, row: StoredInstance) -> int:
        further = self._further
        return further.setdefault(row.instance_id, len(self._batch.job_ids) + len(further))


def _job(job: StoredJob) -> tuple[object, ...]:
    """Return the fields of JOB_FIELDS."""
    one = job.job_class
    needed = CANCELLED if job.state is JobState.CANCELLED else min(one.max_instances, max(one.quorum, job.copies))
    uncounted = sum(
        row.instance_id <= job.retried_after and row.state is not InstanceState.CANCELLED for row in job.instances
    )
    return (job.job_id, one.fpops_est_flop, job.state is JobState.OPEN, needed, uncounted)


def _instance(row: StoredInstance, batch_at: float, *, gone: bool) -> tuple[object, ...]:
    """Return the fields of INSTANCE_FIELDS. Instances created with their batch have its creation time, `batch_at`."""
    is_cancelled = gone or row.state is InstanceState.CANCELLED
    return (
        row.job.job_id,
        -1 if row.host_id is None else row.host_id,
        -1 if row.app_version_id is None else row.app_version_id,
        CANCELLED if is_cancelled else STANDINGS[row.state],
        counted_as(row.state, has_sample=row.turnaround_sample is not None),
        batch_at if row.created_at is None else row.created_at,
        row.sent_at,
        row.due_at,
        row.timeout_at,
        row.reported_at,
    )


Pair = tuple[HostId, AppVersionId]

# Columns with their types, and the host attributes that fill them.
_OF_HOST = (
    ("last_rpc_at", "f8", "last_rpc_at"),
    ("flop_per_s", "f8", "flop_per_s"),
    ("ncpus", "f8", "ncpus"),
    ("ram_bytes", "f8", "ram_bytes"),
    ("disk_free_bytes", "f8", "disk_free_bytes"),
    ("cpu_fraction", "f8", "cpu_availability_fraction"),
)
# The same for a host's row for an app version. Unknown values are NaN.
_OF_HAV = (
    ("host_id", "i4", "host_id"),
    ("app_version_id", "i4", "app_version_id"),
    ("consecutive_valid", "i4", "consecutive_valid"),
    ("failed", "?", "failed_last"),
    ("clean_since_at", "f8", "clean_since_at"),
    ("stats_at", "f8", "relaxed.at"),
    ("relaxed_n", "f8", "relaxed.n"),
    ("relaxed_sum", "f8", "relaxed.total"),
    ("tight_n", "f8", "tight.n"),
    ("tight_sum", "f8", "tight.total"),
    ("tight_sum_sq", "f8", "tight.total_sq"),
    ("tight_missed_n", "f8", "tight_missed_n"),
    ("log_n", "i8", "log_n"),
    ("log_sum", "f8", "log_sum"),
    ("log_sum_sq", "f8", "log_sum_sq"),
    ("n_error", "i8", "n_error"),
    ("n_timeout", "i8", "n_timeout"),
    ("n_due", "i8", "n_due"),
)
HOST_COLUMNS = tuple((name, kind) for name, kind, _ in _OF_HOST)
HAV_COLUMNS = (
    *((name, kind) for name, kind, _ in _OF_HAV),
    ("s_per_flop", "f8"),
    ("rpc_interval_s", "f8"),
    ("volunteer_id", "i4"),
    ("last_rpc_at", "f8"),
    ("cpu_fraction", "f8"),
    ("gpu_fraction", "f8"),
)
_host = attrgetter(*[attribute for _, _, attribute in _OF_HOST])
_of_hav = attrgetter(*[attribute for _, _, attribute in _OF_HAV])
_of_its_host = attrgetter("volunteer_id", "last_rpc_at", "cpu_availability_fraction", "gpu_availability_fraction")


class HostColumns:
    """Tables of `hosts`, updated when they are read. `changed` are the rows changed since the last read."""

    def __init__(self, hosts: Mapping[HostId, StoredHost]) -> None:
        self.changed: set[HostId] = set()
        self._hosts = hosts
        self._host_places: dict[HostId, int] = {}
        self._places: dict[Pair, int] = {}
        self._of_hosts = KeptTable(HOST_COLUMNS)
        self._of_havs = KeptTable(HAV_COLUMNS)

    def of_hosts(self) -> Table:
        """Return the current HOST_COLUMNS for all hosts in order of creation."""
        self._update()
        return self._of_hosts.rows

    def of_versions(self, versions: Collection[AppVersionId]) -> Table:
        """Return a copy of HAV_COLUMNS for all hosts' rows for these versions, in no particular order."""
        self._update()
        rows = self._of_havs.rows
        return rows[np.isin(rows["app_version_id"], np.array(sorted(versions), "i4"))]

    def of_pairs(self, pairs: Collection[Pair]) -> tuple[Table, list[Pair]]:
        """Return a copy of HAV_COLUMNS for the pairs that have a row, and the pairs that do not."""
        self._update()
        places = self._places
        known = [places[pair] for pair in pairs if pair in places]
        return self._of_havs.rows[np.array(known, "i8")], [pair for pair in pairs if pair not in places]

    def _update(self) -> None:
        if not self.changed:
            return
        changed = [self._hosts[host_id] for host_id in sorted(self.changed)]
        self.changed.clear()
        host_places = self._host_places
        self._of_hosts.write(
            [host_places.setdefault(stored.host.host_id, len(host_places)) for stored in changed],
            [_host(stored.host) for stored in changed],
        )
        havs = [(stored, row) for stored in changed for row in stored.havs.values()]
        places = self._places
        self._of_havs.write(
            [places.setdefault((row.host_id, row.app_version_id), len(places)) for _, row in havs],
            [_hav(stored.host, stored.rpc_interval_s, row) for stored, row in havs],
        )


def _hav(host: Host, rpc_interval_s: float | None, row: HostAppVersion) -> tuple[object, ...]:
    """Return the fields of HAV_COLUMNS."""
    s_per_flop = row.speed.mean if row.speed.n > 0 else None
    return (*_of_hav(row), s_per_flop, rpc_interval_s, *_of_its_host(host))


NO_HOST = 0  # replaces a host id if the instance has neither returned nor timed out
RETURN_FIELDS = (("job_id", "i8"), ("host_id", "i8"), ("turnaround_s", "f8"))  # NaN: timed out
NEARLY = 1e-9  # bound on the difference by rounding between sums of all results in different orders


Floats: TypeAlias = NDArray[np.float64]


class BatchReturns:
    """A batch's returned results, updated when they are read. `changed` are the jobs changed since the last read."""

    def __init__(self, batch: StoredBatch, jobs: Sequence[StoredJob]) -> None:
        self.changed: set[JobId] = {JobId(job_id) for job_id in batch.job_ids}
        self._all = jobs
        self._places: dict[InstanceId, int] = {}
        self._kept = KeptTable(RETURN_FIELDS, len(batch.job_ids))

    def rows(self) -> Table:
        """Return a copy of RETURN_FIELDS for returned and timed-out instances."""
        if self.changed:
            instances = [row for job_id in sorted(self.changed) for row in self._all[job_id - 1].instances]
            places = self._places
            self._kept.write(
                [places.setdefault(row.instance_id, len(places)) for row in instances], [_fields(r) for r in instances]
            )
            self.changed.clear()
        rows = self._kept.rows
        found: Table = rows[rows["host_id"] != NO_HOST]
        return found


def _fields(row: StoredInstance) -> tuple[object, ...]:
    """Return the fields of RETURN_FIELDS."""
    if row.state is InstanceState.TIMED_OUT:
        return row.job.job_id, row.host_id, NAN
    if row.state not in SUCCEEDED:
        return row.job.job_id, NO_HOST, NAN
    assert row.sent_at is not None and row.reported_at is not None
    return row.job.job_id, row.host_id, row.reported_at - row.sent_at


def without(rows: Table, jobs: Collection[JobId]) -> Table:
    """Return the rows except those of the given jobs."""
    if not jobs:
        return rows
    found: Table = rows[~np.isin(rows["job_id"], np.fromiter(jobs, np.int64, len(jobs)))]
    return found


def low_turnaround_of(batches: Iterable[tuple[BatchId, AppId, Table]]) -> LowTurnaround:
    """Compute `domain.acceleration.low_turnaround` from each batch's app and RETURN_FIELDS."""
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
    """Return the hosts with a mean below LOW_BELOW. Sums are vectorised unless rounding could change the result."""
    counts = np.bincount(hosts)
    means = np.bincount(hosts, weights=shares) / np.maximum(1, counts)
    is_close = (counts > 0) & (np.abs(means - LOW_BELOW) < NEARLY)
    for host in np.flatnonzero(is_close).tolist():
        means[host] = fmean(shares[hosts == host].tolist())
    found: list[int] = np.flatnonzero((counts > 0) & (means < LOW_BELOW)).tolist()
    return found
