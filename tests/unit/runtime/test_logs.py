"""Every request has an id, in its reply and in every line logged for it."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stderr

import pytest
import structlog
from aiohttp import ClientConnectionError, web
from aiohttp.test_utils import TestClient, TestServer

from administration.access.sign_in import ASKED_FROM
from runtime.logs import REQUEST_ID, PageCounters, RequestIds, configure_logs, request_id_of, with_request_id
from tests.unit.administration.clocks import StillClock


async def say(request: web.Request) -> web.Response:
    structlog.get_logger().info("at work", path=request.path)
    await asyncio.create_task(also())
    return web.Response(text="done")


async def also() -> None:
    structlog.get_logger().info("at work besides")


async def refuse(request: web.Request) -> web.Response:
    raise web.HTTPForbidden


async def write_after_disconnect(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    raise ConnectionResetError


async def lose_the_database(request: web.Request) -> web.Response:
    raise ConnectionResetError


@asynccontextmanager
async def serving(pages: PageCounters, prefix: str = "") -> AsyncIterator[TestClient[web.Request, web.Application]]:
    application, api = web.Application(), web.Application()
    application.add_routes([web.get(f"{prefix}/scheduler", say), web.get(f"{prefix}/join", say)])
    api.add_routes([web.get("/batches", say), web.get("/secret", refuse)])
    api.add_routes([web.get("/abandoned", write_after_disconnect), web.get("/broken", lose_the_database)])
    application.add_subapp(f"{prefix}/api/v1", api)
    RequestIds(pages, StillClock(), prefix).join(application)
    async with TestClient(TestServer(application)) as client:
        yield client


@pytest.mark.parametrize("path", ["/scheduler", "/api/v1/batches", "/api/v1/secret", "/no/such/page"])
async def test_a_caller_s_id_comes_back_and_others_get_one_each(path: str) -> None:
    async with serving(PageCounters()) as client:
        given = await client.get(path, headers={"X-Request-ID": "front-end-17"})
        made = [(await client.get(path)).headers["X-Request-ID"] for _ in range(3)]

    assert given.headers["X-Request-ID"] == "front-end-17"
    assert len({*made, "front-end-17"}) == 4


@pytest.mark.parametrize("given", ["", "two words", "x" * 129, 'quote"', "é"])
def test_an_id_that_is_no_plain_word_is_replaced(given: str) -> None:
    assert request_id_of(given) != given


async def test_every_line_of_a_request_has_its_id_and_others_have_none() -> None:
    lines = io.StringIO()
    with redirect_stderr(lines):
        configure_logs("info")
        async with serving(PageCounters()) as client:
            await client.get("/scheduler", headers={"X-Request-ID": "first"})
            await client.get("/api/v1/batches", headers={"X-Request-ID": "second"})
        structlog.get_logger().info("on its own")

    found = [(line["event"], line.get("request_id")) for line in map(json.loads, lines.getvalue().splitlines())]
    assert found == [
        ("at work", "first"),
        ("at work besides", "first"),
        ("at work", "second"),
        ("at work besides", "second"),
        ("on its own", None),
    ]
    assert REQUEST_ID.get() is None


@pytest.mark.parametrize(("address", "logged"), [("192.0.2.7", "192.0.2.7"), ("", "127.0.0.1")])
def test_log_lines_name_the_client_behind_a_front(address: str, logged: str) -> None:
    token = ASKED_FROM.set(address)
    try:
        assert with_request_id(None, "info", {"event": "refused", "remote": "127.0.0.1"})["remote"] == logged
        assert "remote" not in with_request_id(None, "info", {"event": "sent"})
    finally:
        ASKED_FROM.reset(token)


async def test_pages_are_counted_by_area_and_clients_requests_are_not() -> None:
    pages = PageCounters()
    async with serving(pages, prefix="/muster") as client:
        for path in ("scheduler", "join", "api/v1/batches", "api/v1/secret", "api/v1/nothing", "nothing/at/all"):
            await client.get(f"/muster/{path}")

    assert pages.replies == {("api", "2xx"): 1, ("api", "4xx"): 2, ("site", "2xx"): 1, ("site", "4xx"): 1}
    assert set(pages.took_s) == {"api", "site"}


async def test_who_hangs_up_is_no_failure_of_the_server() -> None:
    pages = PageCounters()
    async with serving(pages) as client:
        with pytest.raises(ClientConnectionError):
            await client.get("/api/v1/abandoned")
        assert (await client.get("/api/v1/broken")).status == 500

    assert pages.replies == {("api", "4xx"): 1, ("api", "5xx"): 1}
