"""Builds requests as the web server passes them to handlers, a thousand times faster than with a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request
from yarl import URL

PIECE_BYTES = 7000  # a body arrives in pieces


class Requests:
    """Makes requests on one event loop: copies of one without a connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._protocol = BaseProtocol(loop)
        self._loop = loop
        no_one = SimpleNamespace(
            peername=None, sockname=None, ssl_context=None
        )  # a mock would take longer than the request
        self._first = make_mocked_request("GET", "/", loop=loop, protocol=no_one)

    def of(self, method: str, url: URL, body: bytes, *, in_path: Mapping[str, str] | None = None) -> web.Request:
        """Return a request with its complete body."""
        stream = StreamReader(self._protocol, 2**16, loop=self._loop)
        for start in range(0, len(body), PIECE_BYTES):
            stream.feed_data(body[start : start + PIECE_BYTES])
        stream.feed_eof()
        made: Any = self._first.clone(method=method, rel_url=url)
        made._payload, made._match_info = stream, dict(in_path or {})
        request: web.Request = made
        return request
