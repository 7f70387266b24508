"""Sends this process's heartbeat to its supervisor: a line on standard output every 2 s.

No heartbeat is sent while the event loop stands still: the supervisor then kills the process and starts it again.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable

import structlog

from domain.clock import Clock
from domain.units import Seconds

BEAT_S = Seconds(2.0)

log = structlog.get_logger()


def say(line: str) -> None:
    """Write a line to the supervisor. Nothing is written, and nothing waits, while it does not read."""
    number = sys.stdout.fileno()
    if select.select([], [number], [], 0)[1]:
        os.write(number, f"{line}\n".encode())


async def send_heartbeats(hangs: Callable[[], str], clock: Clock) -> None:
    """Send heartbeats for ever; `hangs` returns what hangs in this process, if anything does."""
    while True:
        what = hangs()
        if what:
            log.error("this process hangs, its supervisor will restart it", what=what)
        say(f"hangs {what}" if what else "alive")
        await clock.sleep(BEAT_S)
