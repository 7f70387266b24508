"""Finds pages that a walk does not visit."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.pages.addresses import route_of
from tests.acceptance.server import LiveServer


def pages_left_out(server: LiveServer, place: str, walked: Iterable[str]) -> list[str]:
    """Return the worker's GET routes below `place` that no walked address matches, without files."""
    routes = {
        route.resource.canonical
        for route in server.workers[0].parts.application.router.routes()
        if route.method == "GET" and route.resource is not None and route.resource.canonical.startswith(f"{place}/")
    }
    pages = {one for one in routes if "/static/" not in one}
    return sorted(pages - {route_of(path, pages) for path in walked})
