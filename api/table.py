"""Declares the API's operations, each next to its handler.

    class BatchesApi:
        TAG = "batches"

        @operation("GET", "/batches/{batch_id}", "A batch with its job counts.", errors=(404,))
        async def batch(self, ask: Ask[BatchParams, None]) -> shapes.BatchShown: ...

The declaration and the types in the handler's signature define the OpenAPI document and how requests are parsed.
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
Handler = TypeVar("Handler", bound=Callable[..., Awaitable[Any]])  # Any: the reply, whose type the signature states


REPLAYED = web.RequestKey("replayed", bool)  # a repeated request, which changed nothing
NOTED = web.RequestKey("noted", dict)  # values for the audit trail besides those of the body; `was`: former ones
SUBJECT = web.RequestKey("subject", str)  # for the audit trail, if the handler knows it better than the path


class NoParams(msgspec.Struct, forbid_unknown_fields=True):
    """A route without path or query parameters."""


@dataclass(frozen=True, slots=True)
class Ask(Generic[Params, Body]):
    """A parsed request: `params` come from path and query, `body` from JSON."""

    request: web.Request
    person: Person
    params: Params
    body: Body

    @property
    def who(self) -> str:
        """Return the author recorded for a change: `by` of a request with the project's own token, or the user."""
        named = [by for one in (self.body, self.params) if (by := getattr(one, "by", ""))]
        return named[0] if named and self.person.person_id is None else self.person.name


@dataclass(frozen=True, slots=True)
class File:
    """A file as a request or response body, streamed by the handler."""

    meaning: str
    kind: str = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Route(Generic[Params, Body]):
    """One method on one path.

    `name` is also the name of the handler and of the client's method. `params` come from path and query, `body` from
    JSON. `reply` is the reply's type, a File, or None for an event stream. `right` is the required scope or role;
    changes (not GET) that require more than `read` are recorded in the audit trail. `errors` are statuses in addition
    to 401, 403, 422, 429, 500 and 503.
    """

    method: str
    path: str
    name: str
    summary: str
    handler: Callable[[Ask[Params, Body]], Awaitable[Any]]  # Any: the reply, whose type the signature states
    tag: str
    reply: Any  # a type for msgspec, or a File
    params: type[Params]
    body: Any = None  # a type for msgspec, or a File
    right: Right = Right.READ
    status: int = 200
    errors: tuple[int, ...] = ()
    open_params: bool = False  # the handler also reads further query parameters itself
    headers: tuple[tuple[str, str], ...] = ()  # request headers: name and meaning
    shown_by: str = ""  # of an edit: name of the route that shows the edited object
    edits: bool = False  # another edit of objects that have an ETag: it takes no If-Match, but waits for edits that do
    edited: Callable[[Any], object] | None = None  # the editable part of this route's reply, for its ETag
    leads_to: str = ""  # name of the route that shows the created object
    most_bytes: int = 4 * 1024 * 1024  # maximum size of a JSON body
    told_body: Any = None  # the body's type in the document, if another part of the server parses the body
    subject: str = ""  # subjects in the audit trail, such as "account {name}", if the path does not name them

    @property
    def in_path(self) -> tuple[str, ...]:
        """Return the names of the path parameters.

        >>> Route("GET", "/jobs/{job_id}", "job", "", print, "", None, NoParams).in_path
        ('job_id',)
        """
        return tuple(re.findall(r"\{(\w+)\}", self.path))


def operation(method: str, path: str, summary: str, **more: Any) -> Callable[[Handler], Handler]:
    """Declare a handler's operation. `more` are the fields of `Route` that its name and signature do not give.

    These include `body` and `reply` for files and event streams.
    """

    def declared(handler: Handler) -> Handler:
        _DECLARED[handler] = (method, path, summary, more)
        return handler

    return declared


_DECLARED: dict[Callable[..., Any], tuple[str, str, str, dict[str, Any]]] = {}


class Operations(Protocol):
    """A group of handlers declared with `operation`."""

    TAG: str


def operations_of(*groups: Operations) -> list[Route[Any, Any]]:
    """Return the operations of all groups in order of declaration."""
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
    """Return a response with `value` as JSON."""
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")
