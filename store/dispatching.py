"""Which of the chosen instances are really sent? The conditional update that decides races."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg

from domain.apps import OnePerVolunteer, Spread, spread_of
from domain.dispatch import Assignment, AssignmentFate, SentJob
from domain.jobs import InstanceState
from domain.units import HostId, InstanceId, JobId, VolunteerId
from store import work_rows
from store.counters import CountChanges
from store.counting import Counted, change_counts
from store.pool import Connection
from store.queries import load
from store.statistics import StatisticsChanges

_UNSENT = Counted(InstanceState.UNSENT)


@dataclass(slots=True)
class JobNow:
    """A job while a group's assignments are judged in order; each one sent changes it for the next."""

    hr_class: int
    copies: int
    of_use: int
    spread: Spread
    hosts: set[HostId] = field(default_factory=set)  # that get no other instance, unless the limit is the volunteer's
    volunteers: dict[VolunteerId, int] = field(default_factory=dict)  # the `nth` of their next instance
    changed: bool = False

    def fate(self, assignment: Assignment) -> AssignmentFate:
        """What becomes of an assignment of an instance that is still unsent."""
        is_known = self.spread.per_volunteer and assignment.volunteer_id in self.volunteers
        if is_known or assignment.host_id in self.hosts:
            return AssignmentFate.SIBLING
        if self.hr_class and assignment.hr_class != self.hr_class:
            return AssignmentFate.LOST
        return AssignmentFate.SENT

    def send(self, assignment: Assignment) -> int:
        """Count the assignment as sent; its place among its volunteer's instances of the job."""
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
    """What became of assignments. `jobs_short` are jobs that now need more copies than there are."""

    fates: Mapping[InstanceId, AssignmentFate]
    sent: Mapping[InstanceId, SentJob]
    jobs_short: frozenset[JobId]


async def send(
    connection: Connection, assignments: Sequence[Assignment], counts: CountChanges, statistics: StatisticsChanges
) -> Dispatched:
    """Send what can be sent, in the order given; instance ids are distinct."""
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
    sent = {a.instance_id: work_rows.sent_job(unsent[a.instance_id]) for a in chosen}
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
    await connection.execute(
        load("send_instances"),
        [a.instance_id for a in chosen],
        [a.host_id for a in chosen],
        [a.volunteer_id for a in chosen],
        [a.app_version_id for a in chosen],
        [a.sent_at for a in chosen],
        [a.due_at for a in chosen],
        [a.timeout_at for a in chosen],
        [a.est_runtime_s for a in chosen],
        [a.tight for a in chosen],
        [a.because for a in chosen],
        [a.job_id for a in chosen],
        [a.gated for a in chosen],
        nths,
    )


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
