"""The typed client against a server that speaks the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

import muster
from domain.errors import MusterError
from operations.api.errors import problem
from operations.api.replies import reply
from operations.client import ApiError, Client


class Recorder:
    """Answers every request alike, and remembers what was asked."""

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


async def test_submitting_posts_the_batch_with_the_token_and_returns_its_id() -> None:
    recorder = Recorder(lambda: reply({"batch_id": 7}, status=201))

    async with connected(recorder) as client:
        assert await client.submit({"app": "double", "jobs": {"count": 10}}) == 7

    assert recorder.asked == [("POST", "/api/v1/batches", "Bearer the-token", b'{"app":"double","jobs":{"count":10}}')]


async def test_each_call_asks_its_own_path() -> None:
    recorder = Recorder(lambda: reply({"batches": [], "batch_id": 7, "job_id": 41}))

    async with connected(recorder) as client:
        assert (await client.batch(7))["batch_id"] == 7
        assert (await client.job(41))["job_id"] == 41
        assert await client.batches() == []
        assert await client.batches(limit=5, before=9) == []
        await client.abort(7)

    assert [(method, path) for method, path, _, _ in recorder.asked] == [
        ("GET", "/api/v1/batches/7"),
        ("GET", "/api/v1/jobs/41"),
        ("GET", "/api/v1/batches?limit=100"),
        ("GET", "/api/v1/batches?limit=5&before=9"),
        ("POST", "/api/v1/batches/7/abort"),
    ]


async def test_explanations_and_thresholds_have_calls_of_their_own() -> None:
    recorder = Recorder(lambda: reply({"host_id": 3, "thresholds": [{"key": "deadline.p_tight"}], "changed": []}))

    async with connected(recorder) as client:
        assert (await client.explain("host", 3))["host_id"] == 3
        await client.explain("instance", 41)
        assert await client.thresholds() == [{"key": "deadline.p_tight"}]
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


async def test_a_refusal_is_an_error_with_status_and_sentence() -> None:
    async with connected(
        Recorder(lambda: problem(422, "invalid input", "qos: expected text, got 3", field="qos"))
    ) as client:
        with pytest.raises(ApiError, match=r"^qos: expected text, got 3$") as caught:
            await client.submit({"qos": 3})

    assert (caught.value.status, caught.value.problem["field"]) == (422, "qos")
    assert isinstance(caught.value, MusterError)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [(b"<html>bad gateway</html>", "<html>bad gateway</html>"), (b"", "HTTP status 502"), (b"[]", r"\[\]")],
)
async def test_an_answer_that_is_no_problem_document_is_shown_as_it_came(body: bytes, sentence: str) -> None:
    async with connected(Recorder(lambda: web.Response(status=502, body=body))) as client:
        with pytest.raises(ApiError, match=f"^{sentence}$"):
            await client.batch(1)


def test_users_import_the_client_from_muster() -> None:
    assert muster.Client is Client


async def test_a_preview_and_forecasts_ask_their_own_paths() -> None:
    recorder = Recorder(lambda: reply({"forecast": {"q50_at": 5.0}, "forecasts": [], "apps": [{"app": "pi"}]}))

    async with connected(recorder) as client:
        assert await client.preview({"app": "pi"}) == {"q50_at": 5.0}
        assert (await client.forecasts(7, limit=5))["forecasts"] == []
        assert await client.forecast_health() == [{"app": "pi"}]

    assert [(method, path, body) for method, path, _, body in recorder.asked] == [
        ("POST", "/api/v1/batches?preview=true", b'{"app":"pi"}'),
        ("GET", "/api/v1/batches/7/forecasts?limit=5", b""),
        ("GET", "/api/v1/forecasts", b""),
    ]
