"""Forecasts for submitters, by the API, its client and the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest

from domain.units import BatchId, later
from muster_client import ApiError
from tests.acceptance.faces import client_of, command, json_of, run_duty
from tests.acceptance.server import LiveServer, a_batch
from tests.acceptance.test_console import a_browser
from tests.browser.scene import OPERATOR, add_operator
from tests.facts import missing

SHORT: Mapping[str, Any] = {"qos": "short_deadline", "deadline_s": 60}


@pytest.fixture
async def pi(server: LiveServer) -> LiveServer:
    """A project with an app and a host that has called."""
    await server.add_app()
    host = await server.add_host()
    await host.call()
    return server


async def forecast(server: LiveServer) -> None:
    await run_duty(server, "estimator")


async def first_results(server: LiveServer) -> None:
    """Report three results: the minimum for a forecast of a new app."""
    host = await server.add_host("grace")
    for _ in range(3):
        await server.forward(1000.0)
        [task] = await host.ask()
        await host.work(task)
        await server.validate()


async def test_preview_forecasts_and_stores_nothing(pi: LiveServer) -> None:
    async with client_of(pi) as client:
        preview = await client.preview(a_batch(jobs={"count": 4}))

        assert await client.batches() == []
    assert (preview["q50_at"], preview["q90_at"], preview["forecast_state"]) == (None, None, "first_results")
    assert preview["completion_at"] > preview["computed_at"]
    assert (preview["jobs_total"], preview["method"], preview["at_risk"]) == (4, "a_priori", None)
    assert [hold["kind"] for hold in preview["holds"]] == ["not_sent"]
    assert (await pi.store.people.submitter("default")).logical_at == 0.0


async def test_preview_refuses_invalid_batches(pi: LiveServer) -> None:
    async with client_of(pi) as client:
        for batch, problem in (
            (a_batch(jobs={"fpops_est": -1}), "fpops_est"),
            (a_batch(app="missing"), "missing"),
            (a_batch(jobs={"inputs": [{"name": "missing.txt", "open_name": "in"}]}), "missing.txt"),
        ):
            with pytest.raises(ApiError, match=problem):
                await client.preview(batch)
    status, refused = await pi.api("POST", "/batches", params={"preview": "perhaps"}, json=a_batch())
    assert (status, refused["field"], refused["expected"]) == (422, "preview", "true or false")


async def test_submission_reply_equals_the_first_forecast(pi: LiveServer) -> None:
    submitted = await pi.create("POST", "/batches", json=a_batch(jobs={"count": 4}))
    told = submitted["forecast"]

    await forecast(pi)
    batch = await pi.batch(submitted["batch_id"])

    def left_s(at: float, since: float) -> float:
        return at - since

    [made] = (await pi.create("GET", f"/batches/{submitted['batch_id']}/forecasts"))["forecasts"]
    key = "completion_at"
    assert left_s(made[key], made["made_at"]) == pytest.approx(left_s(told[key], told["computed_at"]), rel=0.01)
    for shown in (told, made):
        assert [shown[name] for name in ("q10_at", "q50_at", "q90_at")] == [None] * 3
    assert told["forecast_state"] == batch["forecast_state"] == "first_results"
    assert (batch["completion_q50_at"], batch["completion_q90_at"]) == (None, None)
    assert batch["completion_at"] == made["completion_at"]


async def test_forecasts_accumulate(pi: LiveServer) -> None:
    batch_id = await pi.submit(jobs={"count": 3})
    await forecast(pi)
    await pi.forward(901.0)
    await forecast(pi)

    async with client_of(pi) as client:
        shown = await client.forecasts(batch_id)
        last = await client.forecasts(batch_id, limit=1)
        [app] = await client.forecast_health()

    assert [one["trigger"] for one in shown["forecasts"]] == ["submission", "timer"]
    assert shown["forecasts"][0]["made_at"] < shown["forecasts"][1]["made_at"]
    terms = shown["forecasts"][0]["terms"]
    assert terms is not None and terms["jobs_open"] == 3 and shown["accuracy"] is None
    assert last["forecasts"] == shown["forecasts"][1:]
    assert (app["app"], app["active_batches"], app["never_forecast"], app["accuracy"]) == ("pi", 1, 0, None)
    latest_s = app["latest_age_s"]
    assert latest_s is not None and 0 <= latest_s < 60 and app["oldest_age_s"] == latest_s


async def test_forecasts_of_an_unknown_batch_are_not_found(pi: LiveServer) -> None:
    assert (await pi.api("GET", "/batches/99/forecasts"))[0] == 404
    done = await command(pi, "estimate", "show", "99")
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "muster: no batch 99\n")


async def test_missed_deadline_is_shown_with_its_delay(pi: LiveServer) -> None:
    submitted = await pi.create("POST", "/batches", json=a_batch(**SHORT, jobs={"count": 5}))
    assert submitted["forecast"]["at_risk"] is None  # there is no estimate before the first results
    await first_results(pi)
    calm = await pi.submit()

    await forecast(pi)

    batch_id = submitted["batch_id"]
    batch = await pi.batch(batch_id)
    risk = batch["at_risk"]  # the first results took longer than the deadline of a minute
    assert (risk["deadline_at"], risk["probability"], risk["missed"]) == (batch["deadline_at"], 1.0, True)
    listed = {one["batch_id"]: one["at_risk"] for one in (await pi.create("GET", "/batches"))["batches"]}
    assert listed[calm] is None and listed[batch_id]["late_by_s"] >= risk["late_by_s"] > 0.0
    # commands read the real clock, which the server's is ahead of
    assert "\nAT RISK: " in (await command(pi, "estimate", "show", str(batch_id))).stdout
    assert f"batch {batch_id} AT RISK: " in (await command(pi, "batch", "list")).stdout
    await pi.store.submissions.abort_batch(BatchId(batch_id), now=pi.clock.now())
    assert (await pi.batch(batch_id))["at_risk"] is None


async def test_command_previews_and_submits_alike(pi: LiveServer) -> None:
    path = pi.project.data_dir / "batch.toml"
    path.write_text('app = "pi"\nqos = "afap"\n[jobs]\ncount = 4\nfpops_est = 1e12\ndelay_bound_s = 86400\n')

    preview = await command(pi, "batch", "submit", str(path), "--preview")
    as_json = await json_of(pi, "batch", "submit", str(path), "--preview")
    assert (await pi.create("GET", "/batches"))["batches"] == []
    submitted = await command(pi, "batch", "submit", str(path))

    assert preview.exit_code == submitted.exit_code == 0, (preview, submitted)
    first = preview.stdout.splitlines()[0]
    assert not missing(first, "first estimate", "first valid results")
    assert as_json["forecast"]["forecast_state"] == "first_results"
    assert not missing(submitted.stdout.splitlines()[0], "batch 1 submitted:", "muster batch show 1")
    assert first.startswith(submitted.stdout.splitlines()[1])


async def test_command_shows_a_batchs_forecasts(pi: LiveServer) -> None:
    batch_id = await pi.submit(jobs={"count": 5})
    assert "no forecast" in (await command(pi, "estimate", "show", str(batch_id))).stdout
    await forecast(pi)
    before = await command(pi, "estimate", "show", str(batch_id))
    assert not missing(before.stdout, "0/5 ended", "by submission, a_priori:")
    assert "C(B) first: first estimate: " in before.stdout and "░" not in before.stdout

    await first_results(pi)
    await forecast(pi)
    done = await command(pi, "estimate", "show", str(batch_id))
    shown = await json_of(pi, "estimate", "show", str(batch_id))
    health = await command(pi, "estimate", "show")

    assert (done.exit_code, done.stderr) == (0, "")
    assert not missing(done.stdout, "batch 1 (pi, throughput)", "active:", "3 of 5 jobs ended")
    assert "100 % |" in done.stdout and "░" in done.stdout
    assert not missing(done.stdout, "2 first instances", "3/5 ended", "by validation, cold:")
    assert "accuracy of pi is unknown" in done.stdout
    assert shown["forecast_state"] == "shown"
    assert shown["completion_q50_at"] == shown["forecasts"][-1]["q50_at"]
    assert not missing(health.stdout.splitlines()[0], "pi:", "1 active batches", "0 without a forecast")


async def test_forecast_before_a_move_is_not_the_present_one(pi: LiveServer) -> None:
    """The page of the batch shows it only as the former one."""
    batch_id = await pi.submit(jobs={"count": 5})
    await first_results(pi)
    await forecast(pi)
    await add_operator(pi)
    pages = []
    async with a_browser(pi, OPERATOR) as grace:
        for _ in range(2):
            _, page = await grace.get(f"/batches/{batch_id}")
            pages.append(page.partition("<dt>Expected end")[2].partition("</div>")[0])
            assert ("<dt>Latest end" in page) == (len(pages) == 1)
            await pi.store.ordering_rules.set_moved(BatchId(batch_id), later(pi.clock.now(), 60.0))

    [end] = re.findall(r'class="words">(<time[^>]*>)', pages[0])
    assert end not in pages[0].partition("</dd>")[2]
    present, _, former = pages[1].partition("</dd>")
    assert not missing(present, "new forecast in") and end not in present
    assert former.count("<time") == former.count(f"was {end}") == 1


async def test_ended_batch_shows_its_end_and_accuracy(pi: LiveServer) -> None:
    batch_id = await pi.submit(jobs={"count": 4})
    host = await pi.add_host("grace")
    for _ in range(4):
        await forecast(pi)
        await pi.forward(1000.0)
        [task] = await host.ask()
        await host.work(task)
        await pi.validate()
    await forecast(pi)

    done = await command(pi, "estimate", "show", str(batch_id))

    assert not missing(done.stdout, "complete:", "4 of 4 jobs ended")
    assert "E end" in done.stdout
    assert not missing(done.stdout, "Forecasts of pi", "last 1 batches:")


async def test_metrics_have_the_age_of_forecasts(pi: LiveServer) -> None:
    await pi.submit(jobs={"count": 3})
    await forecast(pi)
    await pi.measure()

    async with aiohttp.ClientSession() as session, session.get(f"{pi.url}metrics") as reply:
        lines = (await reply.text()).splitlines()

    assert (reply.status, reply.content_type) == (200, "text/plain")
    assert 'muster_forecast_active_batches{app="pi"} 1.0' in lines
    assert 'muster_forecast_never_forecast_batches{app="pi"} 0.0' in lines
