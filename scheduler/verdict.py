"""May this host have jobs of this class, with which version, and by when? Once per class and request. Pure.

Jobs of a class are alike, so the row of checks, the gate and the due date are asked once per (class,
retry) and processor type, and again only after a job was sent that changed busy times or disk space.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from domain.acceleration import Acceleration
from domain.apps import ProcessorType
from domain.batches import Batch, QoS, complete_at
from domain.jobs import JobClass
from domain.quick import quick_dataclass
from domain.ranking import Gate, Percentile
from domain.refusals import Refusal, RefusalCode
from domain.reservations import Lease
from domain.settings import AfapPolicy, DeadlineRule, DeadlineSettings
from domain.units import AppId, AppVersionId, Instant, Seconds
from scheduler.asking import Asking
from scheduler.busy import Busy, busy_of, held_work, resent_work, told_work
from scheduler.deadline import assign_due_at
from scheduler.displacing import Sending, displacement_refusal
from scheduler.due import Due, Moment
from scheduler.feasibility import AppCheck, ClassCheck
from scheduler.gates import reachable
from scheduler.leasing import Wide, around_refusal, lease_of, may_be_leased, new_lease
from scheduler.ports import SlotGroup
from scheduler.versions import Best, Usable, best_version

Question = tuple[int, ProcessorType, bool]  # a group's place in the order, the processors, retries or not


@quick_dataclass(frozen=True, slots=True)
class Verdict:
    """Yes: with this version, by this due date. `runtime_s` is R, `safe_runtime_s` R_q; `moment` is how busy it is.

    `standing` is the host's with the version it is trusted with, also where this job tries another one: trying a new
    version does not make a ranked host a newcomer.
    """

    usable: Usable
    due: Due
    runtime_s: Seconds
    standing: Percentile
    moment: Moment
    safe_runtime_s: Seconds

    @property
    def gated(self) -> bool:
        return self.due.gate is not Gate.NONE


class Judge:
    """Gives verdicts for one request and keeps count of what the reply already holds.

    Only `sent` changes it. A refusal stays as it is until a version's quota is used up: with more jobs
    sent a host only gets busier and its disk fuller.
    """

    def __init__(self, asking: Asking, app_checks: Sequence[AppCheck], class_checks: Sequence[ClassCheck]) -> None:
        self._asking = asking
        self._app_checks = app_checks
        self._class_checks = class_checks
        self._rng: random.Random | None = None
        self._settings = asking.catalogue.settings.deadline
        self._acceleration = asking.catalogue.acceleration
        self._busy_then: Busy | None = None  # as of the last time it was asked for; first when a job could be given
        self._to_book: list[Verdict] = []  # sent since
        self._disk_bytes = asking.disk_bytes
        self._sent: dict[AppVersionId, int] = {}
        self.bests: dict[tuple[AppId, ProcessorType], Best | Refusal] = {}  # as far as they were asked for
        self._reachable: dict[AppVersionId, DeadlineSettings] = {}
        self._moments: dict[AppVersionId, Moment] = {}
        self.held: Lease | None = lease_of(asking) if asking.catalogue.reserved.leases else None  # it is promised
        self.made: Lease | None = None  # by this request
        self.held_back: dict[tuple[int, ProcessorType], Seconds] = {}  # places refused for that, with R
        self._fills: set[int] = set()  # those that idle processors are filled with all the same
        self._displaces = asking.catalogue.settings.ordering.displace
        self._is_guarded = self._displaces or self.held is not None
        self._given: list[Sending] = []  # in this reply
        self._refusals: dict[Question, Refusal] = {}
        self._verdicts: dict[Question, Verdict] = {}  # as busy as the host is now

    @property
    def rng(self) -> random.Random:
        """The request's draws, made when the first is asked for: most requests draw nothing."""
        if self._rng is None:
            self._rng = random.Random(self._asking.seed)  # noqa: S311 - a repeatable draw, not a secret
        return self._rng

    def best(self, app_id: AppId, kind: ProcessorType) -> Best | Refusal:
        """BAV(A, T), or why the host cannot have jobs of this app there at all."""
        found = self.bests.get((app_id, kind))
        if found is None:
            found = self.bests[app_id, kind] = self._look_for(app_id, kind)
        return found

    def verdict(self, place: int, group: SlotGroup, kind: ProcessorType, *, retry: bool) -> Verdict | Refusal:
        """The answer for a group's first instances or its retries. `place` is the group's in the order."""
        question = (place, kind, retry)
        found = self._refusals.get(question) or self._verdicts.get(question)
        if found is None:
            found = self._decide(group, kind, retry=retry)
            if self._is_guarded and isinstance(found, Verdict):
                found = self._beside_others(place, group, kind, found) or found
            if isinstance(found, Refusal):
                self._refusals[question] = found
            else:
                self._verdicts[question] = found
        return found

    def sent(self, verdict: Verdict, job_class: JobClass) -> bool:
        """Count a job that is given to the host: busy times, disk, the version's quota.

        True when the version's quota is used up with it, so that refusals are to be asked for again.
        """
        version = verdict.usable.version
        self._to_book.append(verdict)
        if self._displaces:
            self._given.append(_sending(verdict, job_class))
        self._disk_bytes -= job_class.disk_bytes
        self._moments.clear()
        count = self._sent[version.app_version_id] = self._sent.get(version.app_version_id, 0) + 1
        self._verdicts.clear()
        if count < verdict.usable.quota_left:
            return False
        self.bests.pop((version.app_id, version.processor_type), None)
        self._refusals.clear()
        return True

    def _look_for(self, app_id: AppId, kind: ProcessorType) -> Best | Refusal:
        app = self._asking.catalogue.apps.get(app_id)
        if app is None:
            return Refusal(RefusalCode.NO_SLOTS, f"app {app_id} is too new: its versions are being loaded")
        for check in self._app_checks:
            refusal = check(app, kind, self._asking)
            if refusal is not None:
                return refusal
        return best_version(app, kind, self._asking, sent=self._sent, rng=lambda: self.rng)

    def _decide(self, group: SlotGroup, kind: ProcessorType, *, retry: bool) -> Verdict | Refusal:
        app_id = group.batch.app_id
        best = self.bests.get((app_id, kind)) or self.best(app_id, kind)
        if isinstance(best, Refusal):
            return best
        job_class, asking, disk_bytes = group.job_class, self._asking, self._disk_bytes
        for check in self._class_checks:
            refusal = check(job_class, asking, disk_bytes)
            if refusal is not None:
                return refusal
        standing = best.for_gated.percentile
        decided = self._with_version(best.for_gated, standing, group, retry=retry)
        if best.for_relaxed is best.for_gated or (isinstance(decided, Verdict) and decided.gated):
            return decided
        explored = self._with_version(best.for_relaxed, standing, group, retry=retry)
        return explored if isinstance(explored, Verdict) and not explored.gated else decided

    def _with_version(
        self, usable: Usable, standing: Percentile, group: SlotGroup, *, retry: bool, moment: Moment | None = None
    ) -> Verdict | Refusal:
        job_class, speed = group.job_class, usable.speed
        moment, runtime_s = moment or self._moment(usable), speed.runtime_s(job_class.fpops_est_flop)
        safe_s = speed.safe_runtime_s(runtime_s, self._settings.min_slack_s)
        due = assign_due_at(
            moment,
            group.batch,
            job_class,
            runtime_s=runtime_s,
            safe_runtime_s=safe_s,
            retry=retry,
            cuts=usable.cuts,
            settings=self.gates(usable),
            low_turnaround=None if self._acceleration is None else self._low_turnaround(self._acceleration, group),
        )
        return due if isinstance(due, Refusal) else Verdict(usable, due, runtime_s, standing, moment, safe_s)

    def promise(self, group: SlotGroup, kind: ProcessorType, *, retry: bool) -> None:
        """Hold the host for a group that is refused because it is busy, if it may and that helps."""
        asking, best = self._asking, self.best(group.batch.app_id, kind)
        if self.held is not None or isinstance(best, Refusal) or not may_be_leased(asking, group.batch.batch_id):
            return
        usable, queue = best.for_gated, self._busy().queue[kind]
        begins_at = Instant(asking.now + queue.start_s(usable.usage))
        then = Moment(begins_at, Seconds(0.0), Seconds(0.0), usable.percentile)
        found = self._with_version(usable, usable.percentile, group, retry=retry, moment=then)
        if isinstance(found, Verdict):
            wide = Wide(group.batch.batch_id, usable.usage, found.safe_runtime_s)
            self.held = self.made = new_lease(wide, queue, asking, kind)
            self._is_guarded = True
            self._verdicts.clear()

    def release(self) -> None:
        """The host is given the job that it was held for."""
        self.held = None

    def fill_with(self, place: int, kind: ProcessorType) -> None:
        """Let a group have idle processors although it does not fit around the lease."""
        self._fills.add(place)
        self._refusals.pop((place, kind, False), None)
        self._refusals.pop((place, kind, True), None)

    def _beside_others(self, place: int, group: SlotGroup, kind: ProcessorType, found: Verdict) -> Refusal | None:
        """Why a job that the host could have would be in the way of others; None when it is not."""
        held, usage = self.held, found.usable.usage
        if held is not None and kind == held.processor_type and group.batch.batch_id != held.batch_id:
            times = {"wait_s": found.moment.queue_s, "runtime_s": found.runtime_s}
            why = around_refusal(held, self._busy().queue[kind], self._asking, usage=usage, **times)
            if why is not None and place not in self._fills:
                self.held_back[place, kind] = found.runtime_s
                return why
        if not self._displaces or not found.due.tight:
            return None
        return displacement_refusal(_sending(found, group.job_class), self._given, self._asking)

    def _low_turnaround(self, acceleration: Acceleration, group: SlotGroup) -> bool | None:
        return has_low_turnaround(self._asking) if is_accelerated(acceleration, group) else None

    def gates(self, usable: Usable) -> DeadlineSettings:
        """The gates as they hold for hosts of this version's kind."""
        version_id = usable.version.app_version_id
        found = self._reachable.get(version_id)
        if found is None:
            found = self._reachable[version_id] = reachable(self._settings, usable.cuts)
        return found

    def _moment(self, usable: Usable) -> Moment:
        """When the host could start and end with this version, as busy as it is by now."""
        version, asking = usable.version, self._asking
        found = self._moments.get(version.app_version_id)
        if found is None:
            plan, busy = version.plan_class, self._busy()
            found = Moment(asking.now, busy.start_s(plan), busy.queue_s(plan), usable.percentile, asking.alone_s)
            self._moments[version.app_version_id] = found
        return found

    def _busy(self) -> Busy:
        """The host's busy times with all that was sent; most requests end without asking again."""
        busy = self._busy_then or _busy_at_start(self._asking)
        for verdict in self._to_book:
            busy = busy.with_job(verdict.usable.version.plan_class, verdict.runtime_s, tight=verdict.due.tight)
        self._to_book.clear()
        self._busy_then = busy
        return busy


def _sending(verdict: Verdict, job_class: JobClass) -> Sending:
    usable, runtime_s, due_at = verdict.usable, verdict.runtime_s, verdict.due.due_at
    return Sending(job_class.batch_id, usable.version.processor_type, usable.usage, runtime_s, due_at)


def is_gated_whole(batch: Batch, asking: Asking, *, refused: bool) -> bool:
    """Whether the first instances of all jobs of a batch are behind one gate, if one is: whatever their size.

    So they are without an estimate, and once C is past. C of a long deadline depends on what each job allows; and so
    does whether a host that was `refused` for one job is done with another in its turn (decision 36).
    """
    deadline = asking.catalogue.settings.deadline
    if deadline.rule is DeadlineRule.ACCELERATED:
        return True
    if batch.qos is QoS.AFAP and deadline.afap is AfapPolicy.PROMPT:
        return not refused
    if batch.qos is QoS.THROUGHPUT or batch.qos is QoS.LONG_DEADLINE:
        return False
    target = complete_at(batch, None)
    return target is None or target <= asking.now


def is_accelerated(acceleration: Acceleration, group: SlotGroup) -> bool:
    """Whether a group's jobs are for low-turnaround hosts alone."""
    return acceleration.covers(group.batch.batch_id, group.batch.app_id)


def has_low_turnaround(asking: Asking) -> bool:
    acceleration = asking.catalogue.acceleration
    return acceleration is not None and asking.host.host_id in acceleration.hosts


def _busy_at_start(asking: Asking) -> Busy:
    """Busy times from the client's whole queue if it tells it, else from what the server knows it holds.

    Lost jobs that are sent again come on top: the client does not have them yet.
    """
    versions = asking.catalogue.versions
    if asking.in_progress is None and not asking.held:
        return busy_of(asking.wants, asking.host, ())
    if asking.in_progress is not None:
        work = told_work(asking.in_progress, asking.held, asking.host)
    else:
        resent = {one.instance_id for one in asking.resent}
        known = (one for one in asking.held if one.instance_id not in resent) if resent else asking.held
        work = held_work(known, versions, now=asking.now)
    return busy_of(asking.wants, asking.host, (*work, *resent_work(asking.resent, versions)))
