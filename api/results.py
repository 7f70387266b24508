"""Results of jobs over the API: outputs, archives, tables and trickle messages."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated
from urllib.parse import quote

import msgspec
import structlog
from aiohttp import hdrs, web

from administration.access.who import NotAllowedError, Person
from administration.results import Result, Results, result_as_json, sees_results, table_of, tar_of
from administration.show import shown
from api.batches import ID, BatchParams, JobParams, PageOfJobs, first_after
from api.paging import Page, key_of, page_of
from api.table import Ask, File, operation
from domain.batches import Batch
from domain.errors import MusterError
from domain.units import BatchId, InstanceId, JobId
from muster_client import shapes
from store.postgres import PostgresStore
from transfer.downloads import answer_file

log = structlog.get_logger()

UNSAFE = re.compile(r"[^A-Za-z0-9_. -]")


class OutputParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]
    name: Annotated[str, msgspec.Meta(description="The output's name, as in the batch.")]


class TricklesParams(Page, forbid_unknown_fields=True, kw_only=True):
    instance_id: Annotated[int, ID]


class ArchiveParams(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    after: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None, msgspec.Meta(description="Only jobs with a higher id.")
    ] = None
    limit: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=2**62)] | None,
        msgspec.Meta(description="Read at most N jobs, in any state; default: all jobs."),
    ] = None


class ResultsApi:
    TAG = "batches"

    def __init__(self, store: PostgresStore, results: Results) -> None:
        self._store = store
        self._results = results

    @operation(
        "GET",
        "/batches/{batch_id}/results",
        "The results of a batch's jobs, by job id: the outputs, or why there are none.",
        errors=(404,),
    )
    async def batch_results(self, ask: Ask[PageOfJobs, None]) -> shapes.ResultPage:
        batch_id, asked = BatchId(ask.params.batch_id), ask.params
        await self._check(ask.person, batch_id)
        found = await self._results.of_batch(batch_id, limit=asked.limit + 1, after=first_after(asked, "results"))
        return page_of(shapes.ResultPage, found, asked, lambda one: one.job.job_id, result_as_json)

    @operation(
        "GET",
        "/batches/{batch_id}/outputs",
        "The outputs of a batch's valid jobs as a tar archive of JOB/OUTPUT. missing.jsonl lists missing outputs.",
        reply=File("A tar archive. An archive without missing.jsonl is incomplete.", "application/x-tar"),
        errors=(404,),
    )
    async def fetch_outputs(self, ask: Ask[ArchiveParams, None]) -> web.StreamResponse:
        batch_id, asked = BatchId(ask.params.batch_id), ask.params
        await self._check(ask.person, batch_id)
        after = None if asked.after is None else JobId(asked.after)
        pieces = tar_of(self._results, batch_id, after=after, limit=asked.limit)
        return await streamed(ask.request, f"batch-{batch_id}.tar", "application/x-tar", pieces)

    @operation(
        "GET",
        "/batches/{batch_id}/results.csv",
        "The jobs of a batch with their parameters, host, run times and outputs, as a table.",
        reply=File("A CSV table with a heading, one row per job.", "text/csv"),
        errors=(404,),
    )
    async def results_table(self, ask: Ask[BatchParams, None]) -> web.StreamResponse:
        batch = await self._check(ask.person, BatchId(ask.params.batch_id))
        name, pieces = f"batch-{batch.batch_id}.csv", table_of(self._results, batch)
        return await streamed(ask.request, name, "text/csv; charset=utf-8", pieces)

    @operation(
        "GET",
        "/jobs/{job_id}/outputs",
        "A job's result: the outputs of its canonical instance, or why there are none.",
        errors=(404,),
    )
    async def job_outputs(self, ask: Ask[JobParams, None]) -> shapes.ResultShown:
        return result_as_json(await self._result(ask.person, JobId(ask.params.job_id)))

    @operation(
        "GET",
        "/jobs/{job_id}/outputs/{name}",
        "The file of one output of a job.",
        reply=File("The file's bytes, as the host uploaded them."),
        errors=(404,),
    )
    async def fetch_output(self, ask: Ask[OutputParams, None]) -> web.StreamResponse:
        """Return the file. Its place comes from the recorded result; the requested name only selects the output."""
        result = await self._result(ask.person, JobId(ask.params.job_id))
        found = self._results.file(result, ask.params.name)
        return await answer_file(ask.request, found, file_headers(ask.params.name))

    @operation(
        "GET",
        "/instances/{instance_id}/trickles",
        "The trickle messages of an instance, in order of arrival.",
        errors=(404,),
    )
    async def instance_trickles(self, ask: Ask[TricklesParams, None]) -> shapes.TricklePage:
        asked = ask.params
        after = key_of(asked.cursor, "trickles", int) or 0
        instance_id = InstanceId(asked.instance_id)
        job = await self._store.views.job_of_instance(instance_id)
        await self._check(ask.person, job.batch_id, f"instance {instance_id}")
        found = await self._store.trickles.of_instance(instance_id, after=after, limit=asked.limit + 1)
        return page_of(
            shapes.TricklePage, found, asked, lambda one: one.trickle_id, partial(shown, shapes.TrickleShown)
        )

    async def _result(self, person: Person, job_id: JobId) -> Result:
        result = await self._results.of(job_id)
        await self._check(person, result.job.batch_id, f"job {job_id}")
        return result

    async def _check(self, person: Person, batch_id: BatchId, what: str = "") -> Batch:
        """Return the batch. Raises NotFoundError, or NotAllowedError for `what` if the user may not see the results."""
        batch = await self._store.views.batch(batch_id)
        if not sees_results(person, batch.submitter_id):
            what = what or f"batch {batch_id}"
            raise NotAllowedError(f"{what} belongs to another submitter: {person.name} may not fetch it")
        return batch


async def streamed(
    request: web.Request, name: str, kind: str, pieces: AsyncGenerator[bytes, None]
) -> web.StreamResponse:
    """Stream a file. An error closes the connection, so that the client notices an incomplete file."""
    response = web.StreamResponse(headers=file_headers(name, kind))
    try:
        await response.prepare(request)
        async with aclosing(pieces):
            async for piece in pieces:
                await response.write(piece)
        await response.write_eof()
    except ConnectionResetError:
        pass  # the client disconnected
    except (MusterError, OSError) as error:
        log.warning("file not completed", file=name, why=str(error))
        if request.transport is not None:
            request.transport.abort()
    return response


def file_headers(name: str, kind: str = "application/octet-stream") -> dict[str, str]:
    """Return headers for volunteers' files: browsers save them under `name` and never display or run them. Pure.

    >>> file_headers('a"é.txt')["Content-Disposition"]
    'attachment; filename="a__.txt"; filename*=UTF-8\\'\\'a%22%C3%A9.txt'
    """
    plain, whole = UNSAFE.sub("_", name), quote(name, safe="")
    return {
        hdrs.CONTENT_TYPE: kind,
        hdrs.CONTENT_DISPOSITION: f"attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}",
        "X-Content-Type-Options": "nosniff",
        hdrs.CACHE_CONTROL: "private",
    }
