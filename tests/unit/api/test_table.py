"""Every operation is in the manual, and has a unique name and a documented reply."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from api.routes import Api
from api.table import Route

PAGE = Path(__file__).parents[3] / "docs" / "api.md"


def line(route: Route[Any, Any]) -> str:
    return f"| `{route.name}` | `{route.method} {route.path}` | {route.right.value} | {route.summary} |"


def test_manual_lists_every_operation(api: Api) -> None:
    listed = [text for text in PAGE.read_text(encoding="utf-8").splitlines() if text.startswith("| `") and "/" in text]

    assert sorted(listed) == sorted(line(route) for route in api.table.routes)


def test_operation_names_and_addresses_are_unique(api: Api) -> None:
    names = [route.name for route in api.table.routes]
    addresses = [(route.method, route.path) for route in api.table.routes]

    assert len(set(names)) == len(names)
    assert len(set(addresses)) == len(addresses)


def test_path_parameters_are_declared(api: Api) -> None:
    for route in api.table.routes:
        assert set(route.in_path) <= set(route.params.__struct_fields__), route.name


def test_document_has_every_operation(api: Api) -> None:
    document = json.loads(api.document)

    told = {
        (method.upper(), path, operation["operationId"])
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    assert told == {(route.method, route.path, route.name) for route in api.table.routes}
    assert document["servers"] == [{"url": "/api/v1"}]
