"""What of a job is compared, and what its settlement means for instances and their hosts. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from domain.dispatch import Upload
from domain.havs import HavEvent, HavEventKind
from domain.jobs import JobClass, output_file_name
from domain.settlement import InstanceFacts, InstanceStep, JobFacts, JobSettlement
from domain.units import Flop, InstanceId, Instant, Seconds
from jobs.comparisons import OutputFile
from lifecycle.settle import InstanceView, JobView, Settlement
from lifecycle.states import Event, advance, host_record
from lifecycle.turnaround import LEAST_S, returned_sample, yardstick_s

NO_REASONS: Mapping[InstanceId, str] = MappingProxyType({})


def view_of(job: JobFacts, *, max_lost: int) -> JobView:
    """The job as the life-cycle looks at it; `max_lost` is lifecycle.max_lost_instances."""
    return JobView(
        job.job_class.quorum,
        job.job_class.max_errors,
        job.job_class.max_instances + job.more_instances,
        tuple([InstanceView(instance.instance_id, instance.state) for instance in job.instances]),
        copies=job.copies,
        state=job.state,
        canonical_instance_id=job.canonical_instance_id,
        batch_aborted=job.batch_aborted,
        extra=job.tail_copies,
        max_lost=max_lost,
    )


def uploads_by_output(instance: InstanceFacts, job_class: JobClass) -> dict[str, Upload]:
    """What the instance brought, by the job's names for its outputs; optional ones may be missing."""
    if not job_class.outputs:
        return {}
    brought = {upload.name: upload for upload in instance.uploads}
    named = ((output.name, output_file_name(instance.name, n)) for n, output in enumerate(job_class.outputs))
    return {name: brought[file_name] for name, file_name in named if file_name in brought}


def files_of(instance: InstanceFacts, job_class: JobClass) -> tuple[OutputFile, ...]:
    """The instance's outputs for a comparison."""
    return tuple(
        OutputFile(name, upload.name, upload.nbytes, upload.md5)
        for name, upload in uploads_by_output(instance, job_class).items()
    )


def job_settlement(
    job: JobFacts, settlement: Settlement, now: Instant, because: Mapping[InstanceId, str] = NO_REASONS
) -> JobSettlement:
    """The life-cycle's decision as the change to be written, with what it says about hosts.

    `because` says why outputs could not be read, by instance.
    """
    instances = {instance.instance_id: instance for instance in job.instances}
    fpops_est_flop = job.job_class.fpops_est_flop
    return JobSettlement(
        job.job_id,
        job.serial,
        settlement.state,
        now,
        canonical_instance_id=settlement.canonical_instance_id,
        failure=settlement.failure,
        steps=tuple(
            [
                _step(instances[id_], event, fpops_est_flop, now, because.get(id_, ""))
                for id_, event in settlement.events
            ]
        ),
        new_instances=settlement.new_instances,
        retries=settlement.retries,
        hasten=settlement.hasten,
    )


def _step(instance: InstanceFacts, event: Event, fpops_est_flop: Flop, now: Instant, because: str) -> InstanceStep:
    step = advance(instance.state, event, instance_id=instance.instance_id)
    kind = host_record(step.instructions)
    return InstanceStep(
        instance.instance_id,
        instance.state,
        step.state,
        hav_event=None if kind is None else _hav_event(instance, kind, fpops_est_flop, now),
        reason=because if event is Event.REJECTED else "",
    )


def _hav_event(instance: InstanceFacts, kind: HavEventKind, fpops_est_flop: Flop, now: Instant) -> HavEvent | None:
    """What the host's statistics are told. A valid result takes back what an earlier time-out left."""
    if instance.host_id is None or instance.app_version_id is None:
        return None
    late, ratio, ln_turnaround, speed = False, None, None, None
    if kind is HavEventKind.VALID and instance.sent_at is not None and instance.reported_at is not None:
        turnaround_s = max(LEAST_S, instance.reported_at - instance.sent_at)
        late = instance.due_at is not None and instance.reported_at > instance.due_at
        ratio, ln_turnaround = _sample(instance, turnaround_s), math.log(turnaround_s)
        speed = speed_s_per_flop(instance.elapsed_s, turnaround_s, fpops_est_flop)
    return HavEvent(
        instance.host_id,
        instance.app_version_id,
        kind,
        now,
        instance.tight,
        ratio,
        instance.turnaround_sample,
        ln_turnaround,
        speed,
        None if instance.turnaround_sample is None else instance.timeout_at,
        late,
    )


def _sample(instance: InstanceFacts, turnaround_s: float) -> float | None:
    runtime_s, usual_s = instance.est_runtime_s, instance.median_turnaround_s
    if runtime_s is None:
        return None
    by_s = yardstick_s(tight=instance.tight, est_runtime_s=runtime_s, median_turnaround_s=usual_s)
    return returned_sample(turnaround_s, yardstick_s=by_s)


def speed_s_per_flop(elapsed_s: Seconds | None, turnaround_s: float, fpops_est_flop: Flop) -> float | None:
    """Elapsed seconds per estimated flop; None when no elapsed time was reported.

    A job cannot have run longer than it was away, whatever the client claims.

    >>> speed_s_per_flop(Seconds(5000.0), 3600.0, Flop(3.6e12))
    1e-09
    """
    if elapsed_s is None or elapsed_s <= 0.0:
        return None
    return min(elapsed_s, turnaround_s) / fpops_est_flop
