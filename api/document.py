"""Builds the OpenAPI 3.1 document from the route table, and serves the API's test page. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec
from aiohttp import web

from api.table import File, NoParams, Route
from web.problems import Problem

REF = "#/components/schemas/{name}"
ALWAYS = (400, 401, 403, 422, 429, 500, 503)
STATUSES = (*ALWAYS, 404, 409, 413)

Json = dict[str, Any]  # Any: a JSON document


def openapi(routes: Sequence[Route[Any, Any]], *, title: str, version: str, url: str) -> Json:
    """Return the OpenAPI document of an API served at `url`."""
    types = _types(routes)
    schemas, components = msgspec.json.schema_components(types, ref_template=REF)
    schema_of = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}
    paths: Json = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of, components)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": ABOUT},
        "servers": [{"url": url}],
        "tags": [{"name": tag} for tag in dict.fromkeys(route.tag for route in routes)],
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {_named(status): _wrong(status) for status in STATUSES},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A personal token, with scopes."},
                "session": {"type": "apiKey", "in": "cookie", "name": "muster_session"},
            },
        },
        "security": [{"token": []}, {"session": []}],
    }


ABOUT = (
    "Times (`*_at`) are seconds since the epoch, UTC; durations (`*_s`) are seconds. "
    "With the header `Prefer: times=iso`, replies also contain each time as ISO 8601 (`*_at_iso`). "
    "`RateLimit-Policy` and `RateLimit` give the limit of the caller's address. "
    "Errors are `application/problem+json`. Lists are paginated: pass `next_cursor` as `cursor` to get the next page. "
    "Requests with a session cookie that change data also need the header `X-CSRF-Token`."
)


def _types(routes: Sequence[Route[Any, Any]]) -> list[Any]:
    found: dict[int, Any] = {id(Problem): Problem}
    for route in routes:
        for kind in (route.params, route.body, route.reply):
            if kind is not None and not isinstance(kind, File):
                found.setdefault(id(kind), kind)
    return list(found.values())


def _operation(route: Route[Any, Any], schema_of: dict[int, Json], components: Json) -> Json:
    operation: Json = {
        "operationId": route.name,
        "summary": route.summary,
        "description": f"Needs the scope `{route.right.value}`.",
        "tags": [route.tag],
        "responses": _responses(route, schema_of),
    }
    if parameters := _parameters(route, schema_of, components):
        operation["parameters"] = parameters
    if isinstance(route.body, File):
        content = {route.body.kind: {"schema": {"type": "string", "format": "binary"}}}
        operation["requestBody"] = {"description": route.body.meaning, "required": True, "content": content}
    elif route.body is not None:
        content = {"application/json": {"schema": schema_of[id(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Route[Any, Any], schema_of: dict[int, Json], components: Json) -> list[Json]:
    parameters: list[Json] = []
    if route.params is not NoParams:
        schema = components[schema_of[id(route.params)]["$ref"].rpartition("/")[2]]
        for name, of in schema["properties"].items():
            in_path = name in route.in_path
            one: Json = {"name": name, "in": "path" if in_path else "query", "schema": of}
            if in_path or name in schema.get("required", ()):
                one["required"] = True
            if "description" in of:
                one["description"] = of["description"]
            parameters.append(one)
    parameters += [
        {"name": name, "in": "header", "description": meaning, "schema": {"type": "string"}}
        for name, meaning in route.headers
    ]
    return parameters


def _responses(route: Route[Any, Any], schema_of: dict[int, Json]) -> Json:
    if route.reply is None:
        content: Json = {"text/event-stream": {"schema": {"type": "string"}}}
    elif isinstance(route.reply, File):
        content = {route.reply.kind: {"schema": {"type": "string", "format": "binary"}}}
    else:
        content = {"application/json": {"schema": schema_of[id(route.reply)]}}
    right: Json = {"description": HTTPStatus(route.status).phrase, "content": content}
    if route.leads_to:
        right["headers"] = {
            "Location": {"description": "The address of the created object.", "schema": {"type": "string"}}
        }
    responses: Json = {str(route.status): right}
    for status in sorted({*ALWAYS, *route.errors}):
        responses[str(status)] = {"$ref": f"#/components/responses/{_named(status)}"}
    return responses


def _named(status: int) -> str:
    return HTTPStatus(status).name.title().replace("_", "")


def _wrong(status: int) -> Json:
    schema = {"$ref": REF.format(name=Problem.__name__)}
    return {"description": HTTPStatus(status).phrase, "content": {"application/problem+json": {"schema": schema}}}


KINDS = {"try.html": "text/html", "try.js": "text/javascript", "try.css": "text/css"}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class TryPage:
    """Serves the three files of the API's test page from memory."""

    def __init__(self) -> None:
        folder = files("api").joinpath("static")
        self._files = {name: folder.joinpath(name).read_bytes() for name in KINDS}

    def routes(self) -> list[web.RouteDef]:
        return [web.get(path, self.serve) for path in ("/", "/try.js", "/try.css")]

    async def serve(self, request: web.Request) -> web.Response:
        name = request.path.rpartition("/")[2] or "try.html"
        return web.Response(body=self._files[name], content_type=KINDS[name], charset="utf-8", headers=HEADERS)
