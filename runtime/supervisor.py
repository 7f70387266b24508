"""Supervises a node's processes: N request workers and one background process.

A child that dies is restarted, with increasing pauses as long as it keeps dying or cannot be started. A child that
sends no heartbeat for 30 s, or reports that it hangs, is killed and restarted. Children watch their standard input: if
the supervisor ends for any reason, the pipe is closed and they stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import structlog

from domain.clock import Clock
from domain.errors import MusterError
from domain.units import Seconds

RESTART_PAUSE_S = Seconds(0.5)  # doubled with each consecutive death
RESTART_PAUSE_MOST_S = Seconds(30.0)
HEALTHY_S = Seconds(60.0)  # after living this long, a child is restarted with the first pause
STOP_S = Seconds(20.0)  # time between SIGTERM and SIGKILL
SILENCE_S = Seconds(30.0)  # maximum without a heartbeat; the server keeps a silent process's locks for as long
FIRST_BEAT_S = Seconds(120.0)  # until the first heartbeat, because loading the program is slow on a busy machine
KILLED_S = Seconds(10.0)  # a killed child that has not ended after this time is replaced anyway
TICK_S = Seconds(1.0)  # interval of the heartbeat check

PROGRAM = (sys.executable, "-m", "runtime.process")

log = structlog.get_logger()


class PortInUseError(MusterError):
    """Another program uses the port."""


@dataclass(slots=True)
class Child:
    """One process of the node, with the number of consecutive times it has died."""

    name: str
    arguments: Sequence[str]
    silence_s: Seconds | None = None  # killed after this time without a heartbeat; None: sends none
    process: asyncio.subprocess.Process | None = None
    deaths: int = 0
    restarts: int = 0  # since the supervisor started
    started_s: Seconds = Seconds(0.0)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    ticks: int = 0  # of the supervisor since its last heartbeat; a suspended machine adds none
    beats: bool = False  # whether it has sent a heartbeat since its start
    hangs: str = ""  # what the child reported as hanging
    output: asyncio.Task[None] | None = None  # reads its output

    def runs(self) -> bool:
        """Return whether the process is running and has reported that it is ready."""
        return self.ready.is_set() and self.process is not None and self.process.returncode is None


def check_port_free(host: str, port: int) -> None:
    """Raise PortInUseError if another program is listening on the port.

    This is needed because workers share the port, so binding it would not fail.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortInUseError(f"cannot listen on {host} port {port}: {error.strerror}") from None


def restart_pause_s(deaths: int) -> Seconds:
    """Return the seconds to wait before restarting a child with `deaths` consecutive deaths.

    >>> [restart_pause_s(deaths) for deaths in (1, 2, 3, 7, 5000)]
    [0.5, 1.0, 2.0, 30.0, 30.0]
    """
    doublings = min(deaths - 1, 16)  # a larger exponent would overflow a float
    return Seconds(min(RESTART_PAUSE_S * 2**doublings, RESTART_PAUSE_MOST_S))


class Supervisor:
    """Runs children until stopped. `environment` is added to their environment."""

    def __init__(
        self,
        children: Sequence[Child],
        clock: Clock,
        *,
        program: Sequence[str] = PROGRAM,
        environment: Mapping[str, str] | None = None,
        stop_s: float = STOP_S,
        tick_s: float = TICK_S,
    ) -> None:
        self._children = children
        self._clock = clock
        self._program = program
        self._environment = {**os.environ, **(environment or {})}
        self._stop_s = stop_s
        self._tick_s = tick_s
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Start all children, restart those that die, and stop all of them at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        keepers = [asyncio.create_task(self._keep(child)) for child in self._children]
        waiter = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([waiter, *keepers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stopping.set()
            waiter.cancel()
            for keeper in keepers:
                keeper.cancel()  # first, because a keeper must not start a child after the children were stopped
            results = await asyncio.gather(*keepers, return_exceptions=True)
            await asyncio.gather(*(self._end(child) for child in self._children))
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def wait_ready(self) -> None:
        """Wait until all children have reported that they are ready."""
        for child in self._children:
            await child.ready.wait()

    async def _keep(self, child: Child) -> None:
        while not self._stopping.is_set():
            started = await self._try_start(child)
            code = await self._ended(child) if started else None
            if self._stopping.is_set():
                return
            child.ready.clear()
            child.restarts += started
            lived_s = self._clock.monotonic() - child.started_s
            child.deaths = 1 if lived_s > HEALTHY_S else child.deaths + 1
            pause_s = restart_pause_s(child.deaths)
            if started:
                log.error("process died", process=child.name, exit_code=code, lived_s=lived_s, restart_in_s=pause_s)
            await self._clock.sleep(pause_s)  # cancelled when the supervisor stops

    async def _try_start(self, child: Child) -> bool:
        """Start the child and return whether that succeeded. A failure does not affect other children.

        Raises FileNotFoundError or PermissionError if the program can never start.
        """
        try:
            await self._start(child)
        except (OSError, RuntimeError) as error:  # no more processes, threads, memory or file descriptors
            if child.process is None and isinstance(error, (FileNotFoundError, PermissionError)):
                raise
            # no traceback, because formatting one may open files, which may fail for the same reason
            log.error("process not started, trying again", process=child.name, why=str(error), tries=child.deaths + 1)
            return False
        return True

    async def _start(self, child: Child) -> None:
        child.started_s = self._clock.monotonic()
        child.process = await asyncio.create_subprocess_exec(
            *self._program,
            *child.arguments,
            env=self._environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # so that a terminal's Ctrl-C reaches only the supervisor
        )
        child.ticks, child.beats, child.hangs = 0, False, ""
        child.output = asyncio.create_task(_watch_output(child, child.process))

    async def _ended(self, child: Child) -> int | None:
        """Return the child's exit code once it has ended, after killing it if it hangs.

        None: it was killed, but has not ended yet, for example because of a call to an unresponsive file server.
        """
        process = child.process
        assert process is not None
        ending = asyncio.create_task(process.wait())
        try:
            while not (await asyncio.wait({ending}, timeout=self._tick_s))[0]:
                child.ticks += 1
                why = self._hangs_because(child)
                if why:
                    log.error("process hangs, killing it", process=child.name, why=why)
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                    await asyncio.wait({ending}, timeout=KILLED_S)
                    break
            return process.returncode
        finally:
            ending.cancel()

    def _hangs_because(self, child: Child) -> str:
        """Return what hangs in the child, or how long it has sent no heartbeat; empty if it works."""
        if child.silence_s is None or child.hangs:
            return child.hangs
        most_s = child.silence_s if child.beats else max(child.silence_s, FIRST_BEAT_S)
        silent_s = child.ticks * self._tick_s
        return f"no heartbeat for {silent_s:.0f} s, limit {most_s:.0f} s" if silent_s > most_s else ""

    async def _end(self, child: Child) -> None:
        process = child.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), self._stop_s)
        except TimeoutError:
            log.error("process did not stop, killing it", process=child.name)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), KILLED_S)


async def _watch_output(child: Child, process: asyncio.subprocess.Process) -> None:
    """Read a child's lines: "ready" when it serves, "alive" as a heartbeat, "hangs WHAT" to be killed."""
    assert process.stdout is not None
    async for line in process.stdout:
        word, _, rest = line.decode(errors="replace").strip().partition(" ")
        if child.process is not process:
            return  # the child was replaced
        if word == "ready":
            child.ready.set()
        elif word == "alive":
            child.ticks, child.beats = 0, True
        elif word == "hangs":
            child.hangs = rest
