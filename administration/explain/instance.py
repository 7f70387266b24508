"""Explains an instance's due date, term by term, and what became of it; as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from administration.catalogue import fresh_catalogue, stale_as_json
from administration.explain.job import JobExplainer
from administration.explain.ports import ExplainStore
from administration.explain.sample import SAMPLE_HOSTS
from administration.show import shown
from domain.batches import Batch
from domain.catalogue import Catalogue
from domain.clock import Clock
from domain.hosts import Host, HostAppVersion
from domain.jobs import JobClass
from domain.refusals import Refusal
from domain.units import AppVersionId, InstanceId, Instant, Seconds
from domain.views import InstanceRow, JobRow
from lifecycle.turnaround import timeout_at
from muster_client import shapes
from scheduler.deadline import Due, Moment, due_inputs, rule_of
from scheduler.gates import percentile_of, reachable
from scheduler.runtime import speed_of


@dataclass(frozen=True, slots=True)
class DueDateTerms:
    """The terms of a due date as they would be today, if the host were idle and asked now.

    R = `runtime_s`, R_q = `safe_runtime_s`, D = `delay_bound_s`, C = `complete_at`, T_retry = `retry_s`.
    """

    flop_per_s: float
    speed_samples: float
    availability_fraction: float
    runtime_s: Seconds
    slack_factor: float
    safe_runtime_s: Seconds
    delay_bound_s: Seconds
    complete_at: Instant | None
    retry_s: Seconds
    p: float | None
    p_because: str
    outcome: Due | Refusal
    stale_cut_points: Sequence[shapes.StaleShown] = ()  # left out, as JSON


@dataclass(frozen=True, slots=True)
class InstanceExplanation:
    """`today` is None while the instance is unsent, and where its host or app version is gone."""

    now: Instant
    job: JobRow
    row: InstanceRow
    batch: Batch
    job_class: JobClass
    timeout_by_settings_at: Instant | None
    today: DueDateTerms | None
    waiting: list[shapes.WaitingShown]


class InstanceExplainer:
    """Looks up what was stored when an instance was sent, its terms among it, and works the same out as of today."""

    def __init__(self, store: ExplainStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def explain(self, instance_id: InstanceId, *, hosts: int = SAMPLE_HOSTS) -> InstanceExplanation:
        """Raises NotFoundError."""
        job = await self._store.views.job_of_instance(instance_id)
        [row] = [one for one in job.instances if one.instance_id == instance_id]
        batch = await self._store.views.batch(job.batch_id)
        classes = await self._store.views.classes_of_batch(job.batch_id)
        [job_class] = [one for one in classes if one.job_class_id == job.job_class_id]
        catalogue = await fresh_catalogue(self._store.applications, self._clock)
        waiting = await JobExplainer(self._store, self._clock).waiting([row], batch, catalogue, hosts=hosts)
        now = self._clock.now()
        today = None
        if row.host_id is not None:
            host, havs = await self._store.views.host(row.host_id)
            by_version = {hav.app_version_id: hav for hav in havs}
            today = terms_today(row, batch, job_class, host, by_version, catalogue, now=now)
        given_up_at = None
        if row.sent_at is not None and row.due_at is not None:
            given_up_at = timeout_at(row.sent_at, row.due_at, catalogue.settings.lifecycle)
        return InstanceExplanation(now, job, row, batch, job_class, given_up_at, today, waiting)


def terms_today(
    row: InstanceRow,
    batch: Batch,
    job_class: JobClass,
    host: Host,
    havs: Mapping[AppVersionId, HostAppVersion],
    catalogue: Catalogue,
    *,
    now: Instant,
) -> DueDateTerms | None:
    """The scheduler's own terms for this host, version and class; None when the version is not known any more."""
    version = catalogue.versions.get(row.app_version_id) if row.app_version_id is not None else None
    if version is None:
        return None
    cuts = catalogue.cut_points.get((version.app_id, version.processor_type))
    settings = catalogue.settings.deadline
    speed = speed_of(version, host, havs.get(version.app_version_id), cuts, now=now, settings=settings)
    standing = percentile_of(version, havs, catalogue, now=now)
    runtime_s = speed.runtime_s(job_class.fpops_est_flop)
    safe_s = speed.safe_runtime_s(runtime_s, settings.min_slack_s)
    job = due_inputs(
        batch,
        job_class,
        cuts,
        runtime_s=runtime_s,
        safe_runtime_s=safe_s,
        retry=row.retries > 0,
        low_turnaround=catalogue.low_turnaround(batch, host.host_id),
    )
    idle = Moment(now, Seconds(0.0), Seconds(0.0), standing)
    due = rule_of(settings)(idle, job, reachable(settings, cuts))
    return DueDateTerms(
        speed.flop_per_s,
        speed.samples,
        speed.availability_fraction,
        runtime_s,
        speed.slack_factor,
        safe_s,
        job_class.delay_bound_s,
        job.complete_at,
        job.retry_s,
        standing.p,
        standing.because,
        due,
        stale_as_json(catalogue),
    )


AT_BOUND_S = 1.0  # a due date this close to sending + D is the delay bound


def instance_explained_as_json(explanation: InstanceExplanation) -> shapes.InstanceExplained:
    """One object: what was stored at dispatch, the same terms as they are today, and what became of it."""
    row = explanation.row
    return shown(
        shapes.InstanceExplained,
        row,
        computed_at=explanation.now,
        batch_id=explanation.batch.batch_id,
        qos=explanation.batch.qos.value,
        copied_because=row.copied_because or None,
        due=_due(explanation),
        today=None if explanation.today is None else _today(explanation.today, explanation.now),
        outcome=_outcome(explanation),
        waiting=explanation.waiting,
    )


def _due(explanation: InstanceExplanation) -> shapes.DueShown | None:
    """What the host was told and why; None while it is unsent."""
    row, timeout_at = explanation.row, explanation.row.timeout_at
    if row.sent_at is None or row.due_at is None:
        return None
    terms, allowed_s, bound_s = row.due_terms, row.due_at - row.sent_at, explanation.job_class.delay_bound_s
    return shown(
        shapes.DueShown,
        row,
        allowed_s=allowed_s,
        because="" if terms is None else terms.because,
        terms=None if terms is None else shown(shapes.GivenTerms, terms),
        allowed_over_runtime=round(allowed_s / row.est_runtime_s, 3) if row.est_runtime_s else None,
        delay_bound_s=bound_s,
        is_delay_bound=abs(allowed_s - bound_s) <= AT_BOUND_S,
        timeout_at=timeout_at,
        grace_s=None if timeout_at is None else timeout_at - row.due_at,
        timeout_by_settings_at=explanation.timeout_by_settings_at,
    )


def _today(terms: DueDateTerms, now: float) -> shapes.TodayShown:
    due = terms.outcome
    if isinstance(due, Refusal):
        answer = shown(shapes.IdleAnswer, refused=due.code.value, why=due.detail)
    else:
        answer = shown(shapes.IdleAnswer, due, due_in_s=due.due_at - now)
    return shown(
        shapes.TodayShown,
        terms,
        speed_samples=round(terms.speed_samples, 3),
        slack_factor=round(terms.slack_factor, 4),
        complete_in_s=None if terms.complete_at is None else terms.complete_at - now,
        retry_turnaround_s=terms.retry_s,
        idle_host_would_get=answer,
    )


def _outcome(explanation: InstanceExplanation) -> shapes.OutcomeShown:
    row = explanation.row
    sent_at, due_at, reported_at = row.sent_at, row.due_at, row.reported_at
    return shown(
        shapes.OutcomeShown,
        row,
        job_state=explanation.job.state.value,
        is_canonical=explanation.job.canonical_instance_id == row.instance_id,
        turnaround_s=None if reported_at is None or sent_at is None else reported_at - sent_at,
        late_s=None if reported_at is None or due_at is None else reported_at - due_at,
    )
