"""The first checks of a request: limits per address, trusted proxies, accepted bodies."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from administration.access.sign_in import ASKED_FROM, Networks, address_of
from domain.errors import InvalidInputError
from domain.settings import Settings
from runtime.rate_limits.requests import RequestLimits
from tests.facts import missing
from tests.unit.administration.access.world import ForwardClock
from web.rate_limit import Buckets

Client = TestClient[web.Request, web.Application]


class Failures(list[int]):
    """Collects the statuses passed to the scheduler's counters."""


@asynccontextmanager
async def entered(failures: Failures | None = None, **settings: object) -> AsyncIterator[Client]:
    """Pages behind the middleware that return the request's origin and size."""
    values = {f"server.{name}": value for name, value in settings.items()}
    made = Settings.from_mapping(values).server

    async def say(request: web.Request) -> web.Response:
        body = await request.read() if request.path == "/console/form" else await request.content.read()
        assert ASKED_FROM.get() == address_of(request)
        return web.Response(text=f"{address_of(request)} {len(body)}")

    application = web.Application(client_max_size=100 * 1024 * 1024)
    RequestLimits(
        Buckets(ForwardClock()), lambda: made, failed=(failures if failures is not None else Failures()).append
    ).join(application)
    application.router.add_route("*", "/{path:.*}", say)
    server = TestServer(application)
    async with TestClient(server) as client:
        yield client


async def statuses(client: Client, path: str, times: int, **headers: str) -> list[int]:
    return [(await client.get(path, headers=headers)).status for _ in range(times)]


async def test_rate_limited_address_gets_retry_after() -> None:
    failures = Failures()
    async with entered(failures, trusted_proxies="", address_requests_per_s=0.1, address_burst=2) as client:
        assert await statuses(client, "/scheduler", 3) == [200, 200, 503]
        response = await client.get("/scheduler")
        assert response.headers["Retry-After"] == "10"
        assert not missing(await response.text(), "127.0.0.1:", "10 s")
        assert (await client.get("/api/v1/batches")).status == 429
        assert (await client.get("/healthz")).status == 200  # health checks are never refused
    assert failures == [503, 503]


async def test_api_replies_tell_the_rate_limit() -> None:
    async with entered(trusted_proxies="", address_requests_per_s=0.5, address_burst=2) as client:
        replies = [await client.get("/api/v1/batches") for _ in range(3)]
        page = await client.get("/healthz")
    async with entered(address_requests_per_s=0.5, address_burst=2) as client:
        trusted = await client.get("/api/v1/batches")

    assert [one.headers["RateLimit"] for one in replies] == [
        '"address";r=1;t=2',
        '"address";r=0;t=4',
        '"address";r=0;t=4',
    ]
    assert {one.headers["RateLimit-Policy"] for one in replies} == {'"address";q=2;w=4'}
    assert not any("RateLimit" in one.headers for one in (page, trusted))


async def test_trusted_proxy_clients_are_counted_separately() -> None:
    async with entered(address_requests_per_s=1.0, address_burst=1) as client:
        first = await statuses(client, "/scheduler", 2, **{"X-Forwarded-For": "192.0.2.7"})
        made_up = await statuses(client, "/scheduler", 2, **{"X-Forwarded-For": "203.0.113.9, 192.0.2.7"})
        other = await statuses(client, "/scheduler", 1, **{"X-Forwarded-For": "192.0.2.8"})
        whole_network = await statuses(client, "/scheduler", 1, **{"X-Forwarded-For": "2001:db8::1"})
        neighbour = await statuses(client, "/scheduler", 1, **{"X-Forwarded-For": "2001:db8::2"})
        mapped = await statuses(client, "/scheduler", 2, **{"X-Forwarded-For": "::ffff:192.0.2.9"})
        same = await statuses(client, "/scheduler", 1, **{"X-Forwarded-For": "192.0.2.9"})
    assert (first, made_up, other, whole_network, neighbour) == ([200, 503], [503, 503], [200], [200], [503])
    assert (mapped, same) == ([200, 503], [503])


async def test_untrusted_forwarded_for_is_ignored() -> None:
    async with entered(trusted_proxies="10.0.0.0/8", address_requests_per_s=1.0, address_burst=1) as client:
        found = [
            (await client.get("/scheduler", headers={"X-Forwarded-For": f"192.0.2.{number}"})).status
            for number in range(3)
        ]
    assert found == [200, 503, 503]


@pytest.mark.parametrize(
    ("listed", "forwarded", "address"),
    [
        ("127.0.0.0/8", "192.0.2.7", "192.0.2.7"),
        ("127.0.0.0/8, 10.0.0.0/8", "203.0.113.1, 192.0.2.7, 10.0.0.3", "192.0.2.7"),
        ("127.0.0.0/8", "203.0.113.1, 192.0.2.7, 10.0.0.3", "10.0.0.3"),
        ("127.0.0.0/8", "", "127.0.0.1"),
        ("127.0.0.0/8", "192.0.2.7,", "127.0.0.1"),
        ("", "192.0.2.7", "127.0.0.1"),
        ("127.0.0.0/8", "192.0.2.7, ::ffff:127.0.0.2", "192.0.2.7"),
        ("127.0.0.0/8", "x" * 1000, "x" * 100),
    ],
)
def test_the_last_address_that_is_no_proxy_is_the_callers(listed: str, forwarded: str, address: str) -> None:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request: Any = make_mocked_request("GET", "/", headers=headers)
    request = request.clone(remote="127.0.0.1")

    assert address_of(request, Networks(listed)) == address


@pytest.mark.parametrize("listed", ["proxy", "127.0.0.1;::1", "300.1.1.1", "10.0.0.0/33", "127.0.0.1,"])
def test_a_malformed_list_of_networks_is_refused(listed: str) -> None:
    with pytest.raises(InvalidInputError, match="trusted_proxies"):
        Settings().changed("server.trusted_proxies", listed)


@pytest.mark.parametrize("path", ["/scheduler", "/upload", "/api/v1/batches", "/console/form", "/lookup_account.php"])
async def test_a_packed_body_is_refused_everywhere(path: str) -> None:
    bomb = gzip.compress(bytes(10_000_000))
    async with entered() as client:
        response = await client.post(path, data=bomb, headers={"Content-Encoding": "gzip"})
        assert response.status == 415


async def test_oversized_form_is_not_read_into_memory() -> None:
    """The limit of a mounted application does not apply: the outermost one does, and that is the API's."""
    async with entered() as client:
        assert (await client.post("/console/form", data=io.BytesIO(bytes(1_000_000)))).status == 200
        assert (await client.post("/console/form", data=io.BytesIO(bytes(2_000_000)))).status == 413
        assert (await client.post("/api/v1/batches", data=io.BytesIO(bytes(2_000_000)))).status == 200


async def test_slow_body_is_cut_off_after_the_timeout() -> None:
    async with entered(body_timeout_s=1.0) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.port)
        writer.write(b"POST /scheduler HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n<")
        assert await asyncio.wait_for(reader.read(), 30) == b""
        writer.close()
