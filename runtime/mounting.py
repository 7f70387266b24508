"""Where the parts of the web application are: below the path of the master URL."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import web

from api.reading import MAX_BODY_BYTES


def path_of(master_url: str) -> str:
    """What the master URL has behind its port, without the slash at its end."""
    return urlsplit(master_url).path.rstrip("/")


def mounted(routes: list[web.RouteDef], parts: Mapping[str, web.Application], master_url: str) -> web.Application:
    """The routes below the path of the master URL, and what else is there by its place: the API and the pages."""
    prefix = path_of(master_url)
    # The root application's limit holds for the API too; everything else reads its body piece by piece.
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.add_routes(
        [web.RouteDef(route.method, prefix + route.path, route.handler, route.kwargs) for route in routes]
    )
    for place, part in parts.items():
        application.add_subapp(prefix + place, part)
    return application
