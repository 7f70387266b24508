"""The server keeps to its OpenAPI document, for valid and invalid requests of all kinds of callers."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any

import pytest

from administration.access.sign_in import Cost, stretched
from administration.accounts import AccountKeys
from domain.access import Right, Role
from domain.units import DAY_S
from tests.acceptance.asking import Questions, Requester
from tests.acceptance.server import LiveServer
from tests.worlds import PROJECT
from transfer.keys import load_keys

EXAMPLES = int(os.environ.get("MUSTER_API_EXAMPLES", "8"))  # requests per operation; `make api-fuzz` sends more
FEW = 10
OF_OTHERS = frozenset({"revoke_token"})
OF_OTHER_SUBMITTERS = OF_OTHERS | {"set_batch", "abort_batch", "clone_batch", "retry_batch"}
OF_OTHER_SUBMITTERS |= {"fetch_outputs", "batch_results", "results_table", "job_outputs"}
OF_OTHER_SUBMITTERS |= {"set_subscription", "delete_subscription", "rotate_secret", "test_subscription"}
OF_OTHER_SUBMITTERS |= {"restrict", "lift_restriction"}
KNOWN_IDS = {"app_version_id": 1, "batch_id": 1, "job_id": 1, "instance_id": 1, "host_id": 1, "token_id": 1, "id": 1}
KNOWN_IDS |= {"subscription_id": 1}
KNOWN_NAMES = {
    "/apps/{name}": "pi",
    "/apps/{name}/versions": "pi",
    "/apps/{name}/use": "pi",
    "/accounts/{name}": "default",
    "/submitters/{name}": "default",
    "/restrictions/{kind}/{name}": "1",
    "/people/{name}": "tom",
    "/people/{name}/password": "tom",
    "/people/{name}/sessions": "tom",
}
KNOWN = {"kind": "host", "key": "deadline.p_tight", "account": "default", "email": "ada@example.org"}

pytestmark = pytest.mark.timeout(600 if EXAMPLES <= FEW else 3600)


@pytest.fixture
async def busy(server: LiveServer) -> LiveServer:
    """A project with some of everything, so that not all replies are empty."""
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 4})
    first, _ = await host.ask(2)
    await host.work(first)
    await server.validate()
    return server


async def test_document_is_public(server: LiveServer) -> None:
    async with server.http.get(f"{server.url}api/v1/openapi.json") as response:
        document = await response.json()
    async with server.http.get(f"{server.url}api/v1/") as page:
        shown = await page.text()

    assert document["openapi"] == "3.1.0"
    assert document["components"]["securitySchemes"].keys() == {"token", "session"}
    assert document["paths"]["/batches"]["post"]["operationId"] == "submit_batch"
    assert 'src="try.js"' in shown
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


async def test_valid_requests_get_documented_replies(busy: LiveServer) -> None:
    others = await lesser_askers(busy)
    questions = await questions_to(busy)

    broken = await asyncio.to_thread(questions.conforming, project(busy), others)

    assert broken == []
    assert questions.asked > len(others) * len(questions.document["paths"])
    acts = [act for act in await busy.store.access.acts(limit=100_000) if act.who in {one.name for one in others}]
    assert {act.what for act in acts if act.who != "sue"} <= {"add_token", "revoke_token"}
    assert "batch 1" not in {act.target for act in acts}


async def test_invalid_requests_get_documented_refusals(busy: LiveServer) -> None:
    questions = await questions_to(busy)

    broken = await asyncio.to_thread(questions.unfit, project(busy))

    assert broken == []
    assert questions.asked > len(questions.document["paths"])


# ---------------------------------------------------------------------- who asks, and what


def project(server: LiveServer) -> Requester:
    """The caller with the project's own token."""
    keys = AccountKeys(load_keys(server.project.keys_dir).account_secret)
    return Requester("the project", keys.api_token(), Role.OPERATOR.rights)


async def lesser_askers(server: LiveServer) -> list[Requester]:
    """Return callers with fewer rights, or none. None of them owns batch 1."""
    authenticator = server.workers[0].parts.authenticator
    store, now = server.store, server.clock.now()
    lab = (await store.people.add_submitter("lab", account="default", shares=1.0, now=now)).submitter_id
    volunteer = await server.create("POST", "/volunteers", json={"email": "vol@example.org"})
    kept = stretched("they know this one", Cost(2, 8, 1))
    roles = {"vic": Role.VIEWER, "sue": Role.SUBMITTER, **dict.fromkeys(("tom", "ola", "out"), Role.OPERATOR)}
    for name, role in roles.items():
        submitter_id = lab if role is Role.SUBMITTER else None
        await store.access.add_person(
            name, role=role, submitter_id=submitter_id, password=kept, one_time_until=None, now=now
        )
    await authenticator.people.add("new", role=Role.OPERATOR)
    first = await authenticator.tokens.add("tom", "the token 1 of others")
    expiring, revoked = (
        await authenticator.tokens.add("ola", "a day", days=1),
        await authenticator.tokens.add("ola", "revoked"),
    )
    await authenticator.tokens.revoke(revoked.token.token_id, by=PROJECT)
    tokens = {name: (await authenticator.tokens.add(name, "own")).value for name in ("vic", "sue", "out", "new")}
    narrow = await authenticator.tokens.add("ola", "narrow", rights=[Right.READ])
    await authenticator.people.set("out", active=False)
    await server.forward(DAY_S + 1.0)
    assert first.token.token_id == KNOWN_IDS["token_id"]
    hook = {"channel": "webhook", "address": "https://example.org/hook", "project_wide": True, "person": "tom"}
    await server.create("POST", "/subscriptions", json=hook)
    return [
        Requester("no token", None, status=401),
        Requester("an unknown token", "muster_guessed", status=401),
        Requester("an expired token", expiring.value, status=401),
        Requester("a revoked token", revoked.value, status=401),
        Requester("a disabled account", tokens["out"], status=401),
        Requester("a volunteer", volunteer["authenticator"], status=401),
        Requester("before the first sign-in", tokens["new"], status=403),
        Requester("vic", tokens["vic"], Role.VIEWER.rights, never=OF_OTHERS),
        Requester("sue", tokens["sue"], Role.SUBMITTER.rights, never=OF_OTHER_SUBMITTERS),
        Requester("ola", narrow.value, frozenset({Right.READ})),
    ]


async def questions_to(server: LiveServer) -> Questions:
    async with server.http.get(f"{server.url}api/v1/openapi.json") as response:
        document = await response.json()
    return Questions(document, f"{server.url}api/v1", EXAMPLES, known_values(document), repeatable=EXAMPLES <= FEW)


def known_values(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the path parameters of existing objects."""
    known: dict[str, dict[str, Any]] = {}
    for path in document["paths"]:
        values = {**KNOWN, "name": KNOWN_NAMES.get(path)}
        named = re.findall(r"\{(\w+)\}", path)
        known[path] = {name: value for name in named if (value := values.get(name)) is not None}
    return known
