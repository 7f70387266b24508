"""A long table is filtered while typing, and stays filtered when its live part is refreshed."""

from __future__ import annotations

from importlib.resources import files

from playwright.async_api import Browser, Page, expect

HEADS = "<th data-sort>Name</th><th data-sort>Jobs</th>"


def table(rows: int) -> str:
    """Rows "even 0", "odd 1 001", "even 2 002" and so on."""
    cells = (f"<tr><th>{('even', 'odd')[n % 2]} {n}</th><td>{n}\u202f{n:03}</td></tr>" for n in range(rows))
    return (
        f'<div class="scroll"><table id="t" data-sortable><thead><tr>{HEADS}</tr></thead>'
        f"<tbody>{''.join(cells)}</tbody></table></div>"
    )


async def shown(chromium: Browser, body: str) -> Page:
    page = await chromium.new_page()
    await page.set_content(f'<!doctype html><html data-now="0"><body>{body}</body></html>')
    await page.add_script_tag(content=files("web").joinpath("static/console.js").read_text("utf-8"))
    return page


async def names(page: Page) -> list[str]:
    return await page.locator("tbody tr:visible th").all_inner_texts()


async def test_long_table_filter_keeps_the_order(chromium: Browser) -> None:
    page = await shown(chromium, f'<div id="live" data-live>{table(30)}</div>')
    words = page.get_by_label("Filter rows")

    await words.fill("ODD 1")

    assert await names(page) == ["odd 1", *(f"odd {n}" for n in range(11, 20, 2)), "odd 21"]
    await expect(page.get_by_role("status")).to_have_text("7 of 30 rows")
    await words.fill("12012")  # without the thin space between thousands
    assert await names(page) == ["even 12"]
    await words.fill("odd 2")
    await page.get_by_role("button", name="Jobs").click()
    await page.get_by_role("button", name="Jobs").click()
    assert await names(page) == ["odd 29", "odd 27", "odd 25", "odd 23", "odd 21"]

    await page.evaluate(
        """body => take(new DOMParser().parseFromString(`<div id="live" data-live>${body}</div>`, "text/html"))""",
        table(24),
    )

    await expect(words).to_have_value("odd 2")
    assert await names(page) == ["odd 23", "odd 21"]
    await words.fill("")
    assert len(await names(page)) == 24


async def test_short_and_searched_tables_have_no_filter(chromium: Browser) -> None:
    form = '<form role="search"><input name="q"></form>'

    for body in (table(20), f'{form}<div id="live" data-live>{table(30)}</div>', f"{form}{table(30)}"):
        page = await shown(chromium, body)
        assert await page.get_by_label("Filter rows").count() == 0
    page = await shown(chromium, table(30))
    assert await page.get_by_label("Filter rows").count() == 1
