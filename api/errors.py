"""What a caller of the API is told when something is wrong: application/problem+json, never a traceback."""

from __future__ import annotations

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from domain.errors import MusterError
from web import problems as told

log = structlog.get_logger()


def problem(status: int, title: str, detail: str, **more: object) -> web.Response:
    """One problem document."""
    body = {**msgspec.to_builtins(told.problem(status, title, detail)), **more}
    return _answer(status, msgspec.json.encode(body))


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


def problem_of(error: MusterError) -> web.Response:
    """The problem document of an error of the project."""
    found = told.problem_of(error)
    answer = _answer(found.status, msgspec.json.encode(found))
    if found.status == web.HTTPUnauthorized.status_code:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="muster"'
    if found.retry_s is not None:
        answer.headers["Retry-After"] = str(max(1, round(found.retry_s)))
    return answer


def _answer(status: int, body: bytes) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/problem+json")


def _with_headers(answer: web.Response, error: web.HTTPException) -> web.Response:
    if allow := error.headers.get("Allow"):
        answer.headers["Allow"] = allow
    return answer
