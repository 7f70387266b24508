"""How a crowd volunteer computes a job: in a slot folder, with the real application, as the client does."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from demo.crowd.profile import Profile
from domain.clock import Clock
from domain.units import Seconds
from wire.messages import STATE_COMPUTE_ERROR, STATE_UPLOADED, FileRef, ResultElement, WorkunitElement

STDERR_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Task:
    """A job as the server handed it out."""

    result: ResultElement
    workunit: WorkunitElement
    main_program: str  # file name
    max_bytes: dict[str, int]  # of each output, by file name
    tokens: dict[str, str]
    upload_url: str


@dataclass(frozen=True, slots=True)
class Finished:
    """What running a task came to; `outputs` by file name, in the order of the task's file_refs."""

    task: Task
    exit_status: int
    state: int
    elapsed_s: Seconds
    stderr: str
    outputs: dict[str, bytes]


class TaskRunner:
    """Runs tasks, a few processes at a time however large the crowd is."""

    def __init__(self, clock: Clock, cache_folder: Path, slots_folder: Path, *, at_once: int) -> None:
        self._clock = clock
        self._cache = cache_folder
        self._slots = slots_folder
        self._turns = asyncio.Semaphore(at_once)

    async def run(self, task: Task, profile: Profile, draw: random.Random) -> Finished:
        """Compute the task; takes at least as long as a host of that speed would."""
        started_s = self._clock.monotonic()
        slot = self._slots / task.result.name
        slot.mkdir(parents=True)
        try:
            async with self._turns:
                exit_status, stderr = await self._execute(task, slot, faulty=draw.random() < profile.error_fraction)
            outputs = _collect(task, slot)
        finally:
            shutil.rmtree(slot, ignore_errors=True)
        if draw.random() < profile.garbage_fraction:
            outputs = {name: content + b"made up\n" for name, content in outputs.items()}
        wanted_s = task.workunit.fpops_est / profile.flop_per_s * profile.stretch * draw.lognormvariate(0.0, 0.2)
        await self._clock.sleep(max(0.0, wanted_s - (self._clock.monotonic() - started_s)))
        complete = exit_status == 0 and len(outputs) == len(task.result.file_refs)
        return Finished(
            task,
            exit_status,
            STATE_UPLOADED if complete else STATE_COMPUTE_ERROR,
            Seconds(self._clock.monotonic() - started_s),
            stderr,
            outputs,
        )

    async def _execute(self, task: Task, slot: Path, *, faulty: bool) -> tuple[int, str]:
        for ref in task.workunit.file_refs:
            shutil.copyfile(self._cache / ref.file_name, slot / (ref.open_name or ref.file_name))
        arguments = ["--fail"] if faulty else task.workunit.command_line.split()
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        process = await asyncio.create_subprocess_exec(
            str(self._cache / task.main_program),
            *arguments,
            cwd=slot,
            env={**os.environ, "PATH": path},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, stderr = await process.communicate()
        finally:
            if process.returncode is None:  # the task was aborted, or the crowd goes home
                process.kill()
                await process.wait()
        return process.returncode or 0, stderr[-STDERR_BYTES:].decode(errors="replace")


def _collect(task: Task, slot: Path) -> dict[str, bytes]:
    def content(ref: FileRef) -> bytes | None:
        path = slot / ref.open_name
        return path.read_bytes() if path.is_file() else None

    found = ((ref.file_name, content(ref)) for ref in task.result.file_refs)
    return {name: data for name, data in found if data is not None and len(data) <= task.max_bytes[name]}
