"""The main tasks of console users, from the first click to the last."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, expect

from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab, new_tab
from tests.browser.scene import add_hosts, add_operator, furnish, tell, work_off
from tests.browser.test_looks import LOOKS, walked


async def test_a_batch_is_submitted_and_watched_until_it_is_done(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    await server.feed()  # the worker reads the new app
    hosts = await add_hosts(server, 4)
    await tab.sign_in()
    await tab.page.get_by_role("link", name="Batches", exact=True).click()
    await expect(tab.page.get_by_role("heading", name="Batches")).to_be_visible()
    await tab.page.get_by_role("link", name="Submit with a form").first.click()
    await tab.page.get_by_label("Batch name").fill("my first")
    await tab.page.get_by_label("Jobs", exact=True).fill("8")
    await tab.page.get_by_label("Size (Gflop)").fill("10")
    await tab.picture("submit")
    await tab.page.get_by_role("button", name="Submit").click()
    await expect(tab.page.get_by_role("heading", name="my first", exact=True)).to_be_visible()
    done = tab.page.locator("#done")
    await expect(done).to_have_text("0 %")

    await work_off(server, hosts)
    await tell(server)
    await tab.picture("batch-under-way")
    await work_off(server, hosts)
    await tell(server)

    await expect(done).to_have_text("100 %", timeout=30_000)  # without a reload
    await expect(tab.page.get_by_text("8 of 8 jobs valid", exact=True)).to_be_visible()
    await tab.picture("batch-done")
    assert tab.complaints == []


async def test_the_list_keeps_the_order_of_the_server(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    for name in ("north", "south", "east"):
        await server.submit(name=name, jobs={"count": 2})
    await tab.sign_in()
    await tab.page.get_by_role("link", name="Batches", exact=True).click()
    names = tab.page.locator("#t-batches tbody th a")

    await expect(names).to_have_text(["east", "south", "north"])
    await tab.page.get_by_label("Sorted by").select_option("id")
    await expect(names).to_have_text(["north", "south", "east"])
    await tab.page.get_by_label("Sorted by").select_option("-id")
    await expect(names).to_have_text(["east", "south", "north"])
    assert tab.complaints == []


async def test_it_is_found_out_why_a_job_is_not_sent(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    hosts = await add_hosts(server, 3)
    batch_id = await server.submit(name="huge", jobs={"count": 2, "memory_bytes": 1e13})
    await work_off(server, hosts)
    server.clock.forward(400.0)
    await work_off(server, hosts)
    await tell(server)
    await tab.sign_in()

    await tab.page.get_by_role("link", name="Unschedulable work").first.click()
    row = tab.page.get_by_role("row", name=re.compile("huge"))
    await expect(row).to_contain_text("memory")
    await tab.picture("unschedulable")
    await tab.open(f"/batches/{batch_id}")
    await tab.page.get_by_role("link", name="What holds it back?").click()
    await expect(
        tab.page.get_by_text(re.compile("^None of 3 hosts .* 10 TB of memory; 3 hosts would pass"))
    ).to_be_visible()
    await expect(tab.page.get_by_role("row", name=re.compile("memory .* 3 of 3"))).to_be_visible()
    await tab.page.get_by_role("link", name="Unsent instances").click()
    await tab.page.get_by_role("link", name="Why is it not sent?").first.click()

    await expect(tab.page.get_by_role("row", name=re.compile("memory .* 3 of 3"))).to_be_visible()
    await expect(tab.page.get_by_text(re.compile("job needs .* of memory|memory"))).not_to_have_count(0)
    await tab.picture("why-not-sent")
    assert tab.complaints == []


async def test_threshold_is_previewed_and_rules_are_compared(server: LiveServer, tab: Tab, chromium: Browser) -> None:
    await furnish(server)
    await tab.sign_in()
    await tab.open("/percentiles")
    await tab.picture("percentiles")
    await tab.page.locator("[name='deadline.p_tight']").fill("0.6")
    await tab.page.get_by_role("button", name="Preview").click()
    await expect(tab.page.get_by_role("heading", name="Preview")).to_be_visible()
    changed = tab.page.get_by_role("row", name=re.compile(r"p_tight 0\.9 → 0\.6"))
    await expect(changed).to_contain_text("hosts")
    await expect(tab.page.get_by_label("Simulated days")).to_have_value("3")
    await expect(tab.page.get_by_role("button", name="Simulate this on my project")).to_be_visible()
    await tab.picture("threshold-preview")
    assert (await server.store.settings.settings()).get("deadline.p_tight") is None
    await tab.page.get_by_label("Reason").fill("late jobs waited")
    await tab.page.get_by_role("button", name="Save").click()
    await expect(
        tab.page.get_by_role("row", name=re.compile("deadline.p_tight.*grace.*late jobs waited"))
    ).to_be_visible()
    assert (await server.store.settings.settings())["deadline.p_tight"] == pytest.approx(0.6)
    # the worker has not loaded the new settings yet, but chart and fields show them
    assert server.workers[0].parts.catalogue.catalogue().settings.deadline.p_tight == pytest.approx(0.9)
    await expect(tab.page.locator("[name='deadline.p_tight']")).to_have_value("0.6")
    await expect(tab.page.locator("figure.chart").get_by_text("p_tight 0.6").first).to_be_visible()

    await tab.open("/simulate")
    await tab.page.get_by_role("radio", name=re.compile("startup")).check()
    await tab.page.get_by_text("Custom population").click()
    await tab.page.get_by_label("Hosts", exact=True).fill("6")
    await tab.page.get_by_label("Simulated days").fill("5")
    await tab.page.get_by_label("Runs per rule").fill("2")
    await tab.page.get_by_role("button", name="Run").click()
    await expect(tab.page.get_by_role("heading", name="Figures", exact=True)).to_be_visible(timeout=60_000)
    await expect(tab.page.get_by_role("row", name=re.compile("instances per job")).last).to_be_visible()
    await expect(tab.page.locator("figure.chart svg").first).to_be_visible()
    await tab.picture("two-rules")
    assert tab.complaints == []

    issues: list[str] = []
    known = await tab.page.context.storage_state()
    for look, options in LOOKS.items():
        context, other = await new_tab(chromium, server, **options, storage_state=known)
        issues += await walked(other, look, {"simulation-done": "/simulate/1"})
        await context.close()
    assert issues == []
