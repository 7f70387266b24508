"""Scheduler requests from admission to reply."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from domain.apps import ANONYMOUS, CPU, NVIDIA, App
from domain.batches import QoS
from domain.dispatch import Assignment, ReportedResult, RequestKey, RequestWrites, TakeOver
from domain.errors import UnavailableError
from domain.jobs import InstanceState, Output
from domain.ordered_work import StoredPlace
from domain.refusals import RefusalCode
from domain.restrictions import Restricted, Restriction
from domain.units import DAY_S, AppId, AppVersionId, BatchId, HostId, InstanceId, Instant, Seconds, VolunteerId, later
from feeder.array import JobArray
from scheduler.assignment import MOST_ROUNDS
from scheduler.choice import Choice
from scheduler.context import SchedulingContext
from scheduler.ports import SlotSource as Array
from scheduler.selection import choose
from scheduler.service import RequestService
from tests.builders import NOW, a_job_class, a_plan_class, an_app_version
from tests.facts import missing
from tests.stores import batches_of
from tests.unit.scheduler.project import (
    KEY,
    OLD_KEY,
    PUBLIC_KEY,
    Project,
    Search,
    a_known_host,
    a_project,
    a_request,
    a_success,
    a_time_out,
    listed,
    names_of,
    texts_of,
)
from tests.worlds import RegisteredHost, a_registered_host, an_assignment, hash_of, the_version, waiting_of
from wire.messages import STATE_ABORTED, STATE_COMPUTE_ERROR, CoprocRequest, ProjectPreferences

S = InstanceState

# ---------------------------------------------------------------- first contact


async def test_new_client_gets_host_id_and_complete_work() -> None:
    project = await a_project()
    await project.submit(1)

    reply = await project.answer(a_request(code_sign_key=""))

    assert reply.host_id == 1
    assert names_of(reply) == ["pi_1_1_1"]
    assert reply.code_sign_key == PUBLIC_KEY and not reply.code_sign_key_signature
    assert [app.name for app in reply.apps] == ["pi"]
    assert [file.name for file in reply.downloads] == ["pi_1.00_linux"]
    assert reply.downloads[0].signature
    assert [(u.name, u.token) for u in reply.uploads] == [("pi_1_1_1_r0", "token of pi_1_1_1_r0 100000")]
    assert reply.workunits[0].command_line == "--job 0"
    assert reply.send_full_workload and reply.dont_use_dcf and not reply.project_is_down
    assert reply.request_delay_s == 60.0
    sent = await project.instance("pi_1_1_1")
    assert sent.state is InstanceState.IN_PROGRESS and sent.host_id == 1
    assert sent.due_at is not None and reply.results[0].report_deadline <= sent.due_at


async def test_known_client_gets_neither_id_nor_key_again() -> None:
    project = await a_project()
    host_id = await a_known_host(project)

    reply = await project.answer(a_request(host_id=host_id, rpc_seqno=1))

    assert reply.host_id is None
    assert not reply.code_sign_key


async def test_client_with_an_older_key_gets_the_new_one_signed() -> None:
    project = await a_project()
    reply = await project.answer(a_request(code_sign_key=OLD_KEY))
    assert (reply.code_sign_key, reply.code_sign_key_signature) == (PUBLIC_KEY, "0a0b\n.\n")


async def test_a_client_with_a_key_we_never_had_is_sent_none() -> None:
    project = await a_project()
    reply = await project.answer(a_request(code_sign_key="1024\nffff\n.\n"))
    assert not reply.code_sign_key


async def test_an_unknown_account_key_gets_a_notice_and_nothing_else() -> None:
    project = await a_project()
    await project.submit(1)

    reply = await project.answer(a_request(authenticator="f" * 32, results=(a_success("pi_1_1_1"),)))

    assert [message.priority for message in reply.messages] == ["notice"]
    assert reply.request_delay_s == 86400.0
    assert reply.host_id is None and not reply.acks and not reply.results
    assert project.ledger.writes == []


async def test_a_wrong_clock_gets_no_work_until_it_is_right() -> None:
    """Lost jobs are kept, but not resent: the client would drop them."""
    project = await a_project()
    await project.submit(2)
    first = await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    assert first.host_id is not None
    wrong = later(project.clock.now(), -2 * DAY_S)

    refused = await project.answer(a_request(host_id=first.host_id, rpc_seqno=1, client_now=wrong))
    own = await project.store.volunteer_views.host(VolunteerId(1), HostId(first.host_id))

    assert refused.results == ()
    assert refused.request_delay_s == 300.0
    assert [message.priority for message in refused.messages] == ["notice", "low"]
    assert "2 d behind" in refused.messages[0].text
    [(code, said)] = own.refused
    assert code == "clock_skew" and said in refused.messages[0].text.replace("This computer", "this computer")
    right = project.clock.now()
    again = await project.answer(a_request(host_id=first.host_id, rpc_seqno=2, client_now=right))
    assert {result.name for result in again.results} == {"pi_1_1_1", "pi_1_2_2"}


async def test_every_request_stores_serial_number_and_time() -> None:
    project = await a_project()
    host_id = await a_known_host(project)
    project.clock.at = Instant(NOW + 500.0)

    await project.answer(a_request(host_id=host_id, rpc_seqno=7, cpu_req_s=Seconds(0.0)))

    host, _ = await project.store.views.host(host_id)
    assert (host.rpc_seqno, host.last_rpc_at) == (7, NOW + 500.0)


# ---------------------------------------------------------------- reports


async def test_success_is_acknowledged_together_with_new_work() -> None:
    project = await a_project()
    await project.submit(2)
    first = await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    await project.upload("pi_1_1_1")
    project.clock.at = Instant(NOW + 4000.0)

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),), cpu_req_instances=0.0)
    )

    assert names_of(first) == ["pi_1_1_1"]
    assert reply.acks == ("pi_1_1_1",)
    assert names_of(reply) == ["pi_1_2_2"]
    assert (await project.instance("pi_1_1_1")).state is InstanceState.REPORTED
    assert project.counts.answered[-1] == {"sent": 1, "resent": 0, "reports": 1, "refusals": {}}


async def test_repeated_report_is_acknowledged_and_changes_nothing() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    report = a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),), cpu_req_s=Seconds(0.0))
    await project.answer(report)
    before = await project.instance("pi_1_1_1")
    project.clock.at = Instant(NOW + 50.0)

    again = await project.answer(replace(report, rpc_seqno=2))

    assert again.acks == ("pi_1_1_1",)
    assert await project.instance("pi_1_1_1") == before


async def test_success_without_upload_is_a_failure_naming_the_file() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))

    row = await project.instance("pi_1_1_1")
    assert row.state is InstanceState.FAILED
    assert "pi_1_1_1_r0" in row.reason
    assert reply.acks == ("pi_1_1_1",)


async def test_error_counts_against_the_host_user_abort_does_not() -> None:
    project = await a_project()
    await project.submit(2)
    await project.answer(a_request())
    error = ReportedResult("pi_1_1_1", STATE_COMPUTE_ERROR, 3, stderr="it broke")
    abort = ReportedResult("pi_1_2_2", STATE_ABORTED, 203)

    await project.answer(a_request(host_id=1, rpc_seqno=1, results=(error, abort), cpu_req_s=Seconds(0.0)))

    failed, aborted = await project.instance("pi_1_1_1"), await project.instance("pi_1_2_2")
    assert (failed.state, failed.stderr) == (InstanceState.FAILED, "it broke")
    assert aborted.state is InstanceState.ABORTED
    _, [hav] = await project.store.views.host(HostId(1))
    assert (hav.n_error, hav.n_timeout) == (1, 0)


@pytest.mark.parametrize(
    ("jobs", "qos", "wanted"),
    [
        pytest.param(1000, QoS.THROUGHPUT, False, id="long throughput batch"),
        pytest.param(1000, QoS.AFAP, True, id="as fast as possible"),
        pytest.param(20, QoS.THROUGHPUT, True, id="last jobs of a batch"),
    ],
)
async def test_waited_for_results_are_reported_at_once(jobs: int, qos: QoS, wanted: bool) -> None:
    project = await a_project()
    await project.submit(jobs, qos=qos)

    reply = await project.answer(a_request())

    assert {one.report_immediately for one in reply.results} == {wanted}


async def test_foreign_and_unknown_results_are_acknowledged_only() -> None:
    project = await a_project()
    await project.submit(1)
    other = await a_registered_host(project.store)
    await project.answer(a_request(authenticator=other.account_key, host_id=other.host_id, rpc_seqno=9))
    assert (await project.instance("pi_1_1_1")).host_id == other.host_id
    await project.upload("pi_1_1_1")
    await a_known_host(project)

    reply = await project.answer(
        a_request(host_id=2, rpc_seqno=1, results=(a_success("pi_1_1_1"), a_success("fake_0"), a_success("x")))
    )

    assert set(reply.acks) == {"pi_1_1_1", "fake_0", "x"}
    assert (await project.instance("pi_1_1_1")).state is InstanceState.IN_PROGRESS


@pytest.mark.parametrize("why", ["paused", "down", "anonymous", "no new tasks", "limit"])
async def test_results_are_accepted_even_if_work_is_refused(why: str) -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    request = a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),))
    match why:
        case "paused":
            project.pause.because = "this server's clock is +9.0 s off"
        case "down":
            await project.set(project__down=True)
        case "anonymous":
            request = replace(request, platforms=(ANONYMOUS,))
        case "no new tasks":
            request = replace(request, dont_send_work=True)
        case "limit":
            await project.set(scheduler__daily_quota_start=1, scheduler__daily_quota=1)
    await project.submit(5)

    reply = await project.answer(request)

    assert reply.acks == ("pi_1_1_1",)
    assert not reply.project_is_down
    assert (await project.instance("pi_1_1_1")).state is InstanceState.REPORTED
    if why != "limit":
        assert names_of(reply) == []


async def restrict(project: Project, kind: Restricted, *, max_jobs: int) -> None:
    found = Restriction(kind, "1", max_jobs, "wrong results", "ada", NOW)
    project.shelf.held = replace(project.shelf.held, restrictions={(kind, "1"): found})


@pytest.mark.parametrize("kind", [Restricted.HOST, Restricted.VOLUNTEER])
async def test_a_banned_host_gets_no_work_until_the_ban_ends(kind: Restricted) -> None:
    project = await a_project()
    await project.submit(8)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    await restrict(project, kind, max_jobs=0)

    banned = await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))
    project.shelf.held = replace(project.shelf.held, restrictions={})
    await project.submit(8)
    lifted = await project.answer(a_request(host_id=1, rpc_seqno=2))

    assert (banned.acks, names_of(banned), names_of(lifted) != []) == (("pi_1_1_1",), [], True)
    assert any("wrong results" in message.text for message in banned.messages)
    assert project.counts.answered[1]["refusals"] == {RefusalCode.BANNED: 1}


async def test_an_idle_banned_host_returns_after_the_long_delay() -> None:
    project = await a_project()
    await project.submit(8)
    await project.answer(a_request(cpu_req_s=Seconds(0.0), cpu_req_instances=0.0))
    await restrict(project, Restricted.HOST, max_jobs=0)

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1))

    assert reply.request_delay_s == project.shelf.held.settings.scheduler.refused_delay_s


@pytest.mark.parametrize("kind", [Restricted.HOST, Restricted.VOLUNTEER])
async def test_operators_limit_the_jobs_in_progress_of_a_host(kind: Restricted) -> None:
    project = await a_project()
    await project.submit(8)
    await project.answer(a_request(cpu_req_s=Seconds(0.0), cpu_req_instances=0.0))
    await restrict(project, kind, max_jobs=2)

    assert len(names_of(await project.answer(a_request(host_id=1, rpc_seqno=1, cpu_req_s=Seconds(1e7))))) == 2


async def test_nothing_is_acknowledged_when_nothing_could_be_written() -> None:
    project = await a_project()
    await project.submit(3)
    await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    await project.upload("pi_1_1_1")
    project.ledger.down_from_write = len(project.ledger.writes)
    slots = len(project.array)

    with pytest.raises(UnavailableError):
        await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))

    assert (await project.instance("pi_1_1_1")).state is InstanceState.IN_PROGRESS
    assert len(project.array) == slots == 2


async def test_result_losing_to_its_time_out_is_acknowledged_late() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    [held] = (await project.store.ledger.read(RequestKey(hash_of(KEY), HostId(1), "", ()))).held
    timed_out = a_time_out(held)
    [host] = await project.store.views.hosts(limit=1)
    project.ledger.others_write.append(RequestWrites(host, (timed_out,)))

    done = (a_success("pi_1_1_1"),)
    first = await project.answer(a_request(host_id=1, rpc_seqno=1, results=done))
    second = await project.answer(a_request(host_id=1, rpc_seqno=2, results=done))

    assert (first.acks, second.acks) == ((), ("pi_1_1_1",))
    assert (await project.instance("pi_1_1_1")).state is InstanceState.REPORTED


async def test_clone_result_losing_a_race_is_not_acknowledged() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    [held] = (await project.store.ledger.read(RequestKey(hash_of(KEY), HostId(1), "", ()))).held
    timed_out = a_time_out(held)
    [host] = await project.store.views.hosts(limit=1)
    project.ledger.others_write.append(RequestWrites(host, (timed_out,)))

    reply = await project.answer(a_request(host_id=1, rpc_seqno=3, results=(a_success("pi_1_1_1"),)))

    assert reply.acks == ()


# ---------------------------------------------------------------- lost and useless jobs


async def test_a_lost_job_is_sent_again_with_the_due_date_it_had() -> None:
    project = await a_project()
    await project.submit(1)
    first = await project.answer(a_request())
    project.clock.at = Instant(NOW + 300.0)

    again = await project.answer(a_request(host_id=1, rpc_seqno=1))

    assert again.results == first.results
    assert again.workunits == first.workunits
    assert again.app_versions == first.app_versions
    assert again.uploads == first.uploads
    assert project.counts.answered[-1]["resent"] == 1


async def test_same_serial_number_gets_the_same_jobs_again() -> None:
    project = await a_project()
    await project.submit(20)
    host_id = await a_known_host(project)
    request = a_request(host_id=host_id, rpc_seqno=4)
    first = await project.answer(request)

    again = await project.answer(request)

    assert again.host_id is None
    assert names_of(again) == names_of(first) != []


async def test_what_is_listed_or_reported_is_not_lost() -> None:
    project = await a_project()
    await project.submit(2)
    await project.answer(a_request())
    reply = await project.answer(
        a_request(
            host_id=1,
            rpc_seqno=1,
            cpu_req_s=Seconds(0.0),
            other_results=listed("pi_1_1_1"),
            results=(a_success("pi_1_2_2"),),
        )
    )
    assert names_of(reply) == []
    assert (await project.instance("pi_1_1_1")).state is InstanceState.IN_PROGRESS


async def test_a_lost_job_that_cannot_be_back_in_time_ends_at_once() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    row = await project.instance("pi_1_1_1")
    assert row.due_at is not None
    project.clock.at = Instant(row.due_at - 60.0)

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1))

    assert names_of(reply) == []
    ended = await project.instance("pi_1_1_1")
    assert ended.state is InstanceState.ABORTED
    assert not missing(ended.reason, "lost by the client", "too late")
    _, [hav] = await project.store.views.host(HostId(1))
    assert (hav.n_timeout, hav.n_error) == (1, 0)
    assert [facts.job_id for facts in await project.store.unsettled.unsettled(10, now=NOW)] == [1]


async def test_a_lost_job_of_a_client_without_new_tasks_ends_at_once() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, dont_send_work=True))
    assert names_of(reply) == [] and reply.messages == ()
    assert (await project.instance("pi_1_1_1")).state is InstanceState.ABORTED


async def test_lost_jobs_wait_while_the_project_hands_out_nothing() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    project.pause.because = "the locks are in doubt"

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1))

    assert names_of(reply) == []
    assert RefusalCode.PROJECT_DOWN.traits.meaning in texts_of(reply)
    assert (await project.instance("pi_1_1_1")).state is InstanceState.IN_PROGRESS


async def test_a_result_of_ours_that_we_do_not_know_is_aborted() -> None:
    project = await a_project()
    await a_known_host(project)
    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, other_results=listed("pi_9_9_9", "another projects"))
    )
    assert reply.aborts == ("pi_9_9_9",)
    assert reply.aborts_if_not_started == ()


async def test_a_job_that_is_over_is_aborted_unless_it_has_started() -> None:
    project = await a_project()
    batch = await project.submit(1)
    await project.answer(a_request())
    await project.store.submissions.abort_batch(batch.batch_id, now=NOW)

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, other_results=listed("pi_1_1_1")))

    assert reply.aborts_if_not_started == ("pi_1_1_1",)


async def test_no_second_read_while_the_client_lists_what_we_know() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    project.ledger.reads.clear()
    await project.answer(a_request(host_id=1, rpc_seqno=1, other_results=listed("pi_1_1_1")))
    assert len(project.ledger.reads) == 1


# ---------------------------------------------------------------- clones and lost state


async def test_a_serial_number_behind_the_stored_one_makes_a_new_host() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    )

    assert reply.host_id == 2
    assert (reply.aborts, reply.aborts_if_not_started) == ((), ())
    assert not missing(texts_of(reply), "host 2", "continues")
    old, _ = await project.store.views.host(HostId(1))
    new, havs = await project.store.views.host(HostId(2))
    assert (old.rpc_seqno, new.rpc_seqno) == (8, 0)
    assert [(hav.sent_today, hav.n_valid) for hav in havs] == [(1, 0)]
    assert (await project.instance("pi_1_1_1")).host_id == 2


@pytest.mark.parametrize("other", ["host_cpid", "domain_name"])
async def test_clone_of_another_name_takes_nothing_over(other: str) -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    behind = a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))

    changes: dict[str, Any] = {other: "another"}
    reply = await project.answer(replace(behind, host=replace(behind.host, **changes)))

    assert (reply.host_id, reply.aborts) == (2, ("pi_1_1_1",))
    assert (await project.instance("pi_1_1_1")).host_id == 1


async def test_clone_does_not_get_more_while_it_has_what_it_took_over() -> None:
    """Taken-over jobs count as in progress: limits and queue are those of the new record."""
    project = await a_project(scheduler__in_progress_per_cpu=1)
    await project.submit(9)
    names = names_of(await project.answer(a_request()))
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed(*names)))

    reply = await project.answer(a_request(host_id=1, rpc_seqno=3, other_results=listed(*names)))

    assert (reply.host_id, names_of(reply)) == (2, [])
    assert project.counts.answered[-1]["refusals"] == {RefusalCode.IN_PROGRESS_LIMIT: 1}


async def test_restored_client_whose_reply_was_lost_keeps_and_reports() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    behind = a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0))
    await project.answer(replace(behind, other_results=listed("pi_1_1_1")))  # this reply is lost

    again = await project.answer(replace(behind, other_results=listed("pi_1_1_1")))
    done = await project.answer(replace(behind, results=(a_success("pi_1_1_1"),)))

    assert [(reply.host_id, reply.aborts) for reply in (again, done)] == [(2, ())] * 2
    assert done.acks == ("pi_1_1_1",)
    row = await project.instance("pi_1_1_1")
    assert (row.state, row.host_id) == (InstanceState.REPORTED, 2)


async def test_client_restored_twice_from_one_snapshot_keeps_its_task() -> None:
    """Like a virtual machine that is reset whenever it is switched off."""
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    behind = a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    first = await project.answer(behind)
    await project.answer(a_request(host_id=2, rpc_seqno=5, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))

    second = await project.answer(behind)
    await project.answer(a_request(host_id=3, rpc_seqno=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    late = await project.answer(
        a_request(host_id=2, rpc_seqno=6, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    )

    assert [(reply.host_id, reply.aborts) for reply in (first, second)] == [(2, ()), (3, ())]
    assert late.aborts == ("pi_1_1_1",)
    assert (await project.instance("pi_1_1_1")).host_id == 3


async def test_client_takes_back_what_its_overtaken_request_moved() -> None:
    """A request that arrives after a later one looks like a copy's; no client ever uses the record it creates."""
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    await project.answer(replace(lists, rpc_seqno=8))
    overtaken = await project.answer(replace(lists, rpc_seqno=7))

    reply = await project.answer(replace(lists, rpc_seqno=9))

    assert (overtaken.host_id, reply.host_id) == (2, None)
    assert (reply.aborts, reply.aborts_if_not_started) == ((), ())
    assert (await project.instance("pi_1_1_1")).host_id == 1


async def test_success_of_either_copy_counts_once() -> None:
    """The original finishes the task before it learns that the copy has it; its failure would not count."""
    project = await a_project()
    await project.submit(2)
    names = names_of(await project.answer(a_request()))
    await project.upload(names[0])
    lists = a_request(host_id=1, cpu_req_s=Seconds(0.0), other_results=listed(*names))
    await project.answer(replace(lists, rpc_seqno=8))
    await project.answer(replace(lists, rpc_seqno=7))
    await project.answer(replace(lists, host_id=2, rpc_seqno=1))
    results = (a_success(names[0]), a_success(names[1], state=STATE_COMPUTE_ERROR, exit_status=1))

    reply = await project.answer(replace(lists, rpc_seqno=9, results=results, other_results=()))
    copy = await project.answer(replace(lists, host_id=2, rpc_seqno=2))

    assert set(reply.acks) == set(names)
    assert copy.aborts == (names[0],)
    rows = [await project.instance(name) for name in names]
    assert [(row.state, row.host_id) for row in rows] == [(InstanceState.REPORTED, 1), (InstanceState.IN_PROGRESS, 2)]


async def test_of_two_copies_that_claim_a_task_at_once_one_has_it() -> None:
    """The reply to the other copy aborts the task."""
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    [host] = await project.store.views.hosts(limit=1)
    rival_id = await project.store.ledger.create_host(VolunteerId(1), host)
    rival = replace(host, host_id=rival_id, rpc_seqno=3)
    claim = TakeOver(InstanceId(1), HostId(1))
    project.ledger.others_write.append(RequestWrites(rival, take_over=(claim,)))

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1"))
    )

    assert (reply.host_id, reply.aborts) == (3, ("pi_1_1_1",))
    assert not missing(texts_of(reply), "host 3", "cancelled")
    assert (await project.instance("pi_1_1_1")).host_id == rival_id


async def test_clone_reports_count_for_the_original_host() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))

    reply = await project.answer(a_request(host_id=1, rpc_seqno=3, results=(a_success("pi_1_1_1"),)))

    assert (reply.host_id, reply.acks) == (2, ("pi_1_1_1",))
    row = await project.instance("pi_1_1_1")
    assert (row.state, row.host_id) == (InstanceState.REPORTED, 1)


@pytest.mark.parametrize("computer", ["the same", "another"])
@pytest.mark.parametrize("is_timed_out", [False, True])
async def test_failures_of_a_clone_are_not_the_originals(computer: str, is_timed_out: bool) -> None:
    """They are acknowledged; the original continues, and its record is unchanged."""
    project = await a_project()
    await project.submit(2)
    names = names_of(await project.answer(a_request()))
    running = a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed(*names))
    await project.answer(running)
    if is_timed_out:
        [host] = await project.store.views.hosts(limit=1)
        held = (await project.store.ledger.read(RequestKey(hash_of(KEY), HostId(1)))).held
        ends = [a_time_out(one) for one in held]
        await project.store.ledger.write(RequestWrites(host, tuple(ends)))
    before = [await project.instance(name) for name in names]
    _, havs = await project.store.views.host(HostId(1))
    results = (
        a_success(names[0], state=STATE_COMPUTE_ERROR, exit_status=1),
        a_success(names[1], state=STATE_ABORTED, exit_status=203),
    )
    behind = replace(running, rpc_seqno=3, results=results, other_results=())
    if computer == "another":
        behind = replace(behind, host=replace(behind.host, domain_name="another"))

    replies = [await project.answer(behind), await project.answer(behind)]

    assert [(reply.host_id, set(reply.acks)) for reply in replies] == [(2, set(names))] * 2
    assert [await project.instance(name) for name in names] == before
    assert (await project.store.views.host(HostId(1)))[1] == havs


@pytest.mark.parametrize(
    ("state", "exit_status", "after"),
    [
        (STATE_COMPUTE_ERROR, 1, (InstanceState.FAILED, 1)),
        (STATE_ABORTED, 203, (InstanceState.IN_PROGRESS, 2)),
    ],
)
async def test_error_counts_after_a_repeated_request_took_the_job(
    state: int, exit_status: int, after: tuple[InstanceState, int]
) -> None:
    """A repeated old request made a record that took the job over; then the client reports the error. An abort may be
    from a copy that was told to drop the job.
    """
    project = await a_project()
    await project.submit(1)
    [name] = names_of(await project.answer(a_request()))
    running = a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed(name))
    await project.answer(running)
    assert (await project.answer(replace(running, rpc_seqno=3))).host_id == 2
    ended = a_success(name, state=state, exit_status=exit_status)

    reply = await project.answer(replace(running, rpc_seqno=9, results=(ended,), other_results=()))

    assert reply.acks == (name,)
    row = await project.instance(name)
    assert (row.state, row.host_id) == after


async def test_success_beside_a_sibling_is_acknowledged() -> None:
    """The client reports its old record's instance after its new record has already had the job."""
    project = await a_project()
    batch = await project.submit(1, copies=2, fill=False)
    candidates = await waiting_of(project.store, batch.batch_id)
    version = await the_version(project.store)
    await project.answer(a_request(cpu_req_s=Seconds(0.0)))
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0)))
    await project.answer(a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0)))
    hosts = sorted(await project.store.views.hosts(limit=9), key=lambda one: one.host_id)
    for candidate, host in zip(candidates, hosts, strict=True):
        record = RegisteredHost(host, KEY)
        await project.store.ledger.write(RequestWrites(host, (), (an_assignment(candidate, record, version),)))
    names = ["pi_1_1_1", "pi_1_1_2"]
    assert [(await project.instance(name)).host_id for name in names] == [1, 2]
    for name in names:
        await project.upload(name)
    as_new = a_request(host_id=2, cpu_req_s=Seconds(0.0), results=tuple(a_success(name) for name in names))

    replies = [await project.answer(replace(as_new, rpc_seqno=seqno)) for seqno in (1, 2)]

    assert [set(reply.acks) for reply in replies] == [set(names)] * 2
    rows = [await project.instance(name) for name in names]
    assert [(row.state, row.host_id) for row in rows] == [(S.REPORTED, 1), (S.REPORTED, 2)]


async def test_two_old_successes_of_a_job_are_acknowledged() -> None:
    """One of them moves to the client's record; the other stays with its record."""
    project = await a_project()
    batch = await project.submit(1, copies=2, fill=False)
    candidates = await waiting_of(project.store, batch.batch_id)
    version = await the_version(project.store)
    behind = a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0))
    await project.answer(a_request(cpu_req_s=Seconds(0.0)))
    for _ in range(2):
        await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0)))
        host_id = (await project.answer(behind)).host_id
        await project.answer(a_request(host_id=host_id, rpc_seqno=1, cpu_req_s=Seconds(0.0)))
    hosts = sorted(await project.store.views.hosts(limit=9), key=lambda one: one.host_id)
    for candidate, host in zip(candidates, hosts[:2], strict=True):
        record = RegisteredHost(host, KEY)
        await project.store.ledger.write(RequestWrites(host, (), (an_assignment(candidate, record, version),)))
    names = ["pi_1_1_1", "pi_1_1_2"]
    for name in names:
        await project.upload(name)
    results = tuple(a_success(name) for name in names)

    reply = await project.answer(a_request(host_id=3, rpc_seqno=2, cpu_req_s=Seconds(0.0), results=results))

    assert set(reply.acks) == set(names)
    rows = [await project.instance(name) for name in names]
    assert [row.state for row in rows] == [S.REPORTED, S.REPORTED]
    assert sorted(row.host_id or 0 for row in rows) in ([1, 3], [2, 3])


async def test_of_two_clients_with_one_id_the_one_behind_moves() -> None:
    project = await a_project()
    await project.submit(40)
    await project.answer(a_request(cpu_req_s=Seconds(0.0)))
    ids = {"a": 1, "b": 1}
    seqnos = {"a": 0, "b": 0}
    has: dict[str, list[str]] = {"a": [], "b": []}
    for caller in "aabab":
        seqnos[caller] += 1
        reply = await project.answer(
            a_request(
                host_id=ids[caller],
                rpc_seqno=seqnos[caller],
                other_results=listed(*has[caller]),
                cpu_req_s=Seconds(1.0),
                cpu_req_instances=0.0,
            )
        )
        has[caller] += names_of(reply)
        assert names_of(reply), "every call gets work"
        if reply.host_id is not None:
            ids[caller], seqnos[caller] = reply.host_id, -1
    assert ids == {"a": 1, "b": 2}
    assert set(has["a"]).isdisjoint(has["b"])


async def test_client_that_lost_its_state_keeps_its_host_record() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())

    reply = await project.answer(a_request())

    assert reply.host_id == 1
    assert names_of(reply) == []
    assert (await project.instance("pi_1_1_1")).state is InstanceState.ABORTED


async def test_ended_instance_stores_a_success_but_no_failure() -> None:
    """Also if a clock was set back meanwhile: reported and stored states are compared by this rule alone."""
    project = await a_project()
    await project.submit(2)
    await project.answer(a_request())
    names = ("pi_1_1_1", "pi_1_2_2")
    await project.answer(a_request())  # it lost all its jobs: both end as aborted
    project.clock.at = Instant(project.clock.at - 3600.0)
    await project.upload(names[1])

    failed = a_success(names[0], state=STATE_COMPUTE_ERROR, exit_status=1)
    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, results=(failed, a_success(names[1]))))

    over, taken = [await project.instance(name) for name in names]
    assert set(reply.acks) == set(names)
    assert (over.state, over.reported_at) == (InstanceState.ABORTED, None)
    assert (taken.state, taken.reported_at) == (InstanceState.REPORTED, project.clock.at)


async def test_host_id_of_another_volunteer_creates_a_new_host() -> None:
    project = await a_project()
    other = await a_registered_host(project.store)
    reply = await project.answer(a_request(host_id=other.host_id, rpc_seqno=6))
    assert reply.host_id == other.host_id + 1
    assert "another volunteer" in texts_of(reply)


async def test_lost_first_reply_leads_to_the_same_record_and_jobs() -> None:
    project = await a_project()
    await project.submit(10)
    other = await a_registered_host(project.store)
    request = a_request(host_id=other.host_id, rpc_seqno=6)
    first = await project.answer(request)

    again = await project.answer(request)

    assert again.host_id == first.host_id == other.host_id + 1
    assert names_of(again) == names_of(first)
    assert len(await project.store.views.hosts(limit=9)) == 2


async def test_clone_with_a_lost_reply_creates_no_third_record() -> None:
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.upload("pi_1_1_1")
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    behind = a_request(host_id=1, rpc_seqno=3, results=(a_success("pi_1_1_1"),))

    replies = [await project.answer(behind), await project.answer(behind)]

    assert [(reply.host_id, reply.acks) for reply in replies] == [(2, ("pi_1_1_1",))] * 2
    assert (await project.instance("pi_1_1_1")).host_id == 1


@pytest.mark.parametrize("why", ["it called since", "an hour passed", "another computer"])
async def test_used_record_is_not_given_to_another_clone(why: str) -> None:
    project = await a_project()
    await project.answer(a_request(cpu_req_s=Seconds(0.0)))
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0)))
    behind = a_request(host_id=1, rpc_seqno=3, cpu_req_s=Seconds(0.0))
    assert (await project.answer(behind)).host_id == 2
    if why == "it called since":
        await project.answer(a_request(host_id=2, rpc_seqno=1, cpu_req_s=Seconds(0.0)))
    elif why == "an hour passed":
        await project.clock.sleep(3601.0)
    else:
        behind = replace(behind, host=replace(behind.host, domain_name="another"))
    assert (await project.answer(behind)).host_id == 3


@pytest.mark.parametrize("host_id", [-1, 2**31, 2**62])
async def test_impossible_host_id_counts_as_none(host_id: int) -> None:
    project = await a_project()
    assert (await project.answer(a_request(host_id=host_id))).host_id == 1


# ---------------------------------------------------------------- giving out


async def test_too_small_computer_gets_reason_and_delay() -> None:
    """The client gets the volunteers' sentence; the host's page has the numbers."""
    project = await a_project()
    await project.submit(1, job_class=a_job_class(memory_bytes=64e9))

    reply = await project.answer(a_request())

    assert names_of(reply) == []
    refused, again = (message.text for message in reply.messages)
    assert refused == f"No work sent. {RefusalCode.MEMORY.traits.meaning}"
    assert not missing(again, "5 min")
    assert reply.request_delay_s == 300.0
    assert project.counts.answered[-1]["refusals"] == {RefusalCode.MEMORY: 1}
    own = await project.store.volunteer_views.host(VolunteerId(1), HostId(1))
    [(code, why)] = own.refused
    assert (code, missing(why, "job needs 64 GB", "host offers 8 GB")) == ("memory", [])


async def test_a_host_with_little_work_calls_again_soon() -> None:
    """Two jobs of a few seconds each, with more waiting: the next call is due when they end."""
    project = await a_project(scheduler__jobs_per_request=1)
    await project.submit(9, job_class=a_job_class(fpops_est_flop=20e9))
    reply = await project.answer(a_request(cpu_req_instances=2.0))
    assert len(reply.results) == 2
    assert reply.request_delay_s == 20.0


async def test_a_left_over_gpu_job_keeps_no_cpu_host_away() -> None:
    """The array has only a job of an app that this host cannot run; another app has a version for it."""
    project = await a_project()
    gpu_app = await project.store.applications.add_app(App(AppId(0), "gpu"))
    cuda = a_plan_class(name="cuda", ncpus=0.1, gpu_type=NVIDIA)
    await project.store.applications.put_plan_class(cuda)
    version = an_app_version(app_version_id=AppVersionId(0), app_id=gpu_app.app_id, plan_class=cuda, files=())
    await project.store.applications.add_app_version(version)
    project.shelf.held = await project.store.applications.load_catalogue()
    await project.submit(1, app_id=gpu_app.app_id)
    reply = await project.answer(a_request())
    assert project.counts.answered[-1]["refusals"] == {RefusalCode.NO_APP_VERSION: 1}
    assert (reply.request_delay_s, reply.messages[0].priority) == (300.0, "low")


async def test_request_for_an_unusable_gpu_is_explained() -> None:
    project = await a_project()
    await project.submit(1)
    broken = CoprocRequest(NVIDIA, 1, req_s=Seconds(100.0), usable=False)
    reply = await project.answer(a_request(cpu_req_s=Seconds(0.0), coprocs=(broken,)))
    assert project.counts.answered[-1]["refusals"] == {RefusalCode.PLAN_CLASS: 1}
    assert reply.messages[0].text.startswith("No work sent. ")


async def test_a_lost_job_that_ended_meanwhile_leaves_room_for_others() -> None:
    """Another process ends the job between two reads: its seconds are still wanted."""
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    project.ledger.ended.add(InstanceId(1))

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1))

    assert not reply.results
    assert project.counts.answered[-1]["refusals"]
    await project.submit(1)
    assert names_of(await project.answer(a_request(host_id=1, rpc_seqno=2))) == ["pi_2_2_2"]


async def test_lost_job_that_ended_leaves_room_in_the_limits() -> None:
    """It is no longer in progress: a limit that counts it would give a false reason."""
    project = await a_project(scheduler__in_progress_per_cpu=1)
    await project.submit(2)
    names = names_of(await project.answer(a_request()))
    await project.submit(2)
    project.ledger.ended.update({InstanceId(1), InstanceId(2)})

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1))

    assert len(names) == len(names_of(reply)) == 2
    assert not set(names) & set(names_of(reply))


async def test_claim_that_another_record_won_is_not_work_of_the_host() -> None:
    """The client must drop it: a host that can run nothing else gets the long delay."""
    project = await a_project()
    await project.submit(1)
    await project.answer(a_request())
    await project.answer(a_request(host_id=1, rpc_seqno=8, cpu_req_s=Seconds(0.0), other_results=listed("pi_1_1_1")))
    [host] = await project.store.views.hosts(limit=1)
    rival_id = await project.store.ledger.create_host(VolunteerId(1), host)
    rival = RequestWrites(replace(host, host_id=rival_id, rpc_seqno=3), take_over=(TakeOver(InstanceId(1), HostId(1)),))
    behind = a_request(host_id=1, rpc_seqno=3, platforms=(ANONYMOUS,), other_results=listed("pi_1_1_1"))
    project.ledger.others_write.append(rival)

    reply = await project.answer(behind)

    assert reply.aborts == ("pi_1_1_1",)
    assert reply.request_delay_s == project.shelf.held.settings.scheduler.refused_delay_s


async def test_client_that_wants_no_work_gets_no_message() -> None:
    project = await a_project()
    await project.submit(1)
    reply = await project.answer(a_request(cpu_req_s=Seconds(0.0)))
    assert names_of(reply) == [] and reply.messages == ()
    assert reply.request_delay_s == 60.0


async def test_programs_of_the_users_own_get_no_work_and_a_long_pause() -> None:
    project = await a_project()
    await project.submit(1)
    reply = await project.answer(a_request(platforms=(ANONYMOUS,)))
    assert names_of(reply) == [] and reply.app_versions == ()
    assert reply.messages[0].priority == "high" and "app_info.xml" in reply.messages[0].text
    assert reply.request_delay_s == 86400.0


async def test_saved_preferences_are_in_every_reply() -> None:
    project = await a_project()
    assert (await project.answer(a_request())).preferences is None
    [record] = await project.store.volunteers.volunteers()
    wanted = replace(record.volunteer, max_jobs=3, no_gpu=True, apps=(AppId(1),), preferred_at=Instant(NOW + 5.0))
    await project.store.volunteers.set_volunteer(wanted)

    for seqno in (1, 2):
        reply = await project.answer(a_request(host_id=1, rpc_seqno=seqno))
        assert reply.preferences == ProjectPreferences(Instant(NOW + 5.0), no_gpu=True, max_jobs=3, app_ids=(1,))


async def test_deselected_app_is_not_sent_and_the_reason_is_shown() -> None:
    project = await a_project()
    await project.submit(1)
    [record] = await project.store.volunteers.volunteers()
    await project.store.volunteers.set_volunteer(replace(record.volunteer, apps=(AppId(7),), preferred_at=NOW))

    reply = await project.answer(a_request())

    assert not reply.results
    assert RefusalCode.APP_NOT_SELECTED.traits.meaning in texts_of(reply)


async def test_last_refusal_is_stored_for_the_owner() -> None:
    project = await a_project()
    await project.answer(a_request())
    own = await project.store.volunteer_views.host(VolunteerId(1), HostId(1))
    assert (own.refused_at, own.refused) == (NOW, (("no_slots", "no job is ready to be sent"),))
    await project.submit(1)

    for at, changes in ((1.0, {}), (2.0, {"cpu_req_s": Seconds(0.0)})):  # got one, then wanted none
        project.clock.at = Instant(NOW + at)
        await project.answer(a_request(host_id=1, rpc_seqno=int(at), **changes))
        assert await project.store.volunteer_views.host(VolunteerId(1), HostId(1)) == replace(
            own, host=(await project.store.views.host(HostId(1)))[0], in_progress=1
        )

    project.clock.at = Instant(NOW + 3.0)
    await project.answer(a_request(host_id=1, rpc_seqno=3, dont_send_work=True))
    own = await project.store.volunteer_views.host(VolunteerId(1), HostId(1))
    assert [code for code, _ in own.refused] == ["no_new_tasks"]
    assert own.refused_at == NOW + 3.0


async def test_the_database_is_searched_before_no_work_is_answered() -> None:
    project = await a_project()
    await project.submit(1, fill=False)
    search = Search(project, finds=True)
    project.array.fall_through = search.search

    reply = await project.answer(a_request())

    assert names_of(reply) == ["pi_1_1_1"]
    assert search.asked == [((1, CPU),)]


async def test_unpaid_work_waits_for_paid_work_in_the_database() -> None:
    project = await a_project()
    await project.submit(1, fill=False)
    await project.store.ordering.move([StoredPlace(BatchId(1), 100, 0.0, unpaid=True)])
    await project.fill()
    await project.submit(1, fill=False)
    project.array.fall_through = Search(project, finds=True).search

    assert names_of(await project.answer(a_request()))[0] == "pi_2_2_2"


async def test_unpaid_work_is_sent_if_the_database_has_nothing_else() -> None:
    project = await a_project()
    await project.submit(1, fill=False)
    await project.store.ordering.move([StoredPlace(BatchId(1), 100, 0.0, unpaid=True)])
    await project.fill()
    search = Search(project)
    project.array.fall_through = search.search

    assert names_of(await project.answer(a_request())) == ["pi_1_1_1"]
    assert search.asked == [((1, CPU),)]


async def test_host_at_its_limits_causes_no_database_search() -> None:
    project = await a_project(scheduler__in_progress_per_cpu=1)
    await project.submit(4)
    search = Search(project)
    project.array.fall_through = search.search
    held = names_of(await project.answer(a_request()))
    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, other_results=listed(*held)))
    assert len(held) == 2 and names_of(reply) == []
    assert search.asked == []


async def rival(project: Project) -> RegisteredHost:
    return await a_registered_host(project.store)


async def taken_by(project: Project, host: RegisteredHost, count: int) -> RequestWrites:
    """Send the first waiting instances to another host."""
    version = await the_version(project.store)
    candidates = (await waiting_of(project.store, (await batches_of(project.store, limit=1))[0].batch_id))[:count]
    return RequestWrites(host.host, assignments=tuple(an_assignment(c, host, version) for c in candidates))


async def test_when_everything_chosen_was_lost_it_chooses_again() -> None:
    project = await a_project()
    await project.submit(4)
    project.ledger.others_write.append(await taken_by(project, await rival(project), 2))

    reply = await project.answer(a_request())

    assert names_of(reply) == ["pi_1_3_3", "pi_1_4_4"]
    assert len(project.ledger.writes) == 2
    assert len(project.array) == 0


async def test_job_lost_to_another_host_is_not_in_the_reply() -> None:
    project = await a_project()
    await project.submit(2)
    project.ledger.others_write.append(await taken_by(project, await rival(project), 1))
    reply = await project.answer(a_request())
    assert names_of(reply) == ["pi_1_2_2"]
    assert [file.name for file in reply.uploads] == ["pi_1_2_2_r0"]


async def test_it_gives_up_after_six_rounds_and_says_so() -> None:
    project = await a_project(scheduler__jobs_per_request=1)
    await project.submit(14)
    other = await rival(project)
    everything = await taken_by(project, other, 14)
    project.ledger.others_write.append(everything)

    reply = await project.answer(a_request())

    assert len(project.ledger.writes) == MOST_ROUNDS
    assert names_of(reply) == []
    assert RefusalCode.LOST_RACE in project.counts.answered[-1]["refusals"]
    assert RefusalCode.LOST_RACE.traits.meaning in texts_of(reply)


async def test_reports_are_written_once_when_it_chooses_again() -> None:
    project = await a_project()
    await project.submit(5)
    await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    await project.upload("pi_1_1_1")
    project.ledger.writes.clear()
    project.ledger.others_write.append(await taken_by(project, await rival(project), 2))

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))

    assert [len(writes.reports) for writes in project.ledger.writes] == [1, 0]
    assert reply.acks == ("pi_1_1_1",)


async def test_failed_second_write_keeps_the_first() -> None:
    project = await a_project()
    await project.submit(5)
    await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    await project.upload("pi_1_1_1")
    project.ledger.writes.clear()
    project.ledger.others_write.append(await taken_by(project, await rival(project), 2))
    project.ledger.down_from_write = 1

    reply = await project.answer(a_request(host_id=1, rpc_seqno=1, results=(a_success("pi_1_1_1"),)))

    assert reply.acks == ("pi_1_1_1",)
    assert names_of(reply) == []
    assert len(project.array) == 2  # the slots of the second round


async def test_slot_with_a_sibling_on_the_host_stays_for_others() -> None:
    project = await a_project()
    await project.submit(1, quorum=2)
    await project.answer(a_request(cpu_req_s=Seconds(1.0), cpu_req_instances=0.0))
    forgetful = JobArray(project.clock, lambda: project.shelf.held.settings.feeder)
    project.array = forgetful  # another worker's array, which does not know of the sibling
    [second] = await waiting_of(project.store, (await batches_of(project.store, limit=1))[0].batch_id)
    batch = (await batches_of(project.store, limit=1))[0]
    [job_class] = await project.store.views.classes_of_batch(batch.batch_id)
    forgetful.place(replace(second, sibling_hosts=(), sibling_volunteers=()), batch, job_class)

    reply = await project.answer(
        a_request(host_id=1, rpc_seqno=1, other_results=listed("pi_1_1_1"), cpu_req_instances=0.0)
    )

    assert names_of(reply) == []
    assert second.ready.instance_id in forgetful


async def test_resent_jobs_count_against_what_was_asked_for() -> None:
    project = await a_project()
    await project.submit(10)
    first = names_of(await project.answer(a_request()))
    again = names_of(await project.answer(a_request(host_id=1, rpc_seqno=1)))
    assert len(first) == 2
    assert again == first


async def test_resent_jobs_reduce_the_demand_beside_the_queue() -> None:
    project = await a_project()
    await project.submit(10)
    first = names_of(await project.answer(a_request(in_progress=())))
    again = names_of(await project.answer(a_request(host_id=1, rpc_seqno=1, in_progress=())))
    assert len(first) == 2
    assert again == first


async def test_a_decision_that_breaks_gives_no_work_away() -> None:
    project = await a_project()
    await project.submit(3)

    def broken(context: SchedulingContext, array: Array) -> Choice:
        raise ZeroDivisionError

    service = RequestService(project.ports, project.clock, broken)
    with pytest.raises(ZeroDivisionError):
        await service.answer(a_request())
    assert len(project.array) == 3


async def test_a_write_that_breaks_gives_every_slot_back() -> None:
    project = await a_project()
    await project.submit(3)

    def impossible(context: SchedulingContext, array: Array) -> Choice:
        choice = choose(context, array)
        return replace(choice, chosen=tuple(replace(c, assignment=_past_due(c.assignment)) for c in choice.chosen))

    service = RequestService(project.ports, project.clock, impossible)
    with pytest.raises(Exception, match="due_at"):
        await service.answer(a_request())
    assert len(project.array) == 3


def _past_due(assignment: Assignment) -> Assignment:
    return replace(assignment, due_at=Instant(assignment.sent_at - 1.0))


async def test_absurd_numbers_make_a_sane_host() -> None:
    project = await a_project()
    await project.submit(1, job_class=a_job_class(outputs=(Output("out", 10),)))
    request = a_request(
        cpu_req_s=Seconds(-1e300),
        cpu_req_instances=1e300,
        estimated_delay_s=Seconds(-1.0),
        on_fraction=-4.0,
        active_fraction=1e9,
        rpc_seqno=2**62,
        disk_project_used_bytes=1e300,
    )
    reply = await project.answer(request)
    host, _ = await project.store.views.host(HostId(1))
    assert names_of(reply) == []
    assert (host.on_fraction, host.active_fraction, host.disk_free_bytes) == (0.01, 1.0, 0.0)


async def test_the_account_key_is_never_in_the_reply() -> None:
    project = await a_project()
    assert KEY not in repr(await project.answer(a_request()))
