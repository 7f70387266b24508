"""Makes the first checks of a request: its address's rate limit, the body's size and speed, and malformed HTTP.

The HTTP library replies to a malformed request with status 400 and the reason. Many of them share one log line.
"""

from __future__ import annotations

import asyncio
import codecs
import logging
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from aiohttp import hdrs, web
from aiohttp.http import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware

from administration.access.sign_in import ADDRESS, ASKED_FROM, Networks, address_of, network_of
from domain.clock import Clock
from domain.formatting import in_words
from domain.settings import ServerSettings
from domain.units import Seconds
from web.handlers import UPLOAD_PATH
from web.rate_limit import Buckets

MOST_FORM_BYTES = 1024 * 1024  # for forms, which are read into memory; other areas have limits of their own
LEAST_BYTES_PER_S = 10_000  # minimum speed of a body
OWN_LIMITS = frozenset({"api", "scheduler", "upload"})
FORM = "application/x-www-form-urlencoded"
HOST = re.compile(r"(?:[A-Za-z0-9._~%-]*|\[[0-9A-Fa-f:.%]+\])(?::[0-9]{0,5})?")
MOST_SHOWN = 100  # maximum number of characters shown
NOT_COUNTED = frozenset({"healthz", "readyz", "duties"})

LIMITED = web.RequestKey("limited", str)  # the network whose limit applies to a request of the API

log = structlog.get_logger()


class RequestLimits:
    """The middleware for request limits. `failed(status)` counts refused scheduler requests."""

    def __init__(
        self,
        buckets: Buckets,
        settings: Callable[[], ServerSettings],
        *,
        prefix: str = "",
        failed: Callable[[int], None],
    ) -> None:
        self._buckets = buckets
        self._settings = settings
        self._proxies = Networks()
        self._skip = len(prefix) + 1
        self._failed = failed

    def join(self, application: web.Application) -> None:
        application.middlewares.append(self.middleware)
        application.on_response_prepare.append(self._tell)

    async def _tell(self, request: web.Request, response: web.StreamResponse) -> None:
        """Add the limit of the caller's address to replies of the API, as draft-ietf-httpapi-ratelimit-headers does."""
        settings = self._settings()
        per_s, burst = settings.address_requests_per_s, settings.address_burst
        if LIMITED in request and per_s > 0:
            left, full_s = self._buckets.left(request[LIMITED], per_s=per_s, burst=burst)
            response.headers["RateLimit-Policy"] = f'"address";q={burst};w={math.ceil(burst / per_s)}'
            response.headers["RateLimit"] = f'"address";r={left};t={math.ceil(full_s)}'

    @property
    def middleware(self) -> Middleware:
        @web.middleware
        async def enter(request: web.Request, handler: Handler) -> web.StreamResponse:
            settings = self._settings()
            self._proxies.follow(settings.trusted_proxies)
            request[ADDRESS] = address_of(request, self._proxies)
            ASKED_FROM.set(request[ADDRESS])
            area = request.path[self._skip :].partition("/")[0]
            wait_s = self._wait_s(request, area, settings)
            if wait_s:
                return self._turned_away(request, area, wait_s)
            _check_host(request)
            encoding = request.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower()
            if encoding not in ("", "identity"):
                if area == "scheduler":
                    self._failed(415)
                raise web.HTTPUnsupportedMediaType(text="Content-Encoding: expected none; send the body uncompressed\n")
            is_page = area not in OWN_LIMITS
            if request.content.is_eof():
                if is_page:
                    await _check_form(request)
                return await handler(request)
            if is_page:
                request = request.clone(client_max_size=MOST_FORM_BYTES)
            with _cut_off(request, None if area == "upload" else settings.body_timeout_s):
                if is_page:
                    await _check_form(request)
                return await handler(request)

        return enter

    def _wait_s(self, request: web.Request, area: str, settings: ServerSettings) -> Seconds:
        """Return the seconds to wait. Health checks, and proxies without a client address, are not limited."""
        if area in NOT_COUNTED or self._proxies.has(request[ADDRESS]):
            return Seconds(0.0)
        network = network_of(request[ADDRESS])
        if area == "api":
            request[LIMITED] = network
        return self._buckets.wait_s(network, per_s=settings.address_requests_per_s, burst=settings.address_burst)

    def _turned_away(self, request: web.Request, area: str, wait_s: float) -> web.Response:
        log.info("too many requests", address=request[ADDRESS], area=area)
        if area == "scheduler":
            self._failed(503)
        seconds = math.ceil(wait_s)
        return web.Response(
            status=429 if area == "api" else 503,
            text=f"too many requests from {request[ADDRESS]}: try again in {in_words(seconds)}\n",
            headers={hdrs.RETRY_AFTER: str(seconds)},
        )


def _check_host(request: web.Request) -> None:
    host = request.headers.get(hdrs.HOST, "")
    if not HOST.fullmatch(host):
        shown = ascii(host[:MOST_SHOWN])
        raise web.HTTPBadRequest(text=f"Host: expected a host name with an optional port, got {shown}\n")


async def _check_form(request: web.Request) -> None:
    """Read a page's form before its handler does; refuse other content types and text that cannot be decoded."""
    if request.method != hdrs.METH_POST:
        return
    if request.content_type == "multipart/form-data" and not request.path.endswith(f"/console{UPLOAD_PATH}"):
        raise web.HTTPUnsupportedMediaType(text=f"Content-Type: expected {FORM}, got {request.content_type}\n")
    if request.content_type == FORM:
        charset = request.charset or "utf-8"
        try:
            codecs.lookup(charset)
            await request.post()
        except (LookupError, ValueError):  # including text that does not match its declared encoding
            shown = ascii(charset[:MOST_SHOWN])
            raise web.HTTPUnsupportedMediaType(text=f"form: expected text in a known encoding, got {shown}\n") from None


@contextmanager
def _cut_off(request: web.Request, timeout_s: float | None) -> Iterator[None]:
    """Close the connection if the body takes too long. None: no limit, as for uploads, which have their own limit."""
    if timeout_s is None:
        yield
        return

    def cut_off() -> None:
        if not request.content.is_eof() and request.transport is not None:
            log.info("body took too long", address=request[ADDRESS], path=request.path)
            request.transport.abort()

    after_s = timeout_s + (request.content_length or 0) / LEAST_BYTES_PER_S
    timer = asyncio.get_running_loop().call_later(after_s, cut_off)
    try:
        yield
    finally:
        timer.cancel()


AREA: Final = "malformed"  # value of a label of muster_pages_total
LINE_EVERY_S: Final = Seconds(10.0)
MOST_CHARS: Final = 200  # maximum length of a log text


class MalformedRequests(logging.Handler):
    """Handles log messages of the HTTP library through `logger`, and calls `count` for each malformed request.

    It logs at most one line per LINE_EVERY_S, with the number of malformed requests since the previous line. Errors in
    our own handlers are logged with their location.
    """

    def __init__(self, count: Callable[[], None], clock: Clock) -> None:
        super().__init__(logging.DEBUG)
        self._count = count
        self._clock = clock
        self._since_line = 0
        self._next_line_s: float | None = None
        self.logger = logging.Logger("muster.http", logging.DEBUG)
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            self._malformed(record, error)
        elif record.levelno >= logging.WARNING:
            log.error("request failed", why=record.getMessage(), exc_info=error)

    def _malformed(self, record: logging.LogRecord, error: HttpProcessingError) -> None:
        self._count()
        self._since_line += 1
        now_s = self._clock.monotonic()
        if self._next_line_s is not None and now_s < self._next_line_s:
            return
        address = record.args[0] if isinstance(record.args, tuple) and record.args else None
        why = " ".join(error.message.split())[:MOST_CHARS]
        log.info("malformed HTTP", address=address, why=why, requests=self._since_line)
        self._since_line, self._next_line_s = 0, now_s + LINE_EVERY_S
