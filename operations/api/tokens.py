"""Who may use the API: the holder of the operator's token, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from operations.api.errors import problem


def require_token(token: str) -> Middleware:
    """A middleware that lets only requests with `Authorization: Bearer TOKEN` through."""
    wanted = hashlib.sha256(token.encode()).digest()

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(hashlib.sha256(given.encode()).digest(), wanted):
            return await handler(request)
        return problem(401, "not signed in", "send the project's token as `Authorization: Bearer …`")

    return check
