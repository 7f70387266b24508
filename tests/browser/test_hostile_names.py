"""Names that contain HTML are shown literally in every chart."""

from __future__ import annotations

from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab
from tests.browser.scene import furnish, tell

LINK = '<a href="https://evil.example/">click &amp; win</a>'
BOLD = "<b>bold</b><br>--c1"
MARKUP = ".plot a, .plot [style*='font-weight: bold']"


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
        shown[page] = await tab.page.locator(".plot svg text").all_text_contents()

    for name in (LINK, BOLD, "--c1", f"{LINK} ({BOLD})"):
        assert any(name in text for text in shown["ordering"]), (name, shown["ordering"])
    assert any(LINK in text for text in shown["ordering by points"])
    assert tab.complaints == []
