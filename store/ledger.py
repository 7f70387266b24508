"""The database access of scheduler requests: concurrent requests share reads and transactions.

One set-based read serves any number of requests: the hosts with their app versions and instances in progress, which
include most reported ones. Only reports of other instances are read separately.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import asyncpg

from domain.credit import Standing
from domain.dispatch import (
    AssignmentFate,
    Reported,
    RequestKey,
    RequestView,
    RequestWrites,
    SentJob,
    Trickle,
    WriteOutcome,
)
from domain.hosts import Host
from domain.jobs import InstanceInProgress, JobClass
from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest
from domain.settings import SchedulerSettings
from domain.units import HostId, InstanceId, Instant, JobClassId, VolunteerId
from store import hosts, quotas, rows
from store.group import BESIDE_S, Grouped, Pace
from store.outputs import PostgresTrickles
from store.pool import Connection, Database
from store.queries import load
from store.request_writes import REPORTED, GroupWrites, Written, write_group

LARGEST_ID = 2**63 - 1
HELD = (  # the columns of `held` in the query who_asks
    "instance_id job_id batch_id job_class_id app_version_id host_id volunteer_id sent_at due_at est_runtime_s tight"
    " gated app_name no_longer_needed median_turnaround_s state turnaround_sample timeout_at reported_at"
    " fpops_est_flop ncpus outputs uploads"
)
_HELD_NAMES = HELD.split()


async def read_many(connection: Connection, keys: Sequence[RequestKey]) -> list[RequestView]:
    """Return one view per key, in order."""
    wanted = {instance_id for key in keys for instance_id in key.instance_ids if 0 < instance_id <= LARGEST_ID}
    reported: dict[InstanceId, Reported] = {}
    askers = await _askers(connection, keys, wanted, reported)
    asking = [view.host for view in askers.values() if view.host is not None]
    others = wanted - reported.keys()
    computers = {host.host_id: hosts.computer_of(host) for host in asking}
    if others:
        for row in await connection.fetch(load("instances_reported"), sorted(others)):
            reported[row["instance_id"]] = rows.reported(row)
            computers[row["host_id"]] = (row["volunteer_id"], row["host_cpid"], row["domain_name"])
    return [_view(askers.get(position, RequestView()), key, reported, computers) for position, key in enumerate(keys)]


def _view(
    asker: RequestView,
    key: RequestKey,
    reported: Mapping[InstanceId, Reported],
    computers: Mapping[HostId, hosts.Computer],
) -> RequestView:
    host = asker.host
    if host is None:
        return asker
    computer = hosts.computer_of(host)
    found = {
        i: reported[i]
        for i in key.instance_ids
        if i in reported
        and (
            reported[i].held.host_id == host.host_id
            or (key.of_computer and computers.get(reported[i].held.host_id) == computer)
        )
    }
    return replace(asker, reported=found)


async def _askers(
    connection: Connection,
    keys: Sequence[RequestKey],
    wanted: Collection[InstanceId],
    reported: dict[InstanceId, Reported],
) -> dict[int, RequestView]:
    """Return what is known of the host behind each request, by position, without `reported`.

    Adds those of the hosts' instances in progress that are `wanted` to `reported`.
    """
    found = await connection.fetch(
        load("who_asks"),
        [key.authenticator_hash for key in keys],
        [key.host_id if 0 <= key.host_id <= LARGEST_ID else -1 for key in keys],
        [key.host_cpid for key in keys],
        [key.network for key in keys],
    )
    return {row["position"] - 1: _asker(row, wanted, reported) for row in found}


def _asker(row: asyncpg.Record, wanted: Collection[InstanceId], reported: dict[InstanceId, Reported]) -> RequestView:
    volunteer, network = rows.asking_volunteer(row), row["asked_network"]
    shared = tuple([quotas.shared_quota(one) for one in row["quotas"]])
    host_credit, own_credit, team = row["host_credit"], row["own_credit"], row["team"]
    standing = Standing(rows.credit(host_credit), rows.credit(own_credit), *(() if team is None else team))
    if row["host_id"] is None:
        return RequestView(volunteer, network=network, quotas=shared, standing=standing)
    versions = {hav["app_version_id"]: rows.host_app_version(hav) for hav in row["versions"]}
    held: list[InstanceInProgress] = []
    for values in row["held"]:
        instance = dict(zip(_HELD_NAMES, values, strict=True))
        if instance["instance_id"] in wanted:
            found = reported[instance["instance_id"]] = rows.reported(instance)
            held.append(found.held)
        else:
            held.append(rows.held(instance))
    return RequestView(
        volunteer, rows.host(row), versions, tuple(held), network=network, quotas=shared, standing=standing
    )


class PostgresLedger:
    """Implements the scheduler's Ledger. `settings` returns the current settings, for hosts' quotas."""

    def __init__(self, database: Database, settings: Callable[[], SchedulerSettings]) -> None:
        self._database = database
        self._settings = settings
        pace = Pace(BESIDE_S)
        self.writes = Grouped(database.dsn, self._write_many, in_transaction=False, retried=True, pace=pace)
        self.reads = Grouped(database.dsn, read_many, in_transaction=False, pace=pace)
        self.quotas = Grouped(database.dsn, self._reserve_many, in_transaction=True, lanes=1)
        self._forgotten_on = 0  # day

    async def read(self, key: RequestKey) -> RequestView:
        return await self.reads.ask(key)

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        row = await self._database.fetch_first(
            "insert_host", volunteer_id, host.created_at, *hosts.said(host), *hosts.description(host)
        )
        return HostId(row["host_id"])

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        return await self.quotas.ask(request)

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        await self._database.in_transaction(lambda connection: quotas.release(connection, request, unused))

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        """Write assignments and reports. Raises UnavailableError; after a lost connection they may be stored.

        A repeated write omits what was stored: each step applies only to the state it was decided in. An instance whose
        reply was lost is in progress: no other host can get it, and its own host gets it again at its next request.
        """
        return await self.writes.ask(writes)

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        return await PostgresTrickles(self._database).keep(
            found, per_instance=per_instance, forget_before=forget_before
        )

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        found = await self._database.fetch("sent_jobs", list(instance_ids))
        return {row["instance_id"]: rows.sent_job(row) for row in found}

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        found = await self._database.fetch("job_classes", list(ids))
        return {row["job_class_id"]: rows.job_class(row) for row in found}

    async def close(self) -> None:
        await self.reads.close()
        await self.writes.close()
        await self.quotas.close()

    async def _reserve_many(self, connection: Connection, requests: Sequence[QuotaRequest]) -> list[QuotaGrant]:
        grants = await quotas.reserve_many(connection, requests, self._settings().shared_quota_start)
        day = max(one.day for one in requests)
        if day > self._forgotten_on:  # once a day, and last, because waiting for a lock here would block other requests
            await quotas.forget(connection, day - KEPT_DAYS)
            self._forgotten_on = day
        return grants

    async def _write_many(self, connection: Connection, writes: Sequence[RequestWrites]) -> list[WriteOutcome]:
        return await write_many(connection, writes, self._settings())


async def write_many(
    connection: Connection, writes: Sequence[RequestWrites], settings: SchedulerSettings
) -> list[WriteOutcome]:
    """Write any number of requests, all or none; returns one outcome each, in order.

    Rows are locked in one global order: hosts, instances (by id), jobs, marks, counters, statistics, shared quotas,
    leases. Locked unsent instances are skipped, not waited for.
    """
    group = GroupWrites.of(writes)
    written = await write_group(connection, group, settings)
    reported = set(written.with_fate(REPORTED))
    return [_outcome(write, group, written, reported) for write in writes]


def _outcome(
    write: RequestWrites, group: GroupWrites, written: Written, reported: Collection[InstanceId]
) -> WriteOutcome:
    """Return the outcome of one request; an instance chosen twice goes to the first request."""
    fates = dict.fromkeys([one.instance_id for one in write.assignments], AssignmentFate.LOST)
    sent: dict[InstanceId, SentJob] = {}
    for one in write.assignments:
        if group.repeated.get((one.instance_id, one.host_id)) in written.rows:
            fates[one.instance_id] = AssignmentFate.SIBLING
        row = written.rows.get(one.instance_id)
        if row is None or group.assignments[one.instance_id] is not one:
            continue
        fates[one.instance_id] = AssignmentFate(row["fate"])
        if row["fate"] == AssignmentFate.SENT:
            sent[one.instance_id] = rows.sent_job(row)
    host_id = write.host.host_id
    left_out = frozenset(
        [
            report.instance_id
            for report in write.reports
            if report.instance_id not in reported or group.reports[report.instance_id][1] != host_id
        ]
    )
    moved = [one.instance_id for one in write.take_over if written.moved.get(one.instance_id) == write.host.host_id]
    return WriteOutcome(fates, sent, left_out, frozenset(moved))
