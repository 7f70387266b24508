"""The outputs of a batch's jobs as one tar, piece by piece: JOB/OUTPUT, and at its end what is missing.

What is in memory is a page of jobs and a piece of a file, however large the batch is. The last member, `missing.jsonl`,
has a line of JSON for every file that should be here and is not (`job_id`, `name`, `because`) and for every job without
a result (`job_id`, `state`, `because`): where it is there the archive is whole.
"""

from __future__ import annotations

import asyncio
import os
import tarfile
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

import msgspec

from administration.results import OutputFile, OutputState, Result, why_gone
from domain.errors import MusterError
from domain.units import BatchId, JobId

PAGE = 1000  # jobs read at once
PIECE_BYTES = 1 << 18
MISSING = "missing.jsonl"
MISSING_IN_MEMORY = 1 << 20


class Pages(Protocol):
    """Results of a batch's jobs, page by page. `administration.results.Results` satisfies it."""

    async def of_batch(self, batch_id: BatchId, *, limit: int, after: JobId | None = None) -> Sequence[Result]: ...

    def stored(self, output: OutputFile) -> Path: ...


class CutFileError(MusterError):
    """A file became shorter while it was sent."""


async def tar_of(
    results: Pages, batch_id: BatchId, *, after: JobId | None = None, limit: int | None = None
) -> AsyncGenerator[bytes, None]:
    """The tar of the first `limit` jobs behind `after`. Raises CutFileError, OSError."""
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


async def _of_job(results: Pages, result: Result, missing: IO[bytes]) -> AsyncIterator[bytes]:
    """The members of one job; what is not here goes to `missing`."""
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
    """One file of the archive with its header, filled up to whole blocks."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime = nbytes, int(at)
    yield info.tobuf(tarfile.PAX_FORMAT)
    left = nbytes
    while left:
        piece = await asyncio.to_thread(file.read, min(PIECE_BYTES, left))
        if not piece:
            raise CutFileError(f"{name}: expected {nbytes} bytes, {left} of them are not there any more")
        left -= len(piece)
        yield piece
    yield bytes(-nbytes % tarfile.BLOCKSIZE)


def _opened(path: Path) -> IO[bytes] | None:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None  # deleted since its page was read


def _note(missing: IO[bytes], **one: object) -> None:
    missing.write(msgspec.json.encode(one) + b"\n")
