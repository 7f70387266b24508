"""Runs the processes of the measured node, and reads their CPU time and memory."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from administration.project import Project
from benchmarks.running import BenchmarkError, asked
from domain.clock import Clock

START_S = 120.0
STOP_S = 60.0


@dataclass(frozen=True, slots=True)
class Node:
    """A running `muster up` and the processes of its database.

    Clients connect to `port`: the node's, or that of the `front` end, which uses `certificate` for TLS.
    """

    port: int
    workers: tuple[psutil.Process, ...]
    background: tuple[psutil.Process, ...]
    postmaster: psutil.Process
    front: psutil.Process | None = None
    certificate: str = ""

    def front_cpu_s(self) -> float:
        """Return the CPU seconds of the front end so far, 0 without one."""
        return 0.0 if self.front is None else _cpu_s(self.front)

    def workers_cpu_s(self) -> float:
        """Return the CPU seconds of the request workers so far."""
        return sum(_cpu_s(process) for process in self.workers)

    def background_cpu_s(self) -> float:
        """Return the CPU seconds of the background process so far."""
        return sum(_cpu_s(process) for process in self.background)

    def postgres_cpu_s(self) -> float:
        """Return the CPU seconds of all processes of the database so far, including those that have ended."""
        return server_cpu_s(self.postmaster)

    def rss_mib_per_worker(self) -> float:
        """Return the resident memory of the largest worker, in MiB."""
        return float(max(process.memory_info().rss for process in self.workers)) / 2**20


@dataclass(frozen=True, slots=True)
class Echo:
    """The running echo servers."""

    port: int
    servers: tuple[psutil.Process, ...]

    def cpu_s(self) -> float:
        """Return their CPU seconds so far."""
        return sum(map(_cpu_s, self.servers))


def server_cpu_s(postmaster: psutil.Process) -> float:
    """Return the CPU seconds of all processes of a database so far, including those that have ended."""
    times = postmaster.cpu_times()
    ended_s = float(times.children_user + times.children_system)
    return ended_s + sum(_cpu_s(process) for process in (postmaster, *postmaster.children()))


def cpu_s_of(pid: int) -> float:
    """Return the CPU seconds of one process so far."""
    return _cpu_s(psutil.Process(pid))


def free_port(count: int = 1) -> int:
    """Return the first of `count` consecutive free ports."""
    while True:
        with ExitStack() as stack:
            first = 0
            try:
                for number in range(count):
                    probe = stack.enter_context(socket.socket())
                    probe.bind(("127.0.0.1", first and first + number))
                    first = first or int(probe.getsockname()[1])
            except (OSError, OverflowError):  # in use, or above 65535
                continue
            return first


@asynccontextmanager
async def node(
    project: Project, *, port: int, workers: int, log_path: Path, clock: Clock, worker_port: int | None = None
) -> AsyncIterator[Node]:
    """Run `muster up` as an operator would, until the context ends."""
    command = ["-m", "cli.run", "up", "--data-dir", str(project.data_dir)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--workers", str(workers)]
    command += [] if worker_port is None else ["--worker-port", str(worker_port)]
    async with _process(command, log_path) as process:
        await _said(b"serving on", process, log_path, clock)
        children = psutil.Process(process.pid).children(recursive=True)
        postmaster = int((project.postgres_dir / "postmaster.pid").read_text().split()[0])
        yield Node(port, _named("worker", children), _named("background", children), psutil.Process(postmaster))


@asynccontextmanager
async def echo(*, port: int, workers: int, reply: str, folder: Path, clock: Clock) -> AsyncIterator[Echo]:
    """Run one echo server per worker on a shared port until the context ends."""
    reply_path = folder / "reply.xml"
    reply_path.write_text(reply, encoding="utf-8")
    command = ["-m", "benchmarks.dispatch.echo", "--port", str(port), "--reply", str(reply_path)]
    servers = []
    async with AsyncExitStack() as stack:
        for number in range(workers):
            log_path = folder / f"echo-{number}.log"
            process = await stack.enter_async_context(_process(command, log_path))
            await _said(b"ready", process, log_path, clock)
            servers.append(psutil.Process(process.pid))
        yield Echo(port, tuple(servers))


class Generator:
    """The load generator's process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, **command: object) -> dict[str, float]:
        """Send a command and return the answer."""
        return await asked(self._process, command)


@asynccontextmanager
async def generator(world_path: Path) -> AsyncIterator[Generator]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.dispatch.load", str(world_path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    try:
        yield Generator(process)
    finally:
        await _end(process)


@asynccontextmanager
async def _process(arguments: Sequence[str], log_path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    with log_path.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=log,
            stderr=log,
            env={key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")},
        )
    try:
        yield process
    finally:
        await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        process.kill()
        await process.wait()


async def _said(words: bytes, process: asyncio.subprocess.Process, log_path: Path, clock: Clock) -> None:
    """Wait until the process has printed these words."""
    until_s = clock.monotonic() + START_S
    while clock.monotonic() < until_s and process.returncode is None:
        if words in await asyncio.to_thread(log_path.read_bytes):
            return
        await clock.sleep(0.1)
    log = await asyncio.to_thread(log_path.read_text, errors="replace")
    raise BenchmarkError(f"a server did not start:\n{log[-2000:]}")


def _named(name: str, processes: Iterable[psutil.Process]) -> tuple[psutil.Process, ...]:
    return tuple(process for process in processes if name in process.cmdline())


def _cpu_s(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:  # counted by its parent
        return 0.0
    return float(times.user + times.system)
