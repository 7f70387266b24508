"""What is a route of the API? Everything there is to know of it, said once.

Requests are read as it says, and the OpenAPI document is made from it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec
from aiohttp import web

from administration.access.who import Person
from domain.access import Right

Params = TypeVar("Params")
Body = TypeVar("Body")


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

    `name` is the operation's and its client method's. `params` are read from path and query, `body` from JSON.
    `reply` is a type the answer fits, a File, or None for a stream of events. `right` is what a token or a role needs;
    what needs more than `read` is put in the audit trail. `errors`: statuses besides 401, 403, 422, 429, 500 and 503.
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
    raw: bool = False  # the handler answers by itself
    leads_to: str = ""  # the name of the route that shows what was made
    most_bytes: int = 4 * 1024 * 1024  # of a JSON body

    @property
    def in_path(self) -> tuple[str, ...]:
        """The names of what is read from the path.

        >>> Route("GET", "/jobs/{job_id}", "job", "", print, "", None, NoParams).in_path
        ('job_id',)
        """
        return tuple(re.findall(r"\{(\w+)\}", self.path))


def reply(value: object, *, status: int = 200) -> web.Response:
    """`value` as JSON."""
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")
