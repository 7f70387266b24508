"""Lists with many rows and long names fit beside the menu at 1400 pixels."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser

from administration.restrictions import restrict
from domain.jobs import InstanceState
from domain.restrictions import Restricted
from domain.units import later
from tests.acceptance.server import LiveServer
from tests.browser.conftest import new_tab
from tests.browser.scene import OPERATOR, furnish, tell
from tests.browser.test_looks import CUT_LISTS, fail_some
from tests.worlds import a_registered_host, a_report, a_sent_instance, report

CUT_HOSTS = """[...document.querySelectorAll('#t-hosts th[scope=row]')]
    .filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)"""
BROKEN_TIMES = """[...document.querySelectorAll('.dense time')]
    .filter(one => one.getClientRects().length > 1).map(one => one.textContent)"""
LONG = "calibration of the northern detector array, season"


async def fail_often(server: LiveServer, name: str) -> None:
    """Add a host that called last half a day ago, and whose 24 results failed then."""
    now = server.clock.now()
    then = later(now, -14.2 * 3600.0)
    host = await a_registered_host(server.store, domain_name=name, os_name="Linux Raspbian", last_rpc_at=then)
    batch_id = await server.submit(jobs={"count": 24})
    for _ in range(24):
        sent = await a_sent_instance(
            server.store, batch_id, host, sent_at=later(then, -3600.0), due_at=now, timeout_at=now
        )
        await report(server.store, host, a_report(sent, to_state=InstanceState.FAILED, reported_at=then))


@pytest.mark.timeout(300)
async def test_lists_with_long_names_fit_beside_the_menu(server: LiveServer, chromium: Browser) -> None:
    await furnish(server)
    await fail_some(server)
    for number in range(14):
        await server.submit(name=f"{LONG} {number}", jobs={"count": 3})
    await fail_often(server, "DESKTOP-3262A49")
    idle = await server.add_host("a-host-with-a-rather-long-name.cluster.example.org", ram_bytes=1e6)
    await server.feed()
    assert await idle.ask(1) == []
    await tell(server)
    await restrict(
        server.store, Restricted.BATCH, "3", max_jobs=0, why="wrong input", by=OPERATOR, now=server.clock.now()
    )
    context, tab = await new_tab(chromium, server, viewport={"width": 1400, "height": 900})
    await tab.sign_in()
    for name, path in {
        "wide-batches": "/batches",
        "wide-attention": "/batches?state=attention",
        "wide-without-work": "/hosts?show=without_work",
        "wide-slow": "/hosts?show=slow",
        "wide-failing": "/hosts?show=failing",
        "wide-overview": "/",
        "wide-paused": "/batches/3",
        "wide-audit": "/audit",
        "wide-unschedulable": "/unschedulable",
        "wide-hosts": "/hosts",
        "wide-settings": "/settings",
        "wide-instances": "/batches/1/instances",
        "wide-host": f"/hosts/{idle.host_id}",
    }.items():
        await tab.open(path)
        await tab.picture(name)
        assert await tab.page.evaluate(CUT_LISTS) == [], path
        assert await tab.page.evaluate(CUT_HOSTS) == [], path
        assert await tab.page.evaluate(BROKEN_TIMES) == [], path
    await context.close()
