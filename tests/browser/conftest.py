"""Fixtures for browser tests. Every test here is end-to-end: it needs Chromium and a database."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Page, async_playwright

from tests.acceptance.server import LiveServer, live_server
from tests.browser.scene import OPERATOR, PASSWORD

SHOTS = "MUSTER_SCREENSHOTS"  # folder for screenshots: make sets build/screenshots
MANUAL = "MUSTER_PICTURES"  # folder for the pictures of the manuals: make pictures sets docs/pictures
PICTURES = {  # screenshots that the manuals show, the part on the first screen
    *("overview-light", "batch-light", "batch-why-light", "host-why-light", "percentiles-light", "preview-light"),
    *("ordering-light", "two-rules", "volunteer-computer-light"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.database)
            item.add_marker(pytest.mark.e2e)


@pytest.fixture
async def server(tmp_path: Path, keys_dir: Path) -> AsyncIterator[LiveServer]:
    async with live_server(tmp_path, keys_dir) as running:
        yield running


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("these tests need Chromium: bash tests/install_system.sh")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        await browser.close()


class Tab:
    """A console page in a browser; errors in it are collected in `complaints`."""

    def __init__(self, page: Page, root: str) -> None:
        self.page = page
        self.root = root
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)

    async def open(self, path: str) -> None:
        await self.page.goto(self.root + path)
        if await self.page.locator("figure.chart .plot").count():
            await self.page.wait_for_selector("figure.chart .plot svg")

    async def sign_in(self) -> None:
        await self.open("/sign-in")
        await self.page.get_by_label("Name").fill(OPERATOR)
        await self.page.get_by_label("Password", exact=True).fill(PASSWORD)
        await self.page.get_by_role("button", name="Sign in").click()
        await self.page.wait_for_url(re.compile(r"/console/$"))

    async def picture(self, name: str) -> None:
        """Save a screenshot if a folder for them is set, and a picture for the manuals if they show this page."""
        if folder := os.environ.get(SHOTS):
            await self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
        if (folder := os.environ.get(MANUAL)) and name in PICTURES:
            await self.page.screenshot(path=Path(folder) / f"{name.removesuffix('-light')}.png")


async def new_tab(chromium: Browser, server: LiveServer, **look: object) -> tuple[BrowserContext, Tab]:
    """Return a new browser window."""
    context = await chromium.new_context(**look)  # type: ignore[arg-type]  # options of the browser
    return context, Tab(await context.new_page(), f"{server.url}console")


@pytest.fixture
async def tab(chromium: Browser, server: LiveServer) -> AsyncIterator[Tab]:
    context, made = await new_tab(chromium, server, viewport={"width": 1360, "height": 900})
    yield made
    await context.close()
