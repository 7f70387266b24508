"""Jobs from submission to volunteers and back: the whole server over real HTTP and a real PostgreSQL."""

from __future__ import annotations

import hashlib
import math

import pytest

from domain.apps import NVIDIA, PlanClass
from domain.jobs import InstanceState
from domain.units import Seconds
from tests.acceptance.host import RIGHT, Host
from tests.acceptance.server import PROGRAM, LiveServer
from tests.facts import missing
from wire.messages import STATE_COMPUTE_ERROR, CoprocRequest, HeldResult, SchedulerReply
from wire.signing import parse_public_key_text, verify

S = InstanceState


async def test_job_from_submission_to_complete_batch(server: LiveServer) -> None:
    await server.add_app()
    content = b"the input\n"
    put = await server.create("PUT", "/files/in_1.txt", data=content)
    jobs = {"inputs": [{"name": "in_1.txt", "open_name": "in", "sticky": True}]}
    batch_id = await server.submit(jobs=jobs)
    host = await server.add_host()

    reply = await host.call(cpu_req_s=1.0, cpu_req_instances=1.0)
    [task] = host.held.values()
    await check_downloads(host, reply, content)
    done = await host.work(task)
    await server.validate()

    assert put["md5"] == hashlib.md5(content).hexdigest()
    assert task.workunit.command_line == "--part 0"
    assert [(ref.file_name, ref.open_name) for ref in task.workunit.file_refs] == [("in_1.txt", "in")]
    assert done.acks == (task.result.name,)
    batch = await server.batch(batch_id)
    assert batch["state"] == "complete" and batch["ended_at"] is not None
    assert (batch["jobs_total"], batch["jobs_validated"], batch["jobs_failed"]) == (1, 1, 0)
    assert (batch["unsent"], batch["in_progress"], batch["retries"], batch["deadlines_missed"]) == (0, 0, 0, 0)
    [instance] = await server.instances(batch_id)
    assert instance.state is S.VALID and instance.elapsed_s is not None
    [path] = server.project.upload_dir.rglob("*_r0")
    assert path.read_bytes() == RIGHT


async def check_downloads(host: Host, reply: SchedulerReply, input_content: bytes) -> None:
    """Check the app's signature with the client's key, and the input's MD5."""
    key = parse_public_key_text(host.key_text)
    files = {element.name: element for element in reply.downloads}
    source = files.pop("in_1.txt")
    assert await host.download(source) == input_content and source.sticky
    [app] = files.values()
    program = await host.download(app)
    assert program == PROGRAM and app.executable and app.nbytes == len(program)
    assert verify(key, program, app.signature) and not verify(key, program + b"x", app.signature)


@pytest.mark.parametrize(
    ("qos", "more"),
    [("throughput", {}), ("long_deadline", {}), ("afap", {}), ("short_deadline", {"deadline_s": 80_000})],
)
async def test_each_qos_completes(server: LiveServer, qos: str, more: dict[str, object]) -> None:
    await server.add_app()
    batch_id = await server.submit(qos=qos, jobs={"count": 3}, **more)
    host = await server.add_host()

    while (await server.batch(batch_id))["unsent"]:
        for task in await host.ask(2):
            await host.compute(task)
    await host.call()
    await server.validate()

    batch = await server.batch(batch_id)
    assert (batch["state"], batch["jobs_validated"], batch["retries"]) == ("complete", 3, 0)
    begins = {"throughput": "throughput", "afap": "good host"}.get(qos, "host finishes")
    assert all(instance.because.startswith(begins) for instance in await server.instances(batch_id))


async def test_due_date_reaches_the_client_in_seconds(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"delay_bound_s": 7200})
    host = await server.add_host()

    [task] = await host.ask()

    [instance] = await server.instances(batch_id)
    assert instance.sent_at is not None and instance.due_at == instance.sent_at + 7200
    assert float(task.result.report_deadline) == math.floor(instance.due_at)


async def test_third_result_decides_a_disagreement(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"quorum": 2})
    ada, bob, eve = [await server.add_host(name) for name in ("ada", "bob", "eve")]
    for host, found in ((ada, RIGHT), (eve, b"3.2\n")):
        [task] = await host.ask()
        await host.work(task, found)
    await server.validate()
    await server.feed()
    undecided = await server.batch(batch_id)

    assert await ada.ask() == []  # one instance per host and volunteer
    [third] = await bob.ask()
    await bob.work(third)
    await server.validate()

    assert (undecided["state"], undecided["unsent"], undecided["retries"]) == ("active", 1, 0)
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["jobs_validated"], batch["retries"]) == ("complete", 1, 1)
    states = {instance.host_id: instance.state for instance in await server.instances(batch_id)}
    assert states == {ada.host_id: S.VALID, bob.host_id: S.VALID, eve.host_id: S.INVALID}


async def test_late_result_cancels_its_retry(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"delay_bound_s": 7200})
    host = await server.add_host()
    [task] = await host.ask()
    await server.sweep()
    await pass_hours(server, 3)
    await server.validate()
    timed_out = await server.batch(batch_id)

    await host.work(task)
    await server.validate()

    assert (timed_out["retries"], timed_out["unsent"], timed_out["deadlines_missed"]) == (1, 1, 1)
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["retries"], batch["unsent"], batch["deadlines_missed"]) == ("complete", 0, 0, 1)
    assert [instance.state for instance in await server.instances(batch_id)] == [S.VALID, S.CANCELLED]


async def test_success_after_an_error_cancels_its_retry(server: LiveServer) -> None:
    """The client was restored from a snapshot before the error, and computed the task again."""
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    host.end(task, STATE_COMPUTE_ERROR, 1)
    await host.call()
    await server.validate()
    failed = await server.batch(batch_id)

    listed = await host.call(other_results=(HeldResult(task.result.name),))
    reply = await host.work(task)
    await server.validate()

    assert (failed["retries"], failed["unsent"]) == (1, 1)
    assert (listed.aborts, listed.aborts_if_not_started) == ((), ())
    assert reply.acks == (task.result.name,)
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["jobs_validated"], batch["retries"], batch["unsent"]) == ("complete", 1, 0, 0)
    assert [instance.state for instance in await server.instances(batch_id)] == [S.VALID, S.CANCELLED]


async def test_retry_goes_to_another_host_of_the_account(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    first = await server.add_host()
    second = another_host(first, "second")
    [task] = await first.ask()
    first.end(task, STATE_COMPUTE_ERROR, 1)
    await first.call()
    await server.validate()
    alone = await server.batch(batch_id)
    await second.call()
    await server.feed()

    own = await first.ask()
    [retry] = await second.ask()
    await second.work(retry)
    await server.validate()

    assert own == []
    assert alone["waits_for"] == "another host"
    assert not missing(alone["waits_because"], "1 job", "another host:", "all recent hosts (1)")
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["retries"], batch["waits_for"], batch["at_risk"]) == ("complete", 1, None, None)


async def test_quorum_of_one_account_once_the_app_allows_it(server: LiveServer) -> None:
    """Until then the batch is at risk, and the operator sees what it waits for."""
    await server.add_app()
    batch_id = await server.submit(jobs={"quorum": 2})
    first = await server.add_host()
    second = another_host(first, "second")
    [task] = await first.ask()
    await first.work(task)
    refused = await second.ask()
    waiting = await server.batch(batch_id)

    await server.create("PATCH", "/apps/pi", json={"one_per_volunteer": "never"})
    await server.feed()
    [other] = await second.ask()
    await second.work(other)
    await server.validate()

    assert refused == []
    assert waiting["waits_for"] == "another volunteer"
    assert not missing(waiting["waits_because"], "another volunteer:", "2 results", "only 1")
    assert (await server.batch(batch_id))["state"] == "complete"


def another_host(host: Host, name: str) -> Host:
    """Return a second host of the same account."""
    return Host(host.http, host.scheduler_url, host.authenticator, name)


async def pass_hours(server: LiveServer, hours: int) -> None:
    """Advance the clock by hours, with sweeps frequent enough that none counts as an outage."""
    for _ in range(hours * 12):
        await server.forward(300.0)
        await server.sweep()


async def test_outage_moves_due_dates(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"delay_bound_s": 7200})
    host = await server.add_host()
    await host.ask()
    await server.sweep()
    [before] = await server.instances(batch_id)

    await server.forward(3 * 3600.0)
    await server.sweep()

    [after] = await server.instances(batch_id)
    assert after.state is S.IN_PROGRESS
    assert after.due_at is not None and before.due_at is not None
    assert after.due_at - before.due_at == pytest.approx(3 * 3600.0, abs=30.0)


async def test_adaptive_replication_checks_unknown_hosts(server: LiveServer) -> None:
    await server.add_app(adaptive_copies=2)
    batch_id = await server.submit()
    ada, bob = await server.add_host("ada"), await server.add_host("bob")

    [first] = await ada.ask()
    await ada.work(first)
    await server.validate()
    await server.feed()
    waiting = await server.batch(batch_id)
    [second] = await bob.ask()
    await bob.work(second)
    await server.validate()

    assert (waiting["state"], waiting["unsent"]) == ("active", 1)
    assert first.result.wu_name == second.result.wu_name
    assert (await server.batch(batch_id))["state"] == "complete"
    assert [instance.state for instance in await server.instances(batch_id)] == [S.VALID, S.VALID]


async def test_gpu_work_goes_to_the_host_with_the_gpu(server: LiveServer) -> None:
    await server.store.applications.put_plan_class(
        PlanClass("cuda", ncpus=0.1, gpu_type=NVIDIA, gpu_count=1.0, min_gpu_ram_bytes=2e9)
    )
    await server.add_app(versions=0)
    await server.add_version(plan_class="cuda")
    batch_id = await server.submit()
    plain, gamer = await server.add_host("plain"), await server.add_host("gamer")

    refused = await plain.call(cpu_req_s=1.0, cpu_req_instances=1.0)
    small = await gamer.ask(0, coprocs=(a_gpu(ram_bytes=1e9),))
    reply = await gamer.call(coprocs=(a_gpu(),))
    [task] = gamer.held.values()
    await gamer.work(task)
    await server.validate()

    assert refused.results == () and small == []
    [version] = reply.app_versions
    assert (version.plan_class, version.coproc_type, version.coproc_count) == ("cuda", "NVIDIA", 1.0)
    assert version.avg_ncpus == pytest.approx(0.1)
    assert (await server.batch(batch_id))["state"] == "complete"


def a_gpu(ram_bytes: float = 8e9) -> CoprocRequest:
    return CoprocRequest("NVIDIA", 1, 1e12, ram_bytes, 53500, req_s=Seconds(1.0), req_instances=1.0)


async def test_abort_cancels_unstarted_tasks_on_clients(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 3})
    host = await server.add_host()
    kept, other = await host.ask(2)
    given = {kept.result.name, other.result.name}

    aborted = await server.create("POST", f"/batches/{batch_id}/abort")
    told = await host.call()
    again = await host.ask(2)

    assert aborted["state"] == "aborted" and aborted["unsent"] == 0
    assert told.aborts == () and set(told.aborts_if_not_started) == given
    assert again == []
    host.held[kept.result.name] = kept
    late = await host.work(kept)
    await server.validate()
    assert late.acks == (kept.result.name,)
    assert (await server.batch(batch_id))["state"] == "aborted"


async def test_lost_job_is_resent_with_its_due_date(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    [before] = await server.instances(batch_id)
    host.held.clear()  # the reply never reached the client

    await server.forward(600.0)
    await host.call()

    [again] = host.held.values()
    assert again == task
    [after] = await server.instances(batch_id)
    assert (after.instance_id, after.due_at, after.sent_at) == (before.instance_id, before.due_at, before.sent_at)
    await host.work(again)
    await server.validate()
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["sent"], batch["retries"]) == ("complete", 1, 0)


async def test_repeated_report_counts_once(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit()
    host = await server.add_host()
    [task] = await host.ask()
    await host.compute(task)
    report = dict(host.finished)

    await host.call()
    await server.validate()
    host.finished = report
    again = await host.call()
    await server.validate()

    assert again.acks == (task.result.name,)
    batch = await server.batch(batch_id)
    assert (batch["state"], batch["reported"], batch["jobs_validated"]) == ("complete", 1, 1)
