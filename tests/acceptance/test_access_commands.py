"""People and tokens managed on the command line of a new project."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from administration.access.who import NotSignedInError, WrongPasswordError
from tests.acceptance.server import LiveServer
from tests.acceptance.test_command_line import CommandLine
from tests.facts import missing


async def test_people_and_tokens_lifecycle(server: LiveServer) -> None:
    muster = CommandLine(server.project.data_dir)
    authenticator = server.workers[0].parts.authenticator

    async def run(*arguments: str) -> Any:
        return await asyncio.to_thread(muster.json, *arguments)

    async def sign_in(name: str, password: str) -> str:
        new = await authenticator.signing.person(name, password, address="192.0.2.7", agent="")
        return new.session.address

    ada = await run("operator", "add", "ada")
    sue = await run("operator", "add", "sue", "--role", "submitter", "--submitter", "default")
    assert ada["url"] == f"{server.url}console/"
    assert await sign_in("ada", ada["password"]) == "192.0.2.7"
    rows = await run("operator", "list")
    assert [(row["name"], row["role"], row["submitter_id"]) for row in rows] == [
        ("ada", "operator", None),
        ("sue", "submitter", 1),
    ]
    token = await run("token", "add", "nightly", "--person", "sue", "--scope", "read", "--days", "2")
    assert (await authenticator.tokens.person_of(token["token"])).name == "sue"
    assert not missing(token["waits_because"], 403, "sue")
    printed = await asyncio.to_thread(muster.run, "token", "add", "hourly", "--person", "sue")
    assert printed.stdout.startswith("muster_") and printed.stderr == f"not valid yet: {token['waits_because']}\n"
    listed, _ = await run("token", "list")
    assert (listed["person"], listed["scopes"]) == ("sue", ["read"])
    await run("token", "revoke", str(token["token_id"]))
    with pytest.raises(NotSignedInError):
        await authenticator.tokens.person_of(token["token"])
    again = await run("operator", "password", "sue")
    with pytest.raises(WrongPasswordError):
        await sign_in("sue", sue["password"])
    await sign_in("sue", again["password"])
    assert (await run("operator", "sign-out", "sue"))["ended"] == 1
    assert (await run("operator", "set", "sue", "--shut-out"))["active"] is False
    with pytest.raises(WrongPasswordError):
        await sign_in("sue", again["password"])
    acts = [act.what for act in await authenticator.store.acts(limit=50)]
    assert acts[:3] == ["set_person", "end_sessions", "sign_in"]

    done = await asyncio.to_thread(muster.run, "operator", "add", "tom", "--role", "submitter")
    assert done.exit_code == 1
    assert done.stderr.startswith("muster: submitter: expected ") and done.stderr.endswith(", got ''\n")
