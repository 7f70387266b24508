"""Logs what cannot be read as HTTP: one line for many requests, each counted, and no traceback.

Whoever sends such a request is told what is wrong with it by the HTTP library, with status 400.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

import structlog
from aiohttp.http import HttpProcessingError

from domain.clock import Clock
from domain.units import Seconds

AREA: Final = "malformed"  # of muster_pages_total
LINE_EVERY_S: Final = Seconds(10.0)
MOST_CHARS: Final = 200  # of what a line says

log = structlog.get_logger()


class MalformedRequests(logging.Handler):
    """Takes what the HTTP library logs through `logger`. `count` is called for each malformed request.

    At most one line in LINE_EVERY_S, with how many requests were malformed since the line before. Errors of our own
    handlers are logged with where they happened.
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
