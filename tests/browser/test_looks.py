"""Pages in the light and dark themes and on a phone: no serious accessibility issue, no horizontal overflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser

from administration.accounts import AccountKeys
from domain.notifications import KINDS, Channel, DeliveryState, EventKind, Subscription
from domain.restrictions import Restricted, Restriction
from domain.units import BatchId, Seconds, SubscriptionId
from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab, new_tab
from tests.browser.routes import pages_left_out
from tests.browser.scene import OPERATOR, furnish
from transfer.keys import load_keys

SERIOUS = {"serious", "critical"}
PHONE = {"viewport": {"width": 390, "height": 800}}
DESK = {"viewport": {"width": 1360, "height": 900}}
LOOKS: Mapping[str, Mapping[str, object]] = {
    "light": {**DESK, "color_scheme": "light"},
    "dark": {**DESK, "color_scheme": "dark"},
    "phone": {**PHONE, "color_scheme": "light"},
}


CUT_LISTS = """[...document.querySelectorAll('.scroll > table[id]')]
    .map(one => [one.id, one.scrollWidth - one.parentElement.clientWidth]).filter(one => one[1] > 1)"""


async def issues_of(tab: Tab, path: str) -> list[str]:
    """Return serious and critical issues with their location."""
    found = await Axe().run(tab.page)
    return [
        f"{path}: {one['id']}: {node['html'][:120]}"
        for one in found.response["violations"]
        if one["impact"] in SERIOUS
        for node in one["nodes"]
    ]


async def walked(tab: Tab, look: str, paths: Mapping[str, str]) -> list[str]:
    """Open every page and save a screenshot; return serious issues and horizontal overflow."""
    issues: list[str] = []
    for name, path in paths.items():
        await tab.open(path)
        await tab.picture(f"{name}-{look}")
        issues += await issues_of(tab, f"{look} {path}")
        wider = await tab.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if wider > 0:
            issues.append(f"{look} {path}: {wider} pixels wider than the screen")
        issues += [f"{look} {path}: {which} is cut by {by} px" for which, by in await tab.page.evaluate(CUT_LISTS)]
    return issues


async def fail_some(server: LiveServer) -> None:
    """Add a host whose instances all fail."""
    host = await server.add_host("clumsy")
    for task in await host.ask(2):
        host.end(task, 3, 195)
    await host.call()


async def administer(server: LiveServer) -> None:
    """Add accounts with a submitter, a grant and limits, tokens of two users, and audit entries."""
    for name, parent in (("lab", None), ("lab north", "lab")):
        await server.create("POST", "/accounts", json={"name": name, "parent": parent, "shares": 2.0})
    await server.create("POST", "/submitters", json={"name": "ada", "account": "lab", "shares": 3.0})
    await server.create("PUT", "/permissions", json={"kind": "submitter", "name": "ada", "permissions": ["raise"]})
    await server.create("PUT", "/grants", json={"account": "lab", "granted_su": 5000.0, "period_s": 30 * 86400.0})
    await server.create("PUT", "/limits", json={"scope": "account", "quantity": "jobs", "name": "lab", "hard": 200.0})
    await server.create("PUT", "/limits", json={"scope": "submitter", "quantity": "batches", "soft": 5.0, "hard": 20.0})
    await server.create("POST", "/people", json={"name": "ada", "role": "submitter", "submitter": "ada"})
    token = {"name": "nightly builds", "person": OPERATOR, "scopes": ["read", "submit"], "days": 30}
    await server.create("POST", "/tokens", json=token)
    made = await server.create("POST", "/tokens", json={"name": "old laptop", "person": "ada", "scopes": ["read"]})
    await server.create("DELETE", f"/tokens/{made['token']['token_id']}")
    await server.create("PUT", "/thresholds", json={"values": {"p_tight": 0.85}, "why": "late jobs waited"})


async def restrict_some(server: LiveServer, batch_id: BatchId) -> None:
    """Pause a batch and a queue, limit a volunteer, and ban a host."""
    restricted = {"batch": str(batch_id), "queue": "bonus", "volunteer": "1", "host": "2"}
    for kind, name in restricted.items():
        most = 4 if kind == "volunteer" else 0
        found = Restriction(Restricted(kind), name, most, "The last results were wrong.", OPERATOR, server.clock.now())
        await server.store.restrictions.put(found)


async def begin_a_simulation(server: LiveServer) -> int:
    """Start a simulation; finished ones are covered by the test that runs one."""
    asked = {"scenario": "small", "rules": ["muster", "fixed"], "seeds": 3, "changes": {"population.hosts": 80}}
    now = server.clock.now()
    found = await server.store.simulations.add(asked, who=OPERATOR, now=now, heard_since=now, most=1)
    assert found is not None
    return found


async def subscribe(server: LiveServer) -> str:
    """Add subscriptions with deliveries; return the path of the page behind the link in a message."""
    store, now = server.store.notifications, server.clock.now()
    person_id = (await server.store.access.person(OPERATOR)).person_id
    hook = f"https://hooks.example.org/services/{'T0123456789/' * 4}secret"
    new = Subscription(
        SubscriptionId(0), person_id, OPERATOR, Channel.WEBHOOK, hook, tuple(KINDS), True, Seconds(300.0), now, now
    )
    mail = replace(new, channel=Channel.EMAIL, address="grace@example.org", kinds=tuple(KINDS[:2]), confirmed_at=None)
    first, mail = await store.add(new), await store.add(mail)
    for one in (first, mail):
        await store.send(one.subscription_id, EventKind.TEST, f"test {one.subscription_id}", now=now)
    for delivery, subscription, _ in await store.due_deliveries(now, 2, mails=1):
        state, outcome = DeliveryState.WAITING, "HTTP status 307: redirects are not followed"
        if subscription.channel is Channel.EMAIL:
            state, outcome = DeliveryState.SENT, "accepted by the mail server"
        await store.end_attempt(delivery.delivery_id, state, outcome, now=now)
    keys = AccountKeys(load_keys(server.project.keys_dir).account_secret)
    return f"/subscription/{mail.subscription_id}/{keys.subscription_code(mail.subscription_id, mail.address)}"


@pytest.mark.timeout(600)
async def test_pages_have_no_serious_accessibility_issue(server: LiveServer, chromium: Browser) -> None:
    ids = await furnish(server)
    await fail_some(server)
    await administer(server)
    simulation = await begin_a_simulation(server)
    text = "From Monday on, jobs need about 4 GB of memory.\nThank you for computing with us."
    await server.store.participation.add_news("Larger jobs from Monday", text, by=OPERATOR, now=server.clock.now())
    await restrict_some(server, ids["rush"])
    [job, *_] = await server.store.views.jobs(ids["huge"], limit=1)
    paths = {
        "overview": "/",
        "overview-day": "/?range=day",
        "batches": "/batches",
        "batch": f"/batches/{ids['due']}",
        "batch-hour": f"/batches/{ids['due']}?range=hour",
        "batch-new": "/batches/new",
        "batch-upload": "/batches/upload",
        "batch-why": f"/batches/{ids['huge']}/why",
        "batch-abort": f"/batches/{ids['rush']}/abort",
        "batch-clone": f"/batches/{ids['due']}/clone",
        "batch-retry": f"/batches/{ids['due']}/retry",
        "batch-errors": f"/batches/{ids['due']}/errors",
        "jobs": f"/batches/{ids['huge']}/jobs",
        "instances": f"/batches/{ids['due']}/instances",
        "job": "/jobs/1",
        "job-why": f"/jobs/{job.job_id}/why",
        "instance": "/instances/1",
        "hosts": "/hosts",
        "hosts-slow": "/hosts?show=slow",
        "hosts-failing": "/hosts?show=failing",
        "hosts-restricted": "/hosts?show=restricted",
        "hosts-silent": "/hosts?show=silent&days=0.01",
        "host": "/hosts/1",
        "host-why": "/hosts/1/why",
        "volunteers": "/volunteers?q=host",
        "volunteer": "/volunteers/1",
        "apps": "/apps",
        "app": "/apps/pi",
        "app-version": "/apps/pi/versions/1",
        "restrictions": "/restrictions",
        "percentiles": "/percentiles",
        "preview": "/percentiles/preview?deadline.p_tight=0.7",
        "attention": "/attention",
        "unschedulable": "/unschedulable",
        "ordering": "/ordering",
        "usage": "/ordering/usage?by=day,account",
        "ordering-preview": "/ordering/preview?ordering.policy=fifo",
        "simulate": "/simulate",
        "simulation": f"/simulate/{simulation}",
        "settings": "/settings?q=deadline",
        "setting": "/settings/deadline.p_tight",
        "news": "/news",
        "people": "/people",
        "person": f"/people/person?name={OPERATOR}",
        "accounts": "/accounts",
        "account": "/accounts/account?name=lab",
        "submitter": "/accounts/submitter?name=ada",
        "limits": "/accounts/limits",
        "tokens": "/tokens",
        "audit": "/audit",
        "notifications": "/notifications",
        "subscription": await subscribe(server),
        "password": "/password",
        "error": "/batches/999",
    }
    assert pages_left_out(server, "/console", [f"/console{path}" for path in ("/sign-in", *paths.values())]) == []
    issues: list[str] = []
    for look, options in LOOKS.items():
        context, tab = await new_tab(chromium, server, **options)
        issues += await walked(tab, look, {"sign-in": "/sign-in"})
        await tab.sign_in()
        issues += await walked(tab, look, paths)
        await context.close()
    assert issues == []


async def test_everything_can_be_done_without_scripts(server: LiveServer, chromium: Browser) -> None:
    ids = await furnish(server)
    context, tab = await new_tab(chromium, server, java_script_enabled=False)
    await tab.page.goto(f"{tab.root}/sign-in")
    await tab.sign_in()
    await tab.page.goto(f"{tab.root}/batches/{ids['rush']}")
    assert await tab.page.locator("#chart-forecasts svg path").first.is_visible()
    await tab.page.get_by_text("Data: forecast history").click()
    assert await tab.page.get_by_role("columnheader", name="latest (q90)").is_visible()
    await tab.page.get_by_role("link", name="hour", exact=True).click()
    assert await tab.page.locator("#chart-progress svg path").first.is_visible()
    await tab.page.goto(f"{tab.root}/batches")
    await tab.page.get_by_label("Search by name").fill("cens")
    await tab.page.get_by_role("button", name="Show").click()
    assert await tab.page.get_by_role("link", name="census").is_visible()
    assert not await tab.page.get_by_role("link", name="rush").is_visible()
    await tab.page.get_by_role("button", name="dark").click()
    assert await tab.page.locator("html").get_attribute("data-theme") == "dark"
    await context.close()
