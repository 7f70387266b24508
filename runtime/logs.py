"""Logs one JSON object per line on standard error, or readable lines on a terminal; assigns request ids.

The request id is the caller's or a new one. It is included in the reply and in each log line about the request.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections import Counter, defaultdict
from contextvars import ContextVar
from itertools import count

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from administration.access.sign_in import ASKED_FROM
from domain.clock import Clock

# The current request's id; None outside requests.
REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)


def with_request_id(_: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Add the current request's id to a log line, and the client's address where `remote` is the peer's.

    Behind a front end the peer of a connection is the front end.
    """
    request_id = REQUEST_ID.get()
    if request_id is not None:
        line.setdefault("request_id", request_id)
    if "remote" in line:
        line["remote"] = ASKED_FROM.get() or line["remote"]
    return line


def configure_logs(level: str, *, lasting: bool = False) -> None:
    """Configure structlog for this process. `lasting` caches loggers, which saves looking them up."""
    # Silence the pool's own messages about a lost database, because its callers log the loss.
    logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)
    terminal = sys.stderr.isatty()
    coloured = terminal and not os.environ.get("NO_COLOR")
    renderer = structlog.dev.ConsoleRenderer(colors=coloured) if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            with_request_id,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # one write per line, because processes share a log
        cache_logger_on_first_use=lasting,
    )


HEADER = "X-Request-ID"
FORM = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
AREAS = frozenset({"api", "console", "download", "upload", "metrics", "healthz", "readyz", "duties"})
ITSELF = "scheduler"  # counts its own requests
HUNG_UP = 499  # not an HTTP status: the client disconnected first, which is not a server failure

_process = os.urandom(4).hex()
_numbers = count(1)


def request_id_of(given: str | None) -> str:
    """Return the caller's request id if it is a plain word of at most 128 characters, otherwise a new id.

    >>> request_id_of("a-1"), request_id_of('a"b') == 'a"b'
    ('a-1', False)
    """
    if given is not None and FORM.fullmatch(given):
        return given
    return f"{_process}-{next(_numbers):x}"


class PageCounters:
    """Counts requests other than scheduler requests by area, which is the first part of the path."""

    def __init__(self) -> None:
        self.replies: Counter[tuple[str, str]] = Counter()  # by area and status class, such as 2xx
        self.took_s: defaultdict[str, float] = defaultdict(float)

    def note(self, area: str, status: int, took_s: float) -> None:
        self.replies[area, f"{status // 100}xx"] += 1
        self.took_s[area] += took_s


class RequestIds:
    """The web application's middleware and signal handler for request ids. `prefix` is the master URL's path."""

    def __init__(self, pages: PageCounters, clock: Clock, prefix: str = "") -> None:
        self._pages = pages
        self._clock = clock
        self._skip = len(prefix) + 1

    def join(self, application: web.Application) -> None:
        application.middlewares.append(self._middleware())
        application.on_response_prepare.append(_tell)

    def _middleware(self) -> Middleware:
        @web.middleware
        async def identify(request: web.Request, handler: Handler) -> web.StreamResponse:
            REQUEST_ID.set(request_id_of(request.headers.get(HEADER)))
            area = request.path[self._skip :].partition("/")[0]
            if area == ITSELF:
                return await handler(request)
            began_at = self._clock.monotonic()
            status = 500
            try:
                response = await handler(request)
                status = response.status
            except web.HTTPException as refused:
                status = refused.status
                raise
            except (ConnectionResetError, web.RequestPayloadError):
                status = status if is_open(request) else HUNG_UP
                raise
            finally:
                self._pages.note(area if area in AREAS else "site", status, self._clock.monotonic() - began_at)
            return response

        return identify


def is_open(request: web.Request) -> bool:
    """Return whether the client is still connected."""
    return request.transport is not None and not request.transport.is_closing()


async def _tell(_: web.Request, response: web.StreamResponse) -> None:
    if (request_id := REQUEST_ID.get()) is not None:
        response.headers[HEADER] = request_id
