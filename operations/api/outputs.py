"""Results over the API: what a job's canonical instance brought, and the files themselves."""

from __future__ import annotations

import re
from typing import Annotated, Any, Protocol
from urllib.parse import quote

import msgspec
from aiohttp import hdrs

from domain.access import Role
from domain.units import JobId, SubmitterId
from operations.access.errors import NotAllowedError
from operations.access.who import Person
from operations.api import shapes
from operations.api.table import Ask, File, Route
from operations.ports import Views
from operations.results import Result, Results, result_as_json
from transfer.downloads import OwnBytes

TAG = "batches"
ID = msgspec.Meta(ge=1, le=2**62)
UNSAFE = re.compile(r"[^A-Za-z0-9_. -]")


class ResultParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]


class OutputParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]
    name: Annotated[str, msgspec.Meta(description="The output's name in the batch.")]


class OutputsStore(Protocol):
    @property
    def views(self) -> Views: ...


class OutputsApi:
    def __init__(self, store: OutputsStore, results: Results) -> None:
        self._store = store
        self._results = results

    def routes(self) -> list[Route[Any, Any]]:
        return [
            Route(
                "GET",
                "/jobs/{job_id}/outputs",
                "job_outputs",
                "A job's result: the outputs its canonical instance brought, or why there is none.",
                self.list,
                TAG,
                shapes.ResultShown,
                ResultParams,
                errors=(404,),
            ),
            Route(
                "GET",
                "/jobs/{job_id}/outputs/{name}",
                "fetch_output",
                "The file of one output of a job's result.",
                self.file,
                TAG,
                File("The bytes as the host brought them."),
                OutputParams,
                errors=(404,),
            ),
        ]

    async def list(self, ask: Ask[ResultParams, None]) -> object:
        return result_as_json(await self._result(ask.person, JobId(ask.params.job_id)))

    async def file(self, ask: Ask[OutputParams, None]) -> OwnBytes:
        """The path is made of what was recorded; the request's name only chooses among the job's outputs."""
        result = await self._result(ask.person, JobId(ask.params.job_id))
        path = self._results.path(result, ask.params.name)
        return OwnBytes(path, headers=file_headers(ask.params.name))

    async def _result(self, person: Person, job_id: JobId) -> Result:
        result = await self._results.of(job_id)
        batch = await self._store.views.batch(result.job.batch_id)
        if not sees_results(person, batch.submitter_id):
            raise NotAllowedError(f"job {job_id} is another submitter's: {person.name} fetches results of their own")
        return result


def sees_results(person: Person, submitter_id: SubmitterId) -> bool:
    """Whether somebody may fetch a submitter's results: of those who submit, the submitter alone. Pure."""
    return person.role is not Role.SUBMITTER or person.submitter_id == submitter_id


def file_headers(name: str) -> dict[str, str]:
    """What a browser is told of a volunteer's file: keep it under this name, and never show or run it. Pure.

    >>> file_headers('a"é.txt')["Content-Disposition"]
    'attachment; filename="a__.txt"; filename*=UTF-8\\'\\'a%22%C3%A9.txt'
    """
    plain, whole = UNSAFE.sub("_", name), quote(name, safe="")
    return {
        hdrs.CONTENT_TYPE: "application/octet-stream",
        hdrs.CONTENT_DISPOSITION: f"attachment; filename=\"{plain}\"; filename*=UTF-8''{whole}",
        "X-Content-Type-Options": "nosniff",
        hdrs.CACHE_CONTROL: "private",
    }
