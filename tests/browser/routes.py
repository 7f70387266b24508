"""Which pages does a walk leave out?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from tests.acceptance.server import LiveServer


def pages_left_out(server: LiveServer, place: str, walked: Iterable[str]) -> list[str]:
    """Routes of pages below `place` that no address leads to, by the worker's own table; files are no pages."""
    routes = {
        route.resource.canonical
        for route in server.workers[0].parts.application.router.routes()
        if route.method == "GET" and route.resource is not None and route.resource.canonical.startswith(f"{place}/")
    }
    pages = {one for one in routes if "/static/" not in one}
    return sorted(pages - {route_of(urlsplit(path).path, pages) for path in walked})


def route_of(path: str, routes: Collection[str]) -> str | None:
    """Of several routes the one with most of its path spelt out.

    >>> route_of("/console/batches/new", ["/console/batches/{id}", "/console/batches/new"])
    '/console/batches/new'
    """
    found = [one for one in routes if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(one)), path)]
    return min(found, key=lambda one: one.count("{"), default=None)
