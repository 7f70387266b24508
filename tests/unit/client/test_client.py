"""The typed client against a server that speaks the API."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from api.serving import problem
from api.table import reply
from muster_client import ApiError, Client, MusterClientError, UnreachableError


class Recorder:
    """A server that gives every request the same reply, and records the requests."""

    def __init__(self, answer: Callable[[], web.Response]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str, bytes]] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("Authorization", "")
        self.asked.append((request.method, request.path_qs, token, await request.read()))
        return self.answer()


@asynccontextmanager
async def connected(recorder: Recorder) -> AsyncIterator[Client]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", recorder.handle)
    async with TestServer(app) as server, Client(str(server.make_url("/")), "the-token") as client:
        yield client


async def test_submit_posts_the_batch_and_returns_its_id() -> None:
    recorder = Recorder(lambda: reply({"batch_id": 7}, status=201))

    async with connected(recorder) as client:
        assert await client.submit({"app": "double", "jobs": {"count": 10}}) == 7

    assert recorder.asked == [("POST", "/api/v1/batches", "Bearer the-token", b'{"app":"double","jobs":{"count":10}}')]


async def test_call_requests_its_path() -> None:
    recorder = Recorder(lambda: reply({"batches": [], "next_cursor": None, "batch_id": 7, "job_id": 41}))

    async with connected(recorder) as client:
        assert (await client.batch(7))["batch_id"] == 7
        assert (await client.job(41))["job_id"] == 41
        assert await client.batches() == []
        assert await client.batches(limit=5) == []
        await client.abort(7)

    assert [(method, path) for method, path, _, _ in recorder.asked] == [
        ("GET", "/api/v1/batches/7"),
        ("GET", "/api/v1/jobs/41"),
        ("GET", "/api/v1/batches?limit=100"),
        ("GET", "/api/v1/batches?limit=5"),
        ("POST", "/api/v1/batches/7/abort"),
    ]


async def test_calls_for_explanations_and_thresholds() -> None:
    recorder = Recorder(lambda: reply({"groups_total": 3, "thresholds": [{"key": "deadline.p_tight"}], "changed": []}))

    async with connected(recorder) as client:
        assert (await client.explain("host", 3))["groups_total"] == 3
        await client.explain("instance", 41)
        assert [one["key"] for one in await client.thresholds()] == ["deadline.p_tight"]
        await client.preview_thresholds({"p_tight": 0.85, "min_rows": 10})
        assert await client.set_thresholds({"p_tight": 0.85}, why="jobs waited", by="ada") == []

    assert [(method, path) for method, path, _, _ in recorder.asked] == [
        ("GET", "/api/v1/explain/host/3"),
        ("GET", "/api/v1/explain/instance/41"),
        ("GET", "/api/v1/thresholds"),
        ("GET", "/api/v1/thresholds/preview?p_tight=0.85&min_rows=10"),
        ("PUT", "/api/v1/thresholds"),
    ]
    assert recorder.asked[-1][-1] == b'{"values":{"p_tight":0.85},"why":"jobs waited","by":"ada"}'


async def test_refusal_raises_status_and_detail() -> None:
    async with connected(
        Recorder(lambda: problem(422, "invalid input", "qos: expected text, got 3", field="qos"))
    ) as client:
        with pytest.raises(ApiError, match=r"^qos: expected text, got 3$") as caught:
            await client.submit({"qos": 3})

    assert (caught.value.status, caught.value.problem["field"]) == (422, "qos")
    assert isinstance(caught.value, MusterClientError)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.status, copied.field, str(copied)) == (422, "qos", str(caught.value))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [(b"<html>bad gateway</html>", "<html>bad gateway</html>"), (b"", "HTTP status 502"), (b"[]", r"\[\]")],
)
async def test_error_without_problem_document_is_shown(body: bytes, sentence: str) -> None:
    async with connected(Recorder(lambda: web.Response(status=502, body=body))) as client:
        with pytest.raises(ApiError, match=f"^{sentence}$"):
            await client.batch(1)


async def test_list_reads_pages_up_to_its_limit() -> None:
    pages = iter([{"hosts": [1, 2], "next_cursor": "b"}, {"hosts": [3], "next_cursor": "c"}])
    recorder = Recorder(lambda: reply(next(pages)))

    async with connected(recorder) as client:
        found: list[object] = [*await client.hosts(limit=3)]

    assert found == [1, 2, 3]

    assert [path for _, path, _, _ in recorder.asked] == ["/api/v1/hosts?limit=3", "/api/v1/hosts?limit=1&cursor=b"]


async def test_lost_reply_repeats_the_submission_with_its_key() -> None:
    keys: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        keys.append(request.headers["Idempotency-Key"])
        if len(keys) == 1:
            assert request.transport is not None
            request.transport.close()
        return reply({"batch_id": 7, "forecast": None}, status=201)

    app = web.Application()
    app.router.add_post("/api/v1/batches", handle)
    async with TestServer(app) as server, Client(str(server.make_url("/")), "t") as client:
        assert await client.submit({"app": "pi"}) == 7

    assert len(keys) == 2
    assert keys[0] == keys[1]


async def test_a_batch_is_watched_until_it_ends() -> None:
    stream = (
        b'retry: 1\n\nevent: progress\ndata: {"unsent":1}\n\n: still here\n\nevent: progress\ndata: {"unsent":0}\n\n'
    )
    body = stream + b'event: end\ndata: {"batch_id":7}\n\n'

    async with connected(Recorder(lambda: web.Response(body=body, content_type="text/event-stream"))) as client:
        assert [event["unsent"] async for event in client.watch(7)] == [1, 0]


async def test_unreachable_server_raises_unreachable_error() -> None:
    async with Client("http://127.0.0.1:1/", "t") as client:
        with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1/api/v1 does not reply"):
            await client.batch(1)


async def test_first_call_opens_the_client() -> None:
    recorder = Recorder(lambda: reply({"batch_id": 7}))

    async with connected(recorder) as opened:
        client = Client(opened._url.removesuffix("/api/v1"), "another-token")
        assert (await client.batch(7))["batch_id"] == 7
        await client.close()

    assert recorder.asked[0][2] == "Bearer another-token"


async def test_failed_download_removes_only_its_file(tmp_path: Path) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"the first bytes")
        assert request.transport is not None
        request.transport.close()
        return response

    app = web.Application()
    app.router.add_get("/api/v1/jobs/7/outputs/out", cut)
    there = tmp_path / "there"
    there.write_text("of an earlier run")
    async with TestServer(app) as server, Client(str(server.make_url("/")), "t") as client:
        with pytest.raises(UnreachableError):
            await client.fetch_output(7, "out", str(tmp_path / "new"))
        with pytest.raises(ApiError):
            await client.fetch_output(8, "out", there)

    assert not (tmp_path / "new").exists()
    assert there.read_text() == "of an earlier run"


async def test_calls_for_previews_and_forecasts() -> None:
    recorder = Recorder(lambda: reply({"forecast": {"q50_at": 5.0}, "forecasts": [], "apps": [{"app": "pi"}]}))

    async with connected(recorder) as client:
        assert (await client.preview({"app": "pi"}))["q50_at"] == 5.0
        assert (await client.forecasts(7, limit=5))["forecasts"] == []
        assert [one["app"] for one in await client.forecast_health()] == ["pi"]

    assert [(method, path, body) for method, path, _, body in recorder.asked] == [
        ("POST", "/api/v1/batches?preview=true", b'{"app":"pi"}'),
        ("GET", "/api/v1/batches/7/forecasts?limit=5", b""),
        ("GET", "/api/v1/forecasts", b""),
    ]
