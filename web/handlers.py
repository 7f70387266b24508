"""Base of page handlers: routes, common dependencies, and parsing of forms and query parameters."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from aiohttp.typedefs import Handler

from administration.access.authentication import Authenticator
from administration.access.who import person_of, volunteer_of
from administration.names import checked_text
from domain.catalogue import Catalogue, CatalogueSource
from domain.clock import Clock
from domain.errors import ConflictError, InvalidInputError, MusterError
from domain.units import HostId
from feeder.array import JobArray
from store.postgres import PostgresStore
from web.rendering import RenderedPage, Renderer


def whole_number(text: str, field: str, low: int, high: int) -> int:
    """Parse an integer within a range. Raises InvalidInputError.

    >>> whole_number("7", "limit", 1, 10), whole_number("-5", "user_priority", -1024, 1023)
    (7, -5)
    """
    digits = text.removeprefix("-") if low < 0 else text
    if digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high:
        return int(text)
    raise InvalidInputError(field, f"a whole number from {low} to {high}", text)


LARGEST_ID = 2**62
LARGEST_INT = 2**31 - 1  # of the tables with ids of 32 bits
UPLOAD_PATH = "/batches/upload"  # the only page with a multipart form


@dataclass(frozen=True, slots=True)
class PageServices:
    """Dependencies of all pages. `array` is this worker's job array, if there is one."""

    source: CatalogueSource
    clock: Clock
    authenticator: Authenticator
    renderer: Renderer
    store: PostgresStore
    array: JobArray | None

    @property
    def catalogue(self) -> Catalogue:
        return self.source.catalogue()

    async def host_names(self, host_ids: Iterable[HostId | None]) -> Mapping[HostId, str]:
        """Return the names of the hosts to which a page links, read at once."""
        wanted = sorted({one for one in host_ids if one})
        return await self.store.host_lists.names(wanted) if wanted else {}

    def go(self, address: str, said: str = "") -> web.Response:
        """Redirect after a form, so that a reload does not submit it again."""
        joined = f"{'&' if '?' in address else '?'}said={said}" if said else ""
        return web.Response(status=303, headers={"Location": f"{self.renderer.root}/{address}{joined}"})

    def go_back(self, fields: Mapping[str, str], otherwise: str, said: str) -> web.Response:
        """Redirect to the page of these pages from which a form was sent (`back`), or to another one without it."""
        if not (back := fields.get("back", "")):
            return self.go(otherwise, said)
        path, _, query = self.renderer.inside(back).partition("?")
        kept = [(key, text) for key, text in parse_qsl(query) if key != "said"]
        return web.Response(status=303, headers={"Location": f"{path}?{urlencode([*kept, ('said', said)])}"})

    def go_to(self, address: str, said: str = "", **query: str) -> web.Response:
        """Redirect to a page that a query identifies, such as a user's."""
        return self.go(f"{address}?{urlencode(query)}", said)


@dataclass(frozen=True, slots=True)
class Address:
    """A handler's route: method, path, name, and accepted query parameters.

    `form`: the method that shows the handler's form, which is shown again if the input is refused. `edits`: the handler
    changes an object that the API can change with If-Match, so it waits for such changes.
    """

    route: Callable[..., web.RouteDef]
    path: str
    name: str
    asks: Collection[str] = ()
    form: str = ""
    edits: bool = False


ADDRESS = "page_address"  # attribute of a handler that contains its Address
H = TypeVar("H", bound=Callable[..., Awaitable[web.StreamResponse | RenderedPage]])
D = TypeVar("D", bound=PageServices)


def get(path: str, name: str, *, asks: Collection[str] = (), form: str = "") -> Callable[[H], H]:
    """Mark a method of Pages as the page at `path`, which accepts the query parameters `asks` and no others."""
    return _marked(Address(web.get, path, name, asks, form))


def post(path: str, name: str, *, form: str = "", edits: bool = False) -> Callable[[H], H]:
    """Mark a method of Pages as the handler of forms posted to `path`."""
    return _marked(Address(web.post, path, name, form=form, edits=edits))


def _marked(address: Address) -> Callable[[H], H]:
    def mark(handler: H) -> H:
        handler.__dict__[ADDRESS] = address
        return handler

    return mark


class Pages(Generic[D]):
    """Pages on one subject: methods marked with `get` or `post` that return a page or a response."""

    def __init__(self, services: D) -> None:
        self._services = services

    def routes(self) -> list[web.RouteDef]:
        """Return the routes in the order of the methods, those of base classes first."""
        members = [member for kind in reversed(type(self).__mro__) for member in vars(kind).items()]
        marked = [(name, member.__dict__[ADDRESS]) for name, member in members if hasattr(member, ADDRESS)]
        return [at.route(at.path, self._rendering(getattr(self, name)), name=at.name) for name, at in marked]

    def _rendering(self, handler: Callable[[web.Request], Awaitable[web.StreamResponse | RenderedPage]]) -> Handler:
        """Return a handler that renders a returned page for the signed-in user."""

        at: Address = getattr(handler, ADDRESS)

        @functools.wraps(handler)
        async def respond(request: web.Request) -> web.StreamResponse:
            try:
                if at.edits and (person_of(request) or volunteer_of(request)):
                    await request.post()  # before the lock, because clients may be slow
                    async with self._services.store.settings.editing(alone=False):
                        answer = await handler(request)
                else:
                    answer = await handler(request)
            except (InvalidInputError, ConflictError) as error:
                answer = await self._again(request, at, error)
            return await self._rendered(request, answer) if isinstance(answer, RenderedPage) else answer

        return respond

    async def _rendered(self, request: web.Request, page: RenderedPage) -> web.Response:
        """Render the page; while the project is paused, every page for its staff says so."""
        renderer, store = self._services.renderer, self._services.store.settings
        pause = await store.project_pause() if renderer.style.project and person_of(request) else None
        return renderer.response(request, replace(page, pause=pause))

    async def _again(self, request: web.Request, at: Address, error: MusterError) -> RenderedPage:
        """Return the page of the form with the input kept (`fields`) and the error at its field (`mistake`)."""
        if not at.form:
            raise error
        shows = getattr(self, at.form)
        fields = request.query if request.method == "GET" else await fields_of(request)
        bare = request.clone(rel_url=request.rel_url.with_query(None)) if request.method == "GET" else request
        try:
            page: RenderedPage = await shows(bare)
        except (InvalidInputError, ConflictError):  # the form is on a page that the input cannot make
            if (outer := getattr(shows, ADDRESS, None)) is None:
                raise error from None
            return await self._again(request, outer, error)
        status = 422 if isinstance(error, InvalidInputError) else 409
        values = {**page.values, "mistake": error, "fields": fields}
        return replace(page, values=values, status=status, every_s=0)  # the form's own address is no page to refresh


Fields = Mapping[str, str]


async def fields_of(request: web.Request) -> Fields:
    """Return a form's text fields; files are ignored."""
    return {key: value for key, value in (await request.post()).items() if isinstance(value, str)}


def reason_of(fields: Fields) -> str:
    """Return the required reason for a change. Raises InvalidInputError."""
    why = fields.get("why", "").strip()
    if not why:
        raise InvalidInputError("why", "a reason, for the audit trail", why)
    return checked_text(why, "why")


def id_of(request: web.Request, most: int = LARGEST_ID) -> int:
    """Return the `id` in the path, or `most`, which no row has, for a larger one. Raises InvalidInputError."""
    return min(most, whole_number(request.match_info["id"], "id", 1, LARGEST_ID))


def number_of(fields: Fields, name: str, *, low: float | None = None, high: float | None = None) -> float | None:
    """Parse a number in a form, None for an empty field. Raises InvalidInputError.

    >>> number_of({"hosts": "60"}, "hosts"), number_of({"hosts": " "}, "hosts")
    (60.0, None)
    """
    text = fields.get(name, "").strip()
    if not text:
        return None
    least, most = -float("inf") if low is None else low, float("inf") if high is None else high
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most or value in (float("inf"), -float("inf")):
        bounds = "" if low is None else f" of {low:g} or more" if high is None else f" from {low:g} to {high:g}"
        expected = f"a number{bounds}"
        raise InvalidInputError(name, expected, text)
    return value


def typed(present: object, text: str) -> object:
    """Convert a form's text to the type of a setting. Invalid text is returned unchanged, for validation to reject.

    >>> typed(0.5, "0.75"), typed(True, "false"), typed("fifo", "fifo"), typed(1, "many")
    (0.75, False, 'fifo', 'many')
    """
    match present:
        case bool():
            return {"true": True, "false": False}.get(text.strip().lower(), text)
        case int() | float():
            try:
                value = float(text)
            except ValueError:
                return text
            return int(value) if isinstance(present, int) and value.is_integer() else value
        case _:
            return text
