"""Which pages does a walk leave out?"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.pages.addresses import route_of
from tests.acceptance.server import LiveServer


def pages_left_out(server: LiveServer, place: str, walked: Iterable[str]) -> list[str]:
    """Routes of pages below `place` that no address leads to, by the worker's own table; files are no pages."""
    routes = {
        route.resource.canonical
        for route in server.workers[0].parts.application.router.routes()
        if route.method == "GET" and route.resource is not None and route.resource.canonical.startswith(f"{place}/")
    }
    pages = {one for one in routes if "/static/" not in one}
    return sorted(pages - {route_of(path, pages) for path in walked})
