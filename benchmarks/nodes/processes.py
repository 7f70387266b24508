"""Runs the nodes and the load generator as processes, and kills nodes."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psutil

from administration.project import Project
from benchmarks.dispatch.processes import START_S, STOP_S
from benchmarks.running import BenchmarkError, asked
from domain.clock import Clock


class Node:
    """A separate `muster up` with its supervisor, workers and background process."""

    def __init__(self, project: Project, *, port: int, workers: int, log_path: Path, clock: Clock) -> None:
        self.port = port
        self._project = project
        self._workers = workers
        self._log_path = log_path
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the node, and wait until all workers serve."""
        where = ["--host", "127.0.0.1", "--port", str(self.port), "--workers", str(self._workers)]
        command = ["-m", "cli.run", "up", "--data-dir", str(self._project.data_dir), *where]
        at = self._log_path.stat().st_size if self._log_path.exists() else 0
        with self._log_path.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, *command), stdout=log, stderr=log, start_new_session=True, env=_environment()
            )
        until_s = self._clock.monotonic() + START_S
        while self._clock.monotonic() < until_s and self._process.returncode is None:
            if b"serving on" in (await asyncio.to_thread(self._log_path.read_bytes))[at:]:
                return
            await self._clock.sleep(0.05)
        raise BenchmarkError(f"a node did not start: {self._log_path.read_text(errors='replace')[-2000:]}")

    async def kill(self) -> None:
        """Send SIGKILL to all processes of the node simultaneously."""
        assert self._process is not None
        supervisor = psutil.Process(self._process.pid)
        for process in (supervisor, *supervisor.children(recursive=True)):
            process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Send SIGTERM, as a service manager would, if the node is running."""
        if self._process is None or self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_S)
        except TimeoutError:
            await self.kill()


class Load:
    """The load generator's process, which sends requests between `start` and `stop`."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, world_path: Path, ports: list[int], connections: int) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.nodes.load", str(world_path)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await self.ask(ports=ports, connections=connections)

    async def ask(self, **command: object) -> dict[str, Any]:
        """Send a command and return the answer."""
        assert self._process is not None
        return await asked(self._process, command)

    async def close(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
