"""The page of what the API takes and gives, made from its OpenAPI document. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from api.routes import Api
from api.table import Route
from cli.manual.words import MADE, cell, code, table
from domain.clock import SystemClock
from domain.settings import Settings

Json = dict[str, Any]  # Any: a JSON document

_HEAD = f"""\
# Messages of the API

{MADE.format(source="the OpenAPI document")}

How the API is used is in [the API](../api.md).
Instants (`*_at`) are seconds since the epoch, UTC; lengths of time (`*_s`) are seconds.
"""
NUMBERS = {"minimum": ">= {}", "maximum": "<= {}", "exclusiveMinimum": "> {}", "exclusiveMaximum": "< {}"}
LENGTHS = {"minLength": "{} characters or more", "maxLength": "at most {} characters", "maxItems": "at most {}"}


class Unasked:
    """Stands for a store that nobody asks: only what the routes say of themselves is read."""

    def __getattr__(self, name: str) -> Unasked:
        return self


def routes_of_the_api() -> tuple[Route[Any, Any], ...]:
    """Every route, served by nothing."""
    nothing = cast(Any, Unasked())  # Any: stands for whatever a route would ask
    made = Api(nothing, nothing, nothing, nothing, nothing, nothing, nothing, SystemClock(), settings=Settings)
    return made.table.routes


def messages_page(document: Json) -> str:
    """The whole page."""
    operations = [(method, path, one) for path, of in document["paths"].items() for method, one in of.items()]
    parts = [_HEAD]
    for tag in document["tags"]:
        parts.append(f"## {tag['name']}\n")
        parts += [_operation(*found) for found in operations if found[2]["tags"] == [tag["name"]]]
    parts.append("## Shapes\n")
    parts += [_shape(name, of) for name, of in sorted(document["components"]["schemas"].items())]
    return "\n".join(parts)


def _operation(method: str, path: str, one: Json) -> str:
    parts = [
        f"### {one['operationId']}\n",
        f"`{method.upper()} /api/v1{path}`: {cell(one['summary'])} {one['description']}\n",
    ]
    rows = [
        [code(of["name"]), of["in"], kind_of(of["schema"]), cell(of.get("description", ""))]
        for of in one.get("parameters", ())
    ]
    if rows:
        parts.append(table(["parameter", "in", "value", "meaning"], rows) + "\n")
    if body := one.get("requestBody"):
        parts.append(f"Takes {_content(body['content'])}.\n")
    status, reply = next(iter(one["responses"].items()))
    parts.append(f"Gives {_content(reply['content'])} with status {status}.\n")
    return "\n".join(parts)


def _content(content: Json) -> str:
    ((media, of),) = content.items()
    if media == "application/json":
        return kind_of(of["schema"])
    return {
        "text/event-stream": "a stream of events",
        "application/octet-stream": "a file",
        "application/x-tar": "a tar archive",
    }[media]


def _shape(name: str, of: Json) -> str:
    about = [cell(of["description"]) + "\n"] if of.get("description") else []
    if "properties" not in of:
        return "\n".join([f"### {name}\n", *about, f"{kind_of(of)}\n"])
    needed = of.get("required", ())
    rows = [
        [code(field), kind_of(schema), "yes" if field in needed else "", cell(schema.get("description", ""))]
        for field, schema in of["properties"].items()
    ]
    return "\n".join([f"### {name}\n", *about, table(["field", "value", "always", "meaning"], rows) + "\n"])


def kind_of(schema: Json) -> str:
    """What a value is, in words.

    >>> kind_of({"type": "integer", "minimum": 1}), kind_of({"anyOf": [{"type": "string"}, {"type": "null"}]})
    ('integer \\\\>= 1', 'string or null')
    >>> kind_of({"type": "array", "items": {"$ref": "#/components/schemas/Host"}})
    'list of [Host](#host)'
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(kind_of(choice) for choice in choices)
    if "enum" in schema:
        return ", ".join(code(str(value)) for value in schema["enum"])
    return " ".join(_words(schema))


def _words(schema: Json) -> Iterator[str]:
    kind = schema.get("type", "anything")
    if kind == "array":
        yield f"list of {kind_of(schema['items'])}" if schema.get("items") else "list"
    elif kind == "object":
        values = schema.get("additionalProperties")
        yield f"object of {kind_of(values)}" if isinstance(values, dict) and values else "object"
    else:
        yield cell(str(kind))
    for key, words in (NUMBERS | LENGTHS).items():
        if key in schema:
            yield cell(words.format(schema[key]))
