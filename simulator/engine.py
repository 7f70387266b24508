"""Runs a scenario: takes events from the calendar in order, advances the clock and executes each event.

Creates a project in an empty store, schedules the first events, then runs until all batches end or to the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from domain.apps import CPU
from domain.jobs import JobClass
from domain.units import BatchId, HostId, Instant, later
from simulator.client import SimulatedVolunteer
from simulator.in_progress import HostCopies
from simulator.ports import Outage, Participant, Scenario, Submission
from simulator.recording import SAMPLE_S, Followed, RunRecord, WorkSample
from simulator.services import (
    PACE,
    AnyStore,
    CatalogueOfTheMoment,
    MoreTasks,
    Services,
    SimulatedTask,
    create_project,
)
from simulator.virtual_time import Calendar, VirtualClock

MOST_AT_ONCE = 10_000  # events of one volunteer at the same instant; more can only be an infinite loop

Watch = Callable[[Instant], None]  # receives the simulated time
CountJobs = Callable[[int], None]  # receives the number of jobs that have ended


def uncounted(jobs: int) -> None:
    """Ignore the number of ended jobs."""


class Engine:
    """One run of a scenario on a store. Call `run` once, then read `record`, `volunteers` and `store`."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        *,
        store: Callable[[VirtualClock], AnyStore],
        settings: Mapping[str, object],
        more_tasks: MoreTasks,
        watch: Watch,
        count_jobs: CountJobs = uncounted,
        sequence: bool = False,
    ) -> None:
        self.scenario = scenario
        self.clock = VirtualClock(scenario.starts_at)
        self.store = store(self.clock)
        self.volunteers: Sequence[Participant] = scenario.volunteers(seed)
        self.record = RunRecord(sequence=[] if sequence else None)
        self.ended_at = scenario.starts_at
        self._submissions: Sequence[Submission] = scenario.submissions(seed)
        self._settings = {**PACE, **scenario.settings, **settings}
        self._more_tasks = more_tasks
        self._watch = watch
        self._count_jobs = count_jobs
        self._calendar = Calendar()
        self._horizon_at = later(scenario.starts_at, scenario.horizon_s)
        self._shares = {one.submitter: one.shares for one in scenario.submitters}
        self._to_come = len(self._submissions)
        self._outages = list(scenario.outages)
        self._validator_waits = False
        self._visits: Sequence[_Visit] = ()
        self._in_progress = HostCopies(self.store, self.record, self.volunteers)
        self.services: Services  # set by `run`

    async def run(self) -> None:
        copies = await create_project(self.store, self.scenario, self.volunteers, self._settings, self.clock)
        await self._in_progress.copy_hosts(copies)
        catalogue = CatalogueOfTheMoment(self.store, self.clock, await self.store.applications.load_catalogue())
        self.services = Services(self.store, catalogue, self.clock, self.record)
        self._enter_all([*self.services.simulated_tasks(), *self._more_tasks(self.store, catalogue, self.clock)])
        calendar, clock = self._calendar, self.clock
        while len(calendar) and calendar.next_at() <= self._horizon_at and not self._is_over():
            at, event = calendar.take()
            clock.turn_to(at)
            self._watch(at)
            await event()
        self.ended_at = clock.now() if self._is_over() else self._horizon_at

    def _is_over(self) -> bool:
        return not self._to_come and not self.record.jobs_open

    def _enter_all(self, tasks: Sequence[SimulatedTask]) -> None:
        start_at = self.clock.now()
        for submission in self._submissions:
            self._calendar.put(max(start_at, submission.at), partial(self._submit, submission))
        for task in tasks:
            self._calendar.put(start_at, partial(self._do, task))
        self._visits = [_Visit(self, volunteer) for volunteer in self.volunteers]
        for visit in self._visits:
            visit.enter(start_at)
        self._calendar.put(start_at, self._sample_work)

    def enter(self, at: Instant, visit: _Visit) -> None:
        self._calendar.put(at, visit.make)

    # ------------------------------------------------------------ events

    async def _submit(self, submission: Submission) -> None:
        outage = self._outage()
        if outage is not None:
            self._calendar.put(outage.end_at, partial(self._submit, submission))
            return
        self._to_come -= 1
        batch_id = await self.services.submit(submission)
        batch = await self.store.views.batch(batch_id)
        classes: Sequence[JobClass] = await self.store.views.classes_of_batch(batch_id)
        submitter = await self.store.views.submitter_name(batch.submitter_id)
        followed = Followed(
            BatchId(batch_id),
            batch.name,
            batch.qos,
            submitter,
            batch.created_at,
            batch.counts.jobs_total,
            on_cpus=self.services.catalogue.catalogue().has_version_for(batch.app_id, CPU),
        )
        self.record.submitted(followed, classes, shares=self._shares.get(submitter, 1.0))
        if submission.median_turnaround_s is not None:
            await self._in_progress.copy_turnaround(batch_id, submission.median_turnaround_s)
        if submission.held:
            now, catalogue = self.clock.now(), self.services.catalogue.catalogue()
            for place in set(await self._in_progress.hand_out(batch_id, submission.held, catalogue, now)):
                self._visits[place].enter(now)

    async def _sample_work(self) -> None:
        """Record whether unsent instances that a CPU could run are waiting."""
        now = self.clock.now()
        waiting = [batch.batch_id for batch in self.record.batches.values() if batch.on_cpus and not batch.is_over]
        batches = await self.store.views.batches_with(waiting)
        self.record.work_samples.append(WorkSample(now, any(batch.counts.unsent for batch in batches)))
        self._calendar.put(later(now, SAMPLE_S), self._sample_work)

    async def _do(self, task: SimulatedTask) -> None:
        """Run a periodic task until it has no more work. Reload the catalogue if requests depend on the changes."""
        outage = self._outage()
        if outage is not None:
            self._calendar.put(outage.end_at, partial(self._do, task))
            return
        report = await task.run_once()
        while getattr(report, "more", False):
            report = await task.run_once()
        if task.updates_catalogue is not None and task.updates_catalogue(report):
            await self.services.catalogue.refresh_once()
        self._validate_soon()
        self._calendar.put(later(self.clock.now(), task.interval_s()), partial(self._do, task))

    def _validate_soon(self) -> None:
        """Schedule the validator if there is anything to settle. Otherwise a round would change nothing."""
        if self.record.to_settle and not self._validator_waits:
            self.record.to_settle = False
            self._validator_waits = True
            after_s = self.services.catalogue.catalogue().settings.lifecycle.validate_interval_s
            self._calendar.put(later(self.clock.now(), after_s), self._validate)

    async def _validate(self) -> None:
        self._validator_waits = False
        if self._outage() is not None:
            self.record.to_settle = True
            return
        while (await self.services.jobs.validator.run_once()).more:
            pass
        while self.record.half_done:
            batch = self.record.half_done.pop()
            batch.promised_at = (await self.store.views.batch(batch.batch_id)).completion_at
        self._count_jobs(sum(batch.jobs for batch in self.record.batches.values()) - self.record.jobs_open)

    async def call(self, volunteer: Participant, now: Instant) -> None:
        """Deliver the volunteer's request and its reply, if a request is due."""
        request = volunteer.request(now)
        if request is None:
            return
        if self._outage() is not None:
            volunteer.unanswered(now)
            return
        reply = await self.services.answer(request, now)
        if reply.host_id is not None and isinstance(volunteer, SimulatedVolunteer) and volunteer.labels:
            await self.store.ordering_rules.set_host_labels(HostId(reply.host_id), volunteer.labels)
        self._validate_soon()
        volunteer.receive(reply, now)

    def _outage(self) -> Outage | None:
        """Return the current outage; drop past ones."""
        now = self.clock.now()
        while self._outages and self._outages[0].end_at <= now:
            self._outages.pop(0)
        return self._outages[0] if self._outages and self._outages[0].start_at <= now else None


class _Visit:
    """Executes a volunteer's events one after the other."""

    __slots__ = ("_at", "_at_once", "_engine", "_volunteer")

    def __init__(self, engine: Engine, volunteer: Participant) -> None:
        self._engine = engine
        self._volunteer = volunteer
        self._at = Instant(-math.inf)
        self._at_once = 0

    def enter(self, now: Instant) -> None:
        """Schedule the volunteer's next event, if there is one."""
        at = Instant(max(now, self._volunteer.next_event(now)))
        if at == math.inf:
            return
        self._at_once = self._at_once + 1 if at == self._at else 0
        self._at = at
        assert self._at_once < MOST_AT_ONCE, f"a volunteer repeats events at {at} without end"
        self._engine.enter(at, self)

    async def make(self) -> None:
        now = self._engine.clock.now()
        if now != self._at:  # replaced by an earlier event when the host got a job
            return
        self._volunteer.advance(now)
        await self._engine.call(self._volunteer, now)
        self.enter(now)
