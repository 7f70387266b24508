"""Request handling before the operation runs: tokens, bodies and problem documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.typedefs import Handler

from administration.access.authentication import Authenticator
from administration.access.who import NotAllowedError, TooManyAttemptsError
from api.accounts import NewAccountBody, NewVolunteerBody
from api.apps import NewAppBody
from api.paging import Page
from api.reading import decoded
from api.serving import Strangers, Table, problem, problems
from api.settings import SettingBody
from api.table import Ask, NoParams, Route
from domain.access import Right
from domain.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    MusterError,
    NotFoundError,
    UnavailableError,
)
from domain.settings import Settings
from domain.units import Seconds
from tests.facts import missing, states
from tests.memory import MemoryStore
from tests.stores import as_postgres
from tests.unit.administration.clocks import StillClock
from web.handlers import whole_number

TOKEN = "a" * 64
SIGNED = {"Authorization": f"Bearer {TOKEN}"}
BODIES: dict[str, type[msgspec.Struct]] = {
    "account": NewAccountBody,
    "app": NewAppBody,
    "volunteer": NewVolunteerBody,
    "setting": SettingBody,
}
Client = TestClient[web.Request, web.Application]


class NumbersParams(Page, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]
    job_id: Annotated[int, msgspec.Meta(ge=1, le=2**62)]


def broken(error: Exception) -> Handler:
    """A handler that raises the error."""

    async def handle(request: web.Request) -> web.StreamResponse:
        raise error

    return handle


async def echo(ask: Ask[NoParams, Any]) -> object:
    """Return the decoded body."""
    return {"got": repr(ask.body)}


async def numbers(ask: Ask[NumbersParams, None]) -> object:
    return {"limit": ask.params.limit, "batch": ask.params.batch_id, "job": ask.params.job_id}


def authenticator_of(store: MemoryStore) -> Authenticator:
    known = as_postgres(store)
    return Authenticator(known.access, known.volunteers, known.people, Settings, StillClock(), project_token=TOKEN)


@asynccontextmanager
async def an_api(error: Exception | None = None, store: MemoryStore | None = None) -> AsyncIterator[Client]:
    store = store or MemoryStore()
    authenticator = authenticator_of(store)
    api = web.Application(
        middlewares=[problems, authenticator.middleware, Strangers({"/open"}).middleware], client_max_size=1000
    )
    routes = [
        Route(
            "POST",
            f"/echo/{kind}",
            f"echo_{kind}",
            "",
            echo,
            "t",
            dict,
            NoParams,
            body=body,
            right=Right.OPERATE,
            most_bytes=1000,
        )
        for kind, body in BODIES.items()
    ]
    params = NumbersParams
    routes.append(Route("GET", "/numbers/{batch_id}/{job_id}", "numbers", "", numbers, "t", dict, params))  # type: ignore[arg-type]
    api.add_routes(Table(routes, authenticator, StillClock()).definitions())
    api.router.add_get("/broken", broken(error or web.HTTPNoContent()))
    api.router.add_get("/open", broken(web.HTTPNoContent()))
    app = web.Application(client_max_size=1000)
    app.add_subapp("/api/v1", api)
    async with TestClient(TestServer(app)) as client:
        yield client


async def document_of(response: Any, status: int) -> dict[str, Any]:
    assert response.status == status
    assert response.content_type == "application/problem+json"
    document: dict[str, Any] = await response.json(content_type=None)
    assert document["type"] == "urn:muster:problem:" + document["title"].replace(" ", "-")
    assert document["status"] == status
    return document


# ---------------------------------------------------------------- tokens


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_project_token_is_accepted(scheme: str) -> None:
    async with an_api() as client:
        response = await client.get("/api/v1/numbers/1/2", headers={"Authorization": f"{scheme} {TOKEN}"})

        assert response.status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}a"},
        {"Authorization": f"Bearer {TOKEN.upper()}"},
        {"Authorization": "Bearer ключ"},
    ],
)
async def test_wrong_token_gets_401_with_a_challenge(headers: dict[str, str]) -> None:
    async with an_api() as client:
        document = await document_of(await client.get("/api/v1/numbers/1/2", headers=headers), 401)

        assert document["title"] == "not signed in"
        assert "Authorization: Bearer" in document["detail"]
        assert TOKEN not in str(document)


async def test_unknown_paths_need_a_token_too() -> None:
    async with an_api() as client:
        known, unknown = await client.get("/api/v1/numbers/1/2"), await client.get("/api/v1/nowhere")

        assert (known.status, unknown.status) == (401, 401)
        assert await known.text() == await unknown.text()


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("error", "status", "title", "facts"),
    [
        (InvalidInputError("n", "a number", -5), 422, "invalid input", ("n:", "number", "-5")),
        (NotFoundError("batch", 7), 404, "not found", ("no batch 7",)),
        (AlreadyExistsError("app", "pi"), 409, "already exists", ("app 'pi' already exists",)),
        (ConflictError("another one"), 409, "conflict", ("another one",)),
        (NotAllowedError("not yours"), 403, "not allowed", ("not yours",)),
        (
            TooManyAttemptsError(Seconds(7.2)),
            429,
            "too many attempts",
            ("7 s",),
        ),
        (UnavailableError("the database is away"), 503, "unavailable", ("the database is away",)),
        (MusterError("not now"), 400, "refused", ("not now",)),
        (web.HTTPForbidden(text="no"), 403, "forbidden", ("no",)),
    ],
)
async def test_error_becomes_a_problem_document(
    error: Exception, status: int, title: str, facts: tuple[str, ...]
) -> None:
    async with an_api(error) as client:
        document = await document_of(await client.get("/api/v1/broken", headers=SIGNED), status)

        detail = error.text if isinstance(error, web.HTTPException) else str(error)
        assert (document["title"], document["detail"], missing(document["detail"], *facts)) == (title, detail, [])


async def test_invalid_input_has_a_field_member() -> None:
    async with an_api(InvalidInputError("jobs.count", "a number", -5)) as client:
        document = await document_of(await client.get("/api/v1/broken", headers=SIGNED), 422)

        assert (document["field"], document["expected"], document["got"]) == ("jobs.count", "a number", "-5")


async def test_unexpected_error_reveals_no_details() -> None:
    async with an_api(RuntimeError("password=secret")) as client:
        document = await document_of(await client.get("/api/v1/broken", headers=SIGNED), 500)

        assert "secret" not in str(document)
        assert (document["title"], missing(document["detail"], "log")) == ("internal error", [])


async def test_unknown_path_and_wrong_method_are_problem_documents() -> None:
    async with an_api() as client:
        assert (await document_of(await client.get("/api/v1/nowhere", headers=SIGNED), 404))["title"] == "not found"
        assert (await document_of(await client.put("/api/v1/broken", headers=SIGNED), 405))[
            "title"
        ] == "method not allowed"


async def test_body_too_large_gets_413() -> None:
    async with an_api() as client:
        response = await client.post("/api/v1/echo/account", headers=SIGNED, data=b'{"name":"' + b"x" * 2000 + b'"}')

        await document_of(response, 413)


def test_problem_has_extra_members() -> None:
    response = problem(409, "busy", "try later", retry_s=5)

    assert response.body == (
        b'{"type":"urn:muster:problem:busy","title":"busy","status":409,"detail":"try later","retry_s":5}'
    )


# ---------------------------------------------------------------- bodies


@pytest.mark.parametrize(
    ("kind", "body", "understood"),
    [
        ("account", '{"name":"physics"}', "NewAccountBody(name='physics', parent=None, shares=1.0)"),
        ("account", '{"name":"a","parent":"b","shares":3}', "NewAccountBody(name='a', parent='b', shares=3.0)"),
        ("volunteer", '{"email":"a@x"}', "NewVolunteerBody(email='a@x', name='', password=None)"),
        ("setting", '{"value":null,"why":"back"}', "SettingBody(value=None, why='back', by='api')"),
    ],
)
async def test_valid_body_is_decoded(kind: str, body: str, understood: str) -> None:
    async with an_api() as client:
        response = await client.post(f"/api/v1/echo/{kind}", headers=SIGNED, data=body)

        assert await response.json() == {"got": understood}


@pytest.mark.parametrize(
    ("kind", "body", "field", "facts"),
    [
        ("account", b"{}", "name", ("name:", "'nothing'")),
        ("account", b'{"name":1}', "name", ("name:", "text", "'int'")),
        ("account", b'{"name":"a","shares":"many"}', "shares", ("shares:", "number", "'str'")),
        ("account", b'{"name":"a","parent":3}', "parent", ("parent:", "text", "'int'")),
        ("account", b'{"name":"a","sharse":2}', "sharse", ("sharse:", "known")),
        ("account", b"[]", "body", ("body:", "object", "'array'")),
        (
            "app",
            b'{"name":"a","adaptive_copies":1.5}',
            "adaptive_copies",
            ("adaptive_copies:", "whole", "'float'"),
        ),
        ("setting", b'{"value":1e400}', "value", ("value:", "range")),
        ("account", b"", "body", ("body:", "JSON", "truncated")),
        ("account", b"\xff", "body", ("body:", "JSON", "byte 0")),
    ],
)
async def test_invalid_body_names_field_expected_and_got(
    kind: str, body: bytes, field: str, facts: tuple[str, ...]
) -> None:
    async with an_api() as client:
        document = await document_of(await client.post(f"/api/v1/echo/{kind}", headers=SIGNED, data=body), 422)

        assert (document["field"], missing(document["detail"], *facts)) == (field, [])


async def test_numbers_in_path_and_query_are_parsed() -> None:
    async with an_api() as client:
        without, given = "/api/v1/numbers/7/41", "/api/v1/numbers/7/41?limit=5"

        assert await (await client.get(without, headers=SIGNED)).json() == {"limit": 100, "batch": 7, "job": 41}
        assert await (await client.get(given, headers=SIGNED)).json() == {"limit": 5, "batch": 7, "job": 41}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/numbers/0/1", "batch_id"),
        ("/numbers/x/1", "batch_id"),
        ("/numbers/1/-1", "job_id"),
        ("/numbers/1/99999999999999999999", "job_id"),
        ("/numbers/1/1?limit=0", "limit"),
        ("/numbers/1/1?limit=1001", "limit"),
        ("/numbers/1/1?limit=", "limit"),
        ("/numbers/1/1?colour=blue", "colour"),
        ("/numbers/1/1?cursor=%00", "cursor"),
        ("/numbers/1/1?batch_id=2", "batch_id"),
        ("/numbers/1/1?limit=%D9%A3", "limit"),
    ],
)
async def test_invalid_number_is_named(path: str, field: str) -> None:
    async with an_api() as client:
        assert (await document_of(await client.get(f"/api/v1{path}", headers=SIGNED), 422))["field"] == field


def test_range_includes_both_ends() -> None:
    assert [whole_number(text, "n", 3, 5) for text in ("3", "5")] == [3, 5]
    for text in ("2", "6", "+3", " 3", "3.0"):
        with states(InvalidInputError, "n:", "whole", "3 to 5"):
            whole_number(text, "n", 3, 5)


@pytest.mark.parametrize(
    "body", [b'{"jobs":' * 5000 + b"1" + b"}" * 5000, b'{"a":"\\u0000","jobs":' + b"[" * 5000 + b"]" * 5000 + b"}"]
)
def test_deeply_nested_body_is_refused(body: bytes) -> None:
    with states(InvalidInputError, "body:", "JSON", "nested"):
        decoded(body, dict[str, Any])
