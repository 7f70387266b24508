"""The OpenAPI document, and a server that keeps to it whatever it is asked."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from operations.accounts import AccountKeys
from tests.acceptance.server import LiveServer
from transfer.keys import load_keys

EXAMPLES = int(os.environ.get("MUSTER_API_EXAMPLES", "4"))  # of each operation; `make api-fuzz` asks for more
FEW = 5
ENDLESS = ("batch_events", "events")  # streams
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]


@pytest.fixture
async def busy(server: LiveServer) -> LiveServer:
    """Something of everything, so that answers are not all empty."""
    await server.add_app()
    host = await server.add_host()
    await server.submit(jobs={"count": 3})
    await host.call()
    return server


async def test_the_document_is_public_and_says_how_to_sign_in(server: LiveServer) -> None:
    async with server.http.get(f"{server.url}api/v1/openapi.json") as response:
        document = await response.json()
    async with server.http.get(f"{server.url}api/v1/") as page:
        shown = await page.text()

    assert document["openapi"] == "3.1.0"
    assert document["components"]["securitySchemes"].keys() == {"token", "session"}
    assert document["paths"]["/batches"]["post"]["operationId"] == "submit_batch"
    assert 'src="try.js"' in shown
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]


@pytest.mark.timeout(120 if EXAMPLES <= FEW else 3600)
async def test_nothing_that_is_asked_breaks_the_server(busy: LiveServer) -> None:
    token = AccountKeys(load_keys(busy.project.keys_dir).account_secret).api_token()
    async with busy.http.get(f"{busy.url}api/v1/openapi.json") as response:
        document = await response.json()

    broken = await asyncio.to_thread(ask_everything, document, f"{busy.url}api/v1", token)

    assert broken == []


def ask_everything(document: dict[str, Any], url: str, token: str) -> list[str]:
    """What of the answers was wrong, a sentence each."""
    schema = schemathesis.openapi.from_dict(document)
    headers = {"Authorization": f"Bearer {token}"}
    broken: list[str] = []
    for found in schema.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]  # else it raises, and the document is wrong
        if operation.definition.raw["operationId"] in ENDLESS:
            continue

        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            derandomize=EXAMPLES <= FEW,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            verbosity=Verbosity.quiet,
        )
        def ask(case: Any) -> None:
            answer = case.call(base_url=url, headers=headers, timeout=30)
            case.validate_response(answer, checks=CHECKS)

        try:
            given(case=operation.as_strategy())(ask)()
        except Exception as error:
            broken.append(f"{operation.label}: {error}")
    return broken
