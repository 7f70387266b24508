"""A node's clock that is set forward and back from outside: the system's, and what a shared file says."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from domain.clock import SystemClock
from domain.units import Instant

SIZE = 8


def set_ahead(path: Path, ahead_s: float) -> None:
    """Have every clock on this file be `ahead_s` seconds ahead from now on; behind, below 0."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.write(struct.pack("d", ahead_s))


class SteppedClock(SystemClock):
    """Real time and the file's offset; durations stay right, as a machine's do when its clock is set."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._shared = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)

    def now(self) -> Instant:
        (ahead_s,) = struct.unpack("d", self._shared[:SIZE])
        return Instant(super().now() + ahead_s)
