"""The return types of the client's methods match the OpenAPI document."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest

from api.routes import Api
from api.table import File, Route
from muster_client import Client, SyncClient, shapes

LISTS = (
    "batches",
    "jobs",
    "hosts",
    "apps",
    "accounts",
    "submitters",
    "volunteers",
    "people",
    "tokens",
    "subscriptions",
)
OPERATIONS = {
    **{name: f"list_{name}" for name in LISTS},
    "submit": "submit_batch",
    "submit_and_preview": "submit_batch",
    "preview": "submit_batch",
    "preview_clone": "clone_batch",
    "abort": "abort_batch",
    "order": "priorities",
    "wait": "batch",
    "instances": "list_instances",
    "deliveries": "list_deliveries",
    "setting_details": "settings",
}
NO_REPLY = (
    "close",
    "watch",
    "explain",
    "fetch_output",
    "fetch_outputs",
    "results_table",
    "set_shares",
    "permit",
    "take_grant",
    "lift_limit",
    "delete_account",
    "delete_submitter",
)


def calls() -> Iterator[str]:
    for name, _ in inspect.getmembers(Client, inspect.isfunction):
        if not name.startswith("_") and name not in NO_REPLY:
            yield name


@pytest.mark.parametrize("client", [Client, SyncClient])
@pytest.mark.parametrize("name", list(calls()))
def test_call_returns_its_operations_reply_or_a_part(api: Api, client: type, name: str) -> None:
    routes = {route.name: route for route in api.table.routes}
    operation = OPERATIONS.get(name, name)
    reply = routes[operation].reply

    returned = get_type_hints(getattr(client, name))["return"]

    assert named(returned) in map(named, whole_or_part(reply))


def named(hint: Any) -> str:
    """A type's name without its modules.

    >>> named(list[shapes.BatchShown]), named(shapes.RankingRunShown | None)
    ('list[BatchShown]', 'RankingRunShown | None')
    """
    whole = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return re.sub(r"(?:\w+\.)+(\w+)", r"\1", whole)


def whole_or_part(reply: Any) -> list[Any]:
    """A reply's type, the types of its keys, and those without None: what a method may return."""
    parts = list(get_type_hints(reply).values())
    return [
        reply,
        *parts,
        *(one for part in parts for one in getattr(part, "__args__", ()) if type(None) in part.__args__),
    ]


@pytest.mark.parametrize("client", [Client, SyncClient])
def test_explain_returns_the_reply_of_an_explain_operation(api: Api, client: type) -> None:
    replies = {route.reply for route in api.table.routes if route.name.startswith("explain_")}

    explained = get_args(get_type_hints(client.explain)["return"])  # type: ignore[attr-defined]
    assert set(map(named, explained)) == set(map(named, replies))


def test_json_replies_have_declared_keys(api: Api) -> None:
    def is_told(route: Route[Any, Any]) -> bool:
        return route.reply is None or isinstance(route.reply, File) or bool(get_type_hints(route.reply))

    assert [route.name for route in api.table.routes if not is_told(route) or route.reply is shapes.Json] == []
