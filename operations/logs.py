"""Logs: one JSON object per line on standard error; readable lines on a terminal."""

from __future__ import annotations

import logging
import sys

import structlog


def configure_logs(level: str, *, lasting: bool = False) -> None:
    """Set up structlog for this process; `lasting`: once and for all, so that loggers need not look again."""
    # The pool's own complaints about a lost database: whoever asks it for a connection says the same.
    logging.getLogger("asyncpg.pool").setLevel(logging.CRITICAL)
    terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if terminal else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # a line in one write: processes share a log
        cache_logger_on_first_use=lasting,
    )
