"""Builds a snapshot from stored tables, and subtracts the batch's own work from the sums of its hosts."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np

from batch_estimator.ports import Table
from batch_estimator.snapshot import (
    AppQueue,
    BatchSnapshot,
    Bools,
    Floats,
    HavRows,
    InstanceRows,
    Ints,
    JobRows,
    SentRows,
    Tail,
    tail_of,
)
from domain.deadline_rules import traits_of
from domain.forecasting import BatchTables, CountedAs
from domain.settings import Settings
from domain.units import Instant, Seconds
from lifecycle.turnaround import grace_s

STORED_AS = {"n_success": "log_n", "sum_ln": "log_sum", "sum_ln_sq": "log_sum_sq"}  # columns of HavRows
WIDEST = {"i": np.int64}  # by dtype kind; other columns keep the stored type


def snapshot_of(tables: BatchTables[Table], now: Instant, settings: Settings) -> BatchSnapshot:
    """Return a batch's snapshot at `now`. Pure. Instances of unknown jobs are skipped.

    An unsent instance gets D plus the grace period, as it would in its life cycle.
    """
    terms, sent, bound_s = tables.terms, tables.sent, tables.terms.delay_bound_s
    jobs = tables.jobs[np.argsort(tables.jobs["job_id"])]
    job, known = _positions(jobs["job_id"], tables.instances["job_id"])
    return BatchSnapshot(
        now,
        terms.created_at,
        Seconds(bound_s + grace_s(Instant(0.0), Instant(bound_s), settings.lifecycle)),
        JobRows(jobs["fpops_est_flop"].copy(), jobs["is_open"].copy(), _ints(jobs["needed"]), _ints(jobs["uncounted"])),
        InstanceRows(job=_ints(job[known]), **_columns(InstanceRows, tables.instances[known])),
        _hav_rows(tables, now),
        SentRows(**_columns(SentRows, sent)),
        float(np.mean(np.log(sent["fpops_est_flop"]))) if sent.size else float("nan"),
        terms.active_hosts,
        terms.median_flop_per_s,
        AppQueue(terms.ahead, terms.ahead_of_others, terms.flop_of_others, terms.held, first_s(terms.first_from, now)),
        tables.sent_weight * float(sent["found"][0]) / sent.size if sent.size else tables.sent_weight,
        terms.active_processors,
        _tail(tables, settings),
        terms.moved_at,
        terms.moved_ahead,
        terms.withdrawn,
    )


def first_s(first_from: Instant, now: Instant) -> float:
    """Return after how many seconds a batch is sent first; infinity if it already is, since only such work is ahead.

    >>> first_s(Instant(9.0), Instant(7.0)), first_s(Instant(7.0), Instant(9.0))
    (2.0, inf)
    """
    return first_from - now if first_from > now else math.inf


def _tail(tables: BatchTables[Table], settings: Settings) -> Tail | None:
    """Return the tail settings, None if the deadline rule makes no tail copies."""
    if not traits_of(settings.deadline).copies_tails:
        return None
    return tail_of(tables.terms.qos, tables.jobs.size, feeder=settings.feeder, lifecycle=settings.lifecycle)


def _positions(ordered: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """Return each wanted number's position in the ordered numbers, and whether it is present there.

    >>> at, known = _positions(np.array([3, 5, 9]), np.array([9, 4, 3]))
    >>> at[known].tolist(), known.tolist()
    ([2, 0], [True, False, True])
    """
    at = np.searchsorted(ordered, wanted)
    if not len(ordered):
        return at, np.zeros(len(wanted), dtype=bool)
    at = np.minimum(at, len(ordered) - 1)
    return at, ordered[at] == wanted


def own_work(havs: Table, instances: Table, now: Instant) -> HavRows:
    """Return the rows of `havs` minus the instances' contributions, not below zero, each with weight 1.

    ln T of a valid instance is ln max(1 s, reported - sent), as in its host's row.
    """
    keys = _keys(havs)
    order = np.argsort(keys)
    was_sent = instances[instances["host_id"] >= 0]
    entry = order[np.searchsorted(keys[order], _keys(was_sent))]

    def own(kind: CountedAs, weights: Floats | None = None) -> Floats:
        chosen = was_sent["counted"] == kind
        added = np.bincount(entry[chosen], None if weights is None else weights[chosen], minlength=havs.size)
        return added.astype(np.float64)

    with np.errstate(invalid="ignore"):
        ln_s = np.log(np.maximum(was_sent["reported_at"] - was_sent["sent_at"], 1.0))
    own_due = np.bincount(entry[was_sent["due_at"] <= now], minlength=havs.size)
    n = np.maximum(havs["log_n"] - own(CountedAs.VALID), 0.0)
    stored = HavRows(**_columns(HavRows, havs), weight=np.ones(havs.size))
    return replace(
        stored,
        n_success=_ints(n),
        sum_ln=np.where(n > 0, stored.sum_ln - own(CountedAs.VALID, ln_s), 0.0),
        sum_ln_sq=np.where(n > 0, np.maximum(stored.sum_ln_sq - own(CountedAs.VALID, ln_s**2), 0.0), 0.0),
        n_error=_ints(np.maximum(stored.n_error - own(CountedAs.ERROR), 0.0)),
        n_timeout=_ints(np.maximum(stored.n_timeout - own(CountedAs.TIMED_OUT), 0.0)),
        n_due=_ints(np.maximum(stored.n_due - own_due, 0)),
    )


def _hav_rows(tables: BatchTables[Table], now: Instant) -> HavRows:
    """Return each (host, app version) once: the batch's rows with weight 1, sampled rows with their sampling weight.

    A row found only through `sent` describes its host and has weight 0, because hosts with many instances are
    over-represented in `sent`.
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
    sampled = HavRows(**_columns(HavRows, others), weight=np.full(others.size, stands_for))
    known = replace(known, weight=weight)
    both = [(getattr(known, column.name)[kept], getattr(sampled, column.name)) for column in fields(HavRows)]
    return HavRows(*(np.concatenate(parts) for parts in both))


def _columns(rows: type[SentRows | InstanceRows | HavRows], table: Table) -> dict[str, Any]:
    """Copy the columns common to a table and the row type; integers become Ints. Any: types follow the row type."""
    stored = {STORED_AS.get(column.name, column.name): column.name for column in fields(rows)}
    shared = [name for name in table.dtype.names or () if name in stored]
    return {stored[name]: np.array(table[name], WIDEST.get(table[name].dtype.kind)) for name in shared}


def _keys(rows: Table) -> Ints:
    """Return for each row one number that identifies its (host, app version)."""
    keys: Ints = rows["host_id"].astype(np.int64) << 32 | rows["app_version_id"].astype(np.int64)
    return keys


def _ints(values: object) -> Ints:
    return np.asarray(values).astype(np.int64)
