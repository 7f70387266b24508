"""Servers of Debian's PostgreSQL, a primary and its standby, which tests kill and promote."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from tests.e2e.stock_client import wait_for
from tests.faults.waiting import until
from tests.ports import free_port

ADDED = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off  # a killed process loses nothing by it, and these servers outlive no machine
max_connections = 60
max_wal_senders = 4
wal_keep_size = '256MB'
synchronous_standby_names = 'ANY 1 (a, b)'
"""


def bin_folder() -> Path:
    """Return the folder of Debian's newest PostgreSQL."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    assert found, "no PostgreSQL under /usr/lib/postgresql: run tests/install_system.sh"
    return found[-1].parent


class DatabaseServer:
    """One named server, created by `initialise` or `copy`."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.port = free_port()
        self.data = folder / name
        self._bin = bin_folder()

    def dsn(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def initialise(self) -> None:
        """Create an empty server."""
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=utf8", "--locale=C")
        with (self.data / "postgresql.conf").open("a") as config:
            config.write(ADDED)

    def copy(self, primary: DatabaseServer) -> None:
        """Create a standby of that server, replacing any contents."""
        shutil.rmtree(self.data, ignore_errors=True)
        source = f"host=127.0.0.1 port={primary.port} user=postgres application_name={self.name}"
        self._run("pg_basebackup", "-D", str(self.data), "-d", source, "-R", "-X", "stream", "--checkpoint=fast")

    def start(self) -> None:
        log = str(self.data.with_suffix(".log"))
        self._run("pg_ctl", "-D", str(self.data), "-l", log, "-w", "-o", f"-p {self.port}", "start")

    def kill(self) -> None:
        """SIGKILL all of its processes."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        os.killpg(pid, signal.SIGKILL)
        wait_for(lambda: not self._answers(), 10, "the end of the server")

    def promote(self) -> None:
        """Make a standby the primary, without a synchronous standby for now."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")
        self.wait_for_standbys(wait=False)

    def wait_for_standbys(self, *, wait: bool) -> None:
        """Set whether commits wait for a standby from now on."""
        change = "RESET synchronous_standby_names" if wait else "SET synchronous_standby_names = ''"
        self._psql(f"ALTER SYSTEM {change}")
        self._psql("SELECT pg_reload_conf()")

    def stop(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", str(self.data), "-m", "immediate", "-w", "stop", may_fail=True)

    async def has_synchronous_standby(self) -> None:
        """Return when a synchronous standby is connected."""
        connection = await asyncpg.connect(self.dsn("postgres"))
        query = (
            "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')"
        )

        async def there() -> bool:
            return bool(await connection.fetchval(query))

        try:
            await until(there, 30, "a synchronous standby")
        finally:
            await connection.close()

    def create_database(self, name: str) -> None:
        self._psql(f"CREATE DATABASE {name}")

    def _answers(self) -> bool:
        return self._run("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port), may_fail=True) == 0

    def _psql(self, sql: str) -> None:
        self._run("psql", "-XAtq", "-d", self.dsn("postgres"), "-c", sql)

    def _run(self, program: str, *arguments: str, may_fail: bool = False) -> int:
        as_owner = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        command = [*as_owner, str(self._bin / program), *arguments]
        with (self.data.parent / f"{self.name}-commands.log").open("ab") as log:
            done = subprocess.run(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, timeout=120, check=False)
        assert may_fail or done.returncode == 0, f"{' '.join(command)}:\n{Path(log.name).read_text()[-2000:]}"
        return done.returncode


@contextmanager
def primary_and_standby(folder: Path) -> Iterator[tuple[DatabaseServer, DatabaseServer]]:
    """Server a and its standby b, in a folder that the database's user can access."""
    assert re.fullmatch(r"[\w/.-]+", str(folder))
    folder.mkdir()
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    a, b = DatabaseServer("a", folder), DatabaseServer("b", folder)
    try:
        a.initialise()
        a.start()
        b.copy(a)
        b.start()
        yield a, b
    finally:
        for server in (a, b):
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
