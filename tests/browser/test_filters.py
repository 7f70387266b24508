"""A filter that the script applies leaves the page as a reload would show it."""

from __future__ import annotations

from playwright.async_api import expect

from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab
from tests.browser.scene import add_operator

TARGETS = "document.querySelectorAll('main a[href], main form')"


async def targets(tab: Tab) -> list[str]:
    """Return where the page's links and forms lead."""
    found: list[str] = await tab.page.evaluate(f"[...{TARGETS}].map((one) => one.href ?? one.action)")
    return found


async def test_filtered_page_has_the_links_of_a_reload(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    for name in ("north", "south", "east"):
        await server.submit(name=name, jobs={"count": 2})
    await tab.sign_in()

    for address, word, shown in (("/batches", "south", "#t-batches tbody tr"), ("/settings", "backup", "#settings tr")):
        await tab.open(address)
        before = await tab.page.locator(shown).count()
        await tab.page.locator("input[name=q]").fill(word)
        await expect(tab.page.locator(shown)).not_to_have_count(before)
        found = await targets(tab)
        await tab.page.reload()

        assert found == await targets(tab)
        assert any(word in one for one in found)
