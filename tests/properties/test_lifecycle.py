"""A job keeps its invariants and ends, under any sequence of events."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from domain.jobs import InstanceState, JobState
from domain.settlement import InstanceFacts, JobFacts, JobSettlement
from domain.units import InstanceId
from lifecycle.settle import UNREADABLE, needs_comparison, settle
from lifecycle.states import OUTSTANDING, OVER, RETRY_CAUSES, Event, advance, allows
from tests.builders import NOW, a_job_class, instance_facts, job_facts

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
    """A job whose services do exactly what settlement says."""

    job: JobFacts
    max_lost: int
    outputs: dict[InstanceId, int] = field(default_factory=dict)  # the output of each instance
    canonicals: set[InstanceId] = field(default_factory=set)
    next_id: int = 1

    def state_of(self, instance_id: InstanceId) -> InstanceState:
        return next(view.state for view in self.job.instances if view.instance_id == instance_id)

    def step(self, instance_id: InstanceId, event: Event) -> None:
        self.put(instance_id, advance(self.state_of(instance_id), event).state)

    def put(self, instance_id: InstanceId, state: InstanceState) -> None:
        def put_in(view: InstanceFacts) -> InstanceFacts:
            return replace(view, state=state) if view.instance_id == instance_id else view

        self.job = replace(self.job, instances=tuple(map(put_in, self.job.instances)))

    def settle(self) -> JobSettlement:
        groups = {instance_id: self.outputs.get(instance_id, 0) for instance_id in needs_comparison(self.job)}
        before = self.job
        settlement = settle(self.job, groups, now=NOW, max_lost=self.max_lost)
        for step in settlement.steps:
            assert step.from_state is self.state_of(step.instance_id)
            self.put(step.instance_id, step.to_state)
        made = range(self.next_id, self.next_id + settlement.new_instances)
        self.next_id += settlement.new_instances
        self.job = replace(
            self.job,
            state=settlement.state,
            canonical_instance_id=settlement.canonical_instance_id,
            instances=(*self.job.instances, *(instance_facts(n, S.UNSENT) for n in made)),
        )
        if settlement.canonical_instance_id is not None:
            self.canonicals.add(settlement.canonical_instance_id)
        self.check(before, settlement)
        return settlement

    def check(self, before: JobFacts, settlement: JobSettlement) -> None:
        job = self.job
        states = [view.state for view in job.instances]
        assert sum(state is not S.CANCELLED for state in states) <= job.max_instances + self.max_lost
        assert len(self.canonicals) <= 1
        assert len(states) == len(before.instances) + settlement.new_instances
        assert settlement.retries == sum(state in RETRY_CAUSES for state in states)
        assert before.state in (JobState.OPEN, job.state), "an ended job does not change"
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

    def check_settled(self) -> None:
        """Settling twice equals settling once."""
        again = self.settle()
        assert again.new_instances == 0
        assert again.steps == ()


@st.composite
def courses(draw: st.DrawFn) -> Course:
    quorum = draw(st.integers(1, 4))
    job_class = a_job_class(
        quorum=quorum, max_errors=draw(st.integers(1, 6)), max_instances=draw(st.integers(quorum, 10))
    )
    job = job_facts(job_class=job_class, copies=draw(st.sampled_from([0, 0, 2, 3])))
    return Course(job, max_lost=draw(st.integers(1, 6)))


@given(courses(), st.data())
def test_job_invariants_hold_under_any_events(course: Course, data: st.DataObject) -> None:
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


@given(courses(), st.randoms(use_true_random=False))
def test_a_job_is_over_once_all_its_instances_are(course: Course, rng: random.Random) -> None:
    """Every instance ends sooner or later; so does the job, within max_instances and max_lost of them."""
    course.settle()
    endings = (Event.SUCCEEDED, Event.FAILED, Event.USER_ABORTED, Event.DETACHED, Event.TIMED_OUT)
    for _ in range(course.job.max_instances + course.max_lost):
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
