"""Commands through a server's API: the same words, the same keys, no folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from operations.cli import main, muster
from tests.unit.operations.cli.test_every_command import commands

REMOTE = [
    words
    for words, command in commands(muster)
    if "--server" in {name for parameter in command.params for name in parameter.opts}
]
Call = Callable[..., Awaitable[tuple[int, str, str]]]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


async def asked_of_server(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[list[str], tuple[int, str, str]]:
    """What a server was asked by a command, and what the command printed."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path_qs} {request.headers['Authorization']}")
        if request.path.endswith("/404"):
            problem = {"title": "not found", "status": 404, "detail": "there is no batch 404"}
            return web.json_response(problem, status=404, content_type="application/problem+json")
        return web.json_response({"batch_id": 7, "name": "pi", "hold": None, "next_cursor": None})

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", answer)
    async with TestServer(application) as server:
        url = str(server.make_url("/"))
        done = await asyncio.to_thread(run, capsys, *words, "--server", url, "--token", "secret")
    return asked, done


async def test_a_command_asks_the_server_with_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    asked, (code, out, _) = await asked_of_server(capsys, "batch", "show", "7", "--json")

    assert asked == ["GET /api/v1/batches/7 Bearer secret"]
    assert (code, json.loads(out)["batch_id"]) == (0, 7)


async def test_without_json_there_is_a_line_for_each_key(capsys: pytest.CaptureFixture[str]) -> None:
    _, (_, out, _) = await asked_of_server(capsys, "batch", "abort", "7")

    assert out.splitlines()[:3] == ["batch_id     7", "name         pi", "hold         -"]


async def test_a_batch_file_is_sent_as_it_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "batch.toml"
    file.write_text('app = "pi"\n')

    asked, (code, _, _) = await asked_of_server(capsys, "batch", "submit", str(file))

    assert (code, asked) == (0, ["POST /api/v1/batches Bearer secret"])


async def test_what_the_server_refuses_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, (code, out, err) = await asked_of_server(capsys, "batch", "show", "404")

    assert (code, out, err) == (1, "", "muster: there is no batch 404\n")


@pytest.mark.parametrize("words", REMOTE, ids=" ".join)
def test_a_server_without_a_token_is_not_asked(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    needed = {"submit": ["f.toml"], "show": ["1"], "abort": ["1"], "host": ["1"], "batch": ["1"], "job": ["1"]}
    given = needed.get(words[-1], ["1"] if words[0] == "explain" else [])

    code, _, err = run(capsys, *words, *given, "--server", "http://127.0.0.1:9/")

    assert (code, err.startswith("muster: --token: expected a token")) == (1, True), err


def test_a_server_that_does_not_answer_is_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "batch", "list", "--server", "http://127.0.0.1:9/", "--token", "x")

    assert code == 1
    assert err.startswith("muster: ") and err.count("\n") == 1
