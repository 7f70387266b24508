"""A node's clock that tests step: the system's clock plus an offset in a shared file."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from domain.clock import SystemClock
from domain.units import Instant

SIZE = 8


def set_ahead(path: Path, ahead_s: float) -> None:
    """Set every clock on this file `ahead_s` seconds ahead from now on; negative: behind."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.write(struct.pack("d", ahead_s))


class SteppedClock(SystemClock):
    """Real time plus the file's offset; durations stay right, as on a machine whose clock is set."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._shared = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)

    def now(self) -> Instant:
        (ahead_s,) = struct.unpack("d", self._shared[:SIZE])
        return Instant(super().now() + ahead_s)
