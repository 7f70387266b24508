"""The page of a batch: its acts stay in place with the menu open, and a refresh keeps what the user has chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playwright.async_api import Browser, expect

from domain.restrictions import Restricted, Restriction
from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab, new_tab
from tests.browser.scene import add_hosts, add_operator, work_off

BOXES = """() => ["h1", ".top", ".top > .buttons", "details.menu > summary", "details.menu > ul",
    ".top .button.main"].map(
    (one) => document.querySelector(one).getBoundingClientRect().toJSON())"""
TOPS = """() => new Set([...document.querySelectorAll(".top > .buttons a.button, .top details.menu > summary")].filter(
    (one) => !one.closest("ul")).map((one) => Math.round(one.getBoundingClientRect().top))).size"""
ON_TOP = """() => {
    document.querySelector("details.menu > ul").style.height = "150vh"; // with all entries on a low screen
    const bar = document.querySelector(".ranges").getBoundingClientRect();
    const menu = document.querySelector("details.menu > ul").getBoundingClientRect();
    const at = document.elementFromPoint(menu.right - 5, (Math.max(bar.top, menu.top) + bar.bottom) / 2);
    return Boolean(at?.closest("details.menu"));
}"""
REFRESH = """async () => {  // again if a refresh of the page's own ends this one
    for (;;) {
        try { return take(await fetchPage(location.href)); }
        catch (error) { if (error.name !== "AbortError") throw error; }
    }
}"""


@pytest.mark.parametrize("width", [1400, 1000, 390])
async def test_menu_of_a_batch_opens_over_the_page(server: LiveServer, chromium: Browser, width: int) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="a batch with quite a long name", jobs={"count": 2})
    context, tab = await new_tab(chromium, server, viewport={"width": width, "height": 800})
    await tab.sign_in()
    await tab.open("/batches/1")
    before = await tab.page.evaluate(BOXES)

    await tab.page.locator("details.menu > summary").focus()
    await tab.page.keyboard.press("Enter")
    await tab.picture(f"batch-menu-{width}")
    title, top, buttons, summary, menu, first = await tab.page.evaluate(BOXES)

    assert [top, buttons, summary] == before[1:4], "opening the menu moves nothing"
    assert menu["top"] >= summary["bottom"] and 0.0 <= menu["left"] < menu["right"] <= width
    if width > 390:
        assert first["left"] == title["left"], "buttons below a long title start where it does"
    assert await tab.page.evaluate(TOPS) == 1 or width < 1400
    await tab.page.get_by_role("link", name="Clone").click()
    await tab.page.wait_for_url("**/clone")
    assert tab.complaints == []
    await context.close()


async def test_menu_of_a_batch_covers_the_range_buttons(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="first", jobs={"count": 2})
    await tab.sign_in()
    await tab.open("/batches/1")
    await tab.page.locator("details.menu > summary").click()

    await tab.page.evaluate("document.querySelector('.ranges').scrollIntoView({ block: 'end' })")

    assert await tab.page.evaluate(ON_TOP)
    assert tab.complaints == []


async def test_mark_of_a_live_page_moves_no_button(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="first", jobs={"count": 2})
    await tab.sign_in()
    for address in ("/batches/1", "/ordering"):
        await tab.open(address)
        buttons, mark = tab.page.locator(".top > .buttons"), tab.page.locator("#live-mark")
        assert await mark.is_visible()
        await tab.page.evaluate("document.documentElement.classList.remove('scripts')")  # as while the page loads
        before = await buttons.bounding_box()
        await tab.page.evaluate("document.documentElement.classList.add('scripts')")

        await tab.page.evaluate(REFRESH)

        assert await mark.bounding_box() is not None
        assert await buttons.bounding_box() == before


async def test_refresh_keeps_a_chosen_level(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="first", jobs={"count": 2})
    await tab.sign_in()
    await tab.open("/batches/1")
    levels, effect = tab.page.locator("#batch-levels"), tab.page.locator("#batch-level-effect")
    words = await levels.locator("option:checked").text_content()
    said = await effect.text_content() or ""
    await server.submit(name="second", jobs={"count": 2})

    await tab.page.evaluate(REFRESH)
    await expect(levels.locator("option:checked")).not_to_have_text(words or "")
    await levels.select_option("expedite")
    await work_off(server, await add_hosts(server, 4), share=0.0)
    await levels.blur()
    await tab.page.evaluate(REFRESH)

    await expect(effect).not_to_have_text(said)
    await expect(levels).to_have_value("expedite")
    assert tab.complaints == []


async def test_refresh_keeps_a_typed_reason(server: LiveServer, tab: Tab) -> None:
    """The reason for resuming the batch stays, also without the focus, while the rest of its part is updated."""
    await add_operator(server)
    await server.add_app()
    await server.submit(name="first", jobs={"count": 2})
    pause = Restriction(Restricted.BATCH, "1", 0, "wrong input", "bob", server.clock.now())
    await server.store.restrictions.put(pause)
    await tab.sign_in()
    await tab.open("/batches/1")
    note = tab.page.locator("#batch .restricted")
    await note.locator("[name=why]").fill("the input is right")
    await note.locator("[name=why]").press("Tab")
    await server.store.restrictions.put(replace(pause, why="wrong table"))

    await tab.page.evaluate(REFRESH)

    await expect(note).to_contain_text("wrong table")
    await expect(note.locator("button")).to_be_focused()
    await expect(note.locator("[name=why]")).to_have_value("the input is right")
    assert tab.complaints == []


async def test_refreshes_keep_the_saved_level_selected(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await server.add_app()
    await server.submit(name="first", jobs={"count": 2})
    await tab.sign_in()
    await tab.open("/batches/1")
    levels = tab.page.locator("#batch-levels")

    for _ in range(3):
        await tab.page.evaluate(REFRESH)
        await expect(levels).to_have_value("normal")
    await levels.select_option("expedite")
    await levels.blur()
    for _ in range(3):
        await tab.page.evaluate(REFRESH)
        await expect(levels).to_have_value("expedite")
    assert tab.complaints == []
