from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest

from domain.units import Seconds
from simulator.traits import Gpu
from simulator.work_buffer import Buffer
from tests.unit.simulator.machines import (
    DAY,
    HOUR,
    a_reply,
    at,
    next_call,
    on_during,
    traits,
    volunteer,
)
from wire.client import decode_reply, encode_request
from wire.decode import decode_request
from wire.encode import encode_reply


def test_it_asks_at_instants_of_its_grid() -> None:
    one = volunteer(traits(ncpus=2, first_hours=1.0))
    first_at, first = next_call(one, at(0.0))
    one.receive(a_reply(), first_at)
    second_at, second = next_call(one, first_at)

    assert (first_at, second_at) == (at(1.0), at(7.0))
    assert (first.rpc_seqno, second.rpc_seqno) == (0, 1)
    assert first.cpu_req_s == 2 * (180.0 + 10 * HOUR)
    assert first.in_progress is None
    assert second.in_progress == ()


def test_a_computer_that_is_off_asks_when_it_is_on_again() -> None:
    one = volunteer(traits(), availability=on_during((2.5, 40.0)))
    first_at, _ = next_call(one, at(0.0))
    one.receive(a_reply(), first_at)

    assert first_at == at(2.5)
    assert next_call(one, first_at)[0] == at(6.0)


def test_what_it_is_given_it_computes_and_reports_an_hour_after_its_end() -> None:
    one = volunteer(traits(interval_hours=48.0))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=3.0), now)
    now, request = next_call(one, now)

    (result,) = request.results
    assert now == at(4.0)
    assert (result.name, result.state, result.exit_status) == ("pi_1_1_1", 5, 0)
    assert result.elapsed_s == pytest.approx(3 * HOUR, abs=1.0)
    assert result.files[0].name == "pi_1_1_1_r0"
    assert request.cpu_req_s == 0.0  # between instants of the grid it only reports
    assert request.other_results == ()


def test_what_is_due_within_a_day_it_reports_at_once() -> None:
    one = volunteer(traits(interval_hours=48.0))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=3.0, due_hours=20.0), now)

    assert next_call(one, now)[0] == pytest.approx(at(3.0), abs=1e-3)


def test_a_result_is_repeated_until_it_is_acknowledged() -> None:
    one = volunteer(traits())
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1"), now)
    now, request = next_call(one, now)
    one.receive(a_reply(), now)
    now, again = next_call(one, now)
    one.receive(replace(a_reply(), acks=("pi_1_1_1",)), now)
    _, after = next_call(one, now)

    assert [len(r.results) for r in (request, again, after)] == [1, 1, 0]


def test_it_waits_as_long_as_the_reply_says() -> None:
    one = volunteer(traits(interval_hours=48.0))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=0.001, due_hours=5.0, delay_s=500.0), now)

    assert next_call(one, now)[0] == now + 500.0


def test_a_long_wait_ends_at_an_instant_of_the_grid() -> None:
    one = volunteer(traits())
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply(delay_s=DAY + 60.0), now)

    assert next_call(one, now)[0] == at(30.0)


def test_without_an_answer_it_backs_off_and_keeps_what_it_has_to_report() -> None:
    one = volunteer(traits())
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", due_hours=9.0), now)
    now, request = next_call(one, now)
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


def test_who_wants_nothing_and_has_nothing_to_tell_calls_when_the_server_asked_for_it() -> None:
    one = volunteer(traits())
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=100.0, contact_s=DAY), now)
    now, request = next_call(one, now)

    assert (now, request.cpu_req_s, request.results) == (at(24.0), 0.0, ())


def test_a_kind_of_processor_that_got_no_work_is_asked_for_later() -> None:
    one = volunteer(replace(traits(interval_hours=0.25), most_backoff_s=Seconds(DAY)))
    now, _ = next_call(one, at(0.0))
    asked = []
    for _ in range(40):
        one.receive(a_reply(), now)
        now, request = next_call(one, now)
        asked.append(request.cpu_req_s > 0.0)

    assert sum(asked) < 8  # 10, 20, 40 minutes and so on
    assert any(asked)


def test_a_request_to_which_a_job_is_sent_again_was_not_in_vain() -> None:
    one = volunteer(replace(traits(ncpus=16, interval_hours=1.0), most_backoff_s=Seconds(DAY)))
    now, _ = next_call(one, at(0.0))
    asked = []
    for _ in range(8):
        one.receive(a_reply("pi_1_1_1", hours=10.0), now)
        now, request = next_call(one, now)
        asked.append(request.cpu_req_s > 0.0)

    assert all(asked)


def test_the_queue_is_told_with_the_work_of_others_once_the_server_wants_it() -> None:
    one = volunteer(traits(ncpus=2, share=0.5))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=30.0), now)
    _, request = next_call(one, now)

    assert request.in_progress is not None
    assert [entry.name for entry in request.in_progress] == ["pi_1_1_1", "other_0"]
    assert [entry.name for entry in request.other_results] == ["pi_1_1_1"]


def test_a_job_the_server_aborts_is_given_up_and_reported() -> None:
    one = volunteer(traits())
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", "pi_1_2_2", hours=30.0), now)
    now, _ = next_call(one, now)
    one.receive(replace(a_reply(), aborts_if_not_started=("pi_1_1_1", "pi_1_2_2")), now)
    _, request = next_call(one, now)

    assert [(result.name, result.exit_status, result.state) for result in request.results] == [("pi_1_2_2", 202, 6)]
    assert [entry.name for entry in request.other_results] == ["pi_1_1_1"]  # it was running


def test_a_lost_job_stays_in_its_list_and_never_comes_back() -> None:
    one = volunteer(traits(interval_hours=24.0), loss=1.0)
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", due_hours=48.0), now)
    listed = []
    for _ in range(6):
        now, request = next_call(one, now)
        listed.append(len(request.other_results))
        assert request.results == ()
        one.receive(a_reply(), now)

    assert listed == [1, 1, 1, 1, 0, 0]  # forgotten two days after its deadline


def test_a_job_that_is_forgotten_is_in_no_list_and_takes_no_room() -> None:
    one = volunteer(traits(interval_hours=24.0), loss=1.0, forgets=True)
    now, first = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=9.0, due_hours=480.0), now)
    now, request = next_call(one, now)

    assert now == at(24.0)
    assert (request.other_results, request.results, request.in_progress) == ((), (), ())
    assert request.cpu_req_s == first.cpu_req_s
    assert one.facts().lost == 0  # it is found out and sent again


def test_a_job_that_fails_says_so() -> None:
    one = volunteer(traits(), error=1.0)
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=2.0, due_hours=9.0), now)
    now, request = next_call(one, now)

    (result,) = request.results
    assert (result.state, result.exit_status) == (3, 1)
    assert now < at(2.0)


def test_right_answers_to_a_job_are_alike_and_wrong_ones_differ() -> None:
    digests = []
    for garbage in (0.0, 0.0, 1.0):
        one = volunteer(traits(), garbage=garbage)
        now, _ = next_call(one, at(0.0))
        one.receive(a_reply("pi_1_1_1"), now)
        digests.append(next_call(one, now)[1].results[0].files[0].md5)

    assert digests[0] == digests[1] != digests[2]


def test_a_gpu_has_jobs_of_its_own() -> None:
    gpu = Gpu("NVIDIA", 1, 99e9 / 0.1, 8e9, 55_000)
    one = volunteer(traits(interval_hours=48.0, gpu=gpu))
    now, first = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=100.0, gpu="NVIDIA"), now)
    now, request = next_call(one, now)

    assert [(coproc.type, coproc.req_s, coproc.req_instances) for coproc in first.coprocs] == [
        ("NVIDIA", 36_180.0, 1.0)
    ]
    assert request.results[0].elapsed_s == pytest.approx(HOUR, rel=0.01)  # 1 Gflop/s of its CPU, 99 of the GPU


def test_who_leaves_is_never_heard_of_again() -> None:
    one = volunteer(traits(leaves_hours=10.0))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=20.0), now)
    now, _ = next_call(one, now)
    one.receive(a_reply(), now)

    assert now == at(6.0)
    assert one.next_event(now) == math.inf


def test_who_comes_later_calls_at_its_first_instant() -> None:
    assert next_call(volunteer(traits(joins_hours=20.0)), at(0.0))[0] == at(24.0)


def test_a_deadline_that_is_moved_counts() -> None:
    one = volunteer(traits(interval_hours=2.0))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=5.0, due_hours=100.0), now)
    now, _ = next_call(one, now)
    one.receive(a_reply("pi_1_1_1", hours=5.0, due_hours=5.5), now)
    now, request = next_call(one, now)

    assert request.in_progress is not None
    assert request.in_progress[0].report_deadline == at(5.5)


def test_it_counts_what_can_never_come_back() -> None:
    lost = volunteer(traits(), loss=1.0)
    leaving = volunteer(traits(leaves_hours=2.0))
    staying = volunteer(traits())
    for one in (lost, leaving, staying):
        now, _ = next_call(one, at(0.0))
        one.receive(a_reply("pi_1_1_1", hours=3.0), now)
        one.advance(at(2.5))

    assert [one.facts().lost for one in (lost, leaving, staying)] == [1, 1, 0]


def test_it_counts_what_ran_out_of_turn_and_whom_that_kept_waiting() -> None:
    one = volunteer(traits(share=0.5, buffer=Buffer(Seconds(0.0), Seconds(DAY))))
    now, _ = next_call(one, at(0.0))
    one.receive(a_reply("pi_1_1_1", hours=2.0, due_hours=3.0), now)
    next_call(one, now)
    facts = one.facts()

    assert (facts.run, facts.deadline_mode) == (1, 1)
    assert facts.preempted_s == pytest.approx(HOUR, abs=1.0)


def test_its_messages_pass_the_wire_unchanged() -> None:
    gpu = Gpu("NVIDIA", 2, 4e12, 8e9, 55_000)
    one = volunteer(traits(ncpus=2, share=0.5, gpu=gpu))
    now, _ = next_call(one, at(0.0))
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
