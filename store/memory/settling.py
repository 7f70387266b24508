"""Jobs to settle, in the order in which something happened to them, and what settling changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from domain.batches import BatchCounts, BatchState
from domain.havs import HavEvent
from domain.jobs import JobState
from domain.settlement import InstanceFacts, InstanceStep, JobFacts, JobSettlement
from domain.units import DAY_S, Instant, JobId, later
from store.memory.rows import RETURNED, StoredInstance, StoredJob
from store.memory.work import Work


class MemoryUnsettled:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def unsettled(self, limit: int, *, now: Instant) -> Sequence[JobFacts]:
        waiting = self._work.compared_until
        todo = islice(((id_, serial) for id_, serial in self._work.todo.items() if waiting.get(id_, now) <= now), limit)
        return [_job_facts(self._work.jobs[job_id - 1], serial) for job_id, serial in todo]

    async def begin_comparisons(self, job_ids: Sequence[JobId], *, now: Instant) -> Mapping[JobId, int]:
        attempts = self._work.comparison_attempts
        for job_id in job_ids:
            if job_id in self._work.todo:
                self._work.compared_until[job_id] = later(now, min(DAY_S, 60.0 * 4.0 ** attempts.get(job_id, 0)))
                attempts[job_id] = attempts.get(job_id, 0) + 1
        return {job_id: attempts[job_id] for job_id in job_ids if job_id in self._work.todo}

    async def settle(self, settlements: Sequence[JobSettlement]) -> int:
        settled = 0
        events: list[HavEvent] = []
        for settlement in settlements:
            if self._is_current(settlement):
                events.extend(self._settle(settlement))
                settled += 1
        self._work.apply_events(events)
        return settled

    def _is_current(self, settlement: JobSettlement) -> bool:
        """Whether nothing has happened since the job was read; a job that has ended stays as it ended."""
        if self._work.todo.get(settlement.job_id) != settlement.serial:
            return False
        return self._work.jobs[settlement.job_id - 1].state in (JobState.OPEN, settlement.state)

    def _settle(self, settlement: JobSettlement) -> list[HavEvent]:
        """Apply one; the events of the steps that were really made."""
        del self._work.todo[settlement.job_id]
        self._work.compared_until.pop(settlement.job_id, None)
        self._work.comparison_attempts.pop(settlement.job_id, None)
        job = self._work.jobs[settlement.job_id - 1]
        made = [step for step in settlement.steps if make_step(self._work, step)]
        if settlement.hasten:
            for row in job.instances:
                self._work.hasten(row)
        if settlement.new_instances:
            self._add_instances(job, settlement)
        if settlement.state is not job.state:
            job.canonical_instance_id = settlement.canonical_instance_id
            job.failure = settlement.failure
            self._work.end_job(job, settlement.state, now=settlement.settled_at)
        return [step.hav_event for step in made if step.hav_event is not None]

    def _add_instances(self, job: StoredJob, settlement: JobSettlement) -> None:
        """Unsent ones, urgent for a retry or when a sibling is back."""
        urgent = settlement.retries > 0 or any(row.state in RETURNED for row in job.instances)
        for _ in range(settlement.new_instances):
            self._work.add_instance(job, retries=settlement.retries, urgent=urgent, created_at=settlement.settled_at)
        self._work.count(job.batch, BatchCounts(unsent=settlement.new_instances))


def make_step(work: Work, step: InstanceStep) -> bool:
    """Make a guarded step; False when the instance is in another state by now."""
    row = work.instance(step.instance_id)
    if row is None or row.state is not step.from_state:
        return False
    work.step(row, step.to_state)
    if step.turnaround_sample is not None:
        row.turnaround_sample = step.turnaround_sample
    if step.reason:
        row.reason = step.reason
    return True


def _job_facts(job: StoredJob, serial: int) -> JobFacts:
    return JobFacts(
        job.job_id,
        job.batch.batch_id,
        serial,
        job.state,
        job.job_class,
        job.copies,
        job.canonical_instance_id,
        batch_aborted=job.batch.state is BatchState.ABORTED,
        app_name=job.batch.app_name,
        instances=tuple(_instance_facts(row) for row in job.instances),
        tail_copies=job.tail_copies,
        more_instances=job.more_instances,
    )


def _instance_facts(row: StoredInstance) -> InstanceFacts:
    return InstanceFacts(
        row.instance_id,
        row.name,
        row.state,
        row.host_id,
        row.app_version_id,
        row.sent_at,
        row.due_at,
        row.reported_at,
        row.est_runtime_s,
        row.elapsed_s,
        row.tight,
        row.uploads,
        row.turnaround_sample,
        row.timeout_at,
        row.job.median_turnaround_s,
    )
