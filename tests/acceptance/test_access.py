"""Access over the API: tokens with scopes, sessions with forms, submitters and their batches; idempotency keys, pages
and events.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from administration.access.authentication import PERSON_COOKIE
from administration.access.people import PROJECT_NAME
from administration.access.sign_in import Cost, stretched
from administration.access.who import csrf_of_cookie
from administration.accounts import AccountKeys
from domain.access import Role
from muster_client import ApiError, Client, MusterClientError, SyncClient
from tests.acceptance.server import LiveServer, a_batch
from tests.acceptance.test_console import a_browser
from tests.browser.scene import OPERATOR, add_operator
from tests.stores import batches_of
from transfer.keys import load_keys


def client_of(server: LiveServer, token: str | None = None) -> Client:
    own = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    return Client(server.url, token or own)


async def a_person(server: LiveServer, name: str, role: Role, submitter: str | None = None) -> None:
    """Add a person who has chosen a password."""
    submitter_id = None if submitter is None else (await server.store.people.submitter(submitter)).submitter_id
    kept = stretched(f"{name} knows this", Cost(2, 8, 1))
    await server.store.access.add_person(
        name, role=role, submitter_id=submitter_id, password=kept, one_time_until=None, now=server.clock.now()
    )


async def a_token(server: LiveServer, person: str, *scopes: str) -> str:
    async with client_of(server) as client:
        return (await client.add_token("test", person=person, scopes=scopes or None))["value"]


async def refused(call: Any, status: int) -> str:
    with pytest.raises(ApiError) as caught:
        await call
    assert caught.value.status == status
    return str(caught.value)


async def test_roles_and_scopes_limit_operations(server: LiveServer) -> None:
    await server.add_app()
    async with client_of(server) as operator:
        await operator.add_submitter("lab")
    for name, role, submitter in (
        ("vic", Role.VIEWER, None),
        ("sue", Role.SUBMITTER, "lab"),
        ("ola", Role.OPERATOR, None),
    ):
        await a_person(server, name, role, submitter)

    async with client_of(server, await a_token(server, "vic")) as viewer:
        assert (await viewer.me())["scopes"] == ["read"]
        assert await viewer.batches() == []
        assert "needs the scope submit" in await refused(viewer.submit(a_batch()), 403)
        assert "needs the scope operate" in await refused(viewer.set_setting("deadline.p_tight", 0.8), 403)
    async with client_of(server, await a_token(server, "sue")) as sue:
        own = await sue.submit(a_batch())
        assert (await sue.batch(own))["submitter"] == "lab"
        assert await refused(sue.submit(a_batch(submitter="default")), 403) == "sue submits as lab"
        others = await server.submit()
        assert "another submitter" in await refused(sue.abort(others), 403)
        assert (await sue.abort(own))["state"] == "aborted"
        assert await refused(sue.people(), 403)
    async with client_of(server, await a_token(server, "ola", "read")) as reader:
        assert await refused(reader.abort(others), 403)
    token = await a_token(server, "ola")
    async with client_of(server, token) as operator:
        assert (await operator.abort(others))["state"] == "aborted"
        assert await operator.set_setting("deadline.p_tight", 0.8, why="they waited") == 0.8
        [change, *_] = await operator.setting_changes()
        assert (change["by"], change["to"], change["why"]) == ("ola", 0.8, "they waited")
        acts = [(act["who"], act["what"], act["target"]) for act in await operator.audit()]
        assert acts[:2] == [
            ("ola", "set_setting", "setting deadline.p_tight"),
            ("ola", "abort_batch", f"batch {others}"),
        ]
        [mine] = [one for one in await operator.tokens() if one["last_used_at"] is not None and one["person_id"] == 3][
            -1:
        ]
        await operator.revoke_token(mine["token_id"])
        assert "revoked" in await refused(operator.me(), 401)


async def test_audit_and_settings_name_the_same_author(server: LiveServer) -> None:
    """Readings are not in the audit trail, and the author is not a value of a change. With the project's token, the
    request names the author, and the trail says so.
    """
    await a_person(server, "ola", Role.OPERATOR)
    for token, author in ((None, "ada"), (await a_token(server, "ola"), "ola")):
        async with client_of(server, token) as operator:
            await operator.set_thresholds({"deadline.p_late": 0.6 if token else 0.7}, why="late", by="ada")
            await operator.people()
            [act, *_] = await operator.audit()
            [change, *_] = await operator.setting_changes()

            assert (act["who"], act["what"], change["by"]) == (author, "set_thresholds", author)
            assert "by" not in act["detail"]
            assert act["detail"].get("through") == (None if token else PROJECT_NAME)
    await add_operator(server)
    async with a_browser(server, OPERATOR) as grace:
        _, page = await grace.get("/audit")
        rows = [row for row in page.split("<tr>") if "deadline.p_late" in row]
    assert [f"through {PROJECT_NAME}" in row for row in rows] == [False, True]


async def test_session_changes_need_the_csrf_token(server: LiveServer) -> None:
    await a_person(server, "ola", Role.OPERATOR)
    authenticator = server.workers[0].parts.authenticator
    new = await authenticator.signing.person("ola", "ola knows this", address="127.0.0.1", agent="Browser")
    url = f"{server.url}api/v1/settings/deadline.p_tight"

    async def put(**headers: str) -> tuple[int, Mapping[str, Any]]:
        sent = {"Cookie": f"{PERSON_COOKIE}={new.value}", **headers}
        async with server.http.put(url, json={"value": 0.7, "why": "trial"}, headers=sent) as response:
            return response.status, await response.json(content_type=None)

    secret = {"X-CSRF-Token": csrf_of_cookie(new.value)}
    assert (await put())[0] == 403
    assert (await put(**{"X-CSRF-Token": "0" * 64}))[0] == 403
    assert (await put(**secret, **{"Sec-Fetch-Site": "cross-site"}))[0] == 403
    assert await put(**secret) == (200, {"key": "deadline.p_tight", "value": 0.7})
    await authenticator.people.end_sessions("ola")
    assert (await put(**secret))[0] == 401


async def test_repeated_submission_is_done_once(server: LiveServer) -> None:
    await server.add_app()
    key = {"Idempotency-Key": "once"}

    async def submit(body: Mapping[str, object]) -> tuple[int, Mapping[str, Any]]:
        token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
        headers = {**key, "Authorization": f"Bearer {token}"}
        async with server.http.post(f"{server.url}api/v1/batches", json=body, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    answers = await asyncio.gather(*(submit(a_batch()) for _ in range(3)))
    again = await submit(dict(reversed(a_batch().items())))
    other = await submit(a_batch(jobs={"count": 2}))

    assert {status for status, _ in answers} == {201}
    assert {answer["batch_id"] for _, answer in (*answers, again)} == {answers[0][1]["batch_id"]}
    assert again[1]["forecast"] is not None
    assert (other[0], other[1]["title"]) == (409, "conflict")
    assert len(await batches_of(server.store, limit=10)) == 1
    acts = [act for act in await server.store.access.acts(limit=50) if act.what == "submit_batch"]
    assert [act.target for act in acts] == [f"batch {answers[0][1]['batch_id']}"]


async def test_times_are_also_iso_if_preferred(server: LiveServer) -> None:
    await server.add_app()
    await server.submit()
    token = AccountKeys(load_keys(server.project.keys_dir).account_secret).api_token()
    found = []
    for prefer, applied in (("", None), ("wait=10, times=iso", "times=iso")):
        headers = {"Authorization": f"Bearer {token}", "Prefer": prefer}
        async with server.http.get(f"{server.url}api/v1/batches", headers=headers) as response:
            found += (await response.json())["batches"]
            assert response.headers.get("Preference-Applied") == applied

    plain, iso = found
    assert {key: iso[key] for key in plain} == plain
    assert "created_at_iso" in iso and "ended_at_iso" not in iso  # it has not ended
    assert datetime.fromisoformat(iso["created_at_iso"]).timestamp() == math.floor(plain["created_at"])


async def test_lists_are_filtered_and_sorted(server: LiveServer) -> None:
    await server.add_app()
    ids = [await server.submit(name=name) for name in ("one", "two", "three")]
    await server.create("POST", f"/batches/{ids[1]}/abort")

    async def listed(query: str) -> list[int]:
        found: list[int] = []
        cursor = ""
        while True:
            page = await server.create("GET", f"/batches?limit=1&{query}{cursor}")
            found += [one["batch_id"] for one in page["batches"]]
            if page["next_cursor"] is None:
                return found
            cursor = f"&cursor={page['next_cursor']}"

    assert await listed("state=active&app=pi&submitter=default") == [ids[2], ids[0]]
    assert await listed("sort=id") == ids
    assert await listed("sort=deadline&q=T") == [ids[2]]
    first = await server.create("GET", "/batches?limit=1")
    for query, field in (
        *(("sort=size", "sort"), ("state=gone", "state"), ("app=none", "app"), ("account=none", "account")),
        *(("state=aborted&sort=order", "sort"), ("state=complete&at_risk=true", "at_risk")),
        (f"sort=id&cursor={first['next_cursor']}", "cursor"),
    ):
        status, wrong = await server.api("GET", f"/batches?{query}")
        assert (status, wrong["field"]) == (422, field), query
    status, wrong = await server.api("GET", "/batches?sort=size")
    assert {"id", "-id", "order", "-deadline"} <= set(wrong["expected"].removeprefix("one of ").split(", "))
    found = await server.create("GET", f"/batches/{ids[0]}/instances?state=unsent&limit=1")
    assert [one["state"] for one in found["instances"]] == ["unsent"]


async def test_lists_are_paginated(server: LiveServer) -> None:
    await server.add_app()
    ids = [await server.submit() for _ in range(3)]

    first = await server.create("GET", "/batches?limit=2")
    second = await server.create("GET", f"/batches?limit=2&cursor={first['next_cursor']}")
    status, wrong = await server.api("GET", f"/apps?cursor={first['next_cursor']}")

    assert [one["batch_id"] for page in (first, second) for one in page["batches"]] == ids[::-1]
    assert second["next_cursor"] is None
    assert (status, wrong["field"]) == (422, "cursor")


async def test_a_batch_is_watched_until_it_ends(server: LiveServer) -> None:
    await server.add_app()
    batch_id = await server.submit(jobs={"count": 3})
    seen: list[Mapping[str, Any]] = []

    async with client_of(server) as client:
        async for event in client.watch(batch_id):
            seen.append(event)
            if len(seen) == 1:
                await client.abort(batch_id)
        assert await refused(anext(client.watch(999)), 404) == "no batch 999"

    assert [(one["state"], one["unsent"]) for one in (seen[0], seen[-1])] == [("active", 3), ("aborted", 0)]
    assert server.workers[0].parts.progress.listening == 0


async def test_client_raises_errors_with_their_reasons(server: LiveServer) -> None:
    def ask() -> str:
        with SyncClient(server.url, "wrong") as client, pytest.raises(MusterClientError) as caught:
            client.batches()
        return str(caught.value)

    assert "the token is unknown" in await asyncio.to_thread(ask)
