"""Names that contain HTML are shown literally in every chart and on the pages of simulations."""

from __future__ import annotations

from urllib.parse import urlencode

from domain.views import SimulationState
from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab
from tests.browser.scene import add_operator, furnish, tell

LINK = '<a href="https://evil.example/">click &amp; win</a>'
BOLD = "<b>bold</b><br>--c1"
PICTURE = '<img src="x" onerror="document.title = 1">'
INJECTED = "a[href='https://evil.example/'], img[onerror], main b"
MARKUP = ".plot a, .plot b"
LABELS = ".plot text, .plot .key"


async def furnish_with_hostile_names(server: LiveServer) -> dict[str, str]:
    """Add batches, a submitter and an account with HTML in their names; return the pages with charts."""
    ids = await furnish(server)
    await server.store.people.add_account(BOLD, parent=None, shares=1e6)
    await server.store.people.add_submitter(LINK, account=BOLD, shares=1e6, now=server.clock.now())
    hostile = await server.submit(name=LINK, submitter=LINK, jobs={"count": 30})
    await server.submit(name=BOLD, submitter=LINK, jobs={"count": 30})
    await server.submit(name="--c1", submitter=LINK, jobs={"count": 30})
    host = await server.add_host("mallory")
    await server.feed()
    for task in await host.ask(2):
        await host.compute(task, elapsed_s=300.0)
    await host.call()
    await server.validate()
    await tell(server)
    return {
        "overview": "/",
        "batch": f"/batches/{hostile}",
        "usual batch": f"/batches/{ids['due']}",
        "ordering": "/ordering",
        "ordering by points": "/ordering/preview?ordering.policy=multifactor",
        "percentiles": "/percentiles",
        "thresholds": "/percentiles/preview?deadline.p_tight=0.7",
    }


async def test_html_in_names_is_drawn_as_text(server: LiveServer, tab: Tab) -> None:
    drawn = await furnish_with_hostile_names(server)
    await tab.sign_in()
    shown: dict[str, list[str]] = {}
    for page, path in drawn.items():
        await tab.open(path)
        assert await tab.page.locator(MARKUP).count() == 0, page
        shown[page] = await tab.page.locator(LABELS).all_text_contents()

    for name in (LINK, BOLD, "--c1", f"{LINK} ({BOLD})"):
        assert any(name in text for text in shown["ordering"]), (name, shown["ordering"])
    assert any(LINK in text for text in shown["ordering by points"])
    assert tab.complaints == []


async def add_hostile_simulations(server: LiveServer) -> tuple[int, int]:
    """Two simulations whose scenario, rules, population, kinds of batches, figures and user are HTML; one failed."""
    store, now = server.store.simulations, server.clock.now()
    figures = {"makespan_s": {LINK: 3600.0, BOLD: None}, "tail_s": {PICTURE: 60.0}, "cut_short": [LINK]}
    counted = {"instances_per_job": 1.5, "preempted_s_per_job": 60.0, "batches_unfinished": 1.0}
    rules = [LINK, PICTURE, "--c1"]
    result = {
        "seeds": 1,
        "rules": {rule: {**figures, **counted} for rule in rules},
        "curves": {rule: [(0.0, 0.0), (1.0, 1.0)] for rule in rules},
        "rows": [(LINK, (BOLD, PICTURE, "1")), (PICTURE, ("", LINK, BOLD))],
    }
    asked = {"scenario": LINK, "rules": rules, "seeds": 1, "changes": {PICTURE: LINK, "population.computers": BOLD}}
    made = []
    for _ in range(2):
        made.append(await store.add(asked, who=PICTURE, now=now, heard_since=now, most=10))
    done, failed = (one for one in made if one is not None)
    assert await store.end(done, SimulationState.DONE, now=now, result=result)
    assert await store.end(failed, SimulationState.FAILED, now=now, failure=PICTURE + LINK)
    return done, failed


async def test_html_in_simulations_is_shown_as_text(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    done, failed = await add_hostile_simulations(server)
    await tab.sign_in()
    shown: dict[str, str] = {}
    for page in ("/simulate", f"/simulate/{done}", f"/simulate/{failed}"):
        await tab.open(page)
        assert await tab.page.locator(f"{MARKUP}, {INJECTED}").count() == 0, page
        shown[page] = await tab.page.locator("main").inner_text()
    assert all(LINK in text and PICTURE in text for text in shown.values())
    assert BOLD in shown[f"/simulate/{done}"]

    await tab.open(f"/simulate/{done}")
    drawn = await tab.page.locator(LABELS).all_text_contents()
    for name in (LINK, PICTURE, "--c1"):
        assert any(name in text for text in drawn), (name, drawn)
    assert await tab.page.title() != "1"
    assert tab.complaints == []


async def test_html_in_names_of_users_and_accounts_is_text(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    for name in (LINK, PICTURE):
        await server.create("POST", "/accounts", json={"name": name, "parent": None if name == LINK else LINK})
        await server.create("POST", "/submitters", json={"name": name, "account": name})
        await server.create("PUT", "/grants", json={"account": name, "granted_su": 5.0, "period_s": 1e6})
        await server.create("PUT", "/limits", json={"scope": "account", "quantity": "jobs", "name": name, "hard": 2.0})
        await server.create("POST", "/people", json={"name": name, "role": "submitter", "submitter": name})
        await server.create("POST", "/tokens", json={"name": name, "person": name})
    await tab.sign_in()
    named = urlencode({"name": PICTURE})
    for page in ("/people", "/accounts", "/accounts/limits", "/tokens", "/audit"):
        await tab.open(page)
        assert await tab.page.locator(INJECTED).count() == 0, page
        text = await tab.page.locator("main").inner_text()
        assert LINK in text and PICTURE in text, page
    for page in ("/people/person", "/accounts/account", "/accounts/submitter"):
        await tab.open(f"{page}?{named}")
        assert await tab.page.locator(INJECTED).count() == 0, page
        assert await tab.page.locator("h1").inner_text() == PICTURE
        await tab.page.get_by_role("link", name="in the audit trail").click()
        assert await tab.page.locator("tbody tr").count() >= 1, page
    assert await tab.page.title() != "1"
    assert tab.complaints == []


async def test_html_in_a_refused_simulation_is_shown_as_text(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await tab.sign_in()
    await tab.open("/simulate")
    for field, name in (("scenario", LINK), ("rules", PICTURE)):
        await tab.page.locator(f"input[name={field}]:checked").first.evaluate("(box, to) => { box.value = to }", name)
    await tab.page.get_by_role("button", name="Run").click()
    assert LINK in await tab.page.locator("#wrong").inner_text()
    assert await tab.page.locator(INJECTED).count() == 0
