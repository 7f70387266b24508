"""Writes of scheduler requests: one statement for a group; its conditions decide what is sent and what is reported."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple

import asyncpg

from domain.dispatch import Assignment, AssignmentFate, Report, RequestWrites, TakeOver
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import InstanceState
from domain.settings import SchedulerSettings
from domain.units import HostId, InstanceId, Instant, JobId
from store import hosts
from store.counters import StatisticsChanges
from store.counting import Counted, change_counts
from store.pool import Connection
from store.queries import load
from store.reserving import insert_leases
from store.rows import columns_of, encoded

REPORTED = "reported"  # fate of a row of the query write_group, in addition to those of AssignmentFate
STDERR_BYTES = 65_536  # stored per report
INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class GroupWrites:
    """What a group of requests writes; of two reports, claims or assignments of one instance, the first.

    Of two assignments of a job to one host, only the first is written. An assignment whose homogeneous-redundancy class
    differs from that of the job's first one is lost. The query decides about the jobs as stored.
    """

    writes: Sequence[RequestWrites]
    reports: dict[InstanceId, tuple[Report, HostId]] = field(default_factory=dict)  # with the requesting host
    claims: dict[InstanceId, tuple[TakeOver, Host]] = field(default_factory=dict)
    assignments: dict[InstanceId, Assignment] = field(default_factory=dict)
    of_job: dict[JobId, list[Assignment]] = field(default_factory=dict)  # `assignments` by job
    repeated: dict[tuple[InstanceId, HostId], InstanceId] = field(default_factory=dict)  # to the one that is written
    detached: dict[HostId, Instant] = field(default_factory=dict)

    @classmethod
    def of(cls, writes: Sequence[RequestWrites]) -> GroupWrites:
        group = cls(writes)
        for write in writes:
            for report in write.reports:
                group.reports.setdefault(report.instance_id, (report, write.host.host_id))
            for claim in write.take_over:
                group.claims.setdefault(claim.instance_id, (claim, write.host))
            for assignment in write.assignments:
                group._add(assignment)
            if write.detach:
                group.detached[write.host.host_id] = write.host.last_rpc_at
        return group

    def _add(self, assignment: Assignment) -> None:
        if assignment.instance_id in self.assignments:
            return
        before = self.of_job.setdefault(assignment.job_id, [])
        first = next((one.instance_id for one in before if one.host_id == assignment.host_id), None)
        if first is not None:
            self.repeated[assignment.instance_id, assignment.host_id] = first
        elif not before or before[0].hr_class == assignment.hr_class:
            before.append(assignment)
            self.assignments[assignment.instance_id] = assignment

    def is_one_statement(self) -> bool:
        """Return whether the query write_group writes all of it: no events of hosts, no claims, no leases."""
        has_events = self.detached or any(report.hav_event for report, _ in self.reports.values())
        return not (has_events or self.claims or any(write.lease for write in self.writes))


class Written(NamedTuple):
    """The rows of the query write_group by instance, and the instances that detached hosts lost or that have moved."""

    rows: Mapping[InstanceId, asyncpg.Record]
    moved: Mapping[InstanceId, HostId] = MappingProxyType({})
    lost: Sequence[asyncpg.Record] = ()  # by id

    def with_fate(self, fate: str) -> list[InstanceId]:
        return [instance_id for instance_id, row in self.rows.items() if row["fate"] == fate]


async def write_group(connection: Connection, group: GroupWrites, settings: SchedulerSettings) -> Written:
    """Write a group in one statement, or in one transaction if it needs more."""
    if group.is_one_statement():
        return Written(await _write(connection, group))
    async with connection.transaction():
        statistics = StatisticsChanges()
        if group.claims or group.detached:
            claiming = sorted({write.host.host_id for write in group.writes})
            await connection.execute(
                load("lock_claimed"), claiming, [*group.reports, *group.claims], list(group.detached)
            )
        moved = await _take_over(connection, group, statistics) if group.claims else {}
        lost = await _abort_lost(connection, group, moved) if group.detached else ()
        written = Written(await _write(connection, group, moved, lost, counts_sent=False), moved, lost)
        _note_events(group, written, statistics)
        await statistics.write(connection, settings)
        await insert_leases(connection, group.writes)
        return written


async def _write(
    connection: Connection,
    group: GroupWrites,
    moved: Mapping[InstanceId, HostId] = MappingProxyType({}),
    lost: Sequence[asyncpg.Record] = (),
    *,
    counts_sent: bool = True,
) -> dict[InstanceId, asyncpg.Record]:
    reports = [
        replace(report, host_id=host_id, turnaround_sample=None) if moved.get(instance_id) == host_id else report
        for instance_id, (report, host_id) in group.reports.items()
    ]
    found = await connection.fetch(
        load("write_group"),
        *hosts.host_columns(group.writes),
        hosts.OVERTAKEN_S,
        *_report_columns(reports),
        *_changes(reports),
        [row["job_id"] for row in lost],
        [row["batch_id"] for row in lost],
        *_assignment_columns(group.assignments.values()),
        *_columns_in_job(group),
        counts_sent,
    )
    return {row["instance_id"]: row for row in found}


async def _abort_lost(
    connection: Connection, group: GroupWrites, moved: Collection[InstanceId]
) -> Sequence[asyncpg.Record]:
    reported = [
        instance_id
        for instance_id, (report, _) in group.reports.items()
        if report.host_id in group.detached and report.from_state is InstanceState.IN_PROGRESS
    ]
    found = await connection.fetch(load("abort_lost"), list(group.detached), [*reported, *moved])
    return sorted(found, key=itemgetter("instance_id"))


def _columns_in_job(group: GroupWrites) -> tuple[list[int], list[int], list[bool]]:
    """Return for each assignment the copies its job needs, the group's earlier assignments of the job to the same
    volunteer, and whether it is the first of its job.
    """
    copies, earlier, leads = [], [], []
    for assignment in group.assignments.values():
        of_job = group.of_job[assignment.job_id]
        before = of_job[: of_job.index(assignment)] if len(of_job) > 1 else []
        copies.append(max([one.copies for one in of_job]))
        earlier.append(sum(one.volunteer_id == assignment.volunteer_id for one in before))
        leads.append(not before)
    return copies, earlier, leads


_assignment_columns = columns_of(
    "instance_id host_id volunteer_id app_version_id sent_at due_at timeout_at est_runtime_s tight due_terms job_id"
    " gated hr_class",
    due_terms=lambda assignment: encoded(assignment.due_terms),
)

_report_columns = columns_of(
    "instance_id host_id from_state to_state reported_at elapsed_s cpu_s exit_status reason turnaround_sample stderr"
    " reported_before_at",
    exit_status=lambda report: None if report.exit_status is None else max(-INT32, min(INT32, report.exit_status)),
    reason=lambda report: storable(report.reason),
    stderr=lambda report: storable(report.stderr) or None,
)
_change_columns = columns_of("in_progress retries reported deadlines_missed")


def _changes(reports: Sequence[Report]) -> list[list[object]]:
    """Return the changes of counters by each report; the query adds whether it is late, by the due date in the row."""
    changes = []
    for report in reports:
        before = Counted(report.from_state, report.reported_at, None, report.reported_before_at)
        after = Counted(report.to_state, report.reported_at, None, report.reported_at)
        changes.append(change_counts(before, after))
    return _change_columns(changes)


async def _take_over(
    connection: Connection, group: GroupWrites, statistics: StatisticsChanges
) -> dict[InstanceId, HostId]:
    """Move instances. If two hosts claim one at once, the first gets it: the other finds its owner changed.

    A moved instance counts in the new host record's quota of the day.
    """
    claims, ids = group.claims, sorted(group.claims)
    found = await connection.fetch(
        load("move_instances"),
        ids,
        [claims[i][0].from_host_id for i in ids],
        [claims[i][1].host_id for i in ids],
        [claims[i][0].unused_only for i in ids],
    )
    moved: dict[InstanceId, HostId] = {}
    for row in found:
        _, host = claims[row["instance_id"]]
        moved[row["instance_id"]] = host.host_id
        statistics.note_dispatch(host.host_id, row["app_version_id"], host.last_rpc_at)
    return moved


def _note_events(group: GroupWrites, written: Written, statistics: StatisticsChanges) -> None:
    """Collect what was written: a host's events in the order of its reports, then its lost instances by id."""
    reported: Collection[InstanceId] = set(written.with_fate(REPORTED))
    for instance_id, (report, _) in group.reports.items():
        if instance_id in reported:
            statistics.add(report.hav_event)
    for row in written.lost:
        at = group.detached[row["host_id"]]
        statistics.add(HavEvent(row["host_id"], row["app_version_id"], HavEventKind.LOST, at))
    for instance_id in written.with_fate(AssignmentFate.SENT):
        sent = group.assignments[instance_id]
        statistics.note_dispatch(sent.host_id, sent.app_version_id, sent.sent_at)


def storable(text: str) -> str:
    """Return `text` in a form PostgreSQL can store: without NUL, whole characters, at most 64 KiB.

    >>> storable("a\\0b")
    'ab'
    """
    return text.replace("\0", "").encode("utf-8", "replace")[:STDERR_BYTES].decode("utf-8", "ignore")
