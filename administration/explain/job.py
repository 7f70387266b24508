"""Explains why a job's unsent instances wait, the state of its other instances, and how a due date was set. As JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.batch import hold_of
from administration.explain.dry_run import OfOneBatch, array_of, private_feeder, sample_of
from administration.explain.verdict import CallingHosts, conclusion, counted, sample_as_json
from administration.ordering.places import Turn, sent_first, turn_of
from administration.show import shown
from administration.stopped import stopped_of
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.formatting import in_words
from domain.jobs import Candidate, FreshRange, InstanceState, JobClass
from domain.refusals import Refusal
from domain.settings import DeadlineSettings
from domain.units import InstanceId, Instant, JobId, Seconds, shard_of
from domain.views import InstanceRow, JobRow
from lifecycle.turnaround import timeout_at
from muster_client import shapes
from scheduler.deadline import Due, Moment, due_inputs, rule_of, with_setting
from scheduler.gates import percentile_of, reachable
from scheduler.runtime import speed_of
from store.postgres import PostgresStore

MOST_URGENT = 10_000  # number of the batch's urgent instances in which one instance is searched


async def explain_job(store: PostgresStore, clock: Clock, job_id: JobId) -> shapes.JobExplained:
    """Return the job, its instances, and why each unsent instance waits. Raises NotFoundError."""
    job = await store.views.job(job_id)
    batch = await store.views.batch(job.batch_id)
    catalogue = await fresh_catalogue(store.applications, clock)
    unrunnable = (await stopped_of(store, clock)).unrunnable
    first = await sent_first(store, catalogue, clock.now(), unrunnable)
    turn = await turn_of(store, batch, first, catalogue, clock.now(), unrunnable)
    waiting = await waiting_of(store, clock, job.instances, batch, catalogue, turn)
    return shown(
        shapes.JobExplained,
        job,
        verdict=_verdict(job, waiting),
        computed_at=clock.now(),
        hold=hold_of(batch, catalogue),
        batches_ahead=turn[1].batches,
        unsent_ahead=turn[1].unsent,
        waiting=waiting,
    )


GONE = "The instance no longer waits: it was just sent or ended."


def _verdict(job: JobRow, waiting: Sequence[shapes.WaitingShown]) -> str:
    """Return the conclusion about a job's first unsent instance, or why it has none."""
    if waiting:
        return waiting[0]["verdict"]
    out = sum(one.state is InstanceState.IN_PROGRESS for one in job.instances)
    sent = f"hosts have {counted(out, 'instance')} in progress" if out else f"the job is {job.state.value}"
    return f"No instance waits to be sent; {sent}."


async def waiting_of(
    store: PostgresStore,
    clock: Clock,
    instances: Sequence[InstanceRow],
    batch: Batch,
    catalogue: Catalogue,
    turn: Turn,
) -> list[shapes.WaitingShown]:
    """Return a batch's unsent instances as read by the feeder, with the results of dry runs for sampled hosts."""
    unsent = [row for row in instances if row.state is InstanceState.UNSENT]
    in_array, sampled = await asyncio.gather(
        _in_array(store, clock, [row.instance_id for row in unsent], batch, catalogue),
        asyncio.gather(*(_sampled(store, clock, row, batch, catalogue) for row in unsent)),
    )
    blocked, (because, before) = hold_of(batch, catalogue), turn
    return [
        _waiting(
            row,
            candidate,
            sample,
            one_per,
            in_array,
            catalogue,
            GONE if sample is None else conclusion(sample, before, blocked=blocked, sent_first=because),
        )
        for row, (candidate, sample, one_per) in zip(unsent, sampled, strict=True)
    ]


async def _in_array(
    store: PostgresStore, clock: Clock, unsent: Sequence[InstanceId], batch: Batch, catalogue: Catalogue
) -> frozenset[InstanceId]:
    """Return the instances that a single worker would have in its array if it refilled it now."""
    if not unsent:
        return frozenset()
    array = (await private_feeder(OfOneBatch(store.waiting, batch.batch_id), catalogue, clock)).array
    return frozenset(one for one in unsent if one in array)


async def _sampled(
    store: PostgresStore, clock: Clock, row: InstanceRow, batch: Batch, catalogue: Catalogue
) -> tuple[Candidate | None, CallingHosts | None, str | None]:
    """Return an instance as it waits, the sample of hosts, and its limit; None if it no longer waits."""
    candidate = await _candidate(store, row, batch)
    if candidate is None:
        return None, None, None
    classes = await store.waiting.job_classes([candidate.ready.job_class_id])
    array = array_of([candidate], batch, classes, catalogue, clock)
    quorum = classes[candidate.ready.job_class_id].quorum
    one_per = catalogue.apps[batch.app_id].spread(quorum, candidate.ready.copies).one_per
    return candidate, await sample_of(store, array, catalogue, clock), one_per


async def _candidate(store: PostgresStore, row: InstanceRow, batch: Batch) -> Candidate | None:
    """Return the instance as the feeder would read it; None if it no longer waits."""
    before = InstanceId(row.instance_id - 1)
    fresh = FreshRange(batch.batch_id, shard_of(row.job_id), before, 1)
    found = [*await store.waiting.fresh([fresh])]
    if not any(one.ready.instance_id == row.instance_id for one in found):
        found = [*await store.waiting.urgent([batch.batch_id], MOST_URGENT)]
    return next((one for one in found if one.ready.instance_id == row.instance_id), None)


def _waiting(
    row: InstanceRow,
    candidate: Candidate | None,
    sample: CallingHosts | None,
    one_per: str | None,
    in_array: Collection[InstanceId],
    catalogue: Catalogue,
    verdict: str,
) -> shapes.WaitingShown:
    """Return an unsent instance as JSON. `candidate` None: it was just sent, or has ended. `one_per` is as in Spread.

    `in_array`: the instances that a single worker would have in its array if it refilled it now.
    """
    read = None if candidate is None else candidate.ready
    return shown(
        shapes.WaitingShown,
        instance_id=row.instance_id,
        copied_because=row.copied_because,
        retries=None if read is None else read.retries,
        sibling_returned=None if read is None else read.sibling_returned,
        hr_class=None if read is None else read.hr_class,
        sibling_hosts=[] if candidate is None else list(candidate.sibling_hosts),
        one_per=one_per,
        verdict=verdict,
        in_array=candidate is not None and row.instance_id in in_array,
        stale_cut_points=stale_as_json(catalogue),
        sample=None if sample is None else sample_as_json(sample),
    )


async def explain_instance(store: PostgresStore, clock: Clock, instance_id: InstanceId) -> shapes.InstanceExplained:
    """Return a due date's terms, both as stored at dispatch and recomputed today, and the instance's outcome.

    `today` is None for an unsent instance, or if its host or app version no longer exists. Raises NotFoundError.
    """
    job = await store.views.job_of_instance(instance_id)
    [row] = [one for one in job.instances if one.instance_id == instance_id]
    batch = await store.views.batch(job.batch_id)
    classes = await store.views.classes_of_batch(job.batch_id)
    [job_class] = [one for one in classes if one.job_class_id == job.job_class_id]
    catalogue = await fresh_catalogue(store.applications, clock)
    unrunnable = (await stopped_of(store, clock)).unrunnable
    first = await sent_first(store, catalogue, clock.now(), unrunnable)
    turn = await turn_of(store, batch, first, catalogue, clock.now(), unrunnable)
    waiting = await waiting_of(store, clock, [row], batch, catalogue, turn)
    now = clock.now()
    return shown(
        shapes.InstanceExplained,
        row,
        verdict=waiting[0]["verdict"] if waiting else _sent(row),
        computed_at=now,
        batch_id=batch.batch_id,
        qos=batch.qos.value,
        due=_due(row, job_class, catalogue),
        today=await _today(store, row, batch, job_class, catalogue, now=now),
        outcome=_outcome(row, job),
        waiting=waiting,
    )


async def _today(
    store: PostgresStore, row: InstanceRow, batch: Batch, job_class: JobClass, catalogue: Catalogue, *, now: Instant
) -> shapes.TodayShown | None:
    """Return the terms that a due date would have now for an idle host."""
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
        idle_host_would_get=_idle_answer(rule_of(settings)(idle, job, reachable(settings, cuts)), settings, now),
        stale_cut_points=stale_as_json(catalogue),
    )


def _sent(row: InstanceRow) -> str:
    """Return the outcome of an instance that does not wait, as one sentence."""
    where = "" if row.host_id is None else f" on host {row.host_id}"
    because = f": {row.reason}" if row.reason else ""
    late = ""
    if row.reported_at is not None and row.due_at is not None:
        by_s = row.due_at - row.reported_at
        late = f", reported {in_words(abs(by_s))} {'before' if by_s >= 0.0 else 'after'} its due date"
    return f"The instance is {row.state.value.replace('_', ' ')}{where}{late}{because}."


def _idle_answer(due: Due | Refusal, settings: DeadlineSettings, now: Instant) -> shapes.IdleAnswer:
    if isinstance(due, Refusal):
        return shown(shapes.IdleAnswer, refused=due.code.value, why=with_setting(due, settings).detail)
    return shown(shapes.IdleAnswer, due, row=due.row.number, due_in_s=due.due_at - now)


AT_BOUND_S = 1.0  # a due date within this time of dispatch + D counts as the delay bound


def _due(row: InstanceRow, job_class: JobClass, catalogue: Catalogue) -> shapes.DueShown | None:
    """Return the due date sent to the client, and its reason; None for an unsent instance."""
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
