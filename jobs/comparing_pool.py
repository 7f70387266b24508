"""Compares outputs in child processes with memory and time limits, so that no output can harm this process.

If a child exceeds its memory or processor time while parsing an instance's outputs, that instance is unreadable and the
rest are compared without it. If all outputs are readable but comparing them exceeds the limits, the job cannot be
decided. If a child is killed, or is silent because the machine stalls, no output is blamed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from domain.dispatch import Upload
from domain.errors import UnavailableError
from domain.settings import ValidationSettings
from domain.units import InstanceId
from jobs.comparing_process import decode_compared, encode_task
from jobs.comparisons import Compared, Comparison, TooSlowError
from lifecycle.leaves import ReadingLimits, too_much_memory, too_slow
from lifecycle.settle import UNREADABLE

PROGRAM = (sys.executable, "-m", "jobs.comparing_process")
LINE_BYTES = 16 * 1024 * 1024  # enough for a reply about many instances, each with a reason
SILENCE_FACTOR = 4.0  # a child is abandoned after this multiple of its processor-time limit, plus SPARE_S
SPARE_S = 5.0
PARSE, COMPARE = "parse", "compare"

log = structlog.get_logger("jobs.comparing")


class _GuiltyError(Exception):
    """The child exited while it was parsing this instance's outputs."""

    def __init__(self, instance_id: InstanceId, why: str) -> None:
        super().__init__(why)
        self.instance_id = instance_id
        self.why = why


class _GoneError(Exception):
    """The child had exited before it started the task."""


class ComparingPool:
    """Implements the validator's Comparisons. Child processes start on demand and are reused.

    Inside the block of `local(uploads)`, each upload has a path, by name. `settings` returns the current limits.
    """

    def __init__(
        self,
        local: Callable[[Sequence[Upload]], AbstractAsyncContextManager[Mapping[str, Path]]],
        settings: Callable[[], ValidationSettings],
    ) -> None:
        self._local = local
        self._settings = settings
        self._idle: list[tuple[ValidationSettings, Process]] = []
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def at_once(self) -> int:
        return self._settings().processes

    async def compare(self, comparison: Comparison) -> Compared:
        """Compare outputs. Instances whose outputs crashed the child are excluded, and the rest are compared again."""
        refused: dict[InstanceId, str] = {}
        while True:
            left = {one: files for one, files in comparison.outputs.items() if one not in refused}
            try:
                found = await self._asked(replace(comparison, outputs=left))
            except _GuiltyError as error:
                log.warning("an output cannot be compared", instance_id=error.instance_id, because=error.why)
                refused[error.instance_id] = error.why
                continue
            unreadable = dict.fromkeys(refused, UNREADABLE)
            return Compared({**found.groups, **unreadable}, {**found.because, **refused})

    async def close(self) -> None:
        """Stop all idle child processes."""
        while self._idle:
            self._end(self._idle.pop()[1])
        if self._ending:
            await asyncio.wait(self._ending, timeout=SPARE_S)

    async def _asked(self, comparison: Comparison) -> Compared:
        settings = self._settings()
        while True:
            child, is_new = await self._child(settings)
            try:
                async with self._local(_readable(comparison, settings.max_bytes)) as paths:
                    answer = await self._answer(child, comparison, paths, settings)
            except _GoneError:
                self._end(child)
                if is_new:
                    raise UnavailableError("a comparison process exited at start") from None
                continue  # the child exited while idle
            except BaseException:
                self._end(child)
                raise
            self._idle.append((settings, child))
            if "failed" in answer:
                raise OSError(answer["failed"])
            return decode_compared(answer)

    async def _child(self, settings: ValidationSettings) -> tuple[Process, bool]:
        """Return a child with the current limits, either idle or newly started, and whether it is new."""
        while self._idle:
            limits, child = self._idle.pop()
            if limits == settings and child.returncode is None:
                return child, False
            self._end(child)
        arguments = (str(settings.max_memory_bytes), str(round(settings.max_read_s)))
        try:
            child = await asyncio.create_subprocess_exec(
                *PROGRAM, *arguments, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES
            )
        except OSError as error:
            raise UnavailableError(f"cannot start a process to compare outputs: {error}") from error
        return child, True

    async def _answer(
        self, child: Process, comparison: Comparison, paths: Mapping[str, Path], settings: ValidationSettings
    ) -> Mapping[str, Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        limits = ReadingLimits(settings.max_bytes, settings.max_values, settings.max_depth)
        child.stdin.write(encode_task(comparison, paths, limits))
        with suppress(ConnectionError):  # it exited: the next read will report
            await child.stdin.drain()
        step: Mapping[str, Any] = {}
        while True:
            why = too_slow(settings.max_read_s)
            try:
                async with asyncio.timeout(SILENCE_FACTOR * settings.max_read_s + SPARE_S):
                    line = await child.stdout.readline()
            except TimeoutError:
                line = b""
            said: Mapping[str, Any] = json.loads(line) if line else {}
            if said.get("no_memory"):
                why, said = too_much_memory(settings.max_memory_bytes), {}
                is_guilty = True
            else:
                is_guilty = not said and await _used_up_its_time(child)
            if not said:
                if not step:
                    raise _GoneError
                if is_guilty and step.get("step") == PARSE:
                    raise _GuiltyError(InstanceId(step["instance"]), why)
                if is_guilty and step.get("step") == COMPARE:
                    raise TooSlowError(f"comparing {len(comparison.outputs)} outputs exceeds the limits: {why}")
                raise UnavailableError("a comparison process exited, or its files could not be read in time")
            if "step" not in said:
                return said
            step = said

    def _end(self, child: Process) -> None:
        """Kill the child without waiting: a child blocked in a read from a file server may take long to exit."""
        with suppress(ProcessLookupError):
            child.kill()
        task = asyncio.create_task(_gone(child))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _readable(comparison: Comparison, max_bytes: int) -> list[Upload]:
    """Return the outputs of instances within the limit: the others are refused unread."""
    return [
        Upload(file.file_name, file.nbytes, file.md5)
        for files in comparison.outputs.values()
        if sum(file.nbytes for file in files) <= max_bytes
        for file in files
    ]


async def _used_up_its_time(child: Process) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(SPARE_S):
            return await child.wait() == -signal.SIGPROF
    return False


async def _gone(child: Process) -> None:
    await child.wait()
