"""Lets long operations report their progress to the periodic task that runs them.

Database reads and writes, and calls in threads, report each step. Outside periodic tasks reports are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

PROGRESS: ContextVar[Callable[[], None] | None] = ContextVar("PROGRESS", default=None)


def note_progress() -> None:
    """Report one step. Call this only on the event loop."""
    note = PROGRESS.get()
    if note is not None:
        note()
