"""The console's script formats durations like the server."""

from __future__ import annotations

from importlib.resources import files

from playwright.async_api import Browser

from domain.formatting import in_words

EDGES = (10.0, 120.0, 3600.0, 86400.0, 172_800.0)
LENGTHS = [1.0, 1.04, 9.49, 59.6, 61.4, 330.0, 5400.0, 3629.0, 3630.0, 200_000.0, 9e6]
LENGTHS += [edge + by for edge in EDGES for by in (-30.0, -0.6, -0.5, 0.0, 0.4, 31.0) if edge + by > 0.0]


async def test_script_formats_durations_like_the_server(chromium: Browser) -> None:
    page = await chromium.new_page()
    await page.set_content('<!doctype html><html data-now="0"><body></body></html>')
    await page.add_script_tag(content=files("web").joinpath("static/console.js").read_text("utf-8"))

    assert await page.evaluate("(lengths) => lengths.map(lengthOf)", LENGTHS) == [in_words(one) for one in LENGTHS]
