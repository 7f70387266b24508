"""Entity tags of what can be edited, and edits that are made only if it has not changed (If-Match, RFC 9110)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import msgspec
from aiohttp import hdrs

from api.table import Ask, Route
from domain.errors import MusterError, NotFoundError

IF_MATCH = (
    "If-Match",
    "The ETag of the object as last read. If it has changed meanwhile, nothing is changed and the reply is 412.",
)


class ChangedError(MusterError):
    """The object differs from the one that the caller has read. `current` is its editable part now, None if gone."""

    def __init__(self, current: object) -> None:
        self.current = current
        self.tag = None if current is None else tag_of(current)
        super().__init__("it was changed after it was read; read it again")


class Edits(Protocol):
    def editing(self, *, alone: bool) -> AbstractAsyncContextManager[None]:
        """Hold off edits that depend on the present state; with `alone`, all edits."""
        ...


def tag_of(value: object) -> str:
    """Return the entity tag of a value.

    >>> tag_of({"a": 1, "b": 2}) == tag_of({"b": 2, "a": 1}), tag_of(1) == tag_of(2)
    (True, False)
    """
    return f'"{hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:32]}"'


def edited_part(*keys: str) -> Callable[[Any], object]:
    """Return a function that selects the editable keys of a reply.

    >>> edited_part("level")({"level": "normal", "sent": 7})
    {'level': 'normal'}
    """
    return lambda reply: {key: reply[key] for key in keys}


def _named(ask: Ask[Any, Any], params: type[msgspec.Struct]) -> dict[str, Any]:
    """Return what names the edited object: the values of `params` in the edit's path, query or body."""
    given = [msgspec.to_builtins(one) for one in (ask.body, ask.params) if isinstance(one, msgspec.Struct)]
    found = {name: value for one in given for name, value in one.items() if value is not None}
    return {field.name: found[field.name] for field in msgspec.structs.fields(params) if field.name in found}


class Conditions:
    """Checks the If-Match header of edits."""

    def __init__(self, routes: tuple[Route[Any, Any], ...], edits: Edits) -> None:
        self._shown_by = {route.name: route for route in routes}
        self._edits = edits

    @asynccontextmanager
    async def unchanged(self, route: Route[Any, Any], ask: Ask[Any, Any]) -> AsyncIterator[None]:
        """Make an edit inside the block; no conditional edit happens meanwhile. Raises ChangedError."""
        wanted = ask.request.headers.get(hdrs.IF_MATCH) if route.shown_by else None
        async with self._edits.editing(alone=wanted is not None):
            if wanted is not None:
                await self._check(self._shown_by[route.shown_by], ask, wanted)
            yield

    async def _check(self, shown_by: Route[Any, Any], ask: Ask[Any, Any], wanted: str) -> None:
        assert shown_by.edited is not None
        params = msgspec.convert(_named(ask, shown_by.params), shown_by.params, strict=False)
        try:
            current = shown_by.edited(await shown_by.handler(Ask(ask.request, ask.person, params, None)))
        except NotFoundError:
            raise ChangedError(None) from None
        if wanted.strip() != "*" and tag_of(current) not in [one.strip() for one in wanted.split(",")]:
            raise ChangedError(current)
