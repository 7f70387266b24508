"""CSV files of lists: pages are streamed, and no cell is a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from web.csv_export import Row, send_csv


async def pages() -> AsyncIterator[Iterable[Row]]:
    yield [{"name": '=cmd|"x"', "created_at": 0.0}, {"name": "a,b\nc", "created_at": None}]
    yield [{"name": "@x", "created_at": 1_800_000_000.5, "unknown": 1}]


async def test_csv_has_all_pages_and_guards_formulas() -> None:
    async def show(request: web.Request) -> web.StreamResponse:
        return await send_csv(request, "batches", ["name", "created_at"], pages())

    application = web.Application()
    application.router.add_get("/", show)
    async with TestClient(TestServer(application)) as client, client.get("/") as answer:
        text = await answer.text()

    assert answer.headers["Content-Disposition"] == 'attachment; filename="batches.csv"'
    assert [*csv.reader(io.StringIO(text))] == [
        ["name", "created_at"],
        ['\'=cmd|"x"', "1970-01-01T00:00:00Z"],
        ["a,b\nc", ""],
        ["'@x", "2027-01-15T08:00:00Z"],
    ]
