"""An edit with If-Match is made only if what it edits has not changed since it was read."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from administration.accounts import AccountKeys
from tests.acceptance.server import LiveServer
from transfer.keys import load_keys

EDITS: list[tuple[str, str, str, dict[str, Any] | None]] = [  # what is read; method, path and body of the edit
    ("/settings/deadline.p_tight", "PUT", "/settings/deadline.p_tight", {"value": 0.81, "why": "trying"}),
    ("/settings/deadline.p_tight", "DELETE", "/settings/deadline.p_tight?why=trying", None),
    ("/settings", "PUT", "/thresholds", {"values": {"p_tight": 0.82}, "why": "trying"}),
    ("/settings", "PUT", "/priority", {"values": {"ordering.max_wait_s": 60.0}, "why": "trying"}),
    ("/apps/pi", "PATCH", "/apps/pi", {"adaptive_copies": 2}),
    ("/app-versions/1", "PATCH", "/app-versions/1", {"state": "deprecated"}),
    ("/batches/1", "PATCH", "/batches/1", {"user_priority": -7}),
    ("/batches/1", "POST", "/batches/1/abort", None),
    ("/hosts/1", "PUT", "/hosts/1/labels", {"labels": ["lab"]}),
    ("/accounts/default", "PATCH", "/accounts/default", {"shares": 3.0}),
    ("/submitters/default", "PATCH", "/submitters/default", {"shares": 4.0}),
]


class Editor:
    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self._token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()

    async def ask(
        self, method: str, path: str, body: object = None, tag: str | None = None
    ) -> tuple[int, str | None, Mapping[str, Any]]:
        """Return status, entity tag and reply."""
        head = {"Authorization": f"Bearer {self._token}", **({} if tag is None else {"If-Match": tag})}
        address = f"{self._server.url}api/v1{path}"
        async with self._server.http.request(method, address, json=body, headers=head) as response:
            return response.status, response.headers.get("ETag"), await response.json(content_type=None)


async def furnished(server: LiveServer) -> Editor:
    await server.add_app()
    host = await server.add_host()
    await server.submit()
    await host.call()
    editor = Editor(server)
    await editor.ask("PUT", "/settings/deadline.p_tight", {"value": 0.8, "why": "trying"})
    return editor


async def test_edits_are_refused_once_the_object_has_changed(server: LiveServer) -> None:
    editor = await furnished(server)
    for read, method, path, body in EDITS:
        _, tag, before = await editor.ask("GET", read)
        assert tag is not None, read

        status, now, problem = await editor.ask(method, path, body, '"of another version"')
        assert (status, now) == (412, tag), (path, problem)
        assert problem["current"] is not None
        assert await editor.ask("GET", read) == (200, tag, before) or read.startswith("/hosts")

        status, _, reply = await editor.ask(method, path, body, tag)
        assert status == 200, (path, reply)
        _, changed, _ = await editor.ask("GET", read)
        assert changed != tag, path
        assert (await editor.ask(method, path, body, tag))[0] == 412, path


async def test_counters_do_not_change_the_tag_of_a_batch(server: LiveServer) -> None:
    editor = await furnished(server)
    _, tag, before = await editor.ask("GET", "/batches/1")
    host = await server.add_host("eve")
    [task] = await host.ask(1)
    await host.work(task)
    _, same, after = await editor.ask("GET", "/batches/1")
    assert before["sent"] != after["sent"]
    assert tag == same


@pytest.mark.parametrize("tag", ["*", None, 'W/"x", {tag}'])
async def test_any_or_one_of_several_tags_matches(server: LiveServer, tag: str | None) -> None:
    editor = await furnished(server)
    _, known, _ = await editor.ask("GET", "/apps/pi")
    wanted = None if tag is None else tag.replace("{tag}", str(known))
    assert (await editor.ask("PATCH", "/apps/pi", {"beta": True}, wanted))[0] == 200


async def test_nothing_matches_an_object_that_is_gone(server: LiveServer) -> None:
    status, tag, problem = await (await furnished(server)).ask("PATCH", "/apps/none", {"beta": True}, "*")
    assert (status, tag, problem["current"]) == (412, None, None)


async def test_one_of_concurrent_conditional_edits_is_made(server: LiveServer) -> None:
    editor = await furnished(server)
    _, tag, _ = await editor.ask("GET", "/batches/1")
    bodies = [{"user_priority": -number} for number in range(1, 9)]
    told = await asyncio.gather(*(editor.ask("PATCH", "/batches/1", body, tag) for body in bodies))
    assert sorted(status for status, _, _ in told) == [200, *[412] * 7]
    [made] = [reply["user_priority"] for status, _, reply in told if status == 200]
    assert (await editor.ask("GET", "/batches/1"))[2]["user_priority"] == made
