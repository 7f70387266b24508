from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.apps import PlanClass
from domain.units import Flop, Instant, Seconds
from simulator.client import SimulatedVolunteer, task_of
from simulator.ports import HeldJob
from simulator.processors import Task
from simulator.traits import Fate, Gpu, Traits
from simulator.work_buffer import CHECK_S, MOST_BACKOFF_S, MOST_RESULTS, Buffer
from tests.unit.simulator.machines import (
    DAY,
    HOUR,
    START,
    a_reply,
    at,
    first_reply,
    next_call,
    on_during,
    traits,
    volunteer,
)
from wire.client import decode_reply, encode_request
from wire.decode import decode_request
from wire.encode import encode_reply
from wire.messages import AppVersionElement, ResultElement, SchedulerRequest, WorkunitElement


def eager_call(one: SimulatedVolunteer, now: Instant) -> tuple[Instant, SchedulerRequest]:
    """Return the next call of a client that checks its buffer every minute without exception."""
    while True:
        for kind in one._kinds.values():
            kind.low_from_at = min(kind.low_from_at, math.nextafter(now, math.inf))
        now = one.next_event(now)
        one.advance(now)
        request = one.request(now)
        if request is not None:
            return now, request


def attached(of: Traits, **options: Any) -> tuple[SimulatedVolunteer, Instant]:
    """Return a client after its first call, which got no job."""
    one = volunteer(of, **options)
    now, _ = next_call(one, at(0.0))
    one.receive(first_reply(), now)
    return one, now


def next_report(one: SimulatedVolunteer, now: Instant) -> tuple[Instant, SchedulerRequest]:
    """Return the next call with a result; earlier calls get no job."""
    while True:
        now, request = next_call(one, now)
        if request.results:
            return now, request
        one.receive(a_reply(), now)


def with_jobs(
    of: Traits, *names: str, hours: float = 1.0, due_hours: float = 1000.0, more: Mapping[str, Any] | None = None
) -> tuple[SimulatedVolunteer, Instant]:
    """Return a client after a call that got these jobs."""
    one, now = attached(of, **(more or {}))
    now, _ = next_call(one, now)
    one.receive(a_reply(*names, hours=hours, due_hours=due_hours), now)
    return one, now


def a_held_job(name: str, done_fraction: float) -> HeldJob:
    """Return a job of ten hours."""
    plan, size = PlanClass("", 1.0), 3.6e13
    return HeldJob(name, f"job_{name}", "", Flop(size), Seconds(10 * HOUR), at(1000.0), done_fraction, 1, plan)


def test_running_job_goes_before_jobs_that_have_not_begun() -> None:
    one, now = attached(traits())
    for name, done_fraction in (("new", 0.0), ("other", 0.0), ("running", 0.9)):
        one.hold(a_held_job(name, done_fraction), now)

    reported_at, request = next_report(one, now)
    assert [result.name for result in request.results] == ["running"]
    assert HOUR <= reported_at - now <= 2 * HOUR + CHECK_S  # a result may wait an hour for its report


def test_first_call_requests_a_second_then_a_full_buffer() -> None:
    one = volunteer(traits(ncpus=2, first_hours=1.0))
    first_at, first = next_call(one, at(0.0))
    one.receive(first_reply(), first_at)
    second_at, second = next_call(one, first_at)

    assert (first_at, second_at) == (at(1.0), at(1.0) + 60.0)
    assert (first.rpc_seqno, second.rpc_seqno) == (0, 0)  # it counts from the assignment of its id
    assert (first.cpu_req_s, first.cpu_req_instances) == (1.0, 0.0)
    assert (second.cpu_req_s, second.cpu_req_instances) == (2 * (180.0 + 10 * HOUR), 2.0)
    assert first.in_progress is None
    assert second.in_progress == ()


def test_a_computer_that_is_off_calls_when_it_is_on_again() -> None:
    one, now = attached(traits(), availability=on_during((2.5, 2.51), (6.0, 40.0)))

    assert now == at(2.5)
    assert next_call(one, now)[0] == at(6.0)


def test_it_asks_when_its_buffer_is_below_the_lower_end() -> None:
    one, now = with_jobs(traits(buffer=Buffer(Seconds(2 * HOUR), Seconds(8 * HOUR))), "pi_1_1_1", hours=5.0)
    got_at = now
    now, request = next_call(one, now)

    assert 3 * HOUR <= now - got_at <= 3 * HOUR + CHECK_S
    assert request.cpu_req_s == pytest.approx(8 * HOUR, abs=CHECK_S)
    assert request.results == ()


def test_result_is_reported_an_hour_after_its_end() -> None:
    one, now = with_jobs(traits(ncpus=2), "pi_1_1_1", "pi_1_2_2", hours=3.0)
    one, now = with_jobs(traits(), "pi_1_1_1", hours=3.0)
    one.receive(a_reply("pi_1_2_2", hours=30.0), now)
    got_at = now
    now, request = next_call(one, now)

    (result,) = request.results
    assert 4 * HOUR <= now - got_at <= 4 * HOUR + CHECK_S
    assert (result.name, result.state, result.exit_status) == ("pi_1_1_1", 5, 0)
    assert result.elapsed_s == pytest.approx(3 * HOUR, abs=1.0)
    assert result.files[0].name == "pi_1_1_1_r0"
    assert [entry.name for entry in request.other_results] == ["pi_1_2_2"]


def test_what_is_due_within_a_day_it_reports_at_once() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", hours=3.0, due_hours=20.0)
    one.receive(a_reply("pi_1_2_2", hours=30.0), now)

    assert next_call(one, now)[0] - now == pytest.approx(3 * HOUR, abs=1e-3)


def test_what_the_server_wants_at_once_is_reported_at_once() -> None:
    one, now = with_jobs(traits())
    reply = a_reply("pi_1_1_1", hours=3.0)
    one.receive(replace(reply, results=(replace(reply.results[0], report_immediately=True),)), now)
    one.receive(a_reply("pi_1_2_2", hours=30.0), now)

    assert next_call(one, now)[0] - now == pytest.approx(3 * HOUR, abs=1e-3)


def test_many_results_are_reported_at_once() -> None:
    names = [f"pi_1_{n}_{n}" for n in range(1, MOST_RESULTS + 1)]
    one, now = with_jobs(traits(ncpus=64), *names, hours=2.0)
    one.receive(a_reply(*(f"pi_2_{n}_{n}" for n in range(64)), hours=30.0), now)
    got_at = now
    now, request = next_call(one, now)

    assert now - got_at == pytest.approx(2 * HOUR, abs=1e-3)
    assert len(request.results) == MOST_RESULTS


def test_each_report_asks_for_what_is_missing() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", hours=3.0, due_hours=20.0)
    one.receive(a_reply("pi_1_2_2", hours=4.0), now)
    now, request = next_call(one, now)

    assert len(request.results) == 1
    assert request.cpu_req_s == pytest.approx(6 * HOUR + 180.0, abs=1.0)  # the lower end of 180 s is covered


def test_a_result_is_repeated_until_it_is_acknowledged() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1")
    now, request = next_report(one, now)
    one.receive(a_reply(), now)
    now, again = next_call(one, now)
    one.receive(replace(a_reply(), acks=("pi_1_1_1",)), now)
    _, after = next_call(one, now)

    assert [len(r.results) for r in (request, again, after)] == [1, 1, 0]


@given(st.floats(0.0, 3 * DAY), st.booleans())
def test_it_waits_as_long_as_the_reply_says(delay_s: float, has_a_job: bool) -> None:
    one, now = attached(traits())
    names = ("pi_1_1_1",) if has_a_job else ()
    one.receive(a_reply(*names, hours=0.001, due_hours=5.0, delay_s=delay_s, contact_s=60.0), now)

    assert next_call(one, now)[0] >= now + delay_s


def test_unanswered_call_backs_off_and_keeps_reports() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", due_hours=9.0)
    now, request = next_report(one, now)
    waits = []
    for _ in range(12):
        one.unanswered(now)
        before = now
        now, again = next_call(one, now)
        waits.append(now - before)
        assert again.results == request.results

    assert 60.0 <= waits[0] <= 120.0
    assert waits[-1] <= 4 * HOUR
    assert all(later <= 4 * earlier for earlier, later in pairwise(waits))


def test_a_failed_job_counts_like_a_call_without_an_answer() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", hours=2.0, due_hours=9.0, more={"error": 1.0})
    now, request = next_report(one, now)

    (result,) = request.results
    assert 60.0 <= now - (START + 60.0 + result.elapsed_s) <= 120.0


@given(st.floats(60.0, 9 * DAY))
def test_it_calls_at_the_latest_when_the_server_asked_for_it(contact_s: float) -> None:
    one, now = attached(traits())
    one.receive(a_reply("pi_1_1_1", hours=1000.0, contact_s=contact_s), now)
    called_at, request = next_call(one, now)

    assert called_at == now + contact_s
    assert (request.cpu_req_s, request.results) == (0.0, ())  # its only processor is covered


def test_requested_call_asks_for_work_despite_back_off() -> None:
    one, now = attached(traits())
    now, _ = next_call(one, now)
    one.receive(a_reply(contact_s=300.0), now)
    called_at, request = next_call(one, now)

    assert called_at == now + 300.0  # less than any back-off
    assert request.cpu_req_s > 0.0


@settings(max_examples=30)
@given(st.integers(1, 12))
def test_without_work_it_asks_less_and_less(times: int) -> None:
    one, now = attached(traits())
    now, _ = next_call(one, now)
    for n in range(times):
        one.receive(a_reply(), now)
        before = now
        now, request = next_call(one, now)
        doubled_s = min(MOST_BACKOFF_S, 600.0 * 2.0**n)

        assert 0.5 * doubled_s <= now - before <= 1.5 * doubled_s + CHECK_S
        assert request.cpu_req_s > 0.0


def test_report_without_work_causes_no_back_off() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", hours=3.0, due_hours=20.0)
    one.receive(a_reply("pi_1_2_2", hours=4.0), now)
    now, _ = next_call(one, now)
    one.receive(replace(a_reply(), acks=("pi_1_1_1",)), now)
    reported_at = now
    now, request = next_call(one, now)

    assert now - reported_at == pytest.approx(4 * HOUR - 180.0, abs=CHECK_S)  # when the buffer is low
    assert request.cpu_req_s > 0.0


def test_a_job_that_ends_ends_the_waiting() -> None:
    one, now = with_jobs(traits(ncpus=2), "pi_1_1_1", hours=0.5)
    for _ in range(2):  # its other processor is idle
        now, request = next_call(one, now)
        assert request.cpu_req_s > 0.0
        one.receive(a_reply(), now)
    for _ in range(20):
        before = now
        now, request = next_call(one, now)
        if request.results:
            break
        one.receive(a_reply(), now)

    assert now - before < HOUR
    assert now == pytest.approx(START + 60.0 + 0.5 * HOUR, abs=1.0)
    assert request.cpu_req_s > 0.0


def test_a_job_that_comes_ends_the_waiting() -> None:
    one, now = attached(traits(ncpus=16))
    for _ in range(6):
        now, _ = next_call(one, now)
        one.receive(a_reply(), now)
    now, _ = next_call(one, now)
    one.receive(a_reply("pi_1_1_1", hours=10.0), now)
    before = now
    now, request = next_call(one, now)

    assert now == before + 60.0
    assert request.cpu_req_s > 0.0


def test_with_too_many_jobs_it_asks_for_none() -> None:
    names = [f"pi_1_{n}_{n}" for n in range(1000)]
    one, now = with_jobs(traits(ncpus=64), *names, hours=0.02)
    now, request = next_call(one, now)

    assert len(request.other_results) < 1000
    assert request.cpu_req_s > 0.0


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from([0.4, 1.0]),
    st.sampled_from([0.6, 1.0, 1.7]),
    st.sampled_from([0.0, 0.3]),
)
def test_it_calls_when_a_client_that_looks_every_minute_does(
    seed: int, ncpus: int, share: float, stretch: float, error: float
) -> None:
    """It skips checks that would find nothing. Both clients get the same replies."""
    draw = random.Random(seed)
    switches = [0.0]
    while switches[-1] < 200.0:
        switches.append(switches[-1] + draw.uniform(0.5, 12.0))
    intervals = [*zip(switches[::2], switches[1::2], strict=False), (switches[-1] + 1.0, 1e6)]
    of = traits(ncpus=ncpus, share=share, stretch=stretch, buffer=Buffer(Seconds(2 * HOUR), Seconds(3 * HOUR)))
    one, eager = (volunteer(of, availability=on_during(*intervals), error=error) for _ in range(2))
    now = at(0.0)
    for number in range(15):
        called_at, request = next_call(one, now)
        eager_at, other = eager_call(eager, now)
        assert eager_at == pytest.approx(called_at, abs=1e-3)
        assert [result.name for result in other.results] == [result.name for result in request.results]
        assert other.cpu_req_s == pytest.approx(request.cpu_req_s, abs=1e-2)
        names = [f"pi_{number}_{n}_{n}" for n in range(draw.randrange(4) if request.cpu_req_s > 0.0 else 0)]
        reply = (
            first_reply(contact_s=10 * HOUR)
            if number == 0
            else a_reply(*names, hours=draw.uniform(0.2, 4.0), due_hours=1e4, contact_s=10 * HOUR)
        )
        reply = replace(reply, acks=tuple(result.name for result in request.results))
        one.receive(reply, called_at)
        eager.receive(reply, eager_at)
        now = called_at


def test_queue_is_reported_when_the_server_requests_it() -> None:
    one = volunteer(traits(ncpus=2, share=0.5))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=30.0), now)
    _, request = next_call(one, now)

    assert request.in_progress is not None
    assert [entry.name for entry in request.in_progress] == ["pi_1_1_1", "other_0"]
    assert [entry.name for entry in request.other_results] == ["pi_1_1_1"]


def test_a_job_the_server_aborts_is_given_up_and_reported() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", "pi_1_2_2", hours=30.0)
    one.receive(replace(a_reply(), aborts_if_not_started=("pi_1_1_1", "pi_1_2_2")), now)
    _, request = next_call(one, now)

    assert [(result.name, result.exit_status, result.state) for result in request.results] == [("pi_1_2_2", 202, 6)]
    assert [entry.name for entry in request.other_results] == ["pi_1_1_1"]  # it was running


def test_a_lost_job_stays_in_its_list_and_never_comes_back() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", due_hours=48.0, more={"loss": 1.0})
    listed = []
    while now < at(120.0):
        now, request = next_call(one, now)
        listed.append((now, len(request.other_results)))
        assert request.results == ()
        one.receive(a_reply(contact_s=DAY), now)

    assert all(many == (called_at <= at(96.0)) for called_at, many in listed)  # forgotten two days after its deadline


def test_a_job_that_is_forgotten_is_in_no_list_and_takes_no_room() -> None:
    one, now = attached(traits(), loss=1.0, forgets=True)
    now, first = next_call(one, now)
    one.receive(a_reply("pi_1_1_1", hours=9.0, due_hours=480.0), now)
    now, request = next_call(one, now)

    assert (request.other_results, request.results, request.in_progress) == ((), (), ())
    assert request.cpu_req_s == first.cpu_req_s
    assert one.facts().lost == 0  # it is detected and resent


def test_a_job_that_fails_says_so() -> None:
    one, now = with_jobs(traits(), "pi_1_1_1", hours=2.0, due_hours=9.0, more={"error": 1.0})
    now, request = next_report(one, now)

    (result,) = request.results
    assert (result.state, result.exit_status) == (3, 1)
    assert result.elapsed_s < 2 * HOUR


def test_right_answers_to_a_job_are_alike_and_wrong_ones_differ() -> None:
    digests = []
    for garbage in (0.0, 0.0, 1.0):
        one, now = with_jobs(traits(), "pi_1_1_1", more={"garbage": garbage})
        digests.append(next_report(one, now)[1].results[0].files[0].md5)

    assert digests[0] == digests[1] != digests[2]


def test_a_gpu_has_jobs_of_its_own() -> None:
    gpu = Gpu("NVIDIA", 1, 99e9 / 0.1, 8e9, 55_000)
    one, now = attached(traits(gpu=gpu))
    now, first = next_call(one, now)
    one.receive(a_reply("pi_1_1_1", hours=100.0, gpu="NVIDIA"), now)
    now, request = next_report(one, now)

    assert [(coproc.type, coproc.req_s, coproc.req_instances) for coproc in first.coprocs] == [
        ("NVIDIA", 36_180.0, 1.0)
    ]
    assert request.results[0].elapsed_s == pytest.approx(HOUR, rel=0.01)  # 1 Gflop/s of its CPU, 99 of the GPU


def test_a_host_that_leaves_does_not_call_again() -> None:
    one, now = with_jobs(traits(leaves_hours=10.0), "pi_1_1_1", hours=20.0)
    one.receive(a_reply("pi_1_2_2", hours=20.0, delay_s=10 * HOUR), now)

    assert one.next_event(now) == math.inf


def test_a_host_that_joins_later_calls_then() -> None:
    assert next_call(volunteer(traits(joins_hours=20.0)), at(0.0))[0] == at(20.0)


def test_a_deadline_that_is_moved_counts() -> None:
    one, now = with_jobs(traits(ncpus=2), "pi_1_1_1", hours=5.0, due_hours=100.0)
    now, _ = next_call(one, now)
    one.receive(a_reply("pi_1_1_1", hours=5.0, due_hours=5.5, contact_s=60.0), now)
    now, request = next_call(one, now)

    assert request.in_progress is not None
    assert request.in_progress[0].report_deadline == at(5.5)


def test_a_job_sent_again_is_no_new_job() -> None:
    """The other processor is idle and there is no job for it: the client backs off."""
    one, now = with_jobs(traits(ncpus=2), "pi_1_1_1", hours=50.0)
    now, _ = next_call(one, now)
    one.receive(a_reply("pi_1_1_1", hours=50.0), now)

    assert next_call(one, now)[0] - now >= 300.0


def test_it_counts_what_can_never_come_back() -> None:
    found = []
    for of, loss in ((traits(), 1.0), (traits(leaves_hours=2.0), 0.0), (traits(), 0.0)):
        one, now = with_jobs(of, "pi_1_1_1", hours=3.0, more={"loss": loss})
        one.receive(a_reply(delay_s=HOUR), now)
        while (now := one.next_event(now)) <= at(2.5):
            one.advance(now)
            one.request(now)
        found.append(one.facts().lost)

    assert found == [1, 1, 0]


def test_deadline_mode_and_preemption_are_counted() -> None:
    buffer = Buffer(Seconds(0.0), Seconds(DAY))
    one, now = with_jobs(traits(share=0.5, buffer=buffer), "pi_1_1_1", hours=2.0, due_hours=3.0)
    next_report(one, now)
    facts = one.facts()

    assert (facts.run, facts.deadline_mode) == (1, 1)
    assert facts.preempted_s == pytest.approx(HOUR, abs=1.0)


def test_its_messages_pass_the_wire_unchanged() -> None:
    gpu = Gpu("NVIDIA", 2, 4e12, 8e9, 55_000)
    one, now = attached(traits(ncpus=2, share=0.5, gpu=gpu))
    now, _ = next_call(one, now)
    sent = decode_reply(encode_reply(a_reply("pi_1_1_1", "pi_1_2_2", due_hours=30.0)))
    one.receive(sent, now)
    _, request = next_call(one, now)
    read = decode_request(encode_request(request))

    assert read.other_results == request.other_results
    assert read.results == request.results
    assert (read.cpu_req_s, read.cpu_req_instances) == (request.cpu_req_s, request.cpu_req_instances)
    assert [c.req_s for c in read.coprocs] == [c.req_s for c in request.coprocs]
    assert read.in_progress is not None
    assert [e.name for e in read.in_progress] == [e.name for e in request.in_progress or ()]


def a_task(fate: Fate, *, ncpus: float = 1.0) -> Task:
    """Return a task of 1e9 flop for a host of 2 CPUs of 1 Gflop/s each, which the server believes to have 2 Gflop/s."""
    return task_of(
        ResultElement("a_1", "a", at(9.0), "linux", 1),
        WorkunitElement("a", "pi", 1e9, 1e15, 1e9, 1e9),
        AppVersionElement("pi", 1, "linux", avg_ncpus=ncpus, flop_per_s=2e9),
        traits=traits(ncpus=2),
        fate=fate,
    )


def test_how_long_a_job_takes_and_what_its_client_takes_it_for() -> None:
    plain = a_task(Fate(1.0, lost=False, fails=False, fails_after=0.5, garbage=False))
    long = a_task(Fate(3.0, lost=False, fails=False, fails_after=0.5, garbage=False))
    wide = a_task(Fate(1.0, lost=False, fails=False, fails_after=0.5, garbage=False), ncpus=8.0)

    assert (plain.true_s, plain.left_s, plain.estimate_s) == (1.0, 1.0, 0.5)
    assert (long.true_s, long.estimate_s) == (3.0, 0.5)  # its size is unknown before
    assert (wide.true_s, wide.ncpus) == (0.5, 2.0)


def test_a_job_that_fails_ends_before_its_end() -> None:
    task = a_task(Fate(1.0, lost=False, fails=True, fails_after=0.25, garbage=False))

    assert (task.true_s, task.left_s, task.fails) == (1.0, 0.25, True)
