"""What callers of the API get back."""

from __future__ import annotations

import msgspec
from aiohttp import web


def reply(value: object, *, status: int = 200) -> web.Response:
    """`value` as JSON."""
    return web.Response(status=status, body=msgspec.json.encode(value), content_type="application/json")
