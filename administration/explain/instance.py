"""Explains an instance's due date, term by term, and what became of it; as JSON."""

from __future__ import annotations

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.job import waiting_of
from administration.explain.ports import ExplainStore
from administration.show import shown
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.jobs import JobClass
from domain.refusals import Refusal
from domain.units import InstanceId, Instant, Seconds
from domain.views import InstanceRow, JobRow
from lifecycle.turnaround import timeout_at
from muster_client import shapes
from scheduler.deadline import Due, Moment, due_inputs, rule_of
from scheduler.gates import percentile_of, reachable
from scheduler.runtime import speed_of


async def explain_instance(
    store: ExplainStore, clock: Clock, instance_id: InstanceId, *, hosts: int
) -> shapes.InstanceExplained:
    """What was stored at dispatch, the same terms as they are today, and what became of it.

    `today` is None while the instance is unsent, and where its host or app version is gone. Raises NotFoundError.
    """
    job = await store.views.job_of_instance(instance_id)
    [row] = [one for one in job.instances if one.instance_id == instance_id]
    batch = await store.views.batch(job.batch_id)
    classes = await store.views.classes_of_batch(job.batch_id)
    [job_class] = [one for one in classes if one.job_class_id == job.job_class_id]
    catalogue = await fresh_catalogue(store.applications, clock)
    waiting = await waiting_of(store, clock, [row], batch, catalogue, hosts=hosts)
    now = clock.now()
    return shown(
        shapes.InstanceExplained,
        row,
        computed_at=now,
        batch_id=batch.batch_id,
        qos=batch.qos.value,
        copied_because=row.copied_because or None,
        due=_due(row, job_class, catalogue),
        today=await _today(store, row, batch, job_class, catalogue, now=now),
        outcome=_outcome(row, job),
        waiting=waiting,
    )


async def _today(
    store: ExplainStore, row: InstanceRow, batch: Batch, job_class: JobClass, catalogue: Catalogue, *, now: Instant
) -> shapes.TodayShown | None:
    """The terms of a due date as they would be today, if the host were idle and asked now."""
    if row.host_id is None:
        return None
    host, known = await store.views.host(row.host_id)
    version = catalogue.versions.get(row.app_version_id) if row.app_version_id is not None else None
    if version is None:
        return None
    havs = {hav.app_version_id: hav for hav in known}
    cuts = catalogue.cut_points.get((version.app_id, version.processor_type))
    settings = catalogue.settings.deadline
    speed = speed_of(version, host, havs.get(version.app_version_id), cuts, now=now, settings=settings)
    standing = percentile_of(version, havs, catalogue, now=now)
    runtime_s = speed.runtime_s(job_class.fpops_est_flop)
    job = due_inputs(
        batch,
        job_class,
        cuts,
        runtime_s=runtime_s,
        safe_runtime_s=speed.safe_runtime_s(runtime_s, settings.min_slack_s),
        retry=row.retries > 0,
        low_turnaround=catalogue.low_turnaround(batch, host.host_id),
    )
    idle = Moment(now, Seconds(0.0), Seconds(0.0), standing)
    return shown(
        shapes.TodayShown,
        job,
        speed,
        speed_samples=round(speed.samples, 3),
        slack_factor=round(speed.slack_factor, 4),
        delay_bound_s=job.bound_s,
        complete_in_s=None if job.complete_at is None else job.complete_at - now,
        retry_turnaround_s=job.retry_s,
        p=standing.p,
        p_because=standing.because,
        idle_host_would_get=_idle_answer(rule_of(settings)(idle, job, reachable(settings, cuts)), now),
        stale_cut_points=stale_as_json(catalogue),
    )


def _idle_answer(due: Due | Refusal, now: Instant) -> shapes.IdleAnswer:
    if isinstance(due, Refusal):
        return shown(shapes.IdleAnswer, refused=due.code.value, why=due.detail)
    return shown(shapes.IdleAnswer, due, row=due.row.number, due_in_s=due.due_at - now)


AT_BOUND_S = 1.0  # a due date this close to sending + D is the delay bound


def _due(row: InstanceRow, job_class: JobClass, catalogue: Catalogue) -> shapes.DueShown | None:
    """What the host was told and why; None while it is unsent."""
    if row.sent_at is None or row.due_at is None:
        return None
    terms, allowed_s, bound_s = row.due_terms, row.due_at - row.sent_at, job_class.delay_bound_s
    return shown(
        shapes.DueShown,
        row,
        allowed_s=allowed_s,
        because="" if terms is None else terms.because,
        terms=None if terms is None else shown(shapes.GivenTerms, terms),
        allowed_over_runtime=round(allowed_s / row.est_runtime_s, 3) if row.est_runtime_s else None,
        delay_bound_s=bound_s,
        is_delay_bound=abs(allowed_s - bound_s) <= AT_BOUND_S,
        grace_s=None if row.timeout_at is None else row.timeout_at - row.due_at,
        timeout_by_settings_at=timeout_at(row.sent_at, row.due_at, catalogue.settings.lifecycle),
    )


def _outcome(row: InstanceRow, job: JobRow) -> shapes.OutcomeShown:
    sent_at, due_at, reported_at = row.sent_at, row.due_at, row.reported_at
    return shown(
        shapes.OutcomeShown,
        row,
        job_state=job.state.value,
        is_canonical=job.canonical_instance_id == row.instance_id,
        turnaround_s=None if reported_at is None or sent_at is None else reported_at - sent_at,
        late_s=None if reported_at is None or due_at is None else reported_at - due_at,
    )
