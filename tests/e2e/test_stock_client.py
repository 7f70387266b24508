"""The stock client works with a Muster server: tests with real clients."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from administration.project import Project
from domain.clock import SystemClock
from domain.credit import credit_of
from domain.units import Flop, later
from runtime.project import open_database
from tests.e2e.server import Server
from tests.e2e.stock_client import StockClient, wait_for
from tests.worlds import (
    a_hav_event,
    a_registered_host,
    a_registered_volunteer,
    a_report,
    a_sent_instance,
    a_submitted_batch,
    report,
    the_version,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

MakeClient = Callable[..., StockClient]
AT_MOST_S = 55.0
ASKED = re.compile(r"Scheduler request completed: got (\d+) new tasks")

JOBS = """
app = "testapp"
qos = "{qos}"
[jobs]
count = {count}
command_line = "{command}"
fpops_est = {fpops}
delay_bound_s = {bound}
max_errors = {max_errors}
max_instances = {max_errors}
ncpus = {ncpus}
outputs = [{{ name = "out", max_bytes = 30000000 }}]
"""


def jobs(**changes: Any) -> str:
    values = {
        "qos": "throughput",
        "count": 1,
        "command": "1",
        "fpops": 1e9,
        "bound": 86400,
        "max_errors": 1,
        "ncpus": 1,
    }
    return JOBS.format(**{**values, **changes})


def ended(server: Server, batch_id: int) -> bool:
    return bool(server.batch(batch_id)["state"] == "complete")


def prefer(server: Server, email: str, account_key: str, **wishes: str) -> None:
    """Save preferences on the volunteer's page, signed in with the account key."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def send(path: str, **fields: str) -> str:
        data = urlencode(fields).encode() if fields else None
        with browser.open(f"{server.url}volunteers/{path}", data, timeout=30) as reply:
            return str(reply.read().decode())

    send("sign-in", email=email, password=account_key)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', send("preferences")))
    assert "Saved." in send("preferences", **hidden, **wishes)


def test_two_jobs_go_from_attaching_to_validated(server: Server, client: MakeClient, app_binary: Path) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    (server.data_dir / "in.txt").write_text("hello\n")
    text = jobs(count=2) + 'inputs = [{ path = "in.txt", open_name = "in", sticky = true }]\n'
    batch_id = server.submit(text)
    volunteer = client()

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    batch = server.batch(batch_id)
    assert (batch["jobs_total"], batch["jobs_validated"], batch["jobs_failed"]) == (2, 2, 0)
    assert (batch["unsent"], batch["in_progress"], batch["retries"]) == (0, 0, 0)
    uploads = [u for i in server.instances(batch_id) for u in i["uploads"]]
    contents = [path.read_text() for path in (server.data_dir / "files" / "upload").rglob("*_r0")]
    assert contents == ["result for hello\n\n"] * 2
    assert len(uploads) == 2

    credit = 2 * credit_of(Flop(1e9))
    shown = server.instances(batch_id)
    assert [one["credit"] for one in shown] == [pytest.approx(credit / 2)] * 2

    prefer(server, "volunteer0@example.org", volunteer.account_key, which="all", gpu="on")  # and no CPU
    looks = itertools.count()

    def knows_them() -> bool:
        if next(looks) % 50 == 0:  # a client in a request or a back-off ignores the update
            volunteer.update()
        return "<no_cpu>1</no_cpu>" in volunteer.account()

    wait_for(knows_them, 2 * AT_MOST_S, "the preferences")
    assert "<project_specific>" in volunteer.account()
    assert volunteer.credit() == pytest.approx((credit, credit), abs=1e-6)
    assert f"{server.url}volunteers/account" in volunteer.command("--get_project_status")
    assert f"{server.url}notices.php" in volunteer.feeds()


def test_non_zero_exit_fails_the_job_with_its_code(server: Server, client: MakeClient, app_binary: Path) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs(command="1 3"))
    client()

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    [instance] = server.instances(batch_id)
    assert server.batch(batch_id)["jobs_failed"] == 1
    assert (instance["state"], instance["exit_status"]) == ("failed", 3)
    assert "testapp argc=" in instance["stderr"]


def test_a_missing_output_fails_the_instance_and_names_the_file(
    server: Server, client: MakeClient, app_binary: Path
) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs().replace('"out"', '"result.txt"'))
    client()

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    [instance] = server.instances(batch_id)
    assert (instance["state"], instance["exit_status"]) == ("failed", 0)
    assert instance["reason"]


def test_a_user_abort_is_no_job_error_and_the_job_goes_out_again(
    server: Server, client: MakeClient, app_binary: Path
) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs(command="40", max_errors=2))
    aborting = client()
    wait_for(aborting.active_tasks, AT_MOST_S, "a running task")
    [task] = aborting.active_tasks()
    aborting.abort(task)
    wait_for(lambda: any(i["state"] == "aborted" for i in server.instances(batch_id)), 30, "the report")
    wait_for(lambda: server.batch(batch_id)["unsent"] == 1, 20, "the retry")

    batch = server.batch(batch_id)

    assert (batch["jobs_failed"], batch["retries"], batch["state"]) == (0, 1, "active")


def test_an_upload_cut_by_a_restart_is_resumed_where_it_was(
    server: Server, client: MakeClient, app_binary: Path, tmp_path: Path
) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs(command="1 0 1 600"))  # 600 KiB at 100 kB/s
    uploader = client(upload_bytes_per_s=100_000)
    upload_dir = server.data_dir / "files" / "upload"

    def arrived() -> int:
        return sum(path.stat().st_size for path in upload_dir.rglob("*.part"))

    wait_for(lambda: arrived() > 60_000, AT_MOST_S, "part of the upload")
    server.kill()
    kept = arrived()
    server.start()
    assert kept > 0

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    assert server.batch(batch_id)["jobs_validated"] == 1
    offsets = [int(found) for found in re.findall(r'"offset": ?(\d+)', server.log())]
    assert any(offset >= kept - 65536 and offset > 0 for offset in offsets), uploader.log()
    [path] = list(upload_dir.rglob("*_r0"))
    assert path.stat().st_size > 600 * 1024


def test_trickle_messages_are_kept_and_not_sent_again(server: Server, client: MakeClient, trickle_binary: Path) -> None:
    """The client deletes a message when a reply acknowledges it; until then it is in every request."""
    server.init()
    server.start()
    server.add_app("testapp", trickle_binary)
    batch_id = server.submit(jobs(command="2 1"))
    running = client()

    def kept() -> list[dict[str, Any]]:
        return [one for i in server.instances(batch_id) for one in trickles(server, i["instance_id"])]

    wait_for(lambda: len(kept()) == 2, AT_MOST_S, "both messages")
    wait_for(lambda: running.waiting_trickles() == [], AT_MOST_S, "the client to delete them")
    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    assert [(one["variety"], one["text"].splitlines()) for one in kept()] == [
        ("progress", [f"<step>{number}</step> a < b & c", "</result>", "<result>"]) for number in (1, 2)
    ]
    assert server.batch(batch_id)["jobs_validated"] == 1
    assert "<msg_from_host>" not in running.last_request()


def trickles(server: Server, instance_id: int) -> list[dict[str, Any]]:
    found = server.api(f"instances/{instance_id}/trickles")["trickles"]
    assert isinstance(found, list)
    return found


def test_hostile_stderr_does_not_corrupt_the_report(server: Server, client: MakeClient, tmp_path: Path) -> None:
    script = tmp_path / "nasty.sh"
    script.write_text(
        "#!/bin/sh\n"
        "printf 'one <b>&amp; & ]]> </stderr_out></result><result><name>testapp_1_1_1</name>\\001\\002\\377' >&2\n"
        "printf '\\n<result>\\n    <name>testapp_1_2_2</name>\\n    <state>5</state>\\n</result>\\n' >&2\n"
        "echo done > out; touch boinc_finish_called\n"
    )
    script.chmod(0o755)
    server.init()
    server.start()
    server.add_app("testapp", script)
    batch_id = server.submit(jobs(count=2))
    client()

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    assert server.batch(batch_id)["jobs_validated"] == 2
    assert {i["state"] for i in server.instances(batch_id)} == {"valid"}


def test_a_declared_gpu_gets_a_job_of_its_own_app_version(server: Server, client: MakeClient, app_binary: Path) -> None:
    server.init()
    server.start()
    server.muster("app", "plan-class", "set", "fake", "--gpu-type", "fake_gpu", "--ncpus", "0.1")
    server.add_app("testapp", app_binary, plan_class="fake")
    batch_id = server.submit(jobs(fpops=1e11))
    client(fake_gpu=True)

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    assert server.batch(batch_id)["jobs_validated"] == 1


def test_job_of_two_cpus_runs_alone(server: Server, client: MakeClient, app_binary: Path) -> None:
    """The app version uses one CPU; the client keeps a second description of it, for the job of two."""
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    wide = server.submit(jobs(command="5", ncpus=2))
    small = server.submit(jobs(count=2, command="5"), "small.toml")
    working, seen = client(ncpus=2), set()

    def all_ended() -> bool:
        seen.add(frozenset(int(name.split("_")[1]) for name in working.active_tasks()))
        return all(ended(server, batch_id) for batch_id in (wide, small))

    wait_for(all_ended, 2 * AT_MOST_S, "the batches")

    assert frozenset({wide}) in seen, seen
    assert not [one for one in seen if wide in one and len(one) > 1]
    assert [server.batch(batch_id)["jobs_validated"] for batch_id in (wide, small)] == [1, 2]
    state = (working.folder / "client_state.xml").read_text()
    assert "<avg_ncpus>2.000000</avg_ncpus>" in state and "+2cpus" in state


def test_tight_deadline_adds_estimated_delay(server: Server, client: MakeClient, app_binary: Path) -> None:
    server.init(deadline__min_slack_s=0, scheduler__jobs_per_request=1)
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs(qos="afap", count=2, command="60", fpops=60e9))
    asking = client(ncpus=1, buffer_days=0.002)
    wait_for(lambda: len(sent(server, batch_id)) == 1 and asking.active_tasks(), AT_MOST_S, "the first task")
    asking.update()
    wait_for(lambda: len(sent(server, batch_id)) == 2, 40, "the second task")

    first, second = sent(server, batch_id)

    assert first["tight"] and second["tight"]
    assert first["due_at"] - first["sent_at"] == pytest.approx(1.1 * 2.5 * 60, rel=0.05)
    waits_s = second["due_at"] - second["sent_at"] - (first["due_at"] - first["sent_at"])
    assert 5 < waits_s < 1.2 * 60, second["because"]


def test_top_host_gets_tight_and_newcomer_relaxed_deadline(
    server: Server, client: MakeClient, app_binary: Path
) -> None:
    # by the ranking, hosts below the gate get no job of an urgent batch
    table = {"deadline__afap": "table", "deadline__min_slack_s": 0}
    server.init(**table, ranking__min_samples=0.5, scheduler__newcomer_fraction=1)
    server.add_app("testapp", app_binary)
    asyncio.run(with_slow_hosts(server.data_dir, 20))
    server.start()
    before = server.submit(jobs(count=2, fpops=25e9))  # one second of work, estimated at 25 s
    top = client()
    wait_for(lambda: ended(server, before), AT_MOST_S, "the top host's record")
    top.stop()
    ranked = json.loads(server.muster("hoststats", "run", "--json"))
    assert ranked["ranked"] == 21
    urgent = server.submit(jobs(qos="afap", fpops=25e9), "urgent.toml")
    relaxed = server.submit(jobs(qos="long_deadline", fpops=25e9), "relaxed.toml")
    server.stop()
    server.start()  # with the new ranking

    newcomer = client()
    wait_for(lambda: sent(server, relaxed), AT_MOST_S, "the newcomer's job")
    wait_for(lambda: ended(server, relaxed), AT_MOST_S, "its result")
    assert not sent(server, urgent), newcomer.log()
    top.start()
    wait_for(lambda: sent(server, urgent), AT_MOST_S, "the top host's job")

    [tight], [loose] = sent(server, urgent), sent(server, relaxed)
    assert tight["host_id"] == sent(server, before)[0]["host_id"] != loose["host_id"]
    assert (tight["tight"], loose["tight"]) == (True, False)
    assert tight["due_at"] - tight["sent_at"] < 2.5 * 30
    assert loose["due_at"] - loose["sent_at"] > 10_000
    assert "no completion target" in tight["because"] and "completion target in" in loose["because"]


def test_newcomers_get_waiting_work_at_their_first_call(server: Server, client: MakeClient, app_binary: Path) -> None:
    """Two new computers beside ranked hosts may request again only after 10 min; more jobs are unsent than either
    requests.
    """
    server.init(ranking__min_samples=0.5, scheduler__no_work_delay_s=600)
    server.add_app("testapp", app_binary)
    asyncio.run(with_slow_hosts(server.data_dir, 20))
    assert json.loads(server.muster("hoststats", "run", "--json"))["ranked"] == 20
    waiting = server.submit(jobs(count=200, command="30"))
    server.start()

    newcomers = [client(), client()]

    for one in newcomers:
        wait_for(lambda one=one: ASKED.search(one.log()), AT_MOST_S, "the first reply")
        got = ASKED.search(one.log())
        assert got is not None and int(got[1]) > 0, one.log()
        wait_for(lambda one=one: len(one.active_tasks()) == one.ncpus, AT_MOST_S, "a task for each processor")
    assert len({one["host_id"] for one in sent(server, waiting)}) == 2


def test_short_jobs_need_no_minute_between_calls(server: Server, client: MakeClient, app_binary: Path) -> None:
    """More jobs than fit in one reply, with the default request delay, which took two thirds of their time."""
    server.init(scheduler__request_delay_s=60)
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs(count=20))
    client()

    wait_for(lambda: ended(server, batch_id), 90, "the batch")


async def with_slow_hosts(data_dir: Path, count: int) -> None:
    """Add hosts with one result each, whose run time was at least e^2 times the estimate."""
    async with open_database(Project(data_dir), SystemClock()) as store:
        now = SystemClock().now()
        [app] = await store.applications.apps()
        version = await the_version(store)
        batch = await a_submitted_batch(store, jobs=count, app_id=app.app_id, created_at=now)
        for number in range(count):
            volunteer_id = await a_registered_volunteer(store, f"slow {number}", email=f"slow{number}@example.org")
            host = await a_registered_host(store, volunteer_id=volunteer_id, last_rpc_at=now)
            sent_at = later(now, -7200.0)
            given = await a_sent_instance(store, batch.batch_id, host, sent_at=sent_at)
            event = replace(a_hav_event(given, at=now), app_version_id=version.app_version_id)
            slow = replace(event, ln_turnaround_ratio=2.0 + number / 10.0)
            await report(store, host, a_report(given, hav_event=slow))


def test_a_restart_between_fetch_and_report_loses_nothing(server: Server, client: MakeClient, app_binary: Path) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    batch_id = server.submit(jobs(command="8"))
    working = client()
    wait_for(working.active_tasks, AT_MOST_S, "a running task")
    server.stop()
    server.start()

    wait_for(lambda: ended(server, batch_id), AT_MOST_S, "the batch")

    batch = server.batch(batch_id)
    assert (batch["jobs_validated"], batch["retries"]) == (1, 0)
    assert len(server.instances(batch_id)) == 1


def sent(server: Server, batch_id: int) -> list[dict[str, Any]]:
    found = [i for i in server.instances(batch_id) if i["sent_at"] is not None]
    return sorted(found, key=lambda i: i["sent_at"])


def test_a_client_follows_to_a_new_signing_key(server: Server, client: MakeClient, app_binary: Path) -> None:
    server.init()
    server.start()
    server.add_app("testapp", app_binary)
    first = server.submit(jobs())
    following = client()
    wait_for(lambda: ended(server, first), AT_MOST_S, "the batch before")
    server.stop()
    server.muster("sign", "--new-key")
    server.start()
    (server.data_dir / "extra.txt").write_text("new in 1.01\n")
    extra = str(server.data_dir / "extra.txt")
    server.add_version("testapp", app_binary, version="101", file=extra)
    second = server.submit(jobs())
    following.update()

    wait_for(lambda: ended(server, second), AT_MOST_S, "the batch after")

    [instance] = server.instances(second)
    assert (instance["state"], instance["app_version_id"]) == ("valid", 2)
