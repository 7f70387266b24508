"""Stores the order of batches in memory: usage, places and rules."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from domain.batches import BatchState
from domain.errors import NotFoundError
from domain.jobs import InstanceState
from domain.limits import Limit
from domain.ordered_work import (
    Grant,
    LeafId,
    LeafStanding,
    LeafUsage,
    LogicalCorrection,
    Member,
    OrderedBatch,
    OrderingCharges,
    OrderingView,
    OrderNotes,
    Reference,
    StoredPlace,
    WindowUsage,
)
from domain.ordering import Request
from domain.units import AccountId, BatchId, Flop, FlopPerSecond, HostId, Instant, Seconds
from domain.usage import DecayedUsage
from store.binary_copy import Table
from store.memory.registry import Registry
from store.memory.rows import StoredBatch
from store.memory.work import Work

WindowKey = tuple[LeafId, str, Instant, Seconds]
LimitKey = tuple[str, str, str]  # scope, quantity, name; empty: for all names


class OrderBook:
    """The tables that determine the order of batches."""

    def __init__(self) -> None:
        self.serial = 0
        self.reference: Reference | None = None
        self.notes: dict[BatchId, OrderNotes] = {}
        self.breakdowns: dict[BatchId, Mapping[str, object]] = {}
        self.usage: dict[LeafId, LeafUsage] = {}
        self.standings: dict[LeafId, LeafStanding] = {}
        self.windows: dict[WindowKey, WindowUsage] = {}
        self.grants: dict[AccountId, Grant] = {}
        self.limits: dict[LimitKey, Limit] = {}


def ordered_batch(batch: StoredBatch, book: OrderBook, batches: Mapping[BatchId, StoredBatch]) -> OrderedBatch:
    """Convert a batch to the form used by the ordering pass."""
    classes, new = batch.classes, batch.new
    awaited = [
        one for one in sorted((*new.after_ok, *new.after_any)) if (found := batches.get(one)) and found.ended_at is None
    ]
    unmet = [one for one in new.after_ok if one not in awaited and not _all_valid(batches.get(one))]
    return OrderedBatch(
        batch.as_batch(),
        batch.new.batch_flop,
        Request(
            max(one.ncpus for one in classes),
            max(one.memory_bytes for one in classes),
            max(one.disk_bytes for one in classes),
        ),
        Flop(statistics.fmean(one.fpops_est_flop for one in classes)),
        min(one.max_errors for one in classes),
        book.notes.get(batch.batch_id),
        batch.batch_id in book.breakdowns,
        batch.new.charged_s,
        batch.refunded_s,
        tuple(awaited),
        tuple(unmet),
    )


def _all_valid(batch: StoredBatch | None) -> bool:
    return batch is not None and batch.state is BatchState.COMPLETE and not batch.counts.jobs_failed


def correct_logical_times(registry: Registry, work: Work, corrections: Sequence[LogicalCorrection]) -> list[BatchId]:
    """Charge corrections of logical time. Return the charged batches."""
    submitters, found = registry.submitters, []
    for one in corrections:
        batch = work.batches[one.batch_id]
        if batch.new.charged_s - batch.refunded_s == one.charged_s:
            batch.refunded_s = Seconds(batch.new.charged_s - one.due_s)
            submitter = submitters[one.submitter_id]
            logical_at = Instant(submitter.logical_at + (one.due_s - one.charged_s))
            submitters[one.submitter_id] = replace(submitter, logical_at=logical_at)
            found.append(one.batch_id)
    return found


SAMPLED_JOBS = 100


class MemoryOrderingRules:
    """The rules that the simulator sets; tests.memory has the others."""

    def __init__(self, registry: Registry, work: Work, book: OrderBook) -> None:
        self._registry = registry
        self._work = work
        self._book = book

    async def set_host_labels(self, host_id: HostId, labels: Sequence[str]) -> None:
        stored = self._work.hosts.get(host_id)
        if stored is None:
            raise NotFoundError("host", host_id)
        stored.host = replace(stored.host, labels=tuple(labels))


class MemoryOrdering:
    def __init__(self, registry: Registry, work: Work, book: OrderBook) -> None:
        self._registry = registry
        self._work = work
        self._book = book

    async def view(self) -> OrderingView:
        book, batches = self._book, self._work.batches
        wanted = [one for one in batches.values() if one.state is BatchState.ACTIVE or one.batch_id in book.notes]
        return OrderingView(
            book.serial,
            [ordered_batch(batch, book, batches) for batch in wanted],
            list(self._registry.accounts.values()),
            members_of(self._registry),
            [book.usage[leaf] for leaf in sorted(book.usage)],
            [book.windows[key] for key in sorted(book.windows)],
            [book.grants[account_id] for account_id in sorted(book.grants)],
            [book.limits[key] for key in sorted(book.limits)],
            book.reference,
            self._newest_host_id(),
        )

    async def reference(self, *, active_since: Instant, now: Instant) -> Reference:
        every = self._work.host_columns.of_hosts()
        hosts = every[every["last_rpc_at"] >= active_since]
        if not hosts.size:
            return Reference(now, newest_host_id=self._newest_host_id())
        return Reference(
            now,
            _request(lambda column: float(np.median(column)), hosts),
            _request(lambda column: float(column.max()), hosts),
            FlopPerSecond(float(np.median(hosts["flop_per_s"]))),
            sum(
                (hosts["ncpus"] * hosts["flop_per_s"] * hosts["cpu_fraction"]).tolist()
            ),  # in order, so that rounding is the same
            self._newest_host_id(),
        )

    def _newest_host_id(self) -> int:
        return len(self._work.host_columns.of_hosts())

    async def used_fractions(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Sequence[float]]:
        found = {batch_id: self._used_fractions(self._work.batches[batch_id]) for batch_id in batch_ids}
        return {batch_id: used for batch_id, used in found.items() if used}

    async def charge(self, charges: OrderingCharges) -> int | None:
        book = self._book
        if charges.serial != book.serial:
            return None
        book.serial += 1
        book.reference = charges.reference
        book.notes.update(charges.notes)
        for batch_id in (*charges.forgotten, *correct_logical_times(self._registry, self._work, charges.corrections)):
            book.notes.pop(batch_id, None)
            book.breakdowns.pop(batch_id, None)
        book.usage.update({one.leaf: one for one in charges.usage})
        for window in charges.windows:
            key = (window.leaf, str(window.level), window.starts_at, window.length_s)
            old = book.windows.get(key)
            book.windows[key] = window if old is None else replace(old, flop=old.flop + window.flop)
        if charges.windows:
            kept = book.windows.items()
            book.windows = {k: one for k, one in kept if one.starts_at + one.length_s >= charges.windows_from}
        for leaf, standing in charges.standings.items():
            book.standings[leaf] = standing
            book.usage.setdefault(leaf, LeafUsage(leaf, DecayedUsage(at=charges.now)))
        for grant in charges.grants:
            known = book.grants.get(grant.account_id)
            if known is not None:
                book.grants[grant.account_id] = replace(grant, granted_su=known.granted_su, period_s=known.period_s)
        return book.serial

    async def move(self, places: Sequence[StoredPlace]) -> int:
        active = [one for one in places if self._work.batches[one.batch_id].state is BatchState.ACTIVE]
        for place in active:
            self._work.move_batch(self._work.batches[place.batch_id], place)
        return len(active)

    async def explain(self, records: Mapping[BatchId, Mapping[str, object]], *, now: Instant) -> None:
        del now  # also in the records
        self._book.breakdowns.update({batch_id: json.loads(json.dumps(record)) for batch_id, record in records.items()})

    def _used_fractions(self, batch: StoredBatch) -> list[float]:
        found = []
        for job_id in islice(batch.job_ids, SAMPLED_JOBS):
            job = self._work.jobs[job_id - 1]
            for row in job.instances:
                if row.state is InstanceState.VALID and row.elapsed_s and row.host_id is not None:
                    assert row.app_version_id is not None and row.reported_at is not None
                    if self._registry.versions[row.app_version_id].plan_class.gpu_type is None:
                        speed = self._work.hosts[row.host_id].host.flop_per_s
                        used = row.elapsed_s * job.job_class.ncpus * speed / job.job_class.fpops_est_flop
                        found.append((-row.reported_at, row.instance_id, used))
        return [used for _, _, used in sorted(found)]


def _request(of: Callable[[NDArray[np.float64]], float], hosts: Table) -> Request:
    """Return a resource request."""
    return Request(of(hosts["ncpus"]), of(hosts["ram_bytes"]), of(hosts["disk_free_bytes"]))


def members_of(registry: Registry) -> list[Member]:
    """Return each submitter's memberships, with its own account first."""
    members = []
    for submitter_id, submitter in sorted(registry.submitters.items()):
        name, permissions = submitter.name, submitter.permissions
        members.append(Member(submitter_id, name, submitter.account_id, submitter.shares, permissions))
        further = sorted(registry.memberships.get(submitter_id, {}).items())
        members += [Member(submitter_id, name, account_id, shares, permissions) for account_id, shares in further]
    return members
