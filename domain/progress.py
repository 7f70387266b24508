"""Reports that a long piece of work advances, to the periodic task that does it.

Reads and writes of the database and calls in threads report at each step. Work that no periodic task does reports to
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

PROGRESS: ContextVar[Callable[[], None] | None] = ContextVar("PROGRESS", default=None)


def note_progress() -> None:
    """Report one step. To be called on the event loop."""
    note = PROGRESS.get()
    if note is not None:
        note()
