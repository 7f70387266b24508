"""Checks invariants: with each reply, every few minutes, and at the end. Each violation is a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.batches import BatchState
from domain.errors import NotFoundError
from domain.jobs import InstanceState, JobClass, JobState, instance_id_of
from domain.units import BatchId, HostId, InstanceId, JobId
from domain.views import InstanceRow, JobRow
from tests.deterministic.clients import Client
from tests.memory import MemoryStore
from tests.stores import batches_of
from wire.messages import STATE_UPLOADED, SchedulerReply, SchedulerRequest

S = InstanceState
TAKEN = frozenset({S.REPORTED, S.INCONCLUSIVE, S.VALID, S.INVALID, S.TOO_LATE, S.FAILED})
ALL = 10_000


@dataclass(slots=True)
class Auditor:
    """Satisfies the clients' Witness. Reads the store directly, without failures."""

    store: MemoryStore
    breaches: list[str] = field(default_factory=list)
    told: dict[InstanceId, HostId] = field(default_factory=dict)  # the host each instance was sent to
    hosts: dict[InstanceId, HostId] = field(default_factory=dict)  # the host it was last found at
    over: dict[JobId, tuple[JobState, InstanceId | None]] = field(default_factory=dict)
    uploads: dict[tuple[InstanceId, str], str] = field(default_factory=dict)
    promised: dict[str, int] = field(default_factory=dict)  # acknowledged batches: their jobs
    volunteer_of: dict[HostId, int] = field(default_factory=dict)
    classes: dict[BatchId, JobClass] = field(default_factory=dict)

    # ------------------------------------------------------------ what is said

    async def said(self, client: Client, request: SchedulerRequest, reply: SchedulerReply) -> None:
        host_id = HostId(reply.host_id or request.host_id)
        client.host_ids.add(host_id)
        if request.cpu_req_s > 0 and not reply.results and not reply.messages:
            self.breaches.append(f"host {host_id} requested work and got neither a job nor a reason")
        for result in reply.results:
            row = await self._row(result.name)
            if row is None or row.host_id != host_id or row.sent_at is None or row.due_at is None:
                self.breaches.append(f"{result.name} was sent to host {host_id}, but the store has {row}")
                continue
            before = self.told.setdefault(row.instance_id, host_id)
            if before != host_id and await self._computer(before) != await self._computer(host_id):
                self.breaches.append(f"{result.name} was sent to hosts {before} and {host_id}")
            if int(result.report_deadline) > row.due_at:
                self.breaches.append(
                    f"{result.name} was sent with deadline {result.report_deadline}, but the store has {row.due_at}"
                )
        reported = {result.name: result for result in request.results}
        for name in reply.acks:
            row = await self._row(name)
            if row is None or row.host_id not in client.host_ids or reported[name].state != STATE_UPLOADED:
                continue
            if row.state not in TAKEN:
                self.breaches.append(f"{name} was acknowledged as done but is {row.state}")
            elif row.state is S.FAILED and reported[name].files and row.exit_status == 0:
                self.breaches.append(f"{name} was uploaded and reported but is marked failed: {row.reason}")

    def stored(self, instance_id: InstanceId, name: str, md5: str) -> None:
        self.uploads[instance_id, name] = md5

    async def _row(self, name: str) -> InstanceRow | None:
        parts = name.split("_")
        if instance_id_of(name) is None or len(parts) < 4:
            return None
        try:
            job = await self.store.views.job(JobId(int(parts[-2])))
        except NotFoundError:
            return None
        return next((row for row in job.instances if row.instance_id == instance_id_of(name)), None)

    # ------------------------------------------------------------ what is stored

    async def look(self) -> None:
        """Check all invariants."""
        self.breaches += await self.store.views.check_counters()
        valid: Counter[tuple[HostId, int]] = Counter()
        for batch in await batches_of(self.store, limit=ALL):
            for short in await self.store.views.jobs(batch.batch_id, limit=ALL):
                job = await self.store.views.job(short.job_id)
                await self._look_at(job)
                valid.update(
                    (r.host_id, int(r.app_version_id or 0)) for r in job.instances if r.state is S.VALID and r.host_id
                )
        for host in await self.store.views.hosts(limit=ALL):
            _, havs = await self.store.views.host(host.host_id)
            for hav in havs:
                counted = valid[host.host_id, hav.app_version_id]
                if hav.n_valid != counted:
                    self.breaches.append(f"host {host.host_id} has {counted} valid results, and {hav.n_valid} counted")
        for (instance_id, name), md5 in self.uploads.items():
            if md5 not in self._brought.get((instance_id, name), ()):
                self.breaches.append(f"upload {name} was acknowledged but is missing")

    _brought: dict[tuple[InstanceId, str], set[str]] = field(default_factory=dict)

    async def _look_at(self, job: JobRow) -> None:
        rows = [row for row in job.instances if row.host_id is not None]
        for row in rows:
            assert row.host_id is not None
            before = self.hosts.setdefault(row.instance_id, row.host_id)
            if before != row.host_id:
                self.hosts[row.instance_id] = row.host_id
                if await self._computer(before) != await self._computer(row.host_id):
                    self.breaches.append(f"instance {row.instance_id} moved from host {before} to {row.host_id}")
            for upload in row.uploads:
                self._brought.setdefault((row.instance_id, upload.name), set()).add(upload.md5)
        await self._look_at_spread(job, rows)
        if job.state is JobState.OPEN:
            if job.job_id in self.over:
                self.breaches.append(f"job {job.job_id} had ended and is open again")
            return
        end = (job.state, job.canonical_instance_id)
        if self.over.setdefault(job.job_id, end) != end:
            self.breaches.append(f"job {job.job_id} had ended as {self.over[job.job_id]} and is now {end}")
        canonical = [row.state for row in job.instances if row.instance_id == job.canonical_instance_id]
        if (job.state is JobState.VALID) != (canonical == [S.VALID]):
            self.breaches.append(f"job {job.job_id} is {job.state} with canonical instance {canonical}")
        if job.state is JobState.FAILED and not job.failure:
            self.breaches.append(f"job {job.job_id} failed without a reason")

    async def _look_at_spread(self, job: JobRow, rows: Sequence[InstanceRow]) -> None:
        """Check for one instance per host, and per volunteer where results must agree."""
        hosts = Counter([row.host_id for row in rows])
        volunteers = Counter([await self._volunteer(row.host_id) for row in rows if row.host_id is not None])
        is_quorum = (await self._class_of(job)).quorum > 1
        if max(hosts.values(), default=0) > 1 or (is_quorum and max(volunteers.values(), default=0) > 1):
            self.breaches.append(f"job {job.job_id} has two instances on one host or volunteer: {rows}")

    async def _class_of(self, job: JobRow) -> JobClass:
        """Return the batch's only class."""
        if job.batch_id not in self.classes:
            [self.classes[job.batch_id]] = await self.store.views.classes_of_batch(job.batch_id)
        return self.classes[job.batch_id]

    async def _computer(self, host_id: HostId) -> tuple[int, str, str]:
        host, _ = await self.store.views.host(host_id)
        return int(host.volunteer_id), host.host_cpid, host.domain_name

    async def _volunteer(self, host_id: HostId) -> int:
        if host_id not in self.volunteer_of:
            self.volunteer_of[host_id] = int((await self.store.views.host(host_id))[0].volunteer_id)
        return self.volunteer_of[host_id]

    # ------------------------------------------------------------ what comes to an end

    async def batches_under_way(self) -> list[BatchId]:
        return [b.batch_id for b in await batches_of(self.store, limit=ALL) if b.state is BatchState.ACTIVE]

    async def check_promises(self) -> None:
        """Check that every acknowledged batch exists once, with all of its jobs."""
        there = Counter(batch.name for batch in await batches_of(self.store, limit=ALL))
        for batch in await batches_of(self.store, limit=ALL):
            if batch.name in self.promised and batch.counts.jobs_total != self.promised[batch.name]:
                self.breaches.append(f"batch {batch.name} has {batch.counts.jobs_total} jobs")
        for name in self.promised:
            if there[name] != 1:
                self.breaches.append(f"batch {name} was submitted once but exists {there[name]} times")
