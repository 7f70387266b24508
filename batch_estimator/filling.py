"""How do stored tables become a snapshot? The batch's own work is taken out of its hosts' sums on the way."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from batch_estimator.ports import ForecastTables, Table
from batch_estimator.snapshot import Floats, HavRows, InstanceRows, Ints, JobRows, SentRows, Snapshot
from domain.forecasting import BatchTables, CountedAs
from domain.units import BatchId, Instant


class TableSnapshots:
    """Satisfies Snapshots, from tables."""

    def __init__(self, tables: ForecastTables) -> None:
        self._tables = tables

    async def snapshot(self, batch_id: BatchId, *, now: Instant) -> Snapshot | None:
        tables = await self._tables.of_batch(batch_id, now=now)
        return None if tables is None else snapshot_of(tables, now)


def snapshot_of(tables: BatchTables[Table], now: Instant) -> Snapshot:
    """The columns of a batch at `now`. Pure. Instances of jobs that are not among its jobs are left out."""
    terms, sent = tables.terms, tables.sent
    jobs = np.sort(tables.jobs, order="job_id")
    instances = tables.instances[np.isin(tables.instances["job_id"], jobs["job_id"])]
    return Snapshot(
        now,
        terms.created_at,
        terms.delay_bound_s,
        terms.quorum,
        JobRows(jobs["fpops_est_flop"].copy(), jobs["is_open"].copy()),
        _instance_rows(instances, np.searchsorted(jobs["job_id"], instances["job_id"])),
        _hav_rows(tables, now),
        SentRows(
            _ints(sent["host_id"]),
            _ints(sent["app_version_id"]),
            _ints(sent["standing"]),
            sent["sent_at"].copy(),
            sent["reported_at"].copy(),
        ),
        float(np.mean(np.log(sent["fpops_est_flop"]))) if sent.size else float("nan"),
        terms.active_hosts,
        terms.median_flop_per_s,
    )


def own_work(havs: Table, instances: Table, now: Instant) -> HavRows:
    """The rows of `havs` less what the instances added to them, none below zero; each stands for itself.

    ln T of a valid instance is ln max(1 s, reported - sent), as its host's row was given it.
    """
    ordered = np.sort(_keys(havs))
    order = np.argsort(_keys(havs))
    was_sent = instances[instances["host_id"] >= 0]
    entry = order[np.searchsorted(ordered, _keys(was_sent))]

    def own(kind: CountedAs, weights: Floats | None = None) -> Floats:
        chosen = was_sent["counted"] == kind
        added = np.bincount(entry[chosen], None if weights is None else weights[chosen], minlength=havs.size)
        return added.astype(np.float64)

    with np.errstate(invalid="ignore"):
        ln_s = np.log(np.maximum(was_sent["reported_at"] - was_sent["sent_at"], 1.0))
    own_due = np.bincount(entry[was_sent["due_at"] <= now], minlength=havs.size)
    n = np.maximum(havs["log_n"] - own(CountedAs.VALID), 0.0)
    return HavRows(
        _ints(havs["host_id"]),
        _ints(havs["app_version_id"]),
        _ints(n),
        np.where(n > 0, havs["log_sum"] - own(CountedAs.VALID, ln_s), 0.0),
        np.where(n > 0, np.maximum(havs["log_sum_sq"] - own(CountedAs.VALID, ln_s**2), 0.0), 0.0),
        _ints(np.maximum(havs["n_error"] - own(CountedAs.ERROR), 0.0)),
        _ints(np.maximum(havs["n_timeout"] - own(CountedAs.TIMED_OUT), 0.0)),
        _ints(np.maximum(havs["n_due"] - own_due, 0)),
        havs["last_rpc_at"].copy(),
        np.ones(havs.size),
    )


def _hav_rows(tables: BatchTables[Table], now: Instant) -> HavRows:
    """Each (host, app version) once: those of the batch for themselves, the sampled for their like.

    The row of one that is only in `sent` says how its host is, and stands for none: who sends much is in `sent` more
    often than among the hosts at large.
    """
    of_batch = _keys(tables.instances[tables.instances["host_id"] >= 0])
    known = own_work(tables.havs, tables.instances, now)
    keys = _keys(tables.havs)
    others = tables.others[~np.isin(_keys(tables.others), of_batch)]
    in_batch = np.isin(keys, of_batch)
    kept = in_batch | ~np.isin(keys, _keys(others))
    if tables.others.size:
        stands_for = tables.others_weight * float(tables.others["found"][0]) / tables.others.size
        weight = np.where(in_batch, 1.0, 0.0)
    else:
        stands_for, weight = 1.0, np.ones(keys.size)
    sampled = _as_stored(others, np.full(others.size, stands_for))
    known = replace(known, weight=weight)
    both = [(getattr(known, column.name)[kept], getattr(sampled, column.name)) for column in fields(HavRows)]
    return HavRows(*(np.concatenate(parts) for parts in both))


def _as_stored(havs: Table, weight: Floats) -> HavRows:
    return HavRows(
        _ints(havs["host_id"]),
        _ints(havs["app_version_id"]),
        _ints(havs["log_n"]),
        havs["log_sum"].copy(),
        havs["log_sum_sq"].copy(),
        _ints(havs["n_error"]),
        _ints(havs["n_timeout"]),
        _ints(havs["n_due"]),
        havs["last_rpc_at"].copy(),
        weight,
    )


def _instance_rows(instances: Table, job: Ints) -> InstanceRows:
    return InstanceRows(
        _ints(job),
        _ints(instances["host_id"]),
        _ints(instances["app_version_id"]),
        _ints(instances["standing"]),
        instances["created_at"].copy(),
        instances["sent_at"].copy(),
        instances["timeout_at"].copy(),
        instances["reported_at"].copy(),
    )


def _keys(rows: Table) -> Ints:
    """One number per (host, app version)."""
    keys: Ints = rows["host_id"].astype(np.int64) << 32 | rows["app_version_id"].astype(np.int64)
    return keys


def _ints(values: object) -> Ints:
    return np.asarray(values).astype(np.int64)
