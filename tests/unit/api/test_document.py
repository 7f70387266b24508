"""The table of routes as an OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from api.document import openapi
from api.table import Ask, File, NoParams, Route
from domain.access import Right
from muster_client import shapes


class ThingParams(msgspec.Struct):
    thing_id: Annotated[int, msgspec.Meta(ge=1, description="Which.")]
    limit: int = 5


class ThingBody(msgspec.Struct):
    name: str


async def nothing(ask: Ask[Any, Any]) -> object:
    return None


def document(*routes: Route[Any, Any]) -> dict[str, Any]:
    return openapi(routes, title="t", version="1", url="/api/v1")


def test_path_and_query_parameters_are_distinct() -> None:
    route = Route(
        "GET", "/things/{thing_id}", "thing", "A thing.", nothing, "things", shapes.Json, ThingParams, errors=(404,)
    )

    found = document(route)["paths"]["/things/{thing_id}"]["get"]

    assert [(one["name"], one["in"], one.get("required", False)) for one in found["parameters"]] == [
        ("thing_id", "path", True),
        ("limit", "query", False),
    ]
    assert found["responses"]["404"] == {"$ref": "#/components/responses/NotFound"}
    assert "409" not in found["responses"]
    assert (found["operationId"], found["tags"]) == ("thing", ["things"])


def test_document_has_bodies_files_streams_and_rights() -> None:
    made = document(
        Route("POST", "/things", "add", "", nothing, "t", shapes.NewApp, NoParams, ThingBody, Right.OPERATE, 201),
        Route("PUT", "/file", "put", "", nothing, "t", shapes.Json, NoParams, File("a file"), Right.SUBMIT),
        Route("GET", "/events", "events", "", nothing, "t", None, NoParams),
    )

    add, put, events = made["paths"]["/things"]["post"], made["paths"]["/file"]["put"], made["paths"]["/events"]["get"]
    body = add["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/ThingBody"}
    assert "201" in add["responses"]
    assert "`operate`" in add["description"]
    assert list(put["requestBody"]["content"]) == ["application/octet-stream"]
    assert list(events["responses"]["200"]["content"]) == ["text/event-stream"]


def test_every_reference_resolves() -> None:
    made = document(Route("GET", "/b", "b", "", nothing, "t", shapes.BatchPage, NoParams))

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    for reference in references(made):
        at: Any = made
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
