"""Fetches the outputs of a batch's valid jobs into FOLDER/I/OUTPUT, and lists its jobs in FOLDER/index.csv.

I is the job's number in its batch, from 0, as `{i}` in the batch file, padded with zeros. Existing files stay.
"""

from __future__ import annotations

import asyncio
import csv
import tarfile
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from administration.results import COLUMNS, OutputState, number_of, row_of, why_gone
from domain.dispatch import Upload
from domain.errors import InvalidInputError, NotFoundError
from domain.jobs import JobState
from transfer.files import CHUNK_BYTES, Content, content_of
from wire.uploads import valid_open_name

PAGE = 1000  # jobs per request
INDEX = "index.csv"
AT_ONCE = 4  # concurrent downloads
PART = ".part"  # followed by a number; output names never begin with a dot
ARCHIVE = ".part.tar"
ARCHIVE_BYTES = 64 * 1024 * 1024  # maximum size of the files in one archive
ARCHIVE_FILES = 5  # fewer files than this are downloaded one by one

Document = Mapping[str, Any]  # Any: a JSON document
Progress = Callable[[int, int], None]  # number of jobs downloaded, and of valid jobs


class Source(Protocol):
    """The server that results are downloaded from."""

    async def batch(self, batch_id: int) -> Document:
        """Return a batch. Raises NotFoundError, or the server's error."""
        ...

    async def results(self, batch_id: int, *, after: int, limit: int) -> Sequence[Document]:
        """Return the results of the `limit` jobs that follow job `after`."""
        ...

    async def fetch(self, job_id: int, name: str, to: Path) -> None:
        """Download an output to a file. Raises NotFoundError if the output no longer exists."""
        ...

    async def fetch_archive(self, batch_id: int, to: Path, *, after: int, limit: int) -> bool:
        """Download a tar with the files of the same jobs, named JOB/OUTPUT. Return False if it was truncated."""
        ...


@dataclass(slots=True)
class Collected:
    """The outcome. `fetched` and `present` count files; `nbytes` is the total of both."""

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
        """Return the number of jobs whose records have been purged."""
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """A recorded output and its target path. `gone` is the reason why it cannot be downloaded, if known."""

    job_id: int
    name: str
    content: Content
    path: Path
    part: Path  # partial download, in the job's folder
    gone: str = ""


async def collect(source: Source, batch_id: int, folder: Path, *, progress: Progress) -> Collected:
    """Download files that do not exist yet; can be repeated after an interruption. Raises NotFoundError, OSError."""
    batch = await source.batch(batch_id)
    done = Collected(batch_id, folder, int(batch["jobs_total"]))
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    after: int | None = 0
    with new_index(folder / INDEX) as index:
        while after is not None:
            page = await source.results(batch_id, after=after, limit=PAGE)
            homes = {
                int(job["job_id"]): folder / number_of(done.listed + n, done.jobs_total) for n, job in enumerate(page)
            }
            index.writerows(row_of(job, homes[int(job["job_id"])].name) for job in page)
            done.listed += len(page)
            done.without_result += [
                {key: job[key] for key in ("job_id", "state", "because")}
                for job in page
                if job["state"] != JobState.VALID
            ]
            for run in runs(page, ARCHIVE_BYTES):
                await _collect_run(source, run, after, homes, done)
                after = int(run[-1]["job_id"])
                done.valid += sum(job["state"] == JobState.VALID for job in run)
                progress(done.valid, int(batch["jobs_validated"]))
            after = after if len(page) == PAGE else None
    return done


@contextmanager
def new_index(path: Path) -> Iterator[csv.DictWriter[str]]:
    """Write a table of the batch's jobs; it replaces that of an earlier run when it is complete."""
    part = path.with_name(f"{PART}.{path.name}")
    try:
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore")
            writer.writeheader()
            yield writer
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def runs(page: Sequence[Document], most_bytes: int) -> Iterator[Sequence[Document]]:
    """Split jobs into runs of at least one job whose files have at most `most_bytes` in total. Pure.

    >>> page = [{"outputs": [{"nbytes": nbytes}]} for nbytes in (3, 4, 9, None, 1)]
    >>> [len(run) for run in runs(page, 8)]
    [2, 1, 2]
    """
    run: list[Document] = []
    nbytes = 0
    for job in page:
        of_job = sum(one["nbytes"] or 0 for one in job["outputs"])
        if run and nbytes + of_job > most_bytes:
            yield run
            run, nbytes = [], 0
        run.append(job)
        nbytes += of_job
    if run:
        yield run


async def _collect_run(
    source: Source, run: Sequence[Document], after: int, homes: Mapping[int, Path], done: Collected
) -> None:
    files = [one for job in run for one in _files_of(job, homes[int(job["job_id"])])]
    wanted = await asyncio.to_thread(_not_there, files)
    done.present += len(files) - len(wanted)
    done.nbytes += sum(one.content.nbytes for one in files) - sum(one.content.nbytes for one in wanted)
    done.missing += [_missing(one, one.gone) for one in wanted if one.gone]
    wanted = [one for one in wanted if not one.gone]
    if len(wanted) >= ARCHIVE_FILES and 2 * len(wanted) >= len(files):
        archive = done.folder / ARCHIVE
        try:
            came = await source.fetch_archive(done.batch_id, archive, after=after, limit=len(run))
            taken = await asyncio.to_thread(take_out, archive, wanted) if came else []
        finally:
            await asyncio.to_thread(archive.unlink, missing_ok=True)
        for one in taken:
            _count(one, done)
        there = {one.path for one in taken}
        wanted = [one for one in wanted if one.path not in there]
    slots = asyncio.Semaphore(AT_ONCE)
    await _all_of(_fetch(source, one, done, slots) for one in wanted)


def _files_of(job: Document, home: Path) -> Iterator[Wanted]:
    """Yield the recorded outputs of a job. Raises InvalidInputError for an invalid output name."""
    for position, output in enumerate(job["outputs"]):
        if output["state"] == OutputState.NOT_BROUGHT:
            continue
        job_id, name, content = int(job["job_id"]), str(output["name"]), Content(int(output["nbytes"]), output["md5"])
        if not valid_open_name(name):
            raise InvalidInputError("outputs.name", "a file name", name)
        gone = output["state"] == OutputState.GONE
        because = f"no file {why_gone(Upload(str(output['file_name']), *content))}" if gone else ""
        yield Wanted(job_id, name, content, home / name, home / f"{PART}{position}", because)


def _not_there(files: Iterable[Wanted]) -> list[Wanted]:
    """Return the files that do not exist with the recorded size and MD5."""
    return [one for one in files if not _is_there(one)]


def _is_there(wanted: Wanted) -> bool:
    path = wanted.path
    return path.is_file() and path.stat().st_size == wanted.content.nbytes and content_of(path) == wanted.content


async def _all_of(tasks: Iterable[Coroutine[None, None, None]]) -> None:
    """Run all tasks concurrently. If one fails, cancel the others and raise its exception."""
    try:
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                group.create_task(task)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _missing(wanted: Wanted, because: str) -> dict[str, object]:
    return {"job_id": wanted.job_id, "name": wanted.name, "because": because}


def _count(wanted: Wanted, done: Collected) -> None:
    done.fetched += 1
    done.nbytes += wanted.content.nbytes


async def _fetch(source: Source, wanted: Wanted, done: Collected, slots: asyncio.Semaphore) -> None:
    """Download one file, or record why that failed."""
    async with slots:
        await asyncio.to_thread(wanted.part.parent.mkdir, parents=True, exist_ok=True)
        try:
            await source.fetch(wanted.job_id, wanted.name, wanted.part)
            because = await asyncio.to_thread(_take, wanted)
        except NotFoundError as error:
            because = str(error)
        finally:
            await asyncio.to_thread(wanted.part.unlink, missing_ok=True)
    if because:
        done.missing.append(_missing(wanted, because))
    else:
        _count(wanted, done)


def _take(wanted: Wanted) -> str:
    """Move a downloaded file to its target if it matches its record; otherwise return the difference."""
    found, recorded = content_of(wanted.part), wanted.content
    if found == recorded:
        wanted.path.parent.mkdir(parents=True, exist_ok=True)
        wanted.part.replace(wanted.path)
        return ""
    had = f"{recorded.nbytes} bytes with MD5 {recorded.md5}"
    return f"its file has {found.nbytes} bytes with MD5 {found.md5}; {had} were recorded"


def take_out(archive: Path, wanted: Iterable[Wanted]) -> list[Wanted]:
    """Extract the wanted files of an archive and return the files that match their records."""
    by_member = {f"{one.job_id}/{one.name}": one for one in wanted}
    taken: list[Wanted] = []
    with suppress(tarfile.TarError), tarfile.open(archive) as tar:
        for member in tar:
            one = by_member.get(member.name)
            file = None if one is None or not member.isfile() else tar.extractfile(member)
            if one is not None and file is not None and _write(file, one):
                taken.append(one)
    return taken


def _write(file: IO[bytes], wanted: Wanted) -> bool:
    wanted.part.parent.mkdir(parents=True, exist_ok=True)
    try:
        with wanted.part.open("wb") as to:
            while piece := file.read(CHUNK_BYTES):
                to.write(piece)
        return not _take(wanted)
    finally:
        wanted.part.unlink(missing_ok=True)
