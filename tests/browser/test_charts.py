"""Charts show values beside the pointer, and zoom into the selected part of their time axis."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from playwright.async_api import expect

from tests.acceptance.server import LiveServer
from tests.browser.conftest import Tab
from tests.browser.scene import add_operator, add_samples


async def test_chart_zooms_into_the_selected_part(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await add_samples(server)
    await tab.sign_in()
    await tab.open("/?range=day")
    mouse, area = tab.page.mouse, await tab.page.locator("#chart-rates .area").bounding_box()
    assert area is not None
    y = area["y"] + 40

    await mouse.move(area["x"] + 0.25 * area["width"], y)
    await expect(tab.page.locator("#chart-rates .tip strong")).to_have_count(3)
    await mouse.down()
    await mouse.move(area["x"] + 0.5 * area["width"], y)
    await expect(tab.page.locator(".cursor.wide")).to_be_visible()
    await mouse.up()

    await tab.page.wait_for_url("**from_at**")
    chosen = parse_qs(urlsplit(tab.page.url).query)
    assert chosen.keys() == {"from_at", "to_at"}
    length_s = float(chosen["to_at"][0]) - float(chosen["from_at"][0])
    assert abs(length_s - 86_400 / 4) < 600
    assert await tab.page.locator("#chart-rates path.line").count() == 3
    await tab.page.get_by_role("link", name="hour", exact=True).click()
    await expect(tab.page.get_by_role("link", name="hour", exact=True)).to_have_attribute("aria-current", "true")
    assert tab.complaints == []


async def test_ranges_stay_in_view_after_a_zoom(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await add_samples(server)
    await tab.sign_in()
    for width in (1400, 390):
        await tab.page.set_viewport_size({"width": width, "height": 800})
        await tab.open("/?range=day")
        await tab.page.locator("#chart-refusals").scroll_into_view_if_needed()
        area = await tab.page.locator("#chart-refusals .area").bounding_box()
        assert area is not None
        await tab.page.mouse.move(area["x"] + 0.25 * area["width"], area["y"] + 40)
        await tab.page.mouse.down()
        await tab.page.mouse.move(area["x"] + 0.5 * area["width"], area["y"] + 40)
        await tab.page.mouse.up()
        await tab.page.wait_for_url("**from_at**")

        ranges = await tab.page.locator(".ranges").bounding_box()
        figure = await tab.page.locator("#chart-refusals").bounding_box()
        assert ranges is not None and figure is not None
        assert ranges["y"] >= 0.0 and ranges["y"] + ranges["height"] <= figure["y"] < 800
    assert tab.complaints == []


async def test_refresh_replaces_charts_and_keeps_open_tables(server: LiveServer, tab: Tab) -> None:
    await add_operator(server)
    await add_samples(server)
    await tab.sign_in()
    await tab.open("/")
    before = await tab.page.locator("#chart-hosts path.line").get_attribute("d")
    await tab.page.get_by_text("Data: active hosts").click()

    await server.forward(600.0)
    await tab.page.evaluate("fetchPage(location.href).then(take)")

    await expect(tab.page.locator("#chart-hosts path.line")).not_to_have_attribute("d", before or "")
    await expect(tab.page.locator("#chart-hosts details")).to_have_attribute("open", "")
