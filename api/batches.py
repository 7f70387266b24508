"""Batches, their jobs and instances, and their forecasts over the API."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from aiohttp import web

from administration.access.who import NotAllowedError, Person, admit_owner
from administration.batches import Batches
from administration.forecasts.service import ForecastViews
from administration.show import job_as_json, shown
from api.paging import Page, cursor_of, key_of, page_of
from api.reading import MAX_BODY_BYTES, submission_key
from api.table import Ask, NoParams, operation, reply
from domain.access import Right, Role
from domain.jobs import JobState
from domain.units import BatchId, InstanceId, JobId
from domain.views import JobRow
from muster_client import shapes
from store.postgres import PostgresStore

ID = msgspec.Meta(ge=1, le=2**62)
LOOKED_AT = 5000  # jobs of a batch that one page of a filtered list goes through at most
IDEMPOTENCY = (
    "Idempotency-Key",
    "Up to 200 characters of your own: a batch that is sent again with the same key and body is not submitted twice.",
)


class BatchParams(msgspec.Struct, forbid_unknown_fields=True):
    batch_id: Annotated[int, ID]


class JobParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]


class InstanceParams(msgspec.Struct, forbid_unknown_fields=True):
    instance_id: Annotated[int, ID]


AfterJob = Annotated[
    Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None,
    msgspec.Meta(description="Only jobs behind this one; a cursor goes before it."),
]


class JobsParams(Page, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    state: Annotated[
        JobState | None,
        msgspec.Meta(description="Only jobs in this state; a page may then be short and still have a next one."),
    ] = None
    after: AfterJob = None


class ForecastsParams(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="The latest so many, in order of time.")] = 100


class SubmitParams(msgspec.Struct, forbid_unknown_fields=True):
    preview: Annotated[bool, msgspec.Meta(description="Only say when it would be done; nothing is written.")] = False


class ImportanceBody(msgspec.Struct, forbid_unknown_fields=True):
    user_priority: int | None = None
    level: str | None = None
    queue: str | None = None
    account: str | None = None
    deadline_at: float | None = None


class BatchesApi:
    TAG = "batches"

    def __init__(self, store: PostgresStore, batches: Batches, forecasts: ForecastViews) -> None:
        self._store = store
        self._batches = batches
        self._forecasts = forecasts

    @operation("GET", "/batches", "Batches, newest first.")
    async def list_batches(self, ask: Ask[Page, None]) -> shapes.BatchPage:
        before = key_of(ask.params.cursor, "batches", int)
        rows = await self._batches.listed(limit=ask.params.limit + 1, before=before)
        return page_of(shapes.BatchPage, rows, ask.params, lambda row: int(str(row["batch_id"])))

    @operation(
        "POST",
        "/batches",
        "Submit a batch, or with ?preview=true only say when it would be done (status 200).",
        right=Right.SUBMIT,
        status=201,
        errors=(404, 409),
        headers=(IDEMPOTENCY,),
        leads_to="batch",
        most_bytes=MAX_BODY_BYTES,
    )
    async def submit_batch(self, ask: Ask[SubmitParams, dict[str, Any]]) -> shapes.Submitted | web.Response:
        values = {**ask.body}
        await self._as_oneself(ask.person, values)
        if ask.params.preview:
            return reply({"forecast": await self._batches.preview(values)})
        key = submission_key(ask.request, ask.person, values)
        return await self._batches.submit_and_preview(values, key=key)

    async def _as_oneself(self, person: Person, values: dict[str, Any]) -> None:
        """Who submits: an operator for anybody, everybody else as the submitter that is the person's own."""
        if person.may(Role.OPERATOR) and person.submitter_id is None:
            return
        submitters = await self._store.people.submitters()
        own = next((one.name for one in submitters if one.submitter_id == person.submitter_id), None)
        if own is not None and "submitter" not in values:
            values["submitter"] = own
        elif not person.may(Role.OPERATOR) and values.get("submitter") != own:
            raise NotAllowedError(f"{person.name} submits as {own}")

    @operation("GET", "/batches/{batch_id}", "A batch with its counters.", errors=(404,))
    async def batch(self, ask: Ask[BatchParams, None]) -> shapes.BatchShown:
        return await self._batches.show(BatchId(ask.params.batch_id))

    @operation(
        "PATCH",
        "/batches/{batch_id}",
        "How important a batch is, from the next ordering on.",
        right=Right.SUBMIT,
        errors=(404,),
    )
    async def set_batch(self, ask: Ask[BatchParams, ImportanceBody]) -> shapes.Importance:
        batch_id = BatchId(ask.params.batch_id)
        admit_owner(ask.request, (await self._store.views.batch(batch_id)).submitter_id)
        return await self._batches.change(batch_id, **msgspec.structs.asdict(ask.body))

    @operation(
        "POST",
        "/batches/{batch_id}/abort",
        "End a batch: what is unsent is cancelled.",
        right=Right.SUBMIT,
        errors=(404,),
    )
    async def abort_batch(self, ask: Ask[BatchParams, None]) -> shapes.BatchShown:
        batch_id = BatchId(ask.params.batch_id)
        admit_owner(ask.request, (await self._store.views.batch(batch_id)).submitter_id)
        await self._batches.abort(batch_id)
        return await self._batches.show(batch_id)

    @operation(
        "GET",
        "/batches/{batch_id}/forecasts",
        "What is published of a batch, and how good its app's forecasts are.",
        errors=(404,),
    )
    async def forecasts(self, ask: Ask[ForecastsParams, None]) -> shapes.ForecastsShown:
        return await self._forecasts.of_batch(BatchId(ask.params.batch_id), limit=ask.params.limit)

    @operation("GET", "/forecasts", "How forecasting goes, app by app.")
    async def forecast_health(self, ask: Ask[NoParams, None]) -> shapes.ForecastHealthShown:
        return {"apps": await self._forecasts.health()}

    @operation("GET", "/batches/{batch_id}/jobs", "Jobs of a batch, by id.")
    async def list_jobs(self, ask: Ask[JobsParams, None]) -> shapes.JobPage:
        batch_id, asked = BatchId(ask.params.batch_id), ask.params
        after: JobId | None = key_of(asked.cursor, "jobs", int)
        if after is None and asked.after is not None:
            after = JobId(asked.after)
        if asked.state is None:
            rows = await self._store.views.jobs(batch_id, limit=asked.limit + 1, after=after)
            return page_of(shapes.JobPage, rows, asked, _job_id, job_as_json)
        looked_at = list(await self._store.views.jobs(batch_id, limit=LOOKED_AT, after=after))
        found = [job for job in looked_at if job.state is asked.state]
        if len(found) > asked.limit:
            return page_of(shapes.JobPage, found, asked, _job_id, job_as_json)
        last = cursor_of("jobs", looked_at[-1].job_id) if len(looked_at) == LOOKED_AT else None
        return {"jobs": [job_as_json(job) for job in found], "next_cursor": last}

    @operation("GET", "/jobs/{job_id}", "A job with its instances.", errors=(404,))
    async def job(self, ask: Ask[JobParams, None]) -> shapes.JobShown:
        return job_as_json(await self._store.views.job(JobId(ask.params.job_id)))

    @operation("GET", "/instances/{instance_id}", "One instance of a job.", errors=(404,))
    async def instance(self, ask: Ask[InstanceParams, None]) -> shapes.OneInstance:
        instance_id = InstanceId(ask.params.instance_id)
        job = await self._store.views.job_of_instance(instance_id)
        [found] = [one for one in job.instances if one.instance_id == instance_id]
        return shown(shapes.OneInstance, found, job)


def _job_id(job: JobRow) -> int:
    return job.job_id
