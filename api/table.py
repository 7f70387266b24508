"""The operations of the API: each is declared once, at its handler.

    class BatchesApi:
        TAG = "batches"

        @operation("GET", "/batches/{batch_id}", "A batch with its counters.", errors=(404,))
        async def batch(self, ask: Ask[BatchParams, None]) -> shapes.BatchShown: ...

Requests are read as the declaration and the handler's types say, and the OpenAPI document is made from them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, get_args, get_type_hints, is_typeddict

import msgspec
from aiohttp import web

from administration.access.who import Person
from domain.access import Right

Params = TypeVar("Params")
Body = TypeVar("Body")
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])  # Any: the reply, as its type says


class NoParams(msgspec.Struct, forbid_unknown_fields=True):
    """A route that takes nothing in its address."""


@dataclass(frozen=True, slots=True)
class Ask(Generic[Params, Body]):
    """One request, read: `params` are from its path and query, `body` from its JSON."""

    request: web.Request
    person: Person
    params: Params
    body: Body


@dataclass(frozen=True, slots=True)
class File:
    """A body that is a file, read or written by the handler piece by piece."""

    meaning: str
    kind: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Route(Generic[Params, Body]):
    """One method of one path.

    `name` is the operation's, its handler's and its client method's. `params` are read from path and query, `body` from
    JSON. `reply` is a type the answer fits, a File, or None for a stream of events. `right` is what a token or a role
    needs; what needs more than `read` is put in the audit trail. `errors`: statuses besides 401, 403, 422, 429, 500 and
    503.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable[[Ask[Params, Body]], Awaitable[Any]]  # Any: the reply, as its type says
    tag: str
    reply: Any  # a type, for msgspec, or a File
    params: type[Params]
    body: Any = None  # a type, or a File
    right: Right = Right.READ
    status: int = 200
    errors: tuple[int, ...] = ()
    open_params: bool = False  # the handler reads the query itself, too
    headers: tuple[tuple[str, str], ...] = ()  # of the request: name and meaning
    leads_to: str = ""  # the name of the route that shows what was made
    most_bytes: int = 4 * 1024 * 1024  # of a JSON body

    @property
    def in_path(self) -> tuple[str, ...]:
        """The names of what is read from the path.

        >>> Route("GET", "/jobs/{job_id}", "job", "", print, "", None, NoParams).in_path
        ('job_id',)
        """
        return tuple(re.findall(r"\{(\w+)\}", self.path))


def operation(method: str, path: str, summary: str, **more: Any) -> Callable[[Handler], Handler]:
    """Declares a handler's operation; `more` are fields of `Route` that its name and its types do not tell.

    `body` and `reply` are among them where they are files, or a stream of events.
    """

    def declared(handler: Handler) -> Handler:
        _DECLARED[handler] = (method, path, summary, more)
        return handler

    return declared


_DECLARED: dict[Callable[..., Any], tuple[str, str, str, dict[str, Any]]] = {}


class Operations(Protocol):
    """Operations on one subject: handlers marked with `operation`."""

    TAG: str


def operations_of(*groups: Operations) -> list[Route[Any, Any]]:
    """The operations of the groups in the order in which they are declared."""
    return [
        _route(getattr(group, name), group.TAG, *_DECLARED[function])
        for group in groups
        for name, function in vars(type(group)).items()
        if inspect.isfunction(function) and function in _DECLARED
    ]


def _route(
    handler: Callable[..., Any], tag: str, method: str, path: str, summary: str, more: Mapping[str, Any]
) -> Route[Any, Any]:
    hints = get_type_hints(handler)
    params, body = get_args(hints["ask"])
    reply = next((one for one in get_args(hints["return"]) if is_typeddict(one)), hints["return"])
    told = {"reply": reply, "params": params, "body": None if body is type(None) else body, **more}
    return Route(method, path, handler.__name__, summary, handler, tag, **told)


def reply(value: object, *, status: int = 200) -> web.Response:
    """`value` as JSON."""
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")
