"""Performs the reads and writes of scheduler requests in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from domain.apps import App, Spread, spread_of
from domain.batches import BatchState
from domain.credit import NO_CREDIT, CreditKind, Standing
from domain.dispatch import (
    Assignment,
    AssignmentFate,
    Report,
    Reported,
    RequestKey,
    RequestView,
    RequestWrites,
    SentJob,
    TakeOver,
    Trickle,
    WriteOutcome,
)
from domain.errors import InvalidInputError, NotFoundError
from domain.havs import HavEvent, HavEventKind
from domain.hosts import Host, HostAppVersion
from domain.insight import RecentHost
from domain.jobs import InstanceState, JobClass, JobState
from domain.quotas import QuotaGrant, QuotaRequest
from domain.units import AppId, HostId, InstanceId, Instant, JobClassId, JobId, VolunteerId
from lifecycle.states import ACCEPTS_OUTPUTS, OF_USE
from store.hosts import computer_of
from store.memory.registry import Registry
from store.memory.reserving import make_lease
from store.memory.rows import StoredHost, StoredInstance, StoredJob, taken
from store.memory.work import Work


class MemoryTrickles:
    def __init__(self) -> None:
        self._kept: list[Trickle] = []
        self._last_id = 0

    async def keep(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        self._kept = [one for one in self._kept if one.received_at >= forget_before]
        too_many = 0
        refused = set[object]()
        for one in found:
            key = _key(one)
            known = [kept for kept in self._kept if kept.instance_id == one.instance_id]
            if key in refused or any(_key(kept) == key for kept in known):
                continue
            if len(known) >= per_instance:
                too_many += 1
                refused.add(key)
                continue
            self._last_id += 1
            received_at = found[0].received_at
            self._kept.append(
                Trickle(one.instance_id, one.sent_at, received_at, one.variety, one.text, trickle_id=self._last_id)
            )
        return too_many


def _key(one: Trickle) -> object:
    return one.instance_id, one.sent_at, one.variety, one.text


DETACHED = "the host lost all its instances"


class MemoryLedger:
    def __init__(self, registry: Registry, work: Work, trickles: MemoryTrickles) -> None:
        self._registry = registry
        self._work = work
        self._trickles = trickles

    async def read(self, key: RequestKey) -> RequestView:
        volunteer_id = self._registry.volunteer_ids_by_hash.get(key.authenticator_hash)
        if volunteer_id is None:
            return RequestView()
        volunteer = self._registry.volunteers[volunteer_id].volunteer
        stored = self._host(key, volunteer_id)
        network = key.network
        if network is None:
            network = self._work.quotas.network(stored.host.host_id) if stored is not None else ""
        quotas = self._work.quotas.drawn_on(volunteer_id, network)
        own = self._work.credit.get((CreditKind.VOLUNTEER, volunteer_id), NO_CREDIT)
        if stored is None:
            return RequestView(volunteer, network=network, quotas=quotas, standing=Standing(volunteer=own))
        return RequestView(
            volunteer,
            stored.host,
            havs=dict(stored.havs),
            held=tuple(stored.held[instance_id].as_held for instance_id in sorted(stored.held)),
            reported=self._reported(stored, key.instance_ids, of_computer=key.of_computer) if key.instance_ids else {},
            network=network,
            quotas=quotas,
            standing=Standing(self._work.credit.get((CreditKind.HOST, stored.host.host_id), NO_CREDIT), own),
        )

    def _host(self, key: RequestKey, volunteer_id: VolunteerId) -> StoredHost | None:
        if key.host_id == 0:
            return self._work.newest_host(volunteer_id, key.host_cpid)
        stored = self._work.hosts.get(key.host_id)
        return stored if stored is not None and stored.host.volunteer_id == volunteer_id else None

    def _reported(
        self, stored: StoredHost, instance_ids: Sequence[InstanceId], *, of_computer: bool
    ) -> dict[InstanceId, Reported]:
        reported: dict[InstanceId, Reported] = {}
        for instance_id in instance_ids:
            row = self._work.instance(instance_id)
            if row is None or row.host_id is None:
                continue
            is_same = of_computer and computer_of(self._work.hosts[row.host_id].host) == computer_of(stored.host)
            if row.host_id != stored.host.host_id and not is_same:
                continue
            reported[instance_id] = _reported(row)
        return reported

    async def create_host(self, volunteer_id: VolunteerId, host: Host) -> HostId:
        """Raises NotFoundError for an unknown volunteer."""
        if volunteer_id not in self._registry.volunteers:
            raise NotFoundError("volunteer", volunteer_id)
        host_id = HostId(len(self._work.hosts) + 1)
        self._work.put_host(replace(host, host_id=host_id, volunteer_id=volunteer_id))
        return host_id

    async def copy_host(self, volunteer_id: VolunteerId, known: RecentHost) -> HostId:
        """Create a host with another project's record of it: its description, statistics and request interval."""
        host_id = await self.create_host(volunteer_id, known.host)
        self._work.hosts[host_id].rpc_interval_s = known.rpc_interval_s
        for row in known.havs:
            self._work.put_hav(replace(row, host_id=host_id))
        return host_id

    async def copy_assignment(self, assignment: Assignment) -> SentJob | None:
        """Send an instance that the host's quota already counts. Return None if the host may not have it."""
        row = self._work.instance(assignment.instance_id)
        if row is None or _fate(row, assignment, self._registry.apps) is not AssignmentFate.SENT:
            return None
        _check_instants(assignment)
        havs = self._work.hosts[assignment.host_id].havs
        counted = havs.get(assignment.app_version_id, HostAppVersion(assignment.host_id, assignment.app_version_id))
        self._work.send(row, assignment)
        self._work.put_hav(counted)
        return _sent_job(row)

    async def reserve_quota(self, request: QuotaRequest) -> QuotaGrant:
        return self._work.quotas.reserve(request, self._registry.settings.scheduler.shared_quota_start)

    async def release_quota(self, request: QuotaRequest, unused: int) -> None:
        self._work.quotas.release(request, unused)

    async def write(self, writes: RequestWrites) -> WriteOutcome:
        """Raises NotFoundError for an unknown host, and InvalidInputError if instants are out of order."""
        if writes.host.host_id not in self._work.hosts:
            raise NotFoundError("host", writes.host.host_id)
        for assignment in writes.assignments:
            _check_instants(assignment)
        stored = self._work.put_host(writes.host)
        if writes.refused and stored.host.last_rpc_at == writes.host.last_rpc_at:
            stored.refused_at, stored.refused = writes.host.last_rpc_at, writes.refused
        moved = frozenset([one.instance_id for one in writes.take_over if self._take_over(stored.host, one)])
        made = [
            one
            for one in writes.reports
            if self._report(stored.host.host_id if one.instance_id in moved else one.host_id, one)
        ]
        events = [report.hav_event for report in made if report.hav_event is not None]
        changed = {report.job_id for report in made}
        if writes.detach:
            lost = self._detach(stored)
            changed |= {row.job.job_id for row in lost}
            events += [_loss(row, writes.host) for row in lost]
        self._work.apply_events(events)
        outcome = self._assign(writes.assignments, changed) if writes.assignments else WriteOutcome()
        self._work.mark(changed)
        if writes.lease is not None:
            make_lease(self._registry, writes.lease)
        if len(made) == len(writes.reports) and not moved:
            return outcome
        ended = {report.instance_id for report in made}
        return replace(outcome, left_out=frozenset(r.instance_id for r in writes.reports) - ended, moved=moved)

    def _take_over(self, host: Host, claim: TakeOver) -> bool:
        """Move an instance to this host if another record of the same computer still holds it."""
        row, old = self._work.instance(claim.instance_id), self._work.hosts.get(claim.from_host_id)
        if row is None or old is None or row.host_id != claim.from_host_id or row.state not in ACCEPTS_OUTPUTS:
            return False
        if claim.unused_only and old.host.rpc_seqno > 0:
            return False
        if computer_of(old.host) != computer_of(host) or any(one.host_id == host.host_id for one in row.job.instances):
            return False
        self._work.move(row, host.host_id, now=host.last_rpc_at)
        return True

    def _report(self, host_id: HostId, report: Report) -> bool:
        """Make the step if the host still has the instance, and its state is as when the report was checked."""
        row = self._work.instance(report.instance_id)
        if row is None or row.host_id != host_id or row.state is not report.from_state:
            return False
        self._work.step(row, report.to_state, reported_at=report.reported_at)
        row.elapsed_s = report.elapsed_s
        row.cpu_s = report.cpu_s
        row.exit_status = report.exit_status
        row.reason = report.reason
        row.stderr = report.stderr or row.stderr
        if report.turnaround_sample is not None and report.host_id == host_id:  # else it is of the record it moved from
            row.turnaround_sample = report.turnaround_sample
        return True

    def _detach(self, stored: StoredHost) -> list[StoredInstance]:
        """End the host's instances in progress and return them."""
        lost = [stored.held[instance_id] for instance_id in sorted(stored.held)]
        for row in lost:
            self._work.step(row, InstanceState.ABORTED)
            row.reason = DETACHED
        return lost

    def _assign(self, assignments: Sequence[Assignment], changed: set[JobId]) -> WriteOutcome:
        """Send the instances that can be sent. Adds to `changed` the jobs that now need more copies."""
        fates: dict[InstanceId, AssignmentFate] = {}
        sent: dict[InstanceId, SentJob] = {}
        for assignment in assignments:
            row = self._work.instance(assignment.instance_id)
            fate = _fate(row, assignment, self._registry.apps)
            fates[assignment.instance_id] = fate
            if row is None or fate is not AssignmentFate.SENT:
                continue
            self._work.send(row, assignment)
            if self._is_short(row.job, assignment):
                changed.add(row.job.job_id)
            sent[assignment.instance_id] = _sent_job(row)
        return WriteOutcome(fates, sent)

    def _is_short(self, job: StoredJob, assignment: Assignment) -> bool:
        """Return whether the job has fewer usable instances than the dispatch requires."""
        if assignment.copies <= job.copies:
            return False
        job.ask_for(assignment.copies)
        return job.copies > sum(row.state in OF_USE for row in job.instances)

    async def keep_trickles(self, found: Sequence[Trickle], *, per_instance: int, forget_before: Instant) -> int:
        return await self._trickles.keep(found, per_instance=per_instance, forget_before=forget_before)

    async def sent_jobs(self, instance_ids: Sequence[InstanceId]) -> Mapping[InstanceId, SentJob]:
        rows = (self._work.instance(instance_id) for instance_id in instance_ids)
        return {row.instance_id: _sent_job(row) for row in rows if row is not None}

    async def job_classes(self, ids: Sequence[JobClassId]) -> Mapping[JobClassId, JobClass]:
        classes = self._work.classes
        return {job_class_id: classes[job_class_id] for job_class_id in ids if job_class_id in classes}


def _loss(row: StoredInstance, host: Host) -> HavEvent:
    assert row.app_version_id is not None  # it was sent
    return HavEvent(host.host_id, row.app_version_id, HavEventKind.LOST, host.last_rpc_at)


def _check_instants(assignment: Assignment) -> None:
    if not assignment.sent_at < assignment.due_at <= assignment.timeout_at:
        got = (assignment.sent_at, assignment.due_at, assignment.timeout_at)
        raise InvalidInputError("assignment", "sent_at < due_at <= timeout_at", got)


def _fate(row: StoredInstance | None, assignment: Assignment, apps: Mapping[AppId, App]) -> AssignmentFate:
    """Decide an assignment's fate. It is also lost if the job's homogeneous-redundancy class has changed."""
    if row is None or row.state is not InstanceState.UNSENT:
        return AssignmentFate.LOST
    job = row.job
    if job.state is not JobState.OPEN or job.batch.state is not BatchState.ACTIVE:
        return AssignmentFate.LOST
    app = apps[job.batch.new.app_id]
    agreeing = max(job.job_class.quorum, app.adaptive_copies, job.copies)
    spread = spread_of(app.one_per_volunteer, one_per_host=app.one_per_host, agreeing=agreeing)
    if any(_excludes(sibling, assignment, app, spread) for sibling in job.instances):
        return AssignmentFate.SIBLING
    if job.hr_class not in (0, assignment.hr_class):
        return AssignmentFate.LOST
    return AssignmentFate.SENT


def _excludes(sibling: StoredInstance, assignment: Assignment, app: App, spread: Spread) -> bool:
    """Return whether an instance that was already sent prevents the host from getting another one of the job."""
    if spread.per_volunteer and sibling.volunteer_id == assignment.volunteer_id:
        return True
    is_one_at_most = app.one_per_host or sibling.state is InstanceState.IN_PROGRESS
    return sibling.host_id == assignment.host_id and is_one_at_most


_sent_job = taken(SentJob, command_line="job.command_line", inputs="job.inputs")
_reported = taken(
    Reported,
    held="as_held",
    app_name="job.batch.app_name",
    fpops_est_flop="job.job_class.fpops_est_flop",
    outputs="job.job_class.outputs",
)
