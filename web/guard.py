"""What stands before every page: safe headers, errors as pages that help, who may come in, and what may be asked."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import quote

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from administration.access.who import (
    ForgedError,
    NotAllowedError,
    NotSignedInError,
    PasswordToChangeError,
    TooManyAttemptsError,
    admit,
)
from domain.access import Role
from domain.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    MusterError,
    NotFoundError,
    UnavailableError,
)
from web.handlers import ADDRESS, Address
from web.rendering import RenderedPage, Renderer

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
OPEN = frozenset({"sign_in", "sign_in_post", "static", "theme"})  # names of routes that need nobody
MUST_CHANGE = frozenset({"password", "password_change", "sign_out"})  # that need no password of one's own yet
LIVE = "X-Console"  # sent by the script that fetches live parts

MOST_FORM_BYTES = 1_000_000

log = structlog.get_logger()


@web.middleware
async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Nothing of the console comes from elsewhere, runs in a page's text, or is shown in another site's frame."""
    try:
        response = await handler(request)
    except web.HTTPException as redirect:
        redirect.headers.update(HEADERS)
        raise
    response.headers.update(HEADERS)
    return response


class ErrorPages:
    """Turns the project's errors into pages that say what to do; anything else is logged and told as a 500."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    @property
    def middleware(self) -> Middleware:
        @web.middleware
        async def shown(request: web.Request, handler: Handler) -> web.StreamResponse:
            try:
                return await handler(request)
            except NotSignedInError:
                return self._to_sign_in(request)
            except PasswordToChangeError:
                raise web.HTTPSeeOther(f"{self._renderer.root}/password") from None
            except web.HTTPException as error:
                if error.status < 400:
                    raise
                return self._page(request, error.status, *_of_status(error))
            except MusterError as error:
                return self._page(request, *_of_error(error))
            except Exception:
                log.exception("page failed", method=request.method, path=request.path)
                steps = ["Load the page again.", "If it stays, the worker's log has the reason, with this address."]
                return self._page(request, 500, "That went wrong", "The server failed at this page.", steps)

        return shown

    def _to_sign_in(self, request: web.Request) -> web.Response:
        if LIVE in request.headers:
            return web.Response(status=401, text="signed out")
        back = request.path_qs if request.method == "GET" else f"{self._renderer.root}/"
        raise web.HTTPSeeOther(f"{self._renderer.root}/sign-in?next={quote(back, safe='')}")

    def _page(self, request: web.Request, status: int, title: str, what: str, steps: list[str]) -> web.Response:
        back = request.headers.get("Referer", "")
        own = f"{request.url.origin()}{self._renderer.root}"
        values = {"what": what, "steps": steps, "back": back if back.startswith(own) else None}
        page = RenderedPage("error.html", title, section="-", values=values, status=status)
        return self._renderer.response(request, page)


@web.middleware
async def people(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Everybody who looks must be signed in; what changes something asks for more where it is done."""
    resource = request.match_info.route.name
    if resource not in OPEN and resource not in MUST_CHANGE:
        admit(request, Role.VIEWER)
    return await handler(request)


def _of_status(error: web.HTTPException) -> tuple[str, str, list[str]]:
    if error.status == 404:
        return "No such page", "There is no page at this address.", ["Choose a section on the left."]
    if error.status == 405:
        return "Not like that", "This address takes forms alone.", ["Go back and send the form."]
    if error.status == 413:
        return "Too large", "What was sent is too large.", ["Submit large batches with `muster batch submit`."]
    return error.reason, error.text or error.reason, ["Go back and try again."]


def _of_error(error: MusterError) -> tuple[int, str, str, list[str]]:
    match error:
        case InvalidInputError():
            return 422, "That cannot be", str(error), ["Go back, correct the field, and send the form again."]
        case NotFoundError():
            return 404, "Not there", f"There is {error}.", ["It may have been purged, or the number is mistyped."]
        case AlreadyExistsError():
            return 409, "There already", str(error), ["Go back and choose another name."]
        case ConflictError():
            return 409, "It is otherwise by now", str(error), ["Load the form's page again: it shows how it is now."]
        case UnavailableError():
            steps = ["Wait a few seconds and load the page again.", "If it stays: is the database running?"]
            return 503, "The database does not answer", str(error), steps
        case TooManyAttemptsError():
            return 429, "Too often", str(error), ["Wait a little, and load the page again."]
        case ForgedError():
            return 403, "Not sent from here", str(error), ["Load the form's page again, and send it from there."]
        case NotAllowedError():
            return 403, "Not for you", str(error), ["Ask an operator, or sign in with another name."]
        case _:
            return 400, "That was refused", str(error), ["Go back and try something else."]


# ---- what may stand behind the path of a page: anything else is refused, so that no slip is taken for an answer

SAID = "said"  # what the last form did; any page may be where it led


def check_query(query: Mapping[str, Sequence[str]], known: Collection[str], said: Collection[str]) -> None:
    """Raises InvalidInputError naming what is not known, or comes twice.

    >>> check_query({"after": ["7"]}, ("before", "q"), ())
    Traceback (most recent call last):
    domain.errors.InvalidInputError: after: expected no such question, before or q, got '7'
    """
    for name, values in query.items():
        if name == SAID:
            if not set(values) <= {*said, ""}:
                raise InvalidInputError(name, "what a form says that led here", ", ".join(values))
        elif name not in known:
            others = f", {' or '.join(known)}" if known else ": this page takes none"
            raise InvalidInputError(name, f"no such question{others}", values[0])
        if len(values) > 1:
            raise InvalidInputError(name, "one value", ", ".join(values))


def asked_as_known(said: Collection[str]) -> Middleware:
    """The middleware that checks what is asked of pages by their addresses (web/handlers.py); files are no pages."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        address: Address | None = getattr(request.match_info.handler, ADDRESS, None)
        if request.method in ("GET", "HEAD") and address is not None:
            check_query({one: request.query.getall(one) for one in request.query}, address.asks, said)
        return await handler(request)

    return check
