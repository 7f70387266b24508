"""What needs attention, by the API, its client, the command, the metrics and the console."""

from __future__ import annotations

import re

import pytest

from administration.attention.service import KEPT_S
from domain.attention import FAILING_HOSTS, FAILURES
from domain.jobs import InstanceState
from runtime.metrics import catalogue as metric
from tests.acceptance.faces import client_of, command
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser
from tests.browser.scene import OPERATOR, add_operator, tell
from tests.conformance.test_host_lists import a_failure
from tests.facts import missing
from tests.worlds import a_registered_host
from wire.messages import STATE_COMPUTE_ERROR


@pytest.fixture
async def pi(server: LiveServer) -> LiveServer:
    await server.add_app()
    await server.submit(jobs={"count": 2}, name="calm")
    late = await server.submit(jobs={"count": 3}, name="urgent", qos="short_deadline", deadline_s=60)
    assert late == 2
    await server.forward(900.0)
    return server


async def test_missed_batch_is_an_item_with_its_delay(pi: LiveServer) -> None:
    async with client_of(pi) as client:
        found = await client.attention()

    [item] = [one for one in found["items"] if one["kind"] == "missed"]
    assert (item["severe"], item["batch_id"], item["subject"]) == (True, 2, "batch 2 urgent")
    assert item["figures"]["late_by_s"] == pytest.approx(840.0, abs=60.0) and item["figures"]["jobs_open"] == 3
    assert (found["counts"]["missed"], found["counts"]["at_risk"], found["left_out"]) == (1, 0, 0)


async def test_metric_counts_items_of_every_kind(pi: LiveServer) -> None:
    assert pi.background is not None
    await pi.background.cluster.ask_once()

    samples = {one.labels[0]: one.value for one in pi.background.cluster.samples() if one.metric == metric.ATTENTION}

    assert (samples["missed"], samples["at_risk"], samples["backup"]) == ((1.0,), (0.0,), (0.0,))


async def test_commands_describe_items_and_the_deadline(pi: LiveServer) -> None:
    assert "SEVERE background process: " in (await command(pi, "attention")).stdout  # none reports in this test
    shown = (await command(pi, "batch", "show", "2")).stdout
    assert "late_by_s" not in shown and "waits_because" in shown


def database_calls(pi: LiveServer) -> float:
    samples = pi.workers[0].parts.reporter.report_once().samples
    [calls] = [value for name, _, values in samples if name == metric.CALLS.name for value in values]
    return calls


async def test_longer_list_of_batches_makes_no_more_calls(pi: LiveServer) -> None:
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        made = []
        for _ in range(2):
            await browser.get("/batches")  # afterwards the facts about all hosts are known
            before = database_calls(pi)
            await browser.get("/batches")
            made.append(database_calls(pi) - before)
            for _ in range(5):
                await pi.submit(jobs={"count": 1})

    assert made[0] == made[1] > 0.0


async def test_console_shows_items_and_filters_batches(pi: LiveServer) -> None:
    await add_operator(pi)
    async with a_browser(pi, OPERATOR) as browser:
        pages = {place: await browser.get(place) for place in ("/", "/attention", "/batches?state=attention")}

    assert {status for status, _ in pages.values()} == {200}
    for place in ("/", "/attention"):
        assert not missing(pages[place][1], "batch 2 urgent", "batches/2/why", 'batches/2"', "3 of 3 jobs")
    assert "urgent" in pages["/batches?state=attention"][1] and "calm" not in pages["/batches?state=attention"][1]


async def test_list_of_apps_marks_a_failing_version(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app()
    batch_id = await server.submit(jobs={"count": FAILURES})
    hosts = [await a_registered_host(server.store) for _ in range(FAILING_HOSTS)]
    async with a_browser(server, OPERATOR) as grace:
        forms = [await grace.get("/batches/new")]
        _, before = await grace.get("/apps")
        _, app_before = await grace.get("/apps/pi")
        for number in range(FAILURES):
            await a_failure(server.store, hosts[number % FAILING_HOSTS], batch_id, InstanceState.FAILED, 10.0)
        server.clock.forward(KEPT_S)
        _, after = await grace.get("/apps")
        _, app_after = await grace.get("/apps/pi")
        _, version = await grace.get("/apps/pi/versions/1")
        _, clone = await grace.get(f"/batches/{batch_id}/clone")
        await server.add_app("tau")
        await tell(server)
        forms += [await grace.get(path) for path in ("/batches/new", "/batches/upload")]

    first = [re.findall(r'<select name="app"><option(?: value="pi")?>(\w+)', page) for _, page in forms]
    assert first == [["pi"], ["tau"], ["tau"]]
    errors = f"/batches/{batch_id}/errors"
    assert (errors in before, after.count(errors)) == (False, 2)  # the state and the number, as in Needs attention
    note = version.partition('class="note bad" role="alert"')[2].partition("</div>")[0]
    assert errors in note and not missing(note, f"{FAILURES} of {FAILURES} failures")
    assert ['class="tag bad">failing<' in one for one in (app_before, app_after)] == [False, True]
    assert "/apps/pi/versions/1#h-errors" in app_after.partition('role="alert"')[2].partition("</div>")[0]
    assert 'href="/console/apps/pi"' in clone.partition('role="alert"')[2].partition("</div>")[0]
    assert f"x86_64-pc-linux-gnu, on {FAILING_HOSTS} of {FAILING_HOSTS} hosts<" in after


async def test_app_that_no_host_can_run_is_the_last_choice(server: LiveServer) -> None:
    await add_operator(server)
    await server.add_app("ice", versions=0)
    await server.add_version("ice", platform="sparc-sun-solaris")
    await server.add_app()
    host = await server.add_host()
    await host.call()
    await tell(server)
    async with a_browser(server, OPERATOR) as grace:
        pages = [(await grace.get(path))[1] for path in ("/batches/new", "/batches/upload")]

    for page in pages:
        choice = page.partition('<select name="app">')[2].partition("</select>")[0]
        assert re.findall(r"<option[^>]*>(\w+)", choice) == ["pi", "ice"]
    assert "app = &#34;pi&#34;" in pages[1]


async def test_use_of_a_version_has_its_failures(server: LiveServer) -> None:
    await server.add_app()
    await server.submit(jobs={"count": 1})
    host = await server.add_host()
    [task] = await host.ask()
    host.end(task, STATE_COMPUTE_ERROR, 1)
    await host.call()

    [shown] = (await server.create("GET", "/apps/pi/use"))["use"]

    assert (shown["failures"]["errors"], shown["failures"]["timed_out"]) == (1, 0)
