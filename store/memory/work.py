"""Stores hosts, batches, jobs and instances with their indexes, and implements the steps that keep them consistent.

All changes of an instance's state are made here, so that counters, queues, the hosts' sets of instances and the two
calendars (timeouts, due dates) agree with the rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from heapq import heappush

from domain.batches import BatchCounts, BatchState
from domain.credit import NO_CREDIT, Credit, CreditKind
from domain.dispatch import Assignment
from domain.forecasts import ForecastRecord
from domain.havs import HavEvent, applied, combine
from domain.hosts import Host, HostAppVersion
from domain.jobs import InstanceState, JobClass, JobState
from domain.ordered_work import StoredPlace
from domain.quotas import KEPT_DAYS, QuotaGrant, QuotaRequest, SharedQuota, earned, grants, moved, names_of
from domain.restrictions import Restricted, Restrictions
from domain.units import (
    DAY_S,
    AppId,
    AppVersionId,
    BatchId,
    HostId,
    InstanceId,
    Instant,
    JobClassId,
    JobId,
    Seconds,
    VolunteerId,
    shard_of,
)
from store.counting import added, change_counts, job_counts
from store.hosts import is_overtaken
from store.memory.columns import HostColumns
from store.memory.registry import Registry
from store.memory.rows import StoredBatch, StoredHost, StoredInstance, StoredJob
from store.rows import encoded


@dataclass(slots=True)
class _Quota:
    day: int
    earned: int = 0
    sent: int = 0


class SharedQuotas:
    """Shared quotas, as in store/quotas.py for PostgreSQL."""

    def __init__(self) -> None:
        self._quotas: dict[str, _Quota] = {}
        self._networks: dict[HostId, str] = {}
        self._last_day = 0

    def network(self, host_id: HostId) -> str:
        """Return the address from which the host last used its quotas."""
        return self._networks.get(host_id, "")

    def drawn_on(self, volunteer_id: VolunteerId, network: str) -> tuple[SharedQuota, ...]:
        """Return the quotas in use for an account and an address."""
        return tuple(
            [
                SharedQuota(name, quota.earned, quota.day, quota.sent)
                for name in names_of(volunteer_id, network)
                if (quota := self._quotas.get(name)) is not None
            ]
        )

    def reserve(self, request: QuotaRequest, start: int) -> QuotaGrant:
        """Charge the quotas, and record the host's address."""
        self._networks[request.host_id] = request.network
        if request.day > self._last_day:
            self._forget(request.day - KEPT_DAYS)
            self._last_day = request.day
        used = []
        for name in request.names:
            quota = self._quotas.setdefault(name, _Quota(request.day))
            if quota.day < request.day:
                quota.day, quota.sent = request.day, 0
            used.append(SharedQuota(name, quota.earned, quota.day, quota.sent))
        [found], charges = grants([request], used, start)
        for name, jobs in charges.items():
            self._quotas[name].sent += jobs
        return found

    def _forget(self, before: int) -> None:
        """Delete quotas not used since the given day."""
        for name in [name for name, quota in self._quotas.items() if quota.day < before]:
            del self._quotas[name]

    def release(self, request: QuotaRequest, unused: int) -> None:
        """Subtract jobs that were not sent from the counts for the day of the request."""
        for name in request.names:
            quota = self._quotas.get(name)
            if quota is not None and quota.day == request.day:
                quota.sent = max(0, quota.sent - unused)

    def earn(self, added: Mapping[HostId, int], volunteers: Mapping[HostId, VolunteerId], start: int) -> None:
        """Adjust the quotas of the hosts' accounts and addresses for their results."""
        changes = [(volunteers[host_id], self.network(host_id), jobs) for host_id, jobs in added.items()]
        names = {name for volunteer_id, network, _ in changes for name in names_of(volunteer_id, network)}
        known = {name: self._quotas[name].earned for name in names if name in self._quotas}
        for name, jobs in moved(known, changes, start).items():
            self._quotas[name].earned = jobs


class Dispatches:
    """Instances in order of their dispatch times.

    >>> sent = Dispatches()
    >>> for at, number in ((10.0, 1), (30.0, 2), (20.0, 3)):
    ...     sent.add(Instant(at), InstanceId(number))
    >>> sent.since(Instant(15.0)), list(sent.every(1, Instant(15.0))), list(sent.every(2, Instant(5.0)))
    (2, [(20.0, 3), (30.0, 2)], [(10.0, 1), (30.0, 2)])
    """

    def __init__(self) -> None:
        self._at = array("d")
        self._ids = array("q")

    def add(self, at: Instant, instance_id: InstanceId) -> None:
        """Add a dispatch, which is nearly always the latest."""
        if not self._at or at >= self._at[-1]:
            self._at.append(at)
            self._ids.append(instance_id)
            return
        place = bisect_right(self._at, at)
        self._at.insert(place, at)
        self._ids.insert(place, instance_id)

    def since(self, at: Instant) -> int:
        """Return the number of dispatches at or after `at`."""
        return len(self._at) - bisect_left(self._at, at)

    def every(self, step: int, at: Instant) -> Iterator[tuple[float, int]]:
        """Return every `step`-th dispatch at or after `at`, starting with the first."""
        first = bisect_left(self._at, at)
        return zip(self._at[first::step], self._ids[first::step], strict=True)


class Work:
    """The hosts, batches, jobs and instances. Ids count from 1 without gaps, so jobs and instances are lists."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.hosts: dict[HostId, StoredHost] = {}
        self.host_columns = HostColumns(self.hosts)
        self.quotas = SharedQuotas()
        self._hosts_by_cpid: dict[tuple[VolunteerId, str], list[HostId]] = {}
        self.batches: dict[BatchId, StoredBatch] = {}
        self.classes: dict[JobClassId, JobClass] = {}
        self.jobs: list[StoredJob] = []
        self.instances: list[StoredInstance] = []
        self.dispatches: dict[AppId, Dispatches] = {}
        self.turnaround_s_per_flop: dict[AppId, float] = {}
        self.ready: list[tuple[int, float, BatchId]] = []  # active batches with unsent instances, in dispatch order
        self.todo: OrderedDict[JobId, int] = OrderedDict()  # job -> serial, in the order of serials
        self.compared_until: dict[JobId, Instant] = {}  # jobs in back-off during an attempt to compare them
        self.comparison_attempts: dict[JobId, int] = {}
        self._last_serial = 0
        self.timeouts: list[tuple[Instant, InstanceId]] = []  # heap; an entry is valid as long as the row agrees
        self.dues: list[tuple[Instant, InstanceId]] = []  # the same for due dates
        self.history: set[JobId] = set()  # jobs in the history; only history queries read them
        self.purged: set[JobId] = set()  # the purged jobs in the history
        self.months: dict[str, Instant | None] = {}  # months in the history, with their last purge
        self.forecasts: dict[BatchId, list[ForecastRecord]] = {}  # in order of time
        self.granted: list[StoredInstance] = []  # with new credit not yet added to the totals
        self.credit: dict[tuple[CreditKind, int], Credit] = {}

    # ------------------------------------------------------------ look-up

    def note_resumed(
        self, now: Instant, since: Instant | None = None, kind: Restricted | None = None, name: str = ""
    ) -> None:
        """Note that the active batches of paused work are sent again; `since`: only with a rate begun since then."""
        for batch in self.of_work(kind, name):
            if since is None or (batch.moved_at is not None and batch.moved_at >= since):
                batch.moved_at, batch.foremost_tier = max(batch.moved_at or now, now), None

    def of_work(self, kind: Restricted | None, name: str) -> list[StoredBatch]:
        """Return the active batches of an app or a queue, or one batch; without a kind, all."""
        found: list[StoredBatch] = []
        for one in self.batches.values():
            own = {Restricted.BATCH: one.batch_id, Restricted.APP: one.new.app_id, Restricted.QUEUE: one.new.queue}
            if one.state is BatchState.ACTIVE and (kind is None or str(own.get(kind)) == name):
                found.append(one)
        return found

    def job(self, job_id: JobId) -> StoredJob | None:
        """Return a job that was not purged."""
        return self.jobs[job_id - 1] if 0 < job_id <= len(self.jobs) and job_id not in self.purged else None

    def instance(self, instance_id: InstanceId) -> StoredInstance | None:
        """Return an instance that is not in the history."""
        row = self.instance_of_any_age(instance_id)
        return row if row is not None and row.job.job_id not in self.history else None

    def instance_of_any_age(self, instance_id: InstanceId) -> StoredInstance | None:
        """Return an instance that was not purged."""
        row = self.instances[instance_id - 1] if 0 < instance_id <= len(self.instances) else None
        return row if row is not None and row.job.job_id not in self.purged else None

    def fresh_of(self, instance_ids: Iterable[InstanceId]) -> list[StoredInstance]:
        """Return the instances that are still fresh."""
        rows, unsent = self.instances, InstanceState.UNSENT
        return [row for id_ in instance_ids if (row := rows[id_ - 1]).state is unsent and not row.urgent]

    def has_fresh(self, batch: StoredBatch) -> bool:
        return any(queue.after(InstanceId(0), 1, self.fresh_of) for queue in batch.waiting.fresh.values())

    def newest_host(self, volunteer_id: VolunteerId, host_cpid: str) -> StoredHost | None:
        """Return the volunteer's newest host with this CPID, None for an empty CPID."""
        ids = self._hosts_by_cpid.get((volunteer_id, host_cpid)) if host_cpid else None
        return self.hosts[max(ids)] if ids else None

    # ------------------------------------------------------------ hosts

    def put_host(self, host: Host) -> StoredHost:
        """Insert the host, or update its description unless outdated. Its volunteer and creation time do not change."""
        stored = self.hosts.get(host.host_id)
        self.host_columns.changed.add(host.host_id)
        if stored is None:
            stored = self.hosts[host.host_id] = StoredHost(host)
            self._hosts_by_cpid.setdefault((host.volunteer_id, host.host_cpid), []).append(host.host_id)
            return stored
        old = stored.host
        if is_overtaken(host.last_rpc_at, old.last_rpc_at):
            return stored
        if (old.volunteer_id, old.created_at) != (host.volunteer_id, host.created_at):
            host = replace(host, volunteer_id=old.volunteer_id, created_at=old.created_at)
        if old.host_cpid != host.host_cpid:
            self._hosts_by_cpid[(old.volunteer_id, old.host_cpid)].remove(host.host_id)
            self._hosts_by_cpid.setdefault((host.volunteer_id, host.host_cpid), []).append(host.host_id)
        since_s = host.last_rpc_at - old.last_rpc_at
        if since_s > 0:
            known_s = stored.rpc_interval_s
            stored.rpc_interval_s = Seconds(since_s if known_s is None else 0.9 * known_s + 0.1 * since_s)
        stored.host = host
        return stored

    def apply_events(self, events: Iterable[HavEvent]) -> None:
        """Update the statistics of hosts as defined in domain.havs."""
        scheduler, events = self._registry.settings.scheduler, list(events)
        added = earned(events) if scheduler.shared_quota_start else {}
        volunteers = {host_id: self.hosts[host_id].host.volunteer_id for host_id in added}
        self.quotas.earn(added, volunteers, scheduler.shared_quota_start)
        for delta in combine(events, quota_most=scheduler.daily_quota):
            row = self.hosts[delta.host_id].havs.get(delta.app_version_id)
            row = row or HostAppVersion(delta.host_id, delta.app_version_id)
            self.put_hav(applied(row, delta, quota_start=scheduler.daily_quota_start))

    def grant_credit(self, *, now: Instant) -> None:
        """Add the new credit of results to the totals of their hosts and volunteers."""
        owed: dict[tuple[CreditKind, int], float] = {}
        for row in self.granted:
            for owner in ((CreditKind.HOST, row.host_id or 0), (CreditKind.VOLUNTEER, row.volunteer_id or 0)):
                owed[owner] = owed.get(owner, 0.0) + (row.credit or 0.0)
        for owner, credit in owed.items():
            self.credit[owner] = self.credit.get(owner, NO_CREDIT).plus(credit, now)
        self.granted.clear()

    def put_hav(self, row: HostAppVersion) -> None:
        """Insert or replace a host's statistics for an app version."""
        self.hosts[row.host_id].havs[row.app_version_id] = row
        self.host_columns.changed.add(row.host_id)

    def _count_sent_today(self, host: StoredHost, app_version_id: AppVersionId, sent_at: Instant) -> None:
        day = int(sent_at // DAY_S)
        row = host.havs.get(app_version_id) or HostAppVersion(host.host.host_id, app_version_id)
        sent_today = 1 if day > row.day else row.sent_today + 1
        self.put_hav(replace(row, day=max(day, row.day), sent_today=sent_today))

    # ------------------------------------------------------------ batches and jobs

    def count(self, batch: StoredBatch, change: BatchCounts) -> None:
        """Change a batch's counters. It is ready if it has unsent instances and no limit blocks it."""
        was_ready = batch.is_ready
        batch.counts = added(batch.counts, change)
        self._note_ready(batch, was_ready)

    def move_batch(self, batch: StoredBatch, place: StoredPlace) -> None:
        """Set a batch's place in the order."""
        if batch.is_ready:
            self._drop_ready(batch)
        tier = place.tier if place.level in (None, batch.new.level) else batch.new.order_tier
        batch.new = replace(batch.new, order_tier=tier, order_key=place.key)
        batch.new = replace(batch.new, unpaid=place.unpaid, job_pe=place.job_pe)
        batch.hold, batch.sent_most = place.hold, place.sent_most
        self._note_ready(batch, was_ready=False)

    def _note_ready(self, batch: StoredBatch, was_ready: bool) -> None:
        if batch.is_ready and not was_ready:
            insort(self.ready, batch.order)
        elif was_ready and not batch.is_ready:
            self._drop_ready(batch)

    def _drop_ready(self, batch: StoredBatch) -> None:
        del self.ready[bisect_left(self.ready, batch.order)]

    def end_batch(self, batch: StoredBatch, state: BatchState, *, now: Instant) -> None:
        if batch.is_ready:
            self._drop_ready(batch)
        batch.state = state
        batch.ended_at = now
        batch.columns = None
        self._registry.restrictions.pop((Restricted.BATCH, str(batch.batch_id)), None)

    def end_job(self, job: StoredJob, state: JobState, *, now: Instant) -> None:
        """Record that the job ended. If it was the last open job of an active batch, complete the batch."""
        batch = job.batch
        change = job_counts(job.state, state)
        job.state = state
        job.ended_at = now
        job.changed()
        self.count(batch, change)
        if batch.state is BatchState.ACTIVE and batch.counts.jobs_open == 0:
            self.end_batch(batch, BatchState.COMPLETE, now=now)

    def mark(self, job_ids: Iterable[JobId]) -> None:
        """Mark jobs as changed. They get new serials and are settled after all other jobs."""
        for job_id in sorted(set(job_ids)):
            self._last_serial += 1
            self.todo[job_id] = self._last_serial
            self.compared_until.pop(job_id, None)
            self.todo.move_to_end(job_id)

    # ------------------------------------------------------------ instances

    def add_instance(self, job: StoredJob, *, retries: int, urgent: bool, created_at: Instant | None = None) -> None:
        """Add an instance. `created_at` is None for an instance created with its batch."""
        row = StoredInstance(InstanceId(len(self.instances) + 1), job, retries, urgent, created_at=created_at)
        self.instances.append(row)
        job.instances = (*job.instances, row)
        job.changed()
        if urgent:
            job.batch.waiting.add_urgent(retries, row.instance_id)
        else:
            job.batch.waiting.add_fresh(shard_of(job.job_id), row.instance_id)

    def hasten(self, row: StoredInstance) -> None:
        """Move an unsent instance from the fresh range to the urgent one."""
        if row.state is InstanceState.UNSENT and not row.urgent:
            row.urgent = True
            row.job.changed()
            row.job.batch.waiting.add_urgent(row.retries, row.instance_id)

    def send(self, row: StoredInstance, assignment: Assignment) -> None:
        """Send an unsent instance to a host."""
        job, batch, host = row.job, row.job.batch, self.hosts[assignment.host_id]
        self.step(row, InstanceState.IN_PROGRESS, sent_at=assignment.sent_at)
        row.host_id = assignment.host_id
        row.volunteer_id = assignment.volunteer_id
        row.app_version_id = assignment.app_version_id
        row.est_runtime_s = assignment.est_runtime_s
        row.tight = assignment.tight
        row.gated = assignment.gated
        row.terms_number = batch.due_terms.add(encoded(assignment.due_terms))
        self.set_due(row, due_at=assignment.due_at, timeout_at=assignment.timeout_at)
        host.held[row.instance_id] = row
        self.dispatches.setdefault(batch.new.app_id, Dispatches()).add(assignment.sent_at, row.instance_id)
        self._count_sent_today(host, assignment.app_version_id, assignment.sent_at)
        if job.first_sent_at is None:
            job.first_sent_at = assignment.sent_at
            latest = batch.last_first_dispatch_at
            batch.last_first_dispatch_at = max(latest or assignment.sent_at, assignment.sent_at)
        if job.hr_class == 0:
            job.hr_class = assignment.hr_class

    def move(self, row: StoredInstance, host_id: HostId, *, now: Instant) -> None:
        """Move a sent instance to another record of the same computer. It counts towards that record's quota today."""
        assert row.host_id is not None and row.app_version_id is not None
        self._count_sent_today(self.hosts[host_id], row.app_version_id, now)
        if row.state is InstanceState.IN_PROGRESS:
            del self.hosts[row.host_id].held[row.instance_id]
            self.hosts[host_id].held[row.instance_id] = row
        row.host_id = host_id
        row.turnaround_sample = None
        row.job.changed()

    def set_due(self, row: StoredInstance, *, due_at: Instant, timeout_at: Instant) -> None:
        """Set the due date and the timeout, and add both to the calendars."""
        row.due_at = due_at
        row.timeout_at = timeout_at
        row.job.changed()
        heappush(self.dues, (due_at, row.instance_id))
        heappush(self.timeouts, (timeout_at, row.instance_id))

    def step(
        self,
        row: StoredInstance,
        to_state: InstanceState,
        *,
        sent_at: Instant | None = None,
        reported_at: Instant | None = None,
    ) -> None:
        """Change an instance's state and all that depends on it. The caller must have checked the guard."""
        before = row.counted()
        row.state = to_state
        row.job.changed()
        row.sent_at = row.sent_at if sent_at is None else sent_at
        row.reported_at = row.reported_at if reported_at is None else reported_at
        if before.state is InstanceState.IN_PROGRESS:
            assert row.host_id is not None
            del self.hosts[row.host_id].held[row.instance_id]
        elif before.state is InstanceState.UNSENT and row.urgent:
            row.job.batch.waiting.remove_urgent(row.retries, row.instance_id)
        self.count(row.job.batch, change_counts(before, row.counted()))


class OnTables:
    """Base class for parts of the store that need only the tables."""

    def __init__(self, registry: Registry, work: Work) -> None:
        self._registry = registry
        self._work = work

    def _restrictions(self) -> Restrictions:
        """Return the restrictions; pauses of batches only while these are active."""
        stored, batches = self._registry.restrictions, self._work.batches
        paused = {key: batches.get(BatchId(int(key[1]))) for key in stored if key[0] is Restricted.BATCH}
        ended = {key for key, batch in paused.items() if batch is None or batch.state is not BatchState.ACTIVE}
        return {key: one for key, one in stored.items() if key not in ended}
