"""Makes syncing an upload slow or fatal for a node's processes, by a preloaded shared library."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_suffix(".c")
SYNC_FILE = "MUSTER_TEST_SYNC_FILE"
DEADLY_S = -1.0


def can_be_built() -> bool:
    """Return whether this machine has a C compiler."""
    return shutil.which("cc") is not None


class SyncFaults:
    """The sync fault of one node; without a compiler there is none."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "sync"
        self._library = folder / "sync_faults.so"
        self.set(0.0)
        if can_be_built():
            command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), str(SOURCE), "-ldl"]
            subprocess.run(command, check=True, capture_output=True)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment that gives a process the fault."""
        if not self._library.exists():
            return {}
        return {"LD_PRELOAD": str(self._library), SYNC_FILE: str(self._file)}

    def release(self) -> None:
        """Release waiting syncs; later ones take no time."""
        self._file.unlink()

    def set(self, takes_s: float) -> None:
        """Make each sync take this long from now on; DEADLY_S: its process dies instead."""
        fresh = self._file.with_name("sync.new")
        fresh.write_bytes(struct.pack("d", takes_s))
        fresh.replace(self._file)
