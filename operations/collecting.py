"""Brings the outputs of a batch's valid jobs into a folder: FOLDER/JOB/OUTPUT. What is there already stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from domain.errors import InvalidInputError, NotFoundError
from domain.jobs import JobState
from operations.results import OutputState, why_no_result
from transfer.download_folder import Content, content_of
from wire.uploads import valid_file_name

PAGE = 1000  # jobs asked for at once
AT_ONCE = 4  # jobs whose files are on their way
PART = ".part"  # no output is named so: names do not begin with a dot

Document = Mapping[str, Any]  # Any: a JSON document
Progress = Callable[[int, int], None]  # valid jobs that are done, and how many there are


class Source(Protocol):
    """Where results come from: the project's own machine, or a server."""

    async def batch(self, batch_id: int) -> Document:
        """NotFoundError, or the server's refusal."""
        ...

    async def jobs(self, batch_id: int, *, after: int, limit: int) -> Sequence[Document]: ...

    async def result(self, job_id: int) -> Document: ...

    async def fetch(self, job_id: int, name: str, to: Path) -> None:
        """Write an output's file. NotFoundError: it is not there any more."""
        ...


@dataclass(slots=True)
class Collected:
    """What came of it. `fetched` and `present` are files; `nbytes` is of both."""

    batch_id: int
    folder: Path
    jobs_total: int
    listed: int = 0
    valid: int = 0
    fetched: int = 0
    present: int = 0
    nbytes: int = 0
    missing: list[dict[str, object]] = field(default_factory=list)
    without_result: list[dict[str, object]] = field(default_factory=list)

    @property
    def jobs_forgotten(self) -> int:
        """Jobs of which the database knows nothing any more."""
        return max(0, self.jobs_total - self.listed)

    def as_json(self) -> dict[str, object]:
        return {
            "batch_id": self.batch_id,
            "to": str(self.folder),
            "jobs_total": self.jobs_total,
            "jobs_validated": self.valid,
            "jobs_forgotten": self.jobs_forgotten,
            "files": self.fetched + self.present,
            "nbytes": self.nbytes,
            "fetched": self.fetched,
            "present": self.present,
            "missing": sorted(self.missing, key=lambda one: (one["job_id"], one["name"])),
            "without_result": self.without_result,
        }


async def collect(source: Source, batch_id: int, folder: Path, *, progress: Progress) -> Collected:
    """Fetch what is not in the folder. Broken off anywhere it can be repeated: a file is there whole or not at all.

    Raises NotFoundError; OSError where the folder cannot be written.
    """
    batch = await source.batch(batch_id)
    done = Collected(batch_id, folder, int(batch["jobs_total"]))
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(job: Document) -> None:
        async with slots:
            await _collect_job(source, int(job["job_id"]), folder, done)
            done.valid += 1
            progress(done.valid, int(batch["jobs_validated"]))

    after: int | None = 0
    while after is not None:
        page = await source.jobs(batch_id, after=after, limit=PAGE)
        done.listed += len(page)
        done.without_result += [_without(job) for job in page if job["state"] != JobState.VALID]
        await _all_of(one(job) for job in page if job["state"] == JobState.VALID)
        after = int(page[-1]["job_id"]) if len(page) == PAGE else None
    return done


async def _all_of(tasks: Iterable[Coroutine[None, None, None]]) -> None:
    """Do them together; the first that fails ends the others, and is told."""
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _without(job: Document) -> dict[str, object]:
    state = JobState(job["state"])
    return {"job_id": job["job_id"], "state": state.value, "because": why_no_result(state, job["failure"])}


async def _collect_job(source: Source, job_id: int, folder: Path, done: Collected) -> None:
    for output in (await source.result(job_id))["outputs"]:
        if output["state"] == OutputState.NOT_BROUGHT:
            continue
        name, nbytes = str(output["name"]), int(output["nbytes"])
        if not valid_file_name(name):
            raise InvalidInputError("outputs.name", "a file name", name)
        path = folder / str(job_id) / name
        if await asyncio.to_thread(_has, path, nbytes):
            done.present += 1
        elif because := await _fetch(source, job_id, output, path):
            done.missing.append({"job_id": job_id, "name": name, "because": because})
            continue
        else:
            done.fetched += 1
        done.nbytes += nbytes


async def _fetch(source: Source, job_id: int, output: Document, path: Path) -> str:
    """Put a file at `path`; why that was not done, or nothing."""
    part = path.with_name(PART)
    await asyncio.to_thread(part.parent.mkdir, parents=True, exist_ok=True)
    try:
        await source.fetch(job_id, output["name"], part)
        found = await asyncio.to_thread(content_of, part)
        if found != Content(output["nbytes"], output["md5"]):
            recorded = f"{output['nbytes']} bytes with the MD5 {output['md5']}"
            return f"its file has {found.nbytes} bytes with the MD5 {found.md5}, recorded were {recorded}"
        await asyncio.to_thread(part.replace, path)
    except NotFoundError as error:
        return str(error)
    finally:
        await asyncio.to_thread(part.unlink, missing_ok=True)
    return ""


def _has(path: Path, nbytes: int) -> bool:
    return path.is_file() and path.stat().st_size == nbytes
