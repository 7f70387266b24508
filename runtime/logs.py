"""Logs: one JSON object per line on standard error; readable lines on a terminal."""

from __future__ import annotations

import logging
import os
import sys
from contextvars import ContextVar

import structlog

# Of the request that is being answered; what is done for nobody in particular has none.
REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)


def with_request_id(_: object, __: str, line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """The line with the id of the request it was logged for."""
    request_id = REQUEST_ID.get()
    if request_id is not None:
        line.setdefault("request_id", request_id)
    return line


def configure_logs(level: str, *, lasting: bool = False) -> None:
    """Set up structlog for this process; `lasting`: once and for all, so that loggers need not look again."""
    # The pool's own complaints about a lost database: whoever asks it for a connection says the same.
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
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one write: processes share a log
        cache_logger_on_first_use=lasting,
    )
