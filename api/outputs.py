"""Results over the API: what a job's canonical instance brought, and the files themselves."""

from __future__ import annotations

import re
from contextlib import aclosing
from functools import partial
from typing import Annotated
from urllib.parse import quote

import msgspec
import structlog
from aiohttp import hdrs, web

from administration.access.who import NotAllowedError, Person
from administration.results import Result, Results, result_as_json, sees_results, tar_of
from administration.show import shown
from api.batches import ID, AfterJob
from api.paging import Page, key_of, page_of
from api.table import Ask, File, operation
from domain.errors import MusterError
from domain.units import BatchId, InstanceId, JobId
from muster_client import shapes
from store.postgres import PostgresStore
from transfer.downloads import OwnBytes

log = structlog.get_logger()

UNSAFE = re.compile(r"[^A-Za-z0-9_. -]")


class ResultParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]


class OutputParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]
    name: Annotated[str, msgspec.Meta(description="The output's name in the batch.")]


class ResultsParams(Page, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    after: AfterJob = None


class TricklesParams(Page, forbid_unknown_fields=True, kw_only=True):
    instance_id: Annotated[int, ID]


class ArchiveParams(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    after: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None, msgspec.Meta(description="Only of jobs behind this one.")
    ] = None
    limit: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=2**62)] | None,
        msgspec.Meta(description="Of so many jobs, whatever their state; all of them without it."),
    ] = None


class OutputsApi:
    TAG = "batches"

    def __init__(self, store: PostgresStore, results: Results) -> None:
        self._store = store
        self._results = results

    @operation(
        "GET",
        "/batches/{batch_id}/results",
        "The results of a batch's jobs, by id: the outputs of each, or why there is none.",
        errors=(404,),
    )
    async def batch_results(self, ask: Ask[ResultsParams, None]) -> shapes.ResultPage:
        batch_id, asked = BatchId(ask.params.batch_id), ask.params
        await self._check_batch(ask.person, batch_id)
        after = key_of(asked.cursor, "results", int)
        if after is None and asked.after is not None:
            after = JobId(asked.after)
        found = await self._results.of_batch(batch_id, limit=asked.limit + 1, after=after)
        return page_of(shapes.ResultPage, found, asked, lambda one: one.job.job_id, result_as_json)

    @operation(
        "GET",
        "/batches/{batch_id}/outputs",
        "The outputs of a batch's valid jobs as one tar, JOB/OUTPUT, and what is missing in its missing.jsonl.",
        reply=File("A tar archive; one without missing.jsonl was broken off.", "application/x-tar"),
        errors=(404,),
    )
    async def fetch_outputs(self, ask: Ask[ArchiveParams, None]) -> web.StreamResponse:
        """Where it breaks off, the connection does: what was sent cannot be taken for the whole."""
        batch_id, asked, request = BatchId(ask.params.batch_id), ask.params, ask.request
        await self._check_batch(ask.person, batch_id)
        response = web.StreamResponse(headers=file_headers(f"batch-{batch_id}.tar", "application/x-tar"))
        after = None if asked.after is None else JobId(asked.after)
        try:
            await response.prepare(request)
            async with aclosing(tar_of(self._results, batch_id, after=after, limit=asked.limit)) as pieces:
                async for piece in pieces:
                    await response.write(piece)
            await response.write_eof()
        except ConnectionResetError:
            pass  # whoever fetched it has gone
        except (MusterError, OSError) as error:
            log.warning("results broken off", batch=batch_id, why=str(error))
            if request.transport is not None:
                request.transport.abort()
        return response

    @operation(
        "GET",
        "/jobs/{job_id}/outputs",
        "A job's result: the outputs its canonical instance brought, or why there is none.",
        errors=(404,),
    )
    async def job_outputs(self, ask: Ask[ResultParams, None]) -> shapes.ResultShown:
        return result_as_json(await self._result(ask.person, JobId(ask.params.job_id)))

    @operation(
        "GET",
        "/jobs/{job_id}/outputs/{name}",
        "The file of one output of a job's result.",
        reply=File("The bytes as the host brought them."),
        errors=(404,),
    )
    async def fetch_output(self, ask: Ask[OutputParams, None]) -> OwnBytes:
        """The path is made of what was recorded; the request's name only chooses among the job's outputs."""
        result = await self._result(ask.person, JobId(ask.params.job_id))
        path = self._results.path(result, ask.params.name)
        return OwnBytes(path, headers=file_headers(ask.params.name))

    @operation(
        "GET",
        "/instances/{instance_id}/trickles",
        "The trickle messages that an instance's app sent while it ran, in the order they came.",
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

    async def _check_batch(self, person: Person, batch_id: BatchId) -> None:
        await self._check(person, batch_id, f"batch {batch_id}")

    async def _check(self, person: Person, batch_id: BatchId, what: str) -> None:
        """Raises NotFoundError, NotAllowedError."""
        batch = await self._store.views.batch(batch_id)
        if not sees_results(person, batch.submitter_id):
            raise NotAllowedError(f"{what} is another submitter's: {person.name} fetches results of their own")


def file_headers(name: str, kind: str = "application/octet-stream") -> dict[str, str]:
    """What a browser is told of volunteers' files: keep them under this name, and never show or run them. Pure.

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
