"""Middleware for all pages: security headers, error pages, sign-in, and checks of query parameters."""

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
OPEN = frozenset(  # routes that require no sign-in
    {"sign_in", "sign_in_post", "static", "theme", "subscription", "subscription_post"}
)
MUST_CHANGE = frozenset({"password", "password_change", "sign_out"})  # routes open before the first password change
LIVE = "X-Console"  # header sent by the script that refreshes live parts

MOST_FORM_BYTES = 1_000_000

log = structlog.get_logger()


@web.middleware
async def headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Set security headers: no content from other origins, no inline scripts, no framing."""
    try:
        response = await handler(request)
    except web.HTTPException as redirect:
        redirect.headers.update(HEADERS)
        raise
    response.headers.update(HEADERS)
    return response


class ErrorPages:
    """Turns the project's errors into pages that say what to do. Other errors are logged and get status 500."""

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
                steps = [
                    "Reload the page.",
                    "If the error persists, tell an operator: the worker's log has it, under this address and time.",
                ]
                return self._page(request, 500, "Internal error", "The server could not generate this page.", steps)

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
    """Require a signed-in user. Handlers that make changes check roles themselves."""
    resource = request.match_info.route.name
    if resource not in OPEN and resource not in MUST_CHANGE:
        admit(request, Role.VIEWER)
    return await handler(request)


def _of_status(error: web.HTTPException) -> tuple[str, str, list[str]]:
    if error.status == 404:
        return "Page not found", "There is no page at this address.", ["Choose a section on the left."]
    if error.status == 405:
        return "Method not allowed", "This address accepts only form submissions.", ["Go back and submit the form."]
    if error.status == 413:
        return (
            "Request too large",
            "The request exceeds the size limit.",
            ["Submit large batches with `muster batch submit`."],
        )
    return error.reason, error.text or error.reason, ["Go back and try again."]


def _of_error(error: MusterError) -> tuple[int, str, str, list[str]]:
    match error:
        case InvalidInputError():
            return 422, "Invalid input", str(error), ["Go back, correct the field, and submit the form again."]
        case NotFoundError():
            return 404, "Not found", f"There is {error}.", ["It may have been purged, or the number is wrong."]
        case AlreadyExistsError():
            return 409, "Already exists", str(error), ["Go back and choose another name."]
        case ConflictError():
            return 409, "Changed meanwhile", str(error), ["Reload the form's page to see the current values."]
        case UnavailableError():
            steps = [
                "Wait a few seconds and reload the page.",
                "If the error persists, check that the database is running.",
            ]
            return 503, "Database unavailable", str(error), steps
        case TooManyAttemptsError():
            return 429, "Too many attempts", str(error), ["Wait a moment and reload the page."]
        case ForgedError():
            return 403, "Invalid form token", str(error), ["Reload the form's page and submit the form again."]
        case NotAllowedError():
            steps, words = ["Ask an operator, or sign in with another account."], str(error)
            return 403, "Permission denied", words[:1].upper() + words[1:], steps
        case _:
            return 400, "Request refused", str(error), ["Go back and change the request."]


# ---- query parameters: unknown ones are rejected, so that misspelt names do not go unnoticed

SAID = "said"  # the result of the last form, allowed on every page


def check_query(query: Mapping[str, Sequence[str]], known: Collection[str], said: Collection[str]) -> None:
    """Raise InvalidInputError for an unknown or repeated query parameter.

    >>> check_query({"after": ["7"]}, ("before", "q"), ())
    Traceback (most recent call last):
    domain.errors.InvalidInputError: after: expected one of the parameters before, q, got '7'
    """
    for name, values in query.items():
        if name == SAID:
            if not set(values) <= {*said, ""}:
                raise InvalidInputError(name, "the result code of a form", ", ".join(values))
        elif name not in known:
            expected = f"one of the parameters {', '.join(known)}" if known else "no parameters on this page"
            raise InvalidInputError(name, expected, values[0])
        if len(values) > 1:
            raise InvalidInputError(name, "one value", ", ".join(values))


def asked_as_known(said: Collection[str]) -> Middleware:
    """Return middleware that checks the query parameters of pages (web/handlers.py), not of files."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        address: Address | None = getattr(request.match_info.handler, ADDRESS, None)
        if request.method in ("GET", "HEAD") and address is not None:
            check_query({one: request.query.getall(one) for one in request.query}, address.asks, said)
        return await handler(request)

    return check
