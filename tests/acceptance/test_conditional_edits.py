"""An edit with If-Match is made only if what it edits has not changed since it was read."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Mapping
from typing import Any

import asyncpg
import pytest
from aiohttp import web

from administration.accounts import AccountKeys
from console.account_pages import AccountTreePages
from console.apps import AppPages
from console.batch_forms import BatchForms, SelectedBatches
from console.people_pages import PeoplePages
from console.restrictions import RestrictionPages
from console.settings_pages import SettingPages
from muster_client import ChangedError, Client
from tests.acceptance.server import LiveServer
from tests.acceptance.test_console import a_browser
from tests.browser.scene import OPERATOR, add_operator
from tests.database.blocking import until_blocked
from transfer.keys import load_keys
from web.handlers import ADDRESS

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
    ("/people/vic", "PATCH", "/people/vic", {"role": "operator"}),
    ("/grants/default", "PUT", "/grants", {"account": "default", "granted_su": 6.0, "period_s": 86400.0}),
    ("/limits/submitter/jobs", "PUT", "/limits", {"scope": "submitter", "quantity": "jobs", "hard": 8.0}),
    ("/limits/submitter/jobs?name=default", "DELETE", "/limits/submitter/jobs?name=default", None),
    ("/plan-classes/mt", "PUT", "/plan-classes/mt", {"ncpus": 3.0}),
    ("/volunteers/ada@example.org", "PATCH", "/volunteers/ada@example.org", {"max_jobs": 3}),
    ("/restrictions/host/1", "PUT", "/restrictions/host/1", {"why": "worse", "max_jobs": 1}),
    ("/restrictions/volunteer/1", "DELETE", "/restrictions/volunteer/ada@example.org", None),
    ("/grants/default", "DELETE", "/grants/default", None),
]


class Editor:
    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self.token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()

    async def ask(
        self, method: str, path: str, body: object = None, tag: str | None = None
    ) -> tuple[int, str | None, Mapping[str, Any]]:
        """Return status, entity tag and reply."""
        head = {"Authorization": f"Bearer {self.token}", **({} if tag is None else {"If-Match": tag})}
        address = f"{self._server.url}api/v1{path}"
        async with self._server.http.request(method, address, json=body, headers=head) as response:
            return response.status, response.headers.get("ETag"), await response.json(content_type=None)


async def furnished(server: LiveServer) -> Editor:
    await server.add_app()
    host = await server.add_host()
    await server.submit()
    await host.call()
    editor = Editor(server)
    for method, path, body in (
        ("PUT", "/settings/deadline.p_tight", {"value": 0.8, "why": "trying"}),
        ("POST", "/people", {"name": "vic"}),
        ("PUT", "/grants", {"account": "default", "granted_su": 5.0, "period_s": 86400.0}),
        ("PUT", "/limits", {"scope": "submitter", "quantity": "jobs", "hard": 9.0}),
        ("PUT", "/limits", {"scope": "submitter", "quantity": "jobs", "hard": 9.0, "name": "default"}),
        ("PUT", "/plan-classes/mt", {"ncpus": 2.0}),
        ("PUT", "/restrictions/host/1", {"why": "wrong results"}),
        ("PUT", "/restrictions/volunteer/1", {"why": "wrong results"}),
    ):
        status, _, reply = await editor.ask(method, path, body)
        assert status in (200, 201), reply
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


async def test_forms_of_the_console_wait_for_conditional_edits(server: LiveServer) -> None:
    """A form arrives between the check of an If-Match edit and its write."""
    await furnished(server)
    await add_operator(server)
    look = await asyncpg.connect(server.store.ledger.writes.dsn)
    changed = {"name": "default", "new_name": "default", "parent": "", "shares": "7"}
    async with a_browser(server, OPERATOR) as grace:
        async with server.store.settings.editing(alone=True):
            form = asyncio.create_task(grace.post("/accounts/account", changed, form="/accounts"))
            await until_blocked(look, 1, form)
            assert (await grace.get("/accounts"))[0] == 200  # pages do not wait
            assert await shares(server) == 1.0
        await form
        assert await shares(server) == 7.0
    await look.close()


async def shares(server: LiveServer) -> float:
    return next(one.shares for one in await server.store.people.accounts() if one.name == "default")


def test_every_form_that_edits_such_an_object_waits() -> None:
    """Each form posted to these pages changes what the API shows with an ETag, except the ones named here."""
    subjects = (AccountTreePages, PeoplePages, SettingPages, RestrictionPages, AppPages, BatchForms, SelectedBatches)
    marked = [getattr(one, ADDRESS) for kind in subjects for one in vars(kind).values() if hasattr(one, ADDRESS)]
    posts = {at.name: at.edits for at in marked if at.route is web.post}
    free = {name for name, edits in posts.items() if not edits}
    new = {"accounts_add", "submitters_add", "people_add", "batch_submit"}
    assert free == new | {"person_password", "person_sessions", "usage_reset"}


async def test_the_client_sends_the_tag_of_what_it_read(server: LiveServer) -> None:
    editor = await furnished(server)
    async with Client(server.url, editor.token) as client:
        batch, grant, values = await client.batch(1), await client.grant("default"), await client.settings()
        limit = await client.limit("submitter", "jobs", name="default")
        await client.set_batch(1, user_priority=-3, if_match=batch)
        with pytest.raises(ChangedError) as refused:
            await client.set_batch(1, user_priority=-4, if_match=batch)
        assert (refused.value.status, refused.value.current["user_priority"]) == (412, -3)
        assert pickle.loads(pickle.dumps(refused.value)).current == refused.value.current
        await client.set_grant("default", granted_su=7.0, period_s=86400.0, if_match=grant)
        await client.lift_limit("submitter", "jobs", name="default", if_match=limit)
        with pytest.raises(ChangedError) as refused:
            await client.lift_limit("submitter", "jobs", name="default", if_match=limit)
        assert refused.value.current is None
        await client.set_thresholds({"p_tight": 0.83}, why="trying", if_match=values)
        with pytest.raises(ChangedError):
            await client.set_ordering({"ordering.max_wait_s": 60.0}, why="trying", if_match=values)
        [listed] = await client.batches()
        with pytest.raises(ValueError, match="if_match"):
            await client.set_batch(1, user_priority=-5, if_match=listed)


async def test_every_conditional_edit_has_a_client_argument(server: LiveServer) -> None:
    document = await server.create("GET", "/openapi.json")
    operations = [one for path in document["paths"].values() for one in path.values()]
    conditional = [
        one for one in operations if any(it["name"] == "If-Match" for it in one.get("parameters", ()) if "name" in it)
    ]
    methods = [one for name, one in inspect.getmembers(Client, inspect.iscoroutinefunction) if name != "_call"]
    assert sum("if_match" in inspect.signature(one).parameters for one in methods) == len(conditional) > 20
