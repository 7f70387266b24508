"""Results of jobs: outputs of canonical instances under their own names, and all results of a batch as a tar.

The tar is streamed (JOB/OUTPUT) with one page of jobs and one piece of a file in memory, for a batch of any size.
Its last member, `missing.jsonl`, has one line of JSON per missing file (`job_id`, `name`, `because`) and per job
without a result (`job_id`, `state`, `because`); an archive that contains it is complete.
"""

from __future__ import annotations

import asyncio
import os
import tarfile
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO

import msgspec

from administration.access.who import Person
from administration.show import shown
from domain.access import Role
from domain.dispatch import Upload
from domain.errors import MusterError, NotFoundError
from domain.jobs import InstanceState, JobState, Output
from domain.units import BatchId, InstanceId, JobId, SubmitterId
from domain.views import JobRow, Returned
from muster_client import shapes
from store.views import PostgresViews
from store.waiting import PostgresWaitingWork
from transfer.upload_folder import UploadFolder


class OutputState(StrEnum):
    HERE = "here"
    GONE = "gone"  # recorded, but the file is missing or has another size
    NOT_BROUGHT = "not_brought"  # an optional output that the instance did not upload


@dataclass(frozen=True, slots=True)
class ResultFile:
    """An output of a result. `upload` is its record, None if the instance did not upload it."""

    name: str
    upload: Upload | None
    state: OutputState


NOTHING = Returned()


@dataclass(frozen=True, slots=True)
class Result:
    """A job with its outputs, or with the reason `because` it has no result."""

    job: JobRow
    because: str | None
    outputs: tuple[ResultFile, ...] = ()
    returned: Returned = NOTHING  # by the canonical instance's host


class Results:
    """Results of jobs, read from the database and the upload directory."""

    def __init__(self, jobs: PostgresViews, classes: PostgresWaitingWork, folder: UploadFolder) -> None:
        self._jobs = jobs
        self._classes = classes
        self._folder = folder

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
        return await asyncio.to_thread(self._found, job, returned, job_class.outputs)

    async def of_batch(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[Result]:
        """Return the results of a batch's jobs in order of id: the first `limit` jobs after `after`."""
        jobs = await self._jobs.jobs(batch_id, limit=limit, after=after)
        canonical = [one.canonical_instance_id for one in jobs if one.canonical_instance_id is not None]
        returned = await self._jobs.returned(batch_id, canonical)
        classes = await self._classes.job_classes(list({one.job_class_id for one in jobs}))

        def found() -> list[Result]:
            return [self._of_row(job, returned, classes[job.job_class_id].outputs) for job in jobs]

        return await asyncio.to_thread(found)

    def _of_row(self, job: JobRow, returned: Mapping[InstanceId, Returned], outputs: Sequence[Output]) -> Result:
        because = why_no_result(job.state, job.failure)
        return Result(job, because) if because is not None else self._found(job, returned, outputs)

    def _found(self, job: JobRow, returned: Mapping[InstanceId, Returned], outputs: Sequence[Output]) -> Result:
        assert job.canonical_instance_id is not None
        one = returned.get(job.canonical_instance_id, NOTHING)
        named = named_uploads(one.uploads, outputs).items()
        return Result(job, None, tuple(ResultFile(name, upload, self._state(upload)) for name, upload in named), one)

    def path(self, result: Result, name: str) -> Path:
        """Return the path of an output's file. Raises NotFoundError naming the missing result, output or file."""
        job_id = result.job.job_id
        if result.because is not None:
            raise NotFoundError("result of job", f"{job_id}: {result.because}")
        by_name = {one.name: one for one in result.outputs}
        output = by_name.get(name)
        if output is None:
            raise NotFoundError("output", f"{name!r} of job {job_id}: it has {', '.join(by_name) or 'none'}")
        if output.upload is None:
            raise NotFoundError("output", f"{name!r} of job {job_id}: it is optional and was not uploaded")
        if output.state is OutputState.GONE:
            raise NotFoundError("file", why_gone(output.upload))
        return self.stored(output)

    def stored(self, output: ResultFile) -> Path:
        """Return the path of a recorded output, whether or not the file exists."""
        assert output.upload is not None
        return self._folder.path(output.upload.name)

    def _state(self, upload: Upload | None) -> OutputState:
        if upload is None:
            return OutputState.NOT_BROUGHT
        try:
            there = self._folder.path(upload.name).stat().st_size
        except FileNotFoundError:
            return OutputState.GONE
        return OutputState.HERE if there == upload.nbytes else OutputState.GONE


def why_gone(upload: Upload) -> str:
    """Describe a missing file.

    >>> why_gone(Upload("pi_3_41_77_r0", 12, "0" * 32))
    'pi_3_41_77_r0 of 12 bytes in the upload directory: it was uploaded, but is missing or has another size'
    """
    where = f"{upload.name} of {upload.nbytes} bytes in the upload directory"
    return f"{where}: it was uploaded, but is missing or has another size"


def why_no_result(state: JobState, failure: str, instances: Sequence[InstanceState] = ()) -> str | None:
    """Return why a job has no result, including the states of its instances if known; None if it has one. Pure.

    >>> why_no_result(JobState.OPEN, "", [InstanceState.TIMED_OUT, InstanceState.IN_PROGRESS])
    'it is open, its instances are: 1 timed_out, 1 in_progress'
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
            counted = ", ".join(f"{count} {where.value}" for where, count in Counter(instances).items())
            return f"it is open, its instances are: {counted}" if counted else "it is open"


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


PAGE = 1000  # jobs per database read
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
                async for piece in _of_job(results, result, missing):
                    yield piece
            if len(page) < wanted:
                break
            after, left = page[-1].job.job_id, None if left is None else left - wanted
        nbytes = missing.tell()
        missing.seek(0)
        async for piece in _member(MISSING, missing, nbytes, at=0.0):
            yield piece
    yield bytes(2 * tarfile.BLOCKSIZE)


async def _of_job(results: Results, result: Result, missing: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the archive members of one job; record missing files in `missing`."""
    job = result.job
    if result.because is not None:
        _note(missing, job_id=job.job_id, state=job.state.value, because=result.because)
    for output in result.outputs:
        if output.upload is None:
            continue
        file = None if output.state is OutputState.GONE else await asyncio.to_thread(_opened, results.stored(output))
        if file is None:
            _note(missing, job_id=job.job_id, name=output.name, because=why_gone(output.upload))
            continue
        with file:
            at = os.fstat(file.fileno()).st_mtime
            async for piece in _member(f"{job.job_id}/{output.name}", file, output.upload.nbytes, at=at):
                yield piece


async def _member(name: str, file: IO[bytes], nbytes: int, *, at: float) -> AsyncIterator[bytes]:
    """Yield one archive member with its header, padded to full blocks."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = nbytes, int(at)
    yield info.tobuf(tarfile.PAX_FORMAT)
    left = nbytes
    while left:
        piece = await asyncio.to_thread(file.read, min(PIECE_BYTES, left))
        if not piece:
            raise CutFileError(f"{name}: expected {nbytes} bytes, the last {left} are missing")
        left -= len(piece)
        yield piece
    yield bytes(-nbytes % tarfile.BLOCKSIZE)


def _opened(path: Path) -> IO[bytes] | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None  # deleted after its page was read


def _note(missing: IO[bytes], **one: object) -> None:
    missing.write(msgspec.json.encode(one) + b"\n")
