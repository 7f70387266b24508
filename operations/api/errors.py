"""What a caller of the API is told when something is wrong: application/problem+json, never a traceback."""

from __future__ import annotations

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from domain.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidInputError,
    MusterError,
    NotFoundError,
    UnavailableError,
)
from operations.access.errors import NotAllowedError, NotSignedInError, TooManyAttemptsError, WrongPasswordError

TYPES = "urn:muster:problem:"
GOT_CHARS = 200
BUSY_S = 5

log = structlog.get_logger()


class BusyError(MusterError):
    """Too much of that is going on: try again in a few seconds."""


class Problem(msgspec.Struct, kw_only=True):
    """What is wrong (RFC 9457). `field`, `expected` and `got` where input was wrong."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
    expected: str | None = None
    got: str | None = None
    retry_s: float | None = None


def problem(status: int, title: str, detail: str, **more: object) -> web.Response:
    """One problem document."""
    kind = TYPES + title.replace(" ", "-")
    body = {"type": kind, "title": title, "status": status, "detail": detail, **more}
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/problem+json")


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn the project's errors into problem documents; anything else is logged and told as a 500."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        return _with_headers(problem(error.status, error.reason.lower(), error.text or error.reason), error)
    except MusterError as error:
        return problem_of(error)
    except Exception:
        log.exception("request failed", method=request.method, path=request.path)
        return problem(500, "internal error", "something went wrong on the server; it has been logged")


PLAIN: tuple[tuple[type[MusterError], int, str], ...] = (  # the first that fits
    (NotFoundError, 404, "not found"),
    (AlreadyExistsError, 409, "exists already"),
    (ConflictError, 409, "conflict"),
    (WrongPasswordError, 403, "wrong password"),
    (NotAllowedError, 403, "not allowed"),
    (MusterError, 400, "refused"),
)


def problem_of(error: MusterError) -> web.Response:
    """The problem document of an error of the project."""
    match error:
        case InvalidInputError():
            shown = repr(error.got) if not isinstance(error.got, str) else error.got
            more = {"field": error.field, "expected": error.expected, "got": shown[:GOT_CHARS]}
            return problem(422, "invalid input", str(error), **more)
        case NotSignedInError():
            answer = problem(401, "not signed in", str(error))
            answer.headers["WWW-Authenticate"] = 'Bearer realm="muster"'
            return answer
        case TooManyAttemptsError():
            return _later(problem(429, "too many attempts", str(error), retry_s=error.wait_s), error.wait_s)
        case BusyError():
            return _later(problem(503, "busy", str(error), retry_s=BUSY_S), BUSY_S)
        case UnavailableError():
            return _later(problem(503, "unavailable", str(error), retry_s=BUSY_S), BUSY_S)
        case _:
            status, title = next((status, title) for kind, status, title in PLAIN if isinstance(error, kind))
            return problem(status, title, str(error))


def _later(answer: web.Response, wait_s: float) -> web.Response:
    answer.headers["Retry-After"] = str(max(1, round(wait_s)))
    return answer


def _with_headers(answer: web.Response, error: web.HTTPException) -> web.Response:
    if allow := error.headers.get("Allow"):
        answer.headers["Allow"] = allow
    return answer
