"""Commands through a server's API: the same options and JSON keys, without a project folder."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from cli.main import main, muster
from tests.facts import missing
from tests.unit.cli.test_every_command import call_of, commands


def goes_through_a_server(command: click.Command) -> bool:
    return any(isinstance(one, click.Option) and one.name == "server" and not one.hidden for one in command.params)


EVERY = dict(commands(muster))
REMOTE = [words for words, command in EVERY.items() if goes_through_a_server(command)]
HERE = [words for words in EVERY if words not in REMOTE]
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
    """The server's requests from a command, and the command's output."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path_qs} {request.headers['Authorization']}")
        if request.path.endswith("/404"):
            problem = {"title": "not found", "status": 404, "detail": "there is no batch 404"}
            return web.json_response(problem, status=404, content_type="application/problem+json")
        return web.json_response({"batch_id": 7, "state": "active", "forecast": None})

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", answer)
    async with TestServer(application) as server:
        url = str(server.make_url("/"))
        done = await asyncio.to_thread(run, capsys, *words, "--server", url, "--token", "secret")
    return asked, done


async def test_command_sends_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    asked, (code, out, _) = await asked_of_server(capsys, "batch", "show", "7", "--json")

    assert asked == ["GET /api/v1/batches/7 Bearer secret"]
    assert (code, json.loads(out)["batch_id"]) == (0, 7)


async def test_text_output_is_the_same_through_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    _, (_, out, _) = await asked_of_server(capsys, "batch", "abort", "7")

    assert out == "batch 7 is active\n"


async def test_batch_file_is_sent_unchanged(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "batch.toml"
    file.write_text('app = "pi"\n')

    asked, (code, _, _) = await asked_of_server(capsys, "batch", "submit", str(file))

    assert (code, asked) == (0, ["POST /api/v1/batches Bearer secret"])


async def test_refusal_of_the_server_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, (code, out, err) = await asked_of_server(capsys, "batch", "show", "404")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert not missing(err, "muster:", "no batch 404")


@pytest.mark.parametrize("words", REMOTE, ids=" ".join)
def test_server_without_token_is_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "nothing.toml").touch()

    code, _, err = run(capsys, *call_of(words, tmp_path), "--server", "http://127.0.0.1:9/")

    assert (code, missing(err, "muster: --token:", "a token")) == (1, []), err


@pytest.mark.parametrize("words", HERE, ids=" ".join)
def test_local_command_refuses_a_server_with_advice(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, *call_of(words, tmp_path), "--server", "http://127.0.0.1:9/", "--token", "x")

    assert (code, out) == (1, "")
    assert not missing(err, f"muster: muster {' '.join(words)}", "not work through a server:")
    assert err.count("\n") == 1


def test_local_option_refuses_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("app", "version", "add", "pi", "--platform", "x", "--version", "1", "--main", __file__, "--file", __file__)
    code, out, err = run(capsys, *words, "--server", "http://127.0.0.1:9/", "--token", "x")

    assert (code, out, err.count("\n")) == (1, "", 1)
    assert not missing(err, "muster: --file", "not work through a server:")


def test_processes_option_is_refused_with_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("thresholds", "preview", "p_tight=0.8", "--simulate", "--processes", "2")
    code, out, err = run(capsys, *words, "--server", "http://127.0.0.1:9/", "--token", "x")

    assert (code, out) == (1, "")
    assert not missing(err, "muster: --processes:", "--server", "got 2")


SIMULATION = {"simulation_id": 3, "state": "running", "done_fraction": 0.5, "result": None, "failure": None}


@pytest.mark.parametrize(
    ("ended", "facts"),
    [
        ({"state": "failed", "failure": "out of memory"}, ("out of memory",)),
        ({"state": "lost"}, ("simulation is lost:",)),
        ({"state": "cancelled"}, ("simulation is cancelled:",)),
    ],
)
async def test_simulation_without_result_is_reported(
    capsys: pytest.CaptureFixture[str], ended: dict[str, str], facts: tuple[str, ...]
) -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        if request.method == "POST":
            assert await request.json() == {"values": {"deadline.p_tight": 0.8}, "seeds": 2, "hosts": 500, "days": 14.0}
        return web.json_response({**SIMULATION, **(ended if request.method == "GET" else {})})

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", answer)
    words = ("thresholds", "preview", "p_tight=0.8", "--simulate", "--seeds", "2")
    async with TestServer(application) as server:
        url = str(server.make_url("/"))
        code, out, err = await asyncio.to_thread(run, capsys, *words, "--server", url, "--token", "secret")

    assert asked == ["POST /api/v1/thresholds/simulations", "GET /api/v1/simulations/3"]
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert not missing(err, "muster:", *facts)


def test_named_project_overrides_the_servers_variable(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MUSTER_SERVER", "http://127.0.0.1:9/")
    monkeypatch.setenv("MUSTER_TOKEN", "x")

    assert run(capsys, "app", "list")[2].startswith("muster: http://127.0.0.1:9/api/v1 ")
    assert run(capsys, "app", "list", "--data-dir", str(tmp_path))[2].startswith("muster: no project in ")


def test_project_and_server_together_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = ("--data-dir", str(tmp_path), "--server", "http://127.0.0.1:9/", "--token", "x")

    err = run(capsys, "app", "list", *given)[2]
    assert not missing(err, "muster: --server:", "--server and --data-dir", "got 'both'")


def test_unreachable_server_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "batch", "list", "--server", "http://127.0.0.1:9/", "--token", "x")

    assert code == 1
    assert err.startswith("muster: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "field", "status"),
    [
        (("batch", "list", "--server", "ftp://x/", "--token", "x"), 1, "--server", 422),
        (("batch", "list", "--limit", "none"), 2, "limit", 400),
        (("batch", "list", "--limits", "1"), 2, "--limits", 400),
        (("batch", "show"), 2, "batch_id", 400),
        (("nonsense",), 2, None, 400),
        (("setting", "set", "deadline.p_tigth", "0.8"), 1, "deadline.p_tigth", 422),
        (("fairshare", "emulate", "--system", "flux", "/nowhere.json"), 1, "/nowhere.json", 422),
        (("batch", "list", "--server", "http://127.0.0.1:9/", "--token", "x"), 1, None, 503),
    ],
)
def test_json_errors_are_problems_on_standard_error(
    words: tuple[str, ...], code: int, field: str | None, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    ended, out, err = run(capsys, *words, "--json")

    problem = json.loads(err)
    assert (ended, out, err.count("\n")) == (code, "", 1)
    assert (problem.get("field"), problem["status"]) == (field, status)
    assert problem["type"].startswith("urn:muster:problem:") and problem["detail"]


async def test_json_errors_pass_on_the_servers_problem(capsys: pytest.CaptureFixture[str]) -> None:
    _, (code, out, err) = await asked_of_server(capsys, "batch", "show", "404", "--json")

    assert (code, out, json.loads(err)["detail"], json.loads(err)["status"]) == (1, "", "there is no batch 404", 404)
