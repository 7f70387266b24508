"""Computes a simulated volunteer's job: downloads and checks files, runs the application, uploads the outputs.

All simulated hosts share one directory of files, so each file is downloaded once.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from domain.clock import Clock
from domain.dispatch import ReportedFile
from domain.errors import MusterError
from domain.units import Seconds
from wire.messages import (
    STATE_COMPUTE_ERROR,
    STATE_UPLOADED,
    DownloadElement,
    FileRef,
    ResultElement,
    SizeQuery,
    UploadHeader,
    WorkunitElement,
)
from wire.signing import PublicKey, verify
from wire.uploads import STATUS_DONE, STATUS_NEVER, decode_upload_reply, encode_size_query, encode_upload_header

STDERR_BYTES = 4096


@dataclass(frozen=True, slots=True)
class VolunteerTask:
    """A job as sent by the server."""

    result: ResultElement
    workunit: WorkunitElement
    main_program: str  # by file name
    max_bytes: dict[str, int]  # maximum size of each output, by file name
    tokens: dict[str, str]
    upload_url: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The outcome of a task. `outputs` are by file name, in the order of the task's file_refs."""

    task: VolunteerTask
    exit_status: int
    state: int
    elapsed_s: Seconds
    stderr: str
    outputs: dict[str, bytes]


class TaskRunner:
    """Runs tasks, with a limited number of concurrent processes."""

    def __init__(self, clock: Clock, cache_folder: Path, slots_folder: Path, *, at_once: int) -> None:
        self._clock = clock
        self._cache = cache_folder
        self._slots = slots_folder
        self._turns = asyncio.Semaphore(at_once)

    async def run(self, task: VolunteerTask, profile: Profile, draw: random.Random) -> Finished:
        """Compute the task, taking at least as long as a host of that speed would."""
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

    async def _execute(self, task: VolunteerTask, slot: Path, *, faulty: bool) -> tuple[int, str]:
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
            if process.returncode is None:  # the task was aborted, or the run is ending
                process.kill()
                await process.wait()
        return process.returncode or 0, stderr[-STDERR_BYTES:].decode(errors="replace")


def _collect(task: VolunteerTask, slot: Path) -> dict[str, bytes]:
    def content(ref: FileRef) -> bytes | None:
        path = slot / ref.open_name
        return path.read_bytes() if path.is_file() else None

    found = ((ref.file_name, content(ref)) for ref in task.result.file_refs)
    return {name: data for name, data in found if data is not None and len(data) <= task.max_bytes[name]}


@dataclass(frozen=True, slots=True)
class Profile:
    """The behaviour of one simulated volunteer.

    `flop_per_s` is the reported speed and, apart from `stretch`, the real one: a job takes fpops_est / flop_per_s *
    stretch seconds. The fractions are the probabilities that a job fails, is never returned, or returns wrong content.
    """

    number: int
    email: str
    ncpus: int
    flop_per_s: float
    stretch: float
    error_fraction: float = 0.0
    vanish_fraction: float = 0.0
    garbage_fraction: float = 0.0

    @property
    def kind(self) -> str:
        """Return the profile's kind as one word for use in tables."""
        if self.garbage_fraction > 0:
            return "cheat"
        if self.vanish_fraction > 0.5:
            return "leaver"
        if self.error_fraction > 0:
            return "faulty"
        return "fast" if self.flop_per_s >= 2e9 else "slow" if self.flop_per_s < 1e9 else "ordinary"


def draw_profiles(count: int, *, seed: int) -> list[Profile]:
    """Draw profiles with log-normal speeds: one in 12 is faulty, one in 15 leaves, one in 20 cheats.

    The remaining ones leave after one reply in 250, which loses some jobs but keeps most hosts.

    >>> [p.kind for p in draw_profiles(40, seed=1)].count("cheat")
    2
    """
    draw = random.Random(seed)  # noqa: S311  repeatable, not a secret
    profiles = []
    for number in range(1, count + 1):
        trouble = {
            "error_fraction": 0.4 if number % 12 == 0 else 0.0,
            "vanish_fraction": 0.8 if number % 15 == 7 else 0.004,
            "garbage_fraction": 0.5 if number % 20 == 11 else 0.0,
        }
        profiles.append(
            Profile(
                number,
                f"volunteer{number}@volunteers.invalid",
                ncpus=draw.choice((1, 1, 2, 4)),
                flop_per_s=min(6e9, max(2.5e8, 1.2e9 * draw.lognormvariate(0.0, 0.6))),
                stretch=draw.lognormvariate(0.0, 0.25),
                **trouble,
            )
        )
    return profiles


class BadDownloadError(MusterError):
    """A downloaded file does not match the server's description."""


class FileCache:
    """The downloaded and verified files, by name."""

    def __init__(self, session: aiohttp.ClientSession, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._locks: dict[str, asyncio.Lock] = {}

    def path(self, name: str) -> Path:
        return self._folder / name

    async def fetch(self, element: DownloadElement, key: PublicKey) -> Path:
        """Return the path of the file, downloading it on first use. Raises BadDownloadError."""
        path = self.path(element.name)
        async with self._locks.setdefault(element.name, asyncio.Lock()):
            if not path.exists():
                async with self._session.get(element.urls[0]) as response:
                    response.raise_for_status()
                    content = await response.read()
                _check(element, content, key)
                path.write_bytes(content)
                path.chmod(0o755 if element.executable else 0o644)
        return path


def _check(element: DownloadElement, content: bytes, key: PublicKey) -> None:
    if len(content) != element.nbytes:
        raise BadDownloadError(f"{element.name}: got {len(content)} bytes, expected {element.nbytes}")
    if element.signature:
        if not verify(key, content, element.signature):
            raise BadDownloadError(f"{element.name}: the signature is not by the project's key")
    elif hashlib.md5(content, usedforsecurity=False).hexdigest() != element.md5:
        raise BadDownloadError(f"{element.name}: the MD5 is not {element.md5}")


SIZE_QUERY_FROM_BYTES = 8192
TRIES = 5
PAUSE_S = 1.0


class UploadFailedError(MusterError):
    """The server refused an output."""


async def upload_output(
    session: aiohttp.ClientSession, clock: Clock, task: VolunteerTask, name: str, content: bytes
) -> ReportedFile:
    """Upload one output, retrying as long as the server asks for it. Raises UploadFailedError."""
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    why = ""
    for attempt in range(TRIES):
        try:
            offset = 0
            if len(content) >= SIZE_QUERY_FROM_BYTES or attempt > 0:
                offset = await _size_here(session, task.upload_url, name)
            if offset >= len(content):
                return ReportedFile(name, len(content), md5)
            head = UploadHeader(name, task.tokens[name], task.max_bytes[name], len(content), md5, offset)
            body = encode_upload_header(head) + content[offset:]
            async with session.post(task.upload_url, data=body) as response:
                reply = decode_upload_reply(await response.read())
        except (aiohttp.ClientError, MusterError, TimeoutError) as error:
            why = str(error) or type(error).__name__
        else:
            if reply.status == STATUS_DONE:
                return ReportedFile(name, len(content), md5)
            why = reply.message
            if reply.status == STATUS_NEVER:
                break
        await clock.sleep(PAUSE_S)
    raise UploadFailedError(f"{name}: {why}")


async def _size_here(session: aiohttp.ClientSession, url: str, name: str) -> int:
    async with session.post(url, data=encode_size_query(SizeQuery(name))) as response:
        return decode_upload_reply(await response.read()).file_size or 0
