"""A job driven by any sequence of events keeps its promises and comes to an end."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import InstanceState, JobState
from domain.units import InstanceId
from lifecycle.settle import UNREADABLE, InstanceView, JobView, Settlement, needs_comparison, settle
from lifecycle.states import OUTSTANDING, OVER, RETRY_CAUSES, Event, advance, allows

S = InstanceState
HAPPENINGS = (
    Event.SENT,
    Event.SUCCEEDED,
    Event.FAILED,
    Event.USER_ABORTED,
    Event.SERVER_ABORTED,
    Event.UNSTARTED,
    Event.DETACHED,
    Event.TIMED_OUT,
)


@dataclass
class Course:
    """A job in the hands of services that do exactly what settling says."""

    job: JobView
    outputs: dict[InstanceId, int] = field(default_factory=dict)  # what each instance would return
    canonicals: set[InstanceId] = field(default_factory=set)
    next_id: int = 1

    def state_of(self, instance_id: InstanceId) -> InstanceState:
        return next(view.state for view in self.job.instances if view.instance_id == instance_id)

    def step(self, instance_id: InstanceId, event: Event) -> None:
        instances = tuple(
            InstanceView(view.instance_id, advance(view.state, event).state)
            if view.instance_id == instance_id
            else view
            for view in self.job.instances
        )
        self.job = replace(self.job, instances=instances)

    def settle(self) -> Settlement:
        groups = {instance_id: self.outputs.get(instance_id, 0) for instance_id in needs_comparison(self.job)}
        before = self.job
        settlement = settle(self.job, groups)
        for instance_id, event in settlement.events:
            self.step(instance_id, event)
        made = range(self.next_id, self.next_id + settlement.new_instances)
        self.next_id += settlement.new_instances
        self.job = replace(
            self.job,
            state=settlement.state,
            canonical_instance_id=settlement.canonical_instance_id,
            instances=(*self.job.instances, *(InstanceView(InstanceId(n), S.UNSENT) for n in made)),
        )
        if settlement.canonical_instance_id is not None:
            self.canonicals.add(settlement.canonical_instance_id)
        self.check(before, settlement)
        return settlement

    def check(self, before: JobView, settlement: Settlement) -> None:
        job = self.job
        states = [view.state for view in job.instances]
        assert sum(state is not S.CANCELLED for state in states) <= job.max_instances + job.max_lost
        assert len(self.canonicals) <= 1
        assert len(states) == len(before.instances) + settlement.new_instances
        assert settlement.retries == sum(state in RETRY_CAUSES for state in states)
        assert before.state in (JobState.OPEN, job.state), "a job that is over stays as it is"
        assert (job.state is JobState.VALID) == (job.canonical_instance_id is not None)
        if job.canonical_instance_id is not None:
            assert self.state_of(job.canonical_instance_id) is S.VALID
        if job.state is not JobState.OPEN:
            assert not {S.UNSENT, S.REPORTED, S.INCONCLUSIVE} & set(states)
            assert settlement.new_instances == 0
        else:
            assert any(state in OUTSTANDING for state in states), "an open job waits for something"
        if job.state is JobState.FAILED and before.state is JobState.OPEN:
            assert settlement.failure
        assert bool(settlement.new_because) == (settlement.new_instances > 0)

    def check_settled(self) -> None:
        """Settling twice is settling once."""
        again = self.settle()
        assert again.new_instances == 0
        assert again.events == ()


@st.composite
def jobs(draw: st.DrawFn) -> JobView:
    quorum = draw(st.integers(1, 4))
    return JobView(
        quorum=quorum,
        max_errors=draw(st.integers(1, 6)),
        max_instances=draw(st.integers(quorum, 10)),
        copies=draw(st.sampled_from([0, 0, 2, 3])),
        max_lost=draw(st.integers(1, 6)),
        instances=(),
    )


@given(jobs(), st.data())
def test_a_job_keeps_its_promises_whatever_happens(job: JobView, data: st.DataObject) -> None:
    course = Course(job)
    course.settle()
    for _ in range(data.draw(st.integers(0, 40))):
        possible = [
            (view.instance_id, event)
            for view in course.job.instances
            for event in HAPPENINGS
            if allows(view.state, event)
        ]
        if not possible:
            break
        instance_id, event = data.draw(st.sampled_from(possible))
        if event is Event.SUCCEEDED:
            course.outputs[instance_id] = data.draw(st.sampled_from([0, 0, 1, 2, UNREADABLE]))
        course.step(instance_id, event)
        course.settle()
        course.check_settled()
        if data.draw(st.integers(0, 40)) == 0:
            course.job = replace(course.job, batch_aborted=True)


@given(jobs(), st.randoms(use_true_random=False))
def test_a_job_is_over_once_all_its_instances_are(job: JobView, rng: random.Random) -> None:
    """Every instance ends sooner or later; so does the job, within max_instances and max_lost of them."""
    course = Course(job)
    course.settle()
    endings = (Event.SUCCEEDED, Event.FAILED, Event.USER_ABORTED, Event.DETACHED, Event.TIMED_OUT)
    for _ in range(course.job.max_instances + course.job.max_lost):
        outstanding = [view for view in course.job.instances if view.state in OUTSTANDING]
        if not outstanding:
            break
        view = rng.choice(outstanding)
        if view.state is S.UNSENT:
            course.step(view.instance_id, Event.SENT)
        ending = rng.choice(endings)
        if ending is Event.SUCCEEDED:
            course.outputs[view.instance_id] = rng.choice((0, 0, 1, 2, UNREADABLE))
        course.step(view.instance_id, ending)
        course.settle()
    assert all(view.state in OVER for view in course.job.instances)
    assert course.job.state in (JobState.VALID, JobState.FAILED)
