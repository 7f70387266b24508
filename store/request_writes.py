"""Writes of scheduler requests: conditional updates that decide which chosen instances are sent, and reports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import asyncpg

from domain.apps import OnePerVolunteer, Spread, spread_of
from domain.dispatch import Assignment, AssignmentFate, InstanceStep, Report, RequestWrites, SentJob, TakeOver
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host
from domain.jobs import InstanceState
from domain.units import HostId, InstanceId, Instant, JobId, VolunteerId
from store import rows
from store.counters import CountChanges, StatisticsChanges, count_steps
from store.counting import Counted, change_counts
from store.pool import Connection
from store.queries import load
from store.rows import columns_of, encoded

_UNSENT = Counted(InstanceState.UNSENT)
_assignment_columns = columns_of(
    "instance_id host_id volunteer_id app_version_id sent_at due_at timeout_at est_runtime_s tight due_terms job_id"
    " gated",
    due_terms=lambda assignment: encoded(assignment.due_terms),
)


@dataclass(slots=True)
class JobNow:
    """A job while a group's assignments are checked in order; each sent one changes it for the next."""

    hr_class: int
    copies: int
    of_use: int
    spread: Spread
    hosts: set[HostId] = field(default_factory=set)  # get no other instance, unless the limit is per volunteer
    volunteers: dict[VolunteerId, int] = field(default_factory=dict)  # the `nth` of their next instance
    changed: bool = False

    def fate(self, assignment: Assignment) -> AssignmentFate:
        """Decide an assignment of an instance that is still unsent."""
        is_known = self.spread.per_volunteer and assignment.volunteer_id in self.volunteers
        if is_known or assignment.host_id in self.hosts:
            return AssignmentFate.SIBLING
        if self.hr_class and assignment.hr_class != self.hr_class:
            return AssignmentFate.LOST
        return AssignmentFate.SENT

    def send(self, assignment: Assignment) -> int:
        """Count the assignment as sent; returns its number among its volunteer's instances of the job."""
        nth = self.volunteers.get(assignment.volunteer_id, 0)
        self.hosts.add(assignment.host_id)
        self.volunteers[assignment.volunteer_id] = nth + 1
        fixed = (self.hr_class, self.copies)
        self.hr_class = self.hr_class or assignment.hr_class
        self.copies = max(self.copies, assignment.copies)
        self.changed = self.changed or fixed != (self.hr_class, self.copies)
        return nth


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The outcome of assignments. `jobs_short` are jobs that now need more copies."""

    fates: Mapping[InstanceId, AssignmentFate]
    sent: Mapping[InstanceId, SentJob]
    jobs_short: frozenset[JobId]


async def send(
    connection: Connection, assignments: Sequence[Assignment], counts: CountChanges, statistics: StatisticsChanges
) -> Dispatched:
    """Send the instances that can be sent, in the given order; instance ids are distinct."""
    if not assignments:
        return Dispatched({}, {}, frozenset())
    locked = await connection.fetch(load("lock_unsent"), [a.instance_id for a in assignments])
    unsent = {row["instance_id"]: row for row in locked if row["wanted"]}
    jobs: dict[JobId, JobNow] = {}
    fates: dict[InstanceId, AssignmentFate] = {}
    chosen: list[Assignment] = []
    nths: list[int] = []
    for assignment in assignments:
        fate = _judge(assignment, unsent.get(assignment.instance_id), jobs, counts)
        fates[assignment.instance_id] = fate
        if fate is AssignmentFate.SENT:
            chosen.append(assignment)
            nths.append(jobs[assignment.job_id].send(assignment))
            statistics.note_dispatch(assignment.host_id, assignment.app_version_id, assignment.sent_at)
    await _update_instances(connection, chosen, nths)
    await _update_jobs(connection, {job_id: job for job_id, job in jobs.items() if job.changed})
    sent = {a.instance_id: rows.sent_job(unsent[a.instance_id]) for a in chosen}
    short = frozenset(job_id for job_id, job in jobs.items() if job.changed and job.copies > job.of_use)
    return Dispatched(fates, sent, short)


def _judge(
    assignment: Assignment, row: asyncpg.Record | None, jobs: dict[JobId, JobNow], counts: CountChanges
) -> AssignmentFate:
    if row is None or row["job_id"] != assignment.job_id:
        return AssignmentFate.LOST
    job = jobs.setdefault(assignment.job_id, _job_now(row))
    fate = job.fate(assignment)
    if fate is not AssignmentFate.SENT:
        return fate
    after = Counted(InstanceState.IN_PROGRESS, assignment.sent_at, assignment.due_at)
    counts.add(row["batch_id"], change_counts(_UNSENT, after))
    if not job.volunteers:
        counts.note_first_dispatch(row["batch_id"], assignment.sent_at)
    return fate


def _job_now(row: asyncpg.Record) -> JobNow:
    spread = spread_of(
        OnePerVolunteer(row["one_per_volunteer"]), one_per_host=row["one_per_host"], agreeing=row["agreeing"]
    )
    volunteers: dict[VolunteerId, int] = {}
    for volunteer_id, nth in zip(row["volunteers"] or (), row["nths"] or (), strict=True):
        volunteers[volunteer_id] = max(nth + 1, volunteers.get(volunteer_id, 0))
    return JobNow(row["hr_class"], row["copies"], row["of_use"], spread, set(row["hosts"] or ()), volunteers)


async def _update_instances(connection: Connection, chosen: Sequence[Assignment], nths: Sequence[int]) -> None:
    if not chosen:
        return
    await connection.execute(load("send_instances"), *_assignment_columns(chosen), nths)


async def _update_jobs(connection: Connection, changed: Mapping[JobId, JobNow]) -> None:
    if not changed:
        return
    ids = sorted(changed)
    noted = await connection.fetch(
        load("note_dispatches"),
        ids,
        [changed[job_id].hr_class for job_id in ids],
        [changed[job_id].copies for job_id in ids],
    )
    if len(noted) < len(ids):
        raise asyncpg.SerializationError("another transaction fixed the homogeneous-redundancy class of a job")


STDERR_BYTES = 65_536  # stored per report
INT32 = 2**31 - 1
_report_columns = columns_of(
    "instance_id host_id from_state to_state reported_at elapsed_s cpu_s exit_status reason turnaround_sample",
    exit_status=lambda report: None if report.exit_status is None else max(-INT32, min(INT32, report.exit_status)),
    reason=lambda report: storable(report.reason),
)


class Ends(NamedTuple):
    """The changes made by `record_ends`."""

    jobs: set[JobId]
    reported: set[InstanceId]
    moved: Mapping[InstanceId, HostId]  # to these hosts


async def record_ends(
    connection: Connection, writes: Sequence[RequestWrites], counts: CountChanges, statistics: StatisticsChanges
) -> Ends:
    """Move instances to hosts that take them over, end reported ones, then those still held by detached hosts.

    Returns the changed jobs, the instances whose reports were written, and the moved instances.
    """
    reports: dict[InstanceId, tuple[Report, HostId]] = {}
    for write in writes:
        for report in write.reports:
            reports.setdefault(report.instance_id, (report, write.host.host_id))  # a duplicate report counts once
    detached = {write.host.host_id: write.host.last_rpc_at for write in writes if write.detach}
    claims: dict[InstanceId, tuple[TakeOver, Host]] = {}
    for write in writes:
        for one in write.take_over:
            claims.setdefault(one.instance_id, (one, write.host))
    locked = [*reports, *claims]
    held = await connection.fetch(load("lock_ended"), locked, sorted(detached)) if detached or claims else []
    moved = await _move(connection, claims, statistics) if claims else {}
    ends = {
        i: replace(report, host_id=host_id) if moved.get(i) == host_id else report
        for i, (report, host_id) in reports.items()
    }
    made = await _record_reports(connection, ends) if ends else []
    count_steps(made, ends, counts, statistics)  # a host's events count in the order of its reports
    aborted = await _abort(connection, _lost(held, detached, made, moved))
    losses = {row["instance_id"]: _loss(row, detached[row["host_id"]]) for row in aborted}
    count_steps(aborted, losses, counts, statistics)
    return Ends({row["job_id"] for row in (*made, *aborted)}, {row["instance_id"] for row in made}, moved)


async def _move(
    connection: Connection, claims: Mapping[InstanceId, tuple[TakeOver, Host]], statistics: StatisticsChanges
) -> dict[InstanceId, HostId]:
    """Move instances. If two hosts claim one at once, the first gets it: the other finds its owner changed.

    A moved instance counts in the new host record's quota of the day.
    """
    ids = sorted(claims)
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


def _lost(
    held: Sequence[asyncpg.Record],
    detached: Collection[HostId],
    reported: Sequence[asyncpg.Record],
    moved: Collection[InstanceId],
) -> list[InstanceId]:
    """Return the instances that detached hosts still hold after their reports and after take-overs by other records."""
    ended = {row["instance_id"] for row in reported} | set(moved)
    return [
        row["instance_id"]
        for row in held
        if row["host_id"] in detached and row["state"] == InstanceState.IN_PROGRESS and row["instance_id"] not in ended
    ]


async def _record_reports(connection: Connection, reports: Mapping[InstanceId, Report]) -> list[asyncpg.Record]:
    made = await connection.fetch(load("record_reports"), *_report_columns(reports.values()))
    ended = [reports[row["instance_id"]] for row in made]
    kept = [report for report in ended if report.stderr and report.to_state is not InstanceState.REPORTED]
    if kept:
        texts = [storable(report.stderr) for report in kept]
        await connection.execute(load("record_stderr"), [report.instance_id for report in kept], texts)
    return made


async def _abort(connection: Connection, lost: Sequence[InstanceId]) -> list[asyncpg.Record]:
    made = await connection.fetch(load("abort_instances"), lost) if lost else []
    return sorted(made, key=lambda row: row["instance_id"])


def _loss(row: asyncpg.Record, at: Instant) -> InstanceStep:
    event = HavEvent(row["host_id"], row["app_version_id"], HavEventKind.LOST, at)
    return InstanceStep(row["instance_id"], InstanceState.IN_PROGRESS, InstanceState.ABORTED, hav_event=event)


def storable(text: str) -> str:
    """Return `text` in a form PostgreSQL can store: without NUL, whole characters, at most 64 KiB.

    >>> storable("a\\0b")
    'ab'
    """
    return text.replace("\0", "").encode("utf-8", "replace")[:STDERR_BYTES].decode("utf-8", "ignore")
