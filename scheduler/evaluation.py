"""Evaluates a job class for a host: checks, app version, gate and due date. Pure.

The jobs of a class are equal, so each (class, retry, processor type) is evaluated once per request, and again only
after a job was sent that changed busy times or disk space.
"""

from __future__ import annotations

import random
from dataclasses import replace

from domain.apps import CPU, ProcessorType
from domain.batches import AFAP, LONG_DEADLINE, THROUGHPUT, Batch, complete_at
from domain.deadline_rules import traits_of
from domain.jobs import JobClass
from domain.quick import quick_dataclass
from domain.ranking import NO_GATE, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.settings import DeadlineSettings
from domain.units import AppId, AppVersionId, Instant, Seconds
from scheduler.backfill import BUSY, HostGuard, Sending, Wide, may_be_leased
from scheduler.busy import HostLoad
from scheduler.context import SchedulingContext
from scheduler.deadline import Due, Moment, due_inputs, rule_of, with_setting
from scheduler.feasibility import APP_CHECKS, CLASS_CHECKS, queue_refusal
from scheduler.gates import reachable
from scheduler.ports import SlotGroup
from scheduler.versions import Best, Usable, best_version

Question = tuple[int, ProcessorType, bool]  # a group's place in the order, the processor type, retries or not


@quick_dataclass(frozen=True, slots=True)
class Evaluation:
    """The host may get jobs of the class, with this version and due date.

    `runtime_s` is R, `safe_runtime_s` R_q; `moment` says how busy the host is. `percentile` is the host's percentile
    with its proven version, even if this job tries another version: trying a new version does not make a ranked host a
    newcomer.
    """

    usable: Usable
    due: Due
    runtime_s: Seconds
    percentile: Percentile
    moment: Moment
    safe_runtime_s: Seconds

    @property
    def gated(self) -> bool:
        return self.due.gate is not NO_GATE


class ClassEvaluator:
    """Evaluates job classes for one request, and tracks the jobs already in its reply.

    A refusal stays valid until a version's quota is used up, because more jobs only make the host busier and its disk
    fuller. An evaluation stays valid until the next job is added.
    """

    def __init__(self, context: SchedulingContext) -> None:
        self._context = context
        self._settings = context.catalogue.settings.deadline
        self._due = rule_of(self._settings)
        self.traits = traits_of(self._settings)  # of the deadline rule
        self.load = HostLoad(context)
        self.guard = HostGuard(context)
        self._rng: random.Random | None = None
        self.bests: dict[tuple[AppId, ProcessorType], Best | Refusal] = {}  # filled on demand
        self._gates: dict[AppVersionId, DeadlineSettings] = {}
        self._refusals: dict[Question, Refusal] = {}
        self._evaluations: dict[Question, Evaluation] = {}

    def rng(self) -> random.Random:
        """Return the request's random generator, created on first use because most requests draw nothing."""
        if self._rng is None:
            self._rng = random.Random(self._context.seed)  # noqa: S311 - a repeatable draw, not a secret
        return self._rng

    def evaluate(self, place: int, group: SlotGroup, kind: ProcessorType, *, retry: bool) -> Evaluation | Refusal:
        """Evaluate a group's first instances or its retries. `place` is the group's index in the order."""
        question = (place, kind, retry)
        found = self._refusals.get(question) or self._evaluations.get(question)
        if found is None:
            found = self._evaluated(group, kind, retry=retry)
            if isinstance(found, Evaluation) and self.guard.is_active:
                job = _sending(found, group.job_class)
                wait_s, tight = found.moment.queue_s, found.due.tight
                found = self.guard.refusal(place, job, self.load, wait_s=wait_s, is_tight=tight) or found
            if isinstance(found, Refusal):
                self._refusals[question] = found
            else:
                self._evaluations[question] = found
        return found

    def given(self, evaluation: Evaluation, job_class: JobClass) -> bool:
        """Count a job sent to the host in this reply.

        Return True if this uses up the version's quota, which makes cached refusals invalid.
        """
        usable, version = evaluation.usable, evaluation.usable.version
        count = self.load.add(
            version, usable.plan, evaluation.runtime_s, tight=evaluation.due.tight, disk_bytes=job_class.disk_bytes
        )
        if self.guard.is_active:
            self.guard.given(_sending(evaluation, job_class))
        self._evaluations.clear()
        if count < usable.quota_left:
            return False
        self.bests.pop((version.app_id, version.processor_type), None)
        self._refusals.clear()
        return True

    def best(self, app_id: AppId, kind: ProcessorType) -> Best | Refusal:
        """Return BAV(A, T), or why the host cannot get any jobs of this app on this processor type."""
        found = self.bests.get((app_id, kind))
        if found is None:
            found = self.bests[app_id, kind] = self._best_version(app_id, kind)
        return found

    def gates(self, usable: Usable) -> DeadlineSettings:
        """Return the gates that apply to hosts that use this version."""
        version_id = usable.version.app_version_id
        found = self._gates.get(version_id)
        if found is None:
            found = self._gates[version_id] = reachable(self._settings, usable.cuts)
        return found

    def is_gated_whole(self, batch: Batch, *, refused: bool) -> bool:
        """Return whether one gate applies to the first instances of all jobs in a batch, regardless of their size.

        This is so without an estimate, and once C has passed. The C of a long deadline depends on each job's delay
        bound. With the `muster` rule, so does whether a host can finish a job in queue order, of an AFAP batch if the
        host was `refused` another job of it (decision 0036), of any other batch once C has passed (decision 0084).
        """
        if self.traits.accelerates:
            return True
        if self.traits.afap_first:
            return batch.qos is AFAP and not refused
        if batch.qos is THROUGHPUT or batch.qos is LONG_DEADLINE:
            return False
        target = complete_at(batch, None)
        return target is None or target <= self._context.now

    def promise(self, group: SlotGroup, kind: ProcessorType, *, retry: bool) -> None:
        """Lease a busy host to a group that was refused because the host is busy, if this is allowed and useful."""
        context, best = self._context, self.best(group.batch.app_id, kind)
        is_leased = self.guard.lease is not None
        if is_leased or isinstance(best, Refusal) or not may_be_leased(context, group.batch.batch_id):
            return
        usable, queue = best.for_gated.for_job(group.job_class.ncpus), self.load.busy().queue[kind]
        begins_at = Instant(context.now + queue.start_s(usable.usage))
        then = Moment(begins_at, Seconds(0.0), Seconds(0.0), usable.percentile)
        found = self._with_version(usable, usable.percentile, group, retry=retry, moment=then)
        if isinstance(found, Evaluation):
            self.guard.promise(Wide(group.batch.batch_id, usable.usage, found.safe_runtime_s), queue, kind)
            self._evaluations.clear()

    def fill_with(self, place: int, kind: ProcessorType) -> None:
        """Let a group use idle processors although it does not fit around the lease."""
        self.guard.fills.add(place)
        self._refusals.pop((place, kind, False), None)
        self._refusals.pop((place, kind, True), None)

    def _best_version(self, app_id: AppId, kind: ProcessorType) -> Best | Refusal:
        app = self._context.catalogue.apps.get(app_id)
        if app is None:
            return Refusal(RefusalCode.NO_SLOTS, f"app {app_id} is new; its versions are still being loaded")
        for check in APP_CHECKS:
            refusal = check(app, self._context)
            if refusal is not None:
                return refusal
        return best_version(app, kind, self._context, sent=self.load.sent, rng=self.rng)

    def _evaluated(self, group: SlotGroup, kind: ProcessorType, *, retry: bool) -> Evaluation | Refusal:
        app_id = group.batch.app_id
        best = self.bests.get((app_id, kind)) or self.best(app_id, kind)
        if isinstance(best, Refusal):
            return best
        job_class, context, disk_bytes = group.job_class, self._context, self.load.disk_bytes
        bound = queue_refusal(group.batch, context)
        if bound is not None:
            return bound
        for check in CLASS_CHECKS:
            refusal = check(job_class, context, disk_bytes)
            if refusal is not None:
                return refusal
        percentile = best.for_gated.percentile
        decided = self._with_version(best.for_gated, percentile, group, retry=retry)
        if best.for_relaxed is best.for_gated or (isinstance(decided, Evaluation) and decided.gated):
            return decided
        explored = self._with_version(best.for_relaxed, percentile, group, retry=retry)
        return explored if isinstance(explored, Evaluation) and not explored.gated else decided

    def _with_version(
        self, usable: Usable, percentile: Percentile, group: SlotGroup, *, retry: bool, moment: Moment | None = None
    ) -> Evaluation | Refusal:
        usable, speed = usable.for_job(group.job_class.ncpus), usable.speed
        moment = moment or self.load.moment(usable.version, usable.plan, usable.percentile)
        runtime_s = speed.runtime_s(group.job_class.fpops_est_flop)
        safe_s = speed.safe_runtime_s(runtime_s, self._settings.min_slack_s)
        job = due_inputs(
            group.batch,
            group.job_class,
            usable.cuts,
            runtime_s=runtime_s,
            safe_runtime_s=safe_s,
            retry=retry,
            low_turnaround=self._context.catalogue.low_turnaround(group.batch, self._context.host.host_id),
        )
        due = self._due(moment, job, self.gates(usable))
        if isinstance(due, Refusal):
            return _naming_cpus(with_setting(due, self._settings), usable)
        return Evaluation(usable, due, runtime_s, percentile, moment, safe_s)


def _naming_cpus(why: Refusal, usable: Usable) -> Refusal:
    """Return the refusal of a busy host; it names the number of CPUs that must be free if the job needs several."""
    if usable.usage <= 1.0 or why.code not in BUSY or usable.version.processor_type != CPU:
        return why
    return replace(why, sentence=f"{why.sentence}; the job needs {usable.usage:g} CPUs at once")


def _sending(found: Evaluation, job_class: JobClass) -> Sending:
    usable, runtime_s, due_at = found.usable, found.runtime_s, found.due.due_at
    return Sending(job_class.batch_id, usable.version.processor_type, usable.usage, runtime_s, due_at)
