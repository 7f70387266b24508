"""What a caller of the API is told when something is wrong: application/problem+json, never a traceback."""

from __future__ import annotations

import msgspec
import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from domain.errors import AlreadyExistsError, InvalidInputError, MusterError, NotFoundError, UnavailableError

log = structlog.get_logger()


def problem(status: int, title: str, detail: str, **more: object) -> web.Response:
    """One problem document (RFC 9457)."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, **more}
    return web.Response(status=status, body=msgspec.json.encode(body), content_type="application/problem+json")


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn the project's errors into problem documents; anything else is logged and told as a 500."""
    try:
        return await handler(request)
    except InvalidInputError as error:
        return problem(422, "invalid input", str(error), field=error.field, expected=error.expected)
    except NotFoundError as error:
        return problem(404, "not found", str(error))
    except AlreadyExistsError as error:
        return problem(409, "exists already", str(error))
    except UnavailableError as error:
        return problem(503, "unavailable", str(error))
    except web.HTTPException as error:
        return problem(error.status, error.reason.lower(), error.text or error.reason)
    except MusterError as error:
        return problem(400, "refused", str(error))
    except Exception:
        log.exception("request failed", method=request.method, path=request.path)
        return problem(500, "internal error", "something went wrong on the server; it has been logged")
