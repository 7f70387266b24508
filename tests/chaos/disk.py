"""Folders on small file systems of their own, which can be filled completely. Mounting one needs root."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from pathlib import Path

BALLOON = ".balloon"
PIECE_BYTES = 1024 * 1024


class Disk:
    """A file system in memory of `nbytes` bytes where possible, else a plain folder."""

    def __init__(self, folder: Path, nbytes: int) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.limited = os.getuid() == 0 and self._mount(nbytes)

    def _mount(self, nbytes: int) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={nbytes},mode=0755", "tmpfs", str(self.folder)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Use up the remaining space."""
        assert self.limited
        with (self.folder / BALLOON).open("wb", buffering=0) as balloon, suppress(OSError):
            for size in (PIECE_BYTES, 4096, 1):
                with suppress(OSError):
                    while balloon.write(bytes(size)) == size:
                        pass

    def empty(self) -> None:
        """Free the space."""
        (self.folder / BALLOON).unlink(missing_ok=True)

    def remove(self) -> None:
        if self.limited:
            subprocess.run(["umount", "-l", str(self.folder)], check=False)
