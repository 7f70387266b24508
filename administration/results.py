"""Results of jobs: canonical instances' outputs, named as in the job, and all results of a batch as a tar or as CSV.

The tar is streamed (JOB/OUTPUT) with one page of jobs and one piece of a file in memory, for a batch of any size.
Its last member, `missing.jsonl`, has one line of JSON per missing file (`job_id`, `name`, `because`) and per job
without a result (`job_id`, `state`, `because`); an archive that contains it is complete.
"""

from __future__ import annotations

import csv
import io
import tarfile
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from tempfile import SpooledTemporaryFile
from typing import IO, Any

import msgspec

from administration.access.who import Person
from administration.show import shown
from domain.access import Role
from domain.batches import Batch
from domain.dispatch import Upload
from domain.errors import MusterError, NotFoundError
from domain.formatting import inert
from domain.jobs import InstanceState, JobState, Output
from domain.units import BatchId, JobId, SubmitterId
from domain.views import JobRow, Returned
from muster_client import shapes
from store.views import PostgresViews
from store.waiting import PostgresWaitingWork
from transfer.project_files import Found, ProjectFiles

PAGE = 1000  # jobs per database read
COLUMNS = [
    "i",
    "job_id",
    "state",
    "because",
    "command_line",
    "inputs",
    "host_id",
    "elapsed_s",
    "cpu_s",
    "exit_status",
    "canonical_instance_id",
    "files",
]

Document = Mapping[str, Any]  # Any: a JSON document


class OutputState(StrEnum):
    HERE = "here"
    GONE = "gone"  # recorded, but the file is missing or has another size
    NOT_BROUGHT = "not_brought"  # an optional output that the instance did not upload


@dataclass(frozen=True, slots=True)
class ResultFile:
    """An output of a result. `upload` is None if the instance did not upload it, `file` if it is missing."""

    name: str
    upload: Upload | None
    file: Found | None

    @property
    def state(self) -> OutputState:
        if self.upload is None:
            return OutputState.NOT_BROUGHT
        return OutputState.GONE if self.file is None else OutputState.HERE


NOTHING = Returned()


@dataclass(frozen=True, slots=True)
class Result:
    """A job with its outputs, or with the reason `because` it has no result."""

    job: JobRow
    because: str | None
    outputs: tuple[ResultFile, ...] = ()
    returned: Returned = NOTHING  # by the canonical instance's host


class Results:
    """Results of jobs, read from the database and the project's files."""

    def __init__(self, jobs: PostgresViews, classes: PostgresWaitingWork, files: ProjectFiles) -> None:
        self._jobs = jobs
        self._classes = classes
        self._files = files

    async def of(self, job_id: JobId) -> Result:
        """Return a job's result. Raises NotFoundError."""
        return await self.of_job(await self._jobs.job(job_id))

    async def of_job(self, job: JobRow) -> Result:
        """Return the result of a job that was read together with its instances."""
        because = why_no_result(job.state, job.failure, [one.state for one in job.instances])
        if because is not None:
            return Result(job, because)
        job_class = (await self._classes.job_classes([job.job_class_id]))[job.job_class_id]
        assert job.canonical_instance_id is not None
        returned = await self._jobs.returned(job.batch_id, [job.canonical_instance_id])
        [result] = await self._found([(job, returned.get(job.canonical_instance_id, NOTHING), job_class.outputs)])
        return result

    async def of_batch(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[Result]:
        """Return the results of at most `limit` of a batch's jobs, in order of id, starting after job `after`."""
        jobs = await self._jobs.jobs(batch_id, limit=limit, after=after)
        canonical = [one.canonical_instance_id for one in jobs if one.canonical_instance_id is not None]
        returned = await self._jobs.returned(batch_id, canonical)
        classes = await self._classes.job_classes(list({one.job_class_id for one in jobs}))
        brought: list[tuple[JobRow, Returned, Sequence[Output]]] = []
        for job in jobs:
            instance_id = job.canonical_instance_id
            if instance_id is None or why_no_result(job.state, job.failure) is not None:
                brought.append((job, NOTHING, ()))
                continue
            brought.append((job, returned.get(instance_id, NOTHING), classes[job.job_class_id].outputs))
        return await self._found(brought)

    async def _found(self, brought: Sequence[tuple[JobRow, Returned, Sequence[Output]]]) -> list[Result]:
        """Return the results, with one look-up of all their files."""
        by_job = [(job, one, named_uploads(one.uploads, outputs)) for job, one, outputs in brought]
        recorded = [one for _, _, named in by_job for one in named.values() if one is not None]
        found = await self._files.outputs(recorded)
        files = {upload.name: file for upload, file in zip(recorded, found, strict=True)}
        return [
            Result(
                job,
                why_no_result(job.state, job.failure),
                tuple(ResultFile(name, one, None if one is None else files[one.name]) for name, one in named.items()),
                returned,
            )
            for job, returned, named in by_job
        ]

    def file(self, result: Result, name: str) -> Found:
        """Return an output's file. Raises NotFoundError naming the missing result, output or file."""
        job_id = result.job.job_id
        if result.because is not None:
            raise NotFoundError("result of job", f"{job_id}: {result.because}")
        by_name = {one.name: one for one in result.outputs}
        output = by_name.get(name)
        if output is None:
            raise NotFoundError("output", f"{name!r} of job {job_id}: it has {', '.join(by_name) or 'none'}")
        if output.upload is None:
            raise NotFoundError("output", f"{name!r} of job {job_id}: it is optional and was not uploaded")
        if output.file is None:
            raise NotFoundError("file", why_gone(output.upload))
        return output.file


def why_gone(upload: Upload) -> str:
    """Describe a missing file.

    >>> why_gone(Upload("pi_3_41_77_r0", 12, "0" * 32))
    'pi_3_41_77_r0 of 12 bytes: it was uploaded, but is missing or has another size'
    """
    return f"{upload.name} of {upload.nbytes} bytes: it was uploaded, but is missing or has another size"


def why_no_result(state: JobState, failure: str, instances: Sequence[InstanceState] = ()) -> str | None:
    """Return why a job has no result, including the states of its instances if known; None if it has one. Pure.

    >>> why_no_result(JobState.OPEN, "", [InstanceState.TIMED_OUT, InstanceState.IN_PROGRESS])
    'it is open; its instances: 1 timed out, 1 in progress'
    >>> why_no_result(JobState.FAILED, "too many errors")
    'it failed: too many errors'
    """
    match state:
        case JobState.VALID:
            return None
        case JobState.FAILED:
            return f"it failed: {failure}" if failure else "it failed"
        case JobState.CANCELLED:
            return "its batch was aborted"
        case JobState.OPEN:
            counted = ", ".join(
                f"{count} {where.value.replace('_', ' ')}" for where, count in Counter(instances).items()
            )
            return f"it is open; its instances: {counted}" if counted else "it is open"


def named_uploads(uploads: Sequence[Upload], outputs: Sequence[Output]) -> dict[str, Upload | None]:
    """Return uploads by output name. Output number n is uploaded as NAME_rn (domain.jobs.output_file_name). Pure."""
    by_number = {upload.name.rpartition("_r")[2]: upload for upload in uploads}
    return {output.name: by_number.get(str(position)) for position, output in enumerate(outputs)}


def result_as_json(result: Result) -> shapes.ResultShown:
    """Return a result as JSON. `because` is the reason if there is none."""
    outputs = [_output_as_json(one) for one in result.outputs]
    inputs = [one.name for one in result.job.inputs]
    return shown(shapes.ResultShown, result, result.job, result.returned, outputs=outputs, inputs=inputs)


def _output_as_json(output: ResultFile) -> shapes.OutputShown:
    upload = output.upload
    return shown(
        shapes.OutputShown,
        output,
        file_name=None if upload is None else upload.name,
        nbytes=None if upload is None else upload.nbytes,
        md5=None if upload is None else upload.md5,
    )


def sees_results(person: Person, submitter_id: SubmitterId) -> bool:
    """Return whether the user may download a submitter's results: submitters may download only their own. Pure."""
    return person.role is not Role.SUBMITTER or person.submitter_id == submitter_id


PIECE_BYTES = 1 << 18
MISSING = "missing.jsonl"
MISSING_IN_MEMORY = 1 << 20


class CutFileError(MusterError):
    """A file became shorter while it was being sent."""


async def tar_of(
    results: Results, batch_id: BatchId, *, after: JobId | None = None, limit: int | None = None
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a tar of the first `limit` jobs after `after`. Raises CutFileError, OSError."""
    left = limit
    with SpooledTemporaryFile(max_size=MISSING_IN_MEMORY) as missing:
        while left is None or left > 0:
            wanted = PAGE if left is None else min(PAGE, left)
            page = await results.of_batch(batch_id, limit=wanted, after=after)
            for result in page:
                async for piece in _of_job(result, missing):
                    yield piece
            if len(page) < wanted:
                break
            after, left = page[-1].job.job_id, None if left is None else left - wanted
        nbytes = missing.tell()
        missing.seek(0)
        async for piece in _member(MISSING, _lines(missing), nbytes, at=0.0):
            yield piece
    yield bytes(2 * tarfile.BLOCKSIZE)


async def _of_job(result: Result, missing: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the archive members of one job; record missing files in `missing`."""
    job = result.job
    if result.because is not None:
        _note(missing, job_id=job.job_id, state=job.state.value, because=result.because)
    for output in result.outputs:
        if output.upload is None:
            continue
        pieces = None if output.file is None else await _begun(output.file)
        if output.file is None or pieces is None:
            _note(missing, job_id=job.job_id, name=output.name, because=why_gone(output.upload))
            continue
        nbytes, at = output.upload.nbytes, output.file.stat.modified_at
        async for piece in _member(f"{job.job_id}/{output.name}", pieces, nbytes, at=at):
            yield piece


async def _begun(file: Found) -> AsyncIterator[bytes] | None:
    """Return the pieces of a file, the first of which was read; None if it was deleted since its page was read."""
    pieces = file.pieces()
    try:
        first = await anext(pieces, b"")
    except FileNotFoundError:
        return None

    async def from_the_first() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return from_the_first()


async def _member(name: str, pieces: AsyncIterator[bytes], nbytes: int, *, at: float) -> AsyncIterator[bytes]:
    """Yield one archive member with its header, padded to full blocks."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = nbytes, int(at)
    yield info.tobuf(tarfile.PAX_FORMAT)
    left = nbytes
    async for piece in pieces:
        left -= len(piece)
        yield piece
    if left:
        raise CutFileError(f"{name}: expected {nbytes} bytes, the last {left} are missing")
    yield bytes(-nbytes % tarfile.BLOCKSIZE)


async def _lines(missing: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := missing.read(PIECE_BYTES):
        yield piece


def _note(missing: IO[bytes], **one: object) -> None:
    missing.write(msgspec.json.encode(one) + b"\n")


def number_of(index: int, jobs_total: int) -> str:
    """Return a job's number in its batch, with as many digits as that of the last job.

    >>> number_of(7, 1000)
    '007'
    """
    return f"{index:0{len(str(max(1, jobs_total - 1)))}d}"


def row_of(job: Document, number: str) -> Document:
    """Return a job's row, without cells that a spreadsheet would run as formulas.

    >>> job = {"command_line": "--n 7", "inputs": ["a", "b"], "outputs": [{"name": "out", "state": "here"}]}
    >>> [row_of(job, "07")[name] for name in ("i", "command_line", "inputs", "files")]
    ['07', "'--n 7", 'a b', '07/out']
    """
    files = [f"{number}/{one['name']}" for one in job["outputs"] if one["state"] == OutputState.HERE]
    row = {**job, "i": number, "inputs": " ".join(job["inputs"]), "files": " ".join(files)}
    return {name: inert(value) for name, value in row.items()}


async def table_of(results: Results, batch: Batch) -> AsyncGenerator[bytes, None]:
    """Yield the table of a batch of any size in pieces; purged jobs are missing."""
    after, index = JobId(0), 0
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    while True:
        page = await results.of_batch(batch.batch_id, limit=PAGE, after=after)
        for result in page:
            writer.writerow(row_of(result_as_json(result), number_of(index, batch.counts.jobs_total)))
            index += 1
        yield text.getvalue().encode()
        if len(page) < PAGE:
            return
        after = page[-1].job.job_id
        text.seek(0)
        text.truncate()
