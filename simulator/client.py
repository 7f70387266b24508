"""Simulates a volunteer's client, which requests, computes and reports jobs and obeys replies (docs/protocol.md).

Satisfies simulator.ports.Participant. Nothing from outside reaches a client between two requests, so its events are the
ends of its tasks and the checks that may find its buffer low.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from domain.dispatch import ReportedFile, ReportedResult
from domain.insight import RecentHost
from domain.units import DAY_S, HostId, Instant, Seconds
from simulator.availability import Availability, measured_fraction
from simulator.ports import HeldJob, VolunteerFacts
from simulator.processors import DONE_S, Ended, Processors, Task
from simulator.traits import Fate, Fates, Traits, digest_of
from simulator.work_buffer import FIRST_WISH, NO_WISH, Calls, Wish, in_progress, low_after_s, wish_of, work_of_others
from wire.messages import (
    STATE_ABORTED,
    STATE_COMPUTE_ERROR,
    STATE_UPLOADED,
    AppVersionElement,
    CoprocRequest,
    HeldResult,
    HostInfo,
    InProgress,
    ResultElement,
    SchedulerReply,
    SchedulerRequest,
    WorkunitElement,
)


def task_of(
    result: ResultElement, workunit: WorkunitElement, version: AppVersionElement, *, traits: Traits, fate: Fate
) -> Task:
    """Return the client's task for a job: true length from `fate`, estimate from the server's speed for the version.
    If the server assumes 2 Gflop/s, a client of 1 Gflop/s expects half of the true time.
    """
    gpu_count = version.coproc_count if version.coproc_type else 0.0
    true_s = workunit.fpops_est * fate.size / traits.flop_per_s_of(version.avg_ncpus, gpu_count)
    return Task(
        result.name,
        result.report_deadline,
        left_s=true_s * fate.fails_after if fate.fails else true_s,
        true_s=true_s,
        estimate_s=workunit.fpops_est / version.flop_per_s,
        ncpus=min(version.avg_ncpus, float(traits.ncpus)),
        gpu_count=gpu_count,
        version_num=result.version_num,
        plan_class=result.plan_class,
        files=tuple([ref.file_name for ref in result.file_refs]),
        job=result.wu_name,
        report_immediately=result.report_immediately,
        lost=fate.lost,
        fails=fate.fails,
        garbage=fate.garbage,
    )


EXIT_FAILED = 1
EXIT_LATE = 200  # the deadline passed before it started
EXIT_ABORTED = 202  # at the server's request
OUTPUT_BYTES = 100.0


def host_info(traits: Traits) -> HostInfo:
    return HostInfo(
        domain_name=f"host-{traits.number}",
        host_cpid=f"{traits.number:032x}",
        timezone_s=int(traits.timezone_s),
        ncpus=traits.ncpus,
        cpu_vendor="simulated",
        cpu_model="simulated",
        flop_per_s=traits.flop_per_s,
        iop_per_s=traits.flop_per_s,
        ram_bytes=traits.ram_bytes,
        disk_total_bytes=2.0 * traits.disk_bytes,
        disk_free_bytes=traits.disk_bytes,
        os_name=traits.os_name,
        os_version="simulated",
    )


def success(task: Task) -> ReportedResult:
    digest = digest_of(task.name if task.garbage else task.job)
    files = tuple([ReportedFile(name, OUTPUT_BYTES, digest) for name in task.files])
    return _reported(task, STATE_UPLOADED, 0, cpu_s=Seconds(task.done_s * max(1.0, task.ncpus)), files=files)


def failed(task: Task) -> ReportedResult:
    cpu_s, stderr = Seconds(task.done_s), "the application failed"
    return _reported(task, STATE_COMPUTE_ERROR, EXIT_FAILED, cpu_s=cpu_s, stderr=stderr)


def aborted(task: Task, exit_status: int) -> ReportedResult:
    return _reported(task, STATE_ABORTED, exit_status)


def _reported(task: Task, state: int, exit_status: int, **more: Any) -> ReportedResult:  # Any: values of other fields
    return ReportedResult(
        task.name,
        state,
        exit_status,
        elapsed_s=Seconds(task.done_s),
        version_num=task.version_num,
        plan_class=task.plan_class,
        **more,
    )


CLIENT_VERSION = (7, 20, 5)
MEASURING_S = Seconds(10 * DAY_S)  # time constant of the client's availability average
FORGET_LOST_AFTER_S = 2 * DAY_S  # after the deadline and any grace period
MOST_RUNNABLE = 1000  # a client with this many jobs requests no more of them


@dataclass(slots=True)
class _Kind:
    """The processors of one type, and how many successive requests got no work. No low buffer before `low_from_at`."""

    processors: Processors
    without_work: int = 0
    ask_from_at: float = -math.inf
    low_from_at: float = -math.inf


class SimulatedVolunteer:
    """One host, created from its traits. A job's fate is drawn when it arrives."""

    def __init__(
        self, traits: Traits, availability: Availability, fates: Fates, draw: random.Random, *, on_fraction: float = 1.0
    ) -> None:
        """`on_fraction` is the client's initial estimate of its availability."""
        self._traits = traits
        self._on_fraction = max(0.01, on_fraction)
        self._availability = availability
        self._fates = fates
        self._calls = Calls(traits.first_call_at, traits.buffer.full_s, availability, draw)
        self._kinds = {"": _Kind(self._processors(traits.ncpus))}
        if traits.gpu is not None:
            self._kinds[traits.gpu.type] = _Kind(self._processors(traits.gpu.count))
        for kind in self._kinds.values():
            kind.ask_from_at = traits.asks_from_at
        self._measured_at = traits.joins_at
        self._ended: dict[str, ReportedResult] = {}
        self._host_id = 0
        self._seqno = 0
        self._key = ""
        self._sends_queue = False
        self._backs_off: tuple[str, ...] = ()  # types in the last request, if its only purpose was to get work
        self._info = host_info(traits)
        self._others: tuple[InProgress, ...] = ()
        self._others_until = -math.inf

    def _processors(self, count: int) -> Processors:
        traits = self._traits
        return Processors(
            count,
            traits.share,
            traits.buffer.margin_s,
            self._availability,
            traits.joins_at,
            fraction=self._on_fraction,
        )

    @property
    def authenticator(self) -> str:
        return self._traits.authenticator

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels that operators give to the host."""
        return self._traits.labels

    @property
    def known(self) -> RecentHost | None:
        """Return the record that a project has of the host at the start."""
        return self._traits.known

    @property
    def host_id(self) -> int:
        """Return the id that the server gave to the host, 0 before its first reply."""
        return self._host_id

    def continue_as(self, host_id: HostId) -> None:
        """Continue with this id instead of making a first request."""
        self._host_id = host_id

    def hold(self, job: HeldJob, now: Instant) -> None:
        """Continue a job received earlier; jobs with progress come first."""
        self.advance(now)
        fate, plan = self._fates.of_next(job.command_line, job.later_fraction), job.plan_class
        kind = self._kinds[plan.gpu_type or ""]
        gpu_count = plan.gpu_count if plan.gpu_type is not None else 0.0
        true_s = job.flop * fate.size / self._traits.flop_per_s_of(plan.ncpus, gpu_count)
        done_s = true_s * job.done_fraction
        task = Task(
            job.name,
            job.due_at,
            left_s=max(DONE_S, (true_s * fate.fails_after if fate.fails else true_s) - done_s),
            true_s=true_s,
            estimate_s=job.estimate_s,
            ncpus=min(plan.ncpus, float(self._traits.ncpus)),
            gpu_count=gpu_count,
            version_num=job.version_num,
            plan_class=plan.name,
            job=job.job,
            lost=fate.lost,
            fails=fate.fails,
            garbage=fate.garbage,
            done_s=done_s,
            started=done_s > 0.0,
        )
        if fate.forgotten:
            return
        kind.processors.tasks.append(task)
        kind.processors.tasks.sort(key=lambda held: held.done_s / held.true_s, reverse=True)
        kind.processors.plan(now)
        kind.low_from_at = -math.inf

    def facts(self) -> VolunteerFacts:
        every = [kind.processors for kind in self._kinds.values()]
        return VolunteerFacts(
            sum(one.run for one in every),
            sum(one.out_of_turn for one in every),
            Seconds(sum(one.preempted_s for one in every)),
            self._fates.lost + (self._held() if self._is_gone() else 0),
        )

    def processor_use_s(self, instants: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self.advance(Instant(float(instants[-1])))
        processors = self._kinds[""].processors
        worked_s = self._availability.worked_by_s(instants)
        return worked_s * (processors.count * processors.share), processors.used_s(worked_s)

    def _held(self) -> int:
        """Return how many instances on the host could still be reported."""
        tasks = [task for kind in self._kinds.values() for task in kind.processors.tasks]
        return len(self._ended) + sum(not task.lost for task in tasks)

    def _is_gone(self) -> bool:
        return self.next_event(self._traits.joins_at) == math.inf

    # ------------------------------------------------------------ time

    def next_event(self, now: Instant) -> Instant:
        at = self._next_check_at()
        for kind in self._kinds.values():
            at = min(at, kind.processors.next_at)
        return Instant(max(now, at) if at <= self._traits.leaves_at else math.inf)

    def _next_check_at(self) -> float:
        return self._calls.next_at(min([max(one.low_from_at, one.ask_from_at) for one in self._kinds.values()]))

    def advance(self, now: Instant) -> None:
        for kind in self._kinds.values():
            if kind.processors.at <= now:
                for ended in kind.processors.advance(now):
                    self._note(ended, kind)

    def _note(self, ended: Ended, kind: _Kind) -> None:
        """Record a finished task. If it ran, the client may immediately request work for this type of processor."""
        task = ended.task
        kind.low_from_at = -math.inf
        if ended.late:
            self._keep(aborted(task, EXIT_LATE), task, ended.at)
            return
        kind.without_work, kind.ask_from_at = 0, -math.inf
        if task.fails:
            self._keep(failed(task), task, ended.at)
            self._calls.failed(ended.at)
        else:
            self._keep(success(task), task, ended.at)

    def _keep(self, result: ReportedResult, task: Task, at: Instant) -> None:
        self._ended[task.name] = result
        self._calls.ended(at if task.report_immediately else task.due_at, at, waiting=len(self._ended))

    # ------------------------------------------------------------ calls

    def request(self, now: Instant) -> SchedulerRequest | None:
        if now < self._next_check_at() or now >= self._traits.leaves_at:
            return None
        self._forget_lost(now)
        is_low, is_due = self._check_buffer(now), self._calls.is_due(now)
        if not is_low and not is_due:
            return None
        self._measure(now)
        wishes = {name: self._wish(kind, now, is_due=is_due) for name, kind in self._kinds.items()}
        asked = [name for name, wish in wishes.items() if wish.req_s > 0.0]
        self._backs_off = () if is_due or not self._host_id else tuple(asked)
        if not asked and not is_due:  # the client has too many jobs; next check in a minute
            for kind in self._kinds.values():
                kind.low_from_at = max(kind.low_from_at, math.nextafter(now, math.inf))
            return None
        request = self._request(wishes, now)
        self._seqno += 1
        return request

    def _check_buffer(self, now: Instant) -> bool:
        """Return whether the client must request work. Store the earliest time at which it may have to, by type."""
        self._calls.checked_at = now
        for kind in self._kinds.values():
            if kind.low_from_at > now:
                continue
            after_s = low_after_s(kind.processors, self._traits.buffer)
            if after_s > 0.0:
                kind.low_from_at = self._availability.when(self._availability.worked_s(now) + after_s)
        return any(max(kind.low_from_at, kind.ask_from_at) <= now for kind in self._kinds.values())

    def _wish(self, kind: _Kind, now: Instant, *, is_due: bool) -> Wish:
        if (now < kind.ask_from_at and not is_due) or self._has_too_many():
            return NO_WISH
        return wish_of(kind.processors, self._traits.buffer) if self._host_id else FIRST_WISH

    def _has_too_many(self) -> bool:
        return sum(len(kind.processors.tasks) for kind in self._kinds.values()) >= MOST_RUNNABLE

    def _request(self, wishes: dict[str, Wish], now: Instant) -> SchedulerRequest:
        traits, cpu = self._traits, wishes[""]
        fraction = self._kinds[""].processors.fraction
        held = [task for kind in self._kinds.values() for task in kind.processors.tasks]
        return SchedulerRequest(
            traits.authenticator,
            host_id=self._host_id,
            rpc_seqno=self._seqno,
            client_version=CLIENT_VERSION,
            resource_share_fraction=traits.share,
            cpu_req_s=cpu.req_s,
            cpu_req_instances=cpu.instances,
            estimated_delay_s=cpu.estimated_delay_s,
            platforms=(traits.platform,),
            code_sign_key=self._key,
            on_fraction=fraction,
            work_buf_min_s=traits.buffer.min_s,
            disk_project_share_bytes=traits.disk_bytes,
            host=self._info,
            coprocs=self._coprocs(wishes),
            results=tuple(self._ended.values()),
            other_results=tuple([HeldResult(task.name, task.plan_class) for task in held]),
            in_progress=self._queue(now) if self._sends_queue else None,
        )

    def _coprocs(self, wishes: dict[str, Wish]) -> tuple[CoprocRequest, ...]:
        gpu = self._traits.gpu
        if gpu is None:
            return ()
        wish = wishes[gpu.type]
        return (
            CoprocRequest(
                gpu.type,
                gpu.count,
                gpu.peak_flop_per_s,
                gpu.ram_bytes,
                gpu.driver_version,
                req_s=wish.req_s,
                req_instances=wish.instances,
                estimated_delay_s=wish.estimated_delay_s,
            ),
        )

    def _queue(self, now: Instant) -> tuple[InProgress, ...]:
        if now >= self._others_until:  # a new day's jobs from other projects
            self._others = work_of_others(self._kinds[""].processors, self._traits.buffer, now)
            self._others_until = now + DAY_S
        own = [one for name, kind in self._kinds.items() for one in in_progress(kind.processors.tasks, name)]
        return (*own, *self._others)

    def _measure(self, now: Instant) -> None:
        """Update the client's measured availability."""
        passed_s = now - self._measured_at
        if passed_s < 600.0:
            return
        on_s = self._availability.worked_s(now) - self._availability.worked_s(self._measured_at)
        for kind in self._kinds.values():
            known = kind.processors.fraction
            kind.processors.fraction = max(0.01, measured_fraction(known, on_s, passed_s, memory_s=MEASURING_S))
            kind.low_from_at = -math.inf
        self._measured_at = now

    def _forget_lost(self, now: Instant) -> None:
        for kind in self._kinds.values():
            for task in [one for one in kind.processors.tasks if one.lost and now > one.due_at + FORGET_LOST_AFTER_S]:
                kind.processors.remove(task, now)
                kind.low_from_at = -math.inf

    def unanswered(self, now: Instant) -> None:
        self._calls.failed(now)

    def receive(self, reply: SchedulerReply, now: Instant) -> None:
        if reply.project_is_down:
            self._calls.failed(now)
            return
        self._calls.answered(now, reply.request_delay_s, reply.next_rpc_delay_s)
        if reply.host_id is not None:
            self._host_id, self._seqno = reply.host_id, 0
        self._key = reply.code_sign_key or self._key
        self._sends_queue = self._sends_queue or reply.send_full_workload
        for name in reply.acks:
            self._ended.pop(name, None)
        if reply.aborts or reply.aborts_if_not_started:
            self._abort(frozenset(reply.aborts), frozenset(reply.aborts_if_not_started), now)
        new = self._new_tasks(reply)
        for name, tasks in new.items():
            self._kinds[name].processors.add(tasks, now)
            self._kinds[name].low_from_at = -math.inf
        self._back_off(new, now)

    def _abort(self, names: frozenset[str], unstarted: frozenset[str], now: Instant) -> None:
        for kind in self._kinds.values():
            for task in kind.processors.tasks.copy():
                if task.name in names or (task.name in unstarted and not (task.started and not task.lost)):
                    kind.processors.remove(task, now)
                    kind.low_from_at = -math.inf
                    self._keep(aborted(task, EXIT_ABORTED), task, now)

    def _back_off(self, got: dict[str, list[Task]], now: Instant) -> None:
        """Back off from the requested types if the request's only purpose was to get work and it got none."""
        for name in got:
            self._kinds[name].without_work, self._kinds[name].ask_from_at = 0, -math.inf
        if got:
            return
        for name in self._backs_off:
            kind = self._kinds[name]
            kind.without_work += 1
            kind.ask_from_at = now + self._calls.backoff_s(kind.without_work)

    def _new_tasks(self, reply: SchedulerReply) -> dict[str, list[Task]]:
        """Return new tasks by processor type. The list is empty if the host loses all its tasks on arrival."""
        if not reply.results:
            return {}
        workunits = {workunit.name: workunit for workunit in reply.workunits}
        versions = {(one.app_name, one.version_num, one.plan_class): one for one in reply.app_versions}
        known = {task.name: task for kind in self._kinds.values() for task in kind.processors.tasks}
        new: dict[str, list[Task]] = {}
        for result in reply.results:
            if result.name in known:  # resent: its deadline may have moved
                known[result.name].due_at = result.report_deadline
                continue
            workunit = workunits[result.wu_name]
            version = versions[workunit.app_name, result.version_num, result.plan_class]
            fate = self._fates.of_next(workunit.command_line or workunit.name)
            of_kind_new = new.setdefault(version.coproc_type, [])
            if not fate.forgotten:
                of_kind_new.append(task_of(result, workunit, version, traits=self._traits, fate=fate))
        return new
