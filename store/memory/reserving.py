"""Stores reservations for big jobs in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from domain.host_classes import AlikeHosts, HostClasses
from domain.jobs import InstanceState
from domain.ordered_work import Reference
from domain.ordering import Request
from domain.reservations import BigBatch, Kept, Lease, LeaseEnd, LeaseStanding, Reserved
from domain.units import AppId, Flop, FlopPerSecond, Instant, Seconds
from store.memory.ordering import OrderBook
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredHost
from store.memory.work import Work


class MemoryReserving:
    def __init__(self, registry: Registry, work: Work, book: OrderBook) -> None:
        self._registry = registry
        self._work = work
        self._book = book

    async def reference(self) -> Reference | None:
        return self._book.reference

    async def big_batches(self, least: Request, app_ids: Sequence[AppId], limit: int) -> Sequence[BigBatch]:
        ready = (self._work.batches[batch_id] for _, _, batch_id in self._work.ready)
        return list(islice((_big(one) for one in ready if _may_be_big(one, least, app_ids)), limit))

    async def reserved(self) -> Reserved:
        return reserved_in(self._registry)

    async def standing_leases(self) -> Sequence[LeaseStanding]:
        leases = self._registry.leases
        return [self._standing(leases[host_id]) for host_id in sorted(leases) if leases[host_id].ended_at is None]

    def _standing(self, lease: Lease) -> LeaseStanding:
        batch, host = self._work.batches[lease.batch_id], self._work.hosts[lease.host_id]
        held = (row for row in host.held.values() if row.job.batch is batch and row.sent_at is not None)
        return LeaseStanding(
            lease,
            batch.counts.unsent if batch.ended_at is None else 0,
            any(row.sent_at is not None and row.sent_at >= lease.made_at for row in held),
            host.host.last_rpc_at,
            host.rpc_interval_s,
        )

    async def redundant_lines(self) -> Mapping[tuple[AppId, int], Mapping[int, Flop]]:
        found: dict[tuple[AppId, int], dict[int, Flop]] = {}
        for batch in self._work.batches.values():
            types = {one.hr_type for one in batch.classes if one.hr_type > 0}
            if batch.ended_at is None and batch.counts.unsent > 0:
                for hr_type in sorted(types):
                    found.setdefault((batch.new.app_id, hr_type), {})
                if types:
                    self._add_queued(batch, found)
        return found

    def _add_queued(self, batch: StoredBatch, found: dict[tuple[AppId, int], dict[int, Flop]]) -> None:
        for job in (self._work.jobs[job_id - 1] for job_id in batch.job_ids):
            unsent = sum(row.state is InstanceState.UNSENT for row in job.instances)
            if unsent and job.hr_class:
                of_class = found[batch.new.app_id, job.job_class.hr_type]
                of_class[job.hr_class] = Flop(of_class.get(job.hr_class, 0.0) + unsent * job.job_class.fpops_est_flop)

    async def alike_hosts(self, *, active_since: Instant) -> Sequence[AlikeHosts]:
        groups: dict[tuple[str, str, tuple[str, ...]], list[StoredHost]] = {}
        for stored in self._work.hosts.values():
            host = stored.host
            if host.last_rpc_at >= active_since:
                groups.setdefault((host.os_name, host.cpu_vendor, host.platforms), []).append(stored)
        return [_alike(key, groups[key]) for key in sorted(groups)]

    async def note_classes(self, classes: HostClasses) -> None:
        self._registry.host_classes = classes

    async def reserve(
        self, kept: Sequence[Kept], ends: Sequence[LeaseEnd], *, forget_before: Instant, now: Instant
    ) -> None:
        registry = self._registry
        registry.kept = tuple(kept)
        for one in ends:
            known = registry.leases.get(one.host_id)
            if known is not None and known.batch_id == one.batch_id and known.ended_at is None:
                registry.leases[one.host_id] = replace(known, ended_at=now, because=one.because)
        done = {one.host_id for one in ends if one.of_use}
        for host_id, lease in list(registry.leases.items()):
            if lease.ended_at is not None and (lease.ended_at < forget_before or host_id in done):
                del registry.leases[host_id]


def reserved_in(registry: Registry) -> Reserved:
    """Return the reserved slots and leases for a catalogue."""
    return Reserved({one.batch_id: one for one in registry.kept}, dict(sorted(registry.leases.items())))


def make_lease(registry: Registry, lease: Lease) -> None:
    """Lease a host to a batch, unless either has a lease."""
    taken = any(one.batch_id == lease.batch_id and one.ended_at is None for one in registry.leases.values())
    if lease.host_id not in registry.leases and not taken:
        registry.leases[lease.host_id] = lease


def _alike(key: tuple[str, str, tuple[str, ...]], some: Sequence[StoredHost]) -> AlikeHosts:
    hosts = [stored.host for stored in some]
    intervals = [stored.rpc_interval_s for stored in some if stored.rpc_interval_s is not None]
    return AlikeHosts(
        *key,
        len(hosts),
        float(sum(host.ncpus for host in hosts)),
        FlopPerSecond(sum(host.ncpus * host.flop_per_s * host.cpu_availability_fraction for host in hosts)),
        Seconds(sum(intervals) / len(intervals) if intervals else 0.0),
    )


def _may_be_big(batch: StoredBatch, least: Request, app_ids: Sequence[AppId]) -> bool:
    return batch.new.app_id in app_ids or any(
        one.ncpus >= least.cores or one.memory_bytes >= least.memory_bytes or one.disk_bytes >= least.disk_bytes
        for one in batch.classes
    )


def _big(batch: StoredBatch) -> BigBatch:
    return BigBatch(
        batch.batch_id,
        batch.new.app_id,
        max(one.ncpus for one in batch.classes),
        max(one.memory_bytes for one in batch.classes),
        max(one.disk_bytes for one in batch.classes),
        batch.counts.sent,
    )
