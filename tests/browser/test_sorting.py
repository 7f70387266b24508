"""A click on a column's head sorts a table by the values of its cells."""

from __future__ import annotations

from importlib.resources import files

from playwright.async_api import Browser


def cell(day: int, columns: int = 1) -> str:
    return f'<td colspan="{columns}"><time datetime="2026-01-{day:02}T00:00:00Z"></time></td>'


HEADS = "".join(f"<th data-sort>{name}</th>" for name in ("Name", "Hosts", "Expected", "Latest", "Position"))
ROWS = (
    f"<tr><td>open</td><td>12\u202f000</td>{cell(2)}{cell(5)}<td>2</td></tr>"
    f"<tr><td>ended</td><td>300</td>{cell(3, columns=2)}<td>1</td></tr>"
    f"<tr><td>waits</td><td>1\u202f500</td>{cell(4)}{cell(6)}<td>3</td></tr>"
)
TABLE = f"<table data-sortable><thead><tr>{HEADS}</tr></thead><tbody>{ROWS}</tbody></table>"


async def test_tables_sort_by_grouped_numbers_and_spanning_cells(chromium: Browser) -> None:
    page = await chromium.new_page()
    await page.set_content(f'<!doctype html><html data-now="0"><body>{TABLE}</body></html>')
    await page.add_script_tag(content=files("web").joinpath("static/console.js").read_text("utf-8"))

    async def names_by(head: str) -> list[str]:
        await page.get_by_role("button", name=head).click()
        return await page.locator("tbody td:first-child").all_inner_texts()

    assert await names_by("Hosts") == ["ended", "waits", "open"]
    assert await names_by("Expected") == ["open", "ended", "waits"]
    assert await names_by("Latest") == ["ended", "open", "waits"]
    assert await names_by("Position") == ["ended", "open", "waits"]
