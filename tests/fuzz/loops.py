"""An event loop that a target keeps for as long as the process lives."""

from __future__ import annotations

import asyncio
import atexit


def lasting_loop() -> asyncio.AbstractEventLoop:
    """Closed at the end."""
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop
