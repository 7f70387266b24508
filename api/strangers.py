"""Whoever has not said who it is learns nothing of what there is."""

from __future__ import annotations

from collections.abc import Collection

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from administration.access.who import present


class Strangers:
    """Lets nobody but people in, except to the `open_paths` of the sub-application."""

    def __init__(self, open_paths: Collection[str]) -> None:
        self._open = frozenset(open_paths)

    @property
    def middleware(self) -> Middleware:
        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            resource = request.match_info.route.resource
            path = "" if resource is None else resource.canonical
            if not any(path.endswith(f"/api/v1{one}") for one in self._open):
                present(request)
            return await handler(request)

        return check
