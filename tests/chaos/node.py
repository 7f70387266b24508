"""A node: `muster up` with a clock that can be set. Run as a program it is the supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import uvloop

from cli.node import Serving
from domain.clock import SystemClock
from runtime.logs import configure_logs
from runtime.metrics.node import run_folder
from runtime.supervisor import Supervisor
from tests.chaos.process import CLOCK_FILE
from tests.faults.waiting import until

PROGRAM = (sys.executable, "-m", "tests.chaos.process")
STARTED_S = 60.0  # on a busy machine


@dataclass(slots=True)
class Node:
    """A supervisor, request workers and a background process, which can be killed and stopped."""

    data_dir: Path
    database_url: str
    port: int
    workers: int
    clock_file: Path
    log_file: Path
    environment: Mapping[str, str] = field(default_factory=dict)  # of its other processes
    process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start; return when the node answers."""
        environment = {
            **os.environ,
            **self.environment,
            "MUSTER_DATABASE_URL": self.database_url,
            CLOCK_FILE: str(self.clock_file),
        }
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.node", str(self.data_dir), str(self.port), str(self.workers)],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        await until(self._answers, STARTED_S, f"the node answers; see {self.log_file}")

    async def _answers(self) -> bool:
        return await asyncio.to_thread(self._asked)

    def _asked(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=2) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def children(self, kind: str) -> list[psutil.Process]:
        """Return running processes of the node, "worker" or "background"."""
        if self.process is None or self.process.poll() is not None:
            return []
        found = []
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):
                if kind in child.cmdline():
                    found.append(child)
        return sorted(found, key=lambda child: child.pid)

    def family(self) -> list[psutil.Process]:
        """Return the supervisor and its processes; none if the node is not running."""
        if self.process is None or self.process.poll() is not None:
            return []
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def kill(self) -> None:
        """SIGKILL all processes at once."""
        if self.process is None:
            return
        with suppress(psutil.Error):
            family = psutil.Process(self.process.pid)
            for one in (*family.children(recursive=True), family):
                with suppress(psutil.Error):
                    one.kill()
        self.process.wait()

    async def stop(self) -> None:
        """SIGTERM, as a service manager would; kill processes that do not end."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(self.process.wait, 40)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def main() -> None:
    configure_logs("info")
    data_dir, port, workers = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    serving = Serving("127.0.0.1", port, workers, None, "127.0.0.1", 0, "info", as_json=False)
    with run_folder() as folder:
        uvloop.run(Supervisor(serving.children(data_dir, folder), SystemClock(), program=PROGRAM).run())


if __name__ == "__main__":
    main()
