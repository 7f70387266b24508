"""Everything works with the keyboard alone: no test here uses a mouse."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab
from tests.browser.scene import OPERATOR, PASSWORD, add_hosts, add_operator
from web.rendering import SECTIONS

HOSTS = 22  # more than fit in a table without a filter
STOPS = 150  # more than any page has
SUBMITTED = """() => {
  window.submitted = [];
  document.addEventListener("submit", (event) => {
    event.preventDefault();
    window.submitted.push(event.submitter.value);
  });
}"""
FOCUSED = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(one);
  const box = one.getClientRects()[0];  // the first line of a link that is broken
  const within = (from, to, size) => (Math.max(0, from) + Math.min(size, to)) / 2;
  const [x, y] = box ? [within(box.left, box.right, innerWidth), within(box.top, box.bottom, innerHeight)] : [-1, -1];
  const there = document.elementFromPoint(x, y);
  const before = window.focusedBefore;
  window.focusedBefore = one;
  return {
    name: `${one.tagName} ${one.name || one.textContent.trim().slice(0, 30)}`,
    text: one.textContent.trim(),
    field: one.name ?? "",
    label: one.labels?.[0]?.textContent.trim() ?? "",
    outlined: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2,
    seen: Boolean(there) && one.contains(there),
    inOrder: !before || before === one  // the next part of a date
      || Boolean(before.compareDocumentPosition(one) & Node.DOCUMENT_POSITION_FOLLOWING),
  };
}"""


async def stops(page: Page) -> list[dict[str, Any]]:
    """Return the elements that Tab visits on a page, from its start until it leaves the page."""
    found: list[dict[str, Any]] = []
    while len(found) < STOPS:
        await page.keyboard.press("Tab")
        stop = await page.evaluate(FOCUSED)
        if stop is None or (found and not stop["inOrder"] and stop["name"] == found[0]["name"]):  # wrapped around
            return found
        found.append(stop)
    pytest.fail(f"{page.url}: Tab never leaves the page")


async def check_stops(page: Page) -> None:
    found = await stops(page)
    assert found[0]["text"] == "Skip to the page"
    assert len(found) > len(SECTIONS)
    lost = [one["name"] for one in found if not (one["outlined"] and one["seen"] and one["inOrder"])]
    assert lost == [], page.url


async def tab_to(page: Page, **wanted: str) -> None:
    """Press Tab until the wanted element has the focus, by its `text`, `field` or `label`."""
    for _ in range(STOPS):
        await page.keyboard.press("Tab")
        stop = await page.evaluate(FOCUSED)
        if stop is not None and all(stop[key] == value for key, value in wanted.items()):
            assert stop["outlined"], stop
            assert stop["seen"], stop
            return
    pytest.fail(f"{page.url}: Tab never reaches {wanted}")


async def sign_in(tab: Tab) -> None:
    await tab.open("/sign-in")
    await tab_to(tab.page, field="name")
    await tab.page.keyboard.type(OPERATOR)
    await tab.page.keyboard.press("Tab")
    await tab.page.keyboard.type(PASSWORD)
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url("**/console/")


async def test_thresholds_and_hosts_work_without_a_mouse(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    for host in await add_hosts(server, HOSTS):
        await host.call()
    await sign_in(tab)
    page, keys = tab.page, tab.page.keyboard

    # Every stop is visible, in the order of the page; the first one skips the menu.
    for path in (
        "/",
        "/batches",
        "/batches/new",
        "/hosts/1",
        "/percentiles",
        "/ordering",
        "/settings?q=p_",
        "/people",
        "/tokens",
        "/audit",
    ):
        await tab.open(path)
        await check_stops(page)
    for path in ("/accounts/account?name=default", "/hosts"):
        await tab.open(path)
        await check_stops(page)
    await page.set_viewport_size({"width": 390, "height": 800})  # or zoomed in
    await tab.open("/hosts")
    await check_stops(page)
    await page.set_viewport_size({"width": 1360, "height": 900})
    await tab.open("/hosts")
    await keys.press("Tab")
    await keys.press("Enter")
    assert await page.evaluate("document.activeElement.id") == "main"
    await keys.press("Tab")
    assert (await page.evaluate(FOCUSED))["text"] == "CSV"  # the first element of the page

    # A list: sorted by the server, ascending and descending.
    await tab_to(page, text="Host")
    column = page.get_by_role("columnheader", name="Host")
    numbers = page.locator("tbody tr:visible th a")
    await keys.press("Enter")
    await expect(column).to_have_attribute("aria-sort", "ascending")
    assert (await numbers.first.inner_text()).endswith(" (1)")
    await tab_to(page, text="Host")
    await keys.press("Enter")
    await expect(column).to_have_attribute("aria-sort", "descending")
    assert (await numbers.first.inner_text()).endswith(f" ({HOSTS})")

    # The menu, then a threshold: changed, previewed and saved.
    await tab.open("/")
    await tab_to(page, text="Thresholds")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Thresholds")).to_be_visible()
    await tab_to(page, field="deadline.p_tight")
    await keys.press("Control+A")
    await keys.type("0.6")
    await tab_to(page, text="Preview")
    await keys.press("Enter")
    await expect(page.get_by_role("heading", name="Preview")).to_be_visible()
    await tab_to(page, field="why")
    await keys.type("late jobs waited")
    await keys.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Saved")
    assert (await server.store.settings.settings())["deadline.p_tight"] == pytest.approx(0.6)
    assert tab.complaints == []


@pytest.mark.parametrize("path", ["/hosts/1", "/restrictions"])
async def test_enter_neither_bans_nor_limits(server: LiveServer, tab: Tab, path: str) -> None:
    await add_operator(server)
    [host] = await add_hosts(server, 1)
    await host.call()
    await tab.sign_in()
    await tab.open(path)
    form = tab.page.locator("form:has([name=max_jobs])")
    if path == "/hosts/1":
        await tab.page.locator("summary", has_text="Ban or limit").press("Enter")
    else:
        await form.locator("input[name=name]").fill("1")
    await form.locator("[name=why]").fill("too slow")
    await tab.page.evaluate(SUBMITTED)

    await form.locator("[name=why]").press("Enter")
    await form.locator("[name=max_jobs]").press("Enter")

    assert await tab.page.evaluate("window.submitted") == []
    await form.get_by_role("button", name="Limit").press("Enter")
    assert await tab.page.evaluate("window.submitted") == ["limit"]
    assert tab.complaints == []
