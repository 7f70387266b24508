"""Batches, their jobs and instances, and forecasts over the API; batches are run again as clones or retries."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import msgspec
from aiohttp import web

from administration.access.who import NotAllowedError, Person, admit_owner, is_operator
from administration.batch_lists import batch_choice
from administration.batches import Batches
from administration.cursors import cursor_of as place_text
from administration.cursors import place_of
from administration.forecasts.service import ForecastViews
from administration.ordering.importance import ImportanceBody
from administration.show import job_as_json, shown
from api.batch_body import NewBatchBody
from api.paging import Page, cursor_of, key_of, page_of
from api.reading import MAX_BODY_BYTES, submission_key
from api.table import NOTED, REPLAYED, Ask, NoParams, operation, reply
from api.versions import edited_part
from domain.access import Right, Role
from domain.batches import BatchState, QoS
from domain.clock import Clock
from domain.jobs import InstanceState, JobState
from domain.units import BatchId, InstanceId, JobId
from domain.views import BatchPlace, BatchSort, InstancePlace, JobRow
from muster_client import shapes
from store.postgres import PostgresStore

ID = msgspec.Meta(ge=1, le=2**62)
LOOKED_AT = 5000  # maximum number of jobs read for one page of a filtered list
IDEMPOTENCY = (
    "Idempotency-Key",
    "Up to 200 characters, chosen by the caller. A repeat with the same key and body submits no second batch.",
)


class BatchesParams(Page, forbid_unknown_fields=True, kw_only=True):
    state: BatchState | None = None
    qos: QoS | None = None
    app: Annotated[str, msgspec.Meta(description="Name of the app.")] = ""
    submitter: Annotated[str, msgspec.Meta(description="Name of the submitter.")] = ""
    account: Annotated[str, msgspec.Meta(description="Name of the account.")] = ""
    queue: Annotated[str, msgspec.Meta(description="Name of the queue.")] = ""
    at_risk: Annotated[
        bool,
        msgspec.Meta(description="Only active batches that missed their deadline, or may by their forecast."),
    ] = False
    blocked: Annotated[bool, msgspec.Meta(description="Only active batches over a limit (`hold`).")] = False
    failed: Annotated[bool, msgspec.Meta(description="Only batches with failed jobs.")] = False
    q: Annotated[str, msgspec.Meta(description="A part of the name, in upper or lower case.")] = ""
    sort: Annotated[
        BatchSort,
        msgspec.Meta(
            description="`-` for descending. Orders other than by id list only active batches; batches without the "
            "value come last."
        ),
    ] = BatchSort.NEWEST


class BatchParams(msgspec.Struct, forbid_unknown_fields=True):
    batch_id: Annotated[int, ID]


class JobParams(msgspec.Struct, forbid_unknown_fields=True):
    job_id: Annotated[int, ID]


class InstanceParams(msgspec.Struct, forbid_unknown_fields=True):
    instance_id: Annotated[int, ID]


AfterJob = Annotated[
    Annotated[int, msgspec.Meta(ge=0, le=2**62)] | None,
    msgspec.Meta(description="Only jobs with a higher id; `cursor` takes precedence."),
]


class PageOfJobs(Page, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    after: AfterJob = None


class JobsParams(PageOfJobs, forbid_unknown_fields=True, kw_only=True):
    state: Annotated[
        JobState | None,
        msgspec.Meta(description="Only jobs in this state; pages may be short."),
    ] = None


class InstancesParams(Page, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    state: Annotated[InstanceState | None, msgspec.Meta(description="Only instances in this state.")] = None


class ForecastsParams(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    batch_id: Annotated[int, ID]
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000, description="The latest N forecasts, oldest first.")] = 100


class SubmitParams(msgspec.Struct, forbid_unknown_fields=True):
    preview: Annotated[bool, msgspec.Meta(description="Only forecast the completion; do not submit.")] = False


class CloneParams(BatchParams, forbid_unknown_fields=True, kw_only=True):
    preview: Annotated[bool, msgspec.Meta(description="Only forecast the completion; do not submit.")] = False


class CloneBody(msgspec.Struct, forbid_unknown_fields=True):
    """What differs from the batch that is cloned; memory, disk and delay bound for each of its jobs. None: nothing."""

    name: str | None = None
    qos: QoS | None = None
    deadline_s: float | None = None
    submitter: str | None = None
    account: str | None = None
    queue: str | None = None
    level: str | None = None
    user_priority: int | None = None
    memory_bytes: float | None = None
    disk_bytes: float | None = None
    delay_bound_s: float | None = None


class BatchesApi:
    TAG = "batches"

    def __init__(self, store: PostgresStore, batches: Batches, forecasts: ForecastViews, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._batches = batches
        self._forecasts = forecasts

    @operation(
        "GET",
        "/batches",
        "Batches, filtered and sorted; by default all, newest first. A page of filtered batches searches 20,000 "
        "batches, and may be short or empty: follow `next_cursor`.",
    )
    async def list_batches(self, ask: Ask[BatchesParams, None]) -> shapes.BatchPage:
        asked = ask.params
        kind = f"batches {asked.sort}"
        after = place_of(BatchPlace, key_of(asked.cursor, kind, str) or "")
        choice = await batch_choice(
            self._store,
            asked.sort,
            state=asked.state,
            qos=asked.qos,
            app=asked.app,
            submitter=asked.submitter,
            account=asked.account,
            queue=asked.queue,
            at_risk_at=self._clock.now() if asked.at_risk else None,
            blocked=asked.blocked,
            failed=asked.failed,
            text=asked.q,
        )
        found, last = await self._batches.listed(choice, asked.sort, after=after, limit=asked.limit)
        return {"batches": list(found), "next_cursor": None if last is None else cursor_of(kind, place_text(last))}

    @operation(
        "POST",
        "/batches",
        "Submit a batch. With ?preview=true, only forecast its completion (status 200).",
        right=Right.SUBMIT,
        status=201,
        errors=(404, 409),
        headers=(IDEMPOTENCY,),
        leads_to="batch",
        most_bytes=MAX_BODY_BYTES,
        told_body=NewBatchBody,
    )
    async def submit_batch(self, ask: Ask[SubmitParams, dict[str, Any]]) -> shapes.Submitted | web.Response:
        values = {**ask.body}
        await self._fill_in_submitter(ask.person, values)
        if ask.params.preview:
            return reply({"forecast": await self._batches.preview(values, by_operator=is_operator(ask.request))})
        key = submission_key(ask.request, ask.person, values)
        answer, is_new = await self._batches.submit_and_preview(values, key=key, by_operator=is_operator(ask.request))
        return await self._noted(ask.request, answer, is_new=is_new)

    async def _noted(
        self, request: web.Request, answer: shapes.Submitted, *, is_new: bool, **more: object
    ) -> shapes.Submitted:
        """Leave what the audit trail records about a new batch with the request, and return the reply."""
        request[REPLAYED] = not is_new
        if is_new:
            request[NOTED] = {**await self._batches.submitted(BatchId(answer["batch_id"])), **more}
        return answer

    async def _fill_in_submitter(self, person: Person, values: dict[str, Any]) -> None:
        """Fill in the caller's submitter. Raises NotAllowedError for another submitter, except for operators."""
        if person.may(Role.OPERATOR) and person.submitter_id is None:
            return
        submitters = await self._store.people.submitters()
        own = next((one.name for one in submitters if one.submitter_id == person.submitter_id), None)
        if own is not None and "submitter" not in values:
            values["submitter"] = own
        elif not person.may(Role.OPERATOR) and values.get("submitter") != own:
            raise NotAllowedError(f"{person.name} submits as {own}")

    @operation(
        "GET",
        "/batches/{batch_id}",
        "A batch with its job counts.",
        errors=(404,),
        edited=edited_part("state", "user_priority", "level", "queue", "account", "deadline_at"),
    )
    async def batch(self, ask: Ask[BatchParams, None]) -> shapes.OneBatchShown:
        return await self._batches.show(BatchId(ask.params.batch_id))

    @operation(
        "PATCH",
        "/batches/{batch_id}",
        "Change a batch's level, priority, queue, account or deadline, at the latest with the next ordering pass.",
        right=Right.SUBMIT,
        errors=(404,),
        shown_by="batch",
    )
    async def set_batch(self, ask: Ask[BatchParams, ImportanceBody]) -> shapes.Importance:
        batch = await self._store.views.batch(await self._own(ask.request, ask.params))
        ask.request[NOTED] = ask.body.noted(batch)
        return await self._batches.change(batch.batch_id, ask.body, by_operator=is_operator(ask.request))

    @operation(
        "POST",
        "/batches/{batch_id}/abort",
        "Abort a batch. Unsent instances are cancelled.",
        right=Right.SUBMIT,
        errors=(404,),
        shown_by="batch",
    )
    async def abort_batch(self, ask: Ask[BatchParams, None]) -> shapes.BatchShown:
        batch_id = await self._own(ask.request, ask.params)
        await self._batches.abort(batch_id)
        return await self._batches.show(batch_id)

    @operation(
        "GET",
        "/batches/{batch_id}/forecasts",
        "A batch's published forecasts, and the accuracy of its app's forecasts.",
        errors=(404,),
    )
    async def forecasts(self, ask: Ask[ForecastsParams, None]) -> shapes.ForecastsShown:
        return await self._forecasts.of_batch(BatchId(ask.params.batch_id), limit=ask.params.limit)

    @operation("GET", "/forecasts", "The state and accuracy of forecasting, by app.")
    async def forecast_health(self, ask: Ask[NoParams, None]) -> shapes.ForecastHealthShown:
        return {"apps": await self._forecasts.health()}

    @operation("GET", "/batches/{batch_id}/jobs", "A batch's jobs, by id.")
    async def list_jobs(self, ask: Ask[JobsParams, None]) -> shapes.JobPage:
        batch_id, asked = BatchId(ask.params.batch_id), ask.params
        after = first_after(asked, "jobs")
        if asked.state is None:
            rows = await self._store.views.jobs(batch_id, limit=asked.limit + 1, after=after)
            return page_of(shapes.JobPage, rows, asked, _job_id, job_as_json)
        looked_at = list(await self._store.views.jobs(batch_id, limit=LOOKED_AT, after=after))
        found = [job for job in looked_at if job.state is asked.state]
        if len(found) > asked.limit:
            return page_of(shapes.JobPage, found, asked, _job_id, job_as_json)
        last = cursor_of("jobs", looked_at[-1].job_id) if len(looked_at) == LOOKED_AT else None
        return {"jobs": [job_as_json(job) for job in found], "next_cursor": last}

    @operation(
        "GET",
        "/batches/{batch_id}/instances",
        "A batch's instances, retries and copies first, then by id.",
        errors=(404,),
    )
    async def list_instances(self, ask: Ask[InstancesParams, None]) -> shapes.InstancePage:
        batch_id, asked = BatchId(ask.params.batch_id), ask.params
        await self._store.views.batch(batch_id)
        states = tuple(InstanceState) if asked.state is None else (asked.state,)
        after = place_of(InstancePlace, key_of(asked.cursor, "instances", str) or "")
        rows = await self._store.listings.instances(batch_id, states, after=after, limit=asked.limit + 1)
        return page_of(
            shapes.InstancePage,
            rows,
            asked,
            lambda one: place_text(InstancePlace(one.retries, one.instance_id)),
            partial(shown, shapes.ListedInstanceShown),
        )

    @operation("GET", "/jobs/{job_id}", "A job with its instances.", errors=(404,))
    async def job(self, ask: Ask[JobParams, None]) -> shapes.JobShown:
        return job_as_json(await self._store.views.job(JobId(ask.params.job_id)))

    @operation("GET", "/instances/{instance_id}", "One instance of a job.", errors=(404,))
    async def instance(self, ask: Ask[InstanceParams, None]) -> shapes.OneInstance:
        instance_id = InstanceId(ask.params.instance_id)
        job = await self._store.views.job_of_instance(instance_id)
        [found] = [one for one in job.instances if one.instance_id == instance_id]
        return shown(shapes.OneInstance, found, job)

    @operation(
        "POST",
        "/batches/{batch_id}/clone",
        "Submit the jobs of a batch again, in a new batch. With ?preview=true, only forecast it (status 200).",
        right=Right.SUBMIT,
        status=201,
        errors=(404, 409),
        headers=(IDEMPOTENCY,),
        leads_to="batch",
    )
    async def clone_batch(self, ask: Ask[CloneParams, CloneBody]) -> shapes.Submitted | web.Response:
        batch_id = await self._own(ask.request, ask.params)
        values = await self._batches.values_of(batch_id, msgspec.structs.asdict(ask.body))
        await self._check_submitter(ask.person, values)
        by_operator = is_operator(ask.request)
        if ask.params.preview:
            forecast = await self._batches.preview(values, copy_of=batch_id, by_operator=by_operator)
            return reply({"forecast": forecast})
        key = submission_key(ask.request, ask.person, {**values, "clone_of": batch_id})
        answer, is_new = await self._batches.submit_and_preview(
            values, key=key, copy_of=batch_id, by_operator=by_operator
        )
        return await self._noted(ask.request, answer, is_new=is_new, clone_of=batch_id)

    async def _own(self, request: web.Request, params: BatchParams) -> BatchId:
        """Return the id of a batch that the caller may change. Raises NotFoundError, NotAllowedError."""
        batch_id = BatchId(params.batch_id)
        admit_owner(request, (await self._store.views.batch(batch_id)).submitter_id)
        return batch_id

    async def _check_submitter(self, person: Person, values: dict[str, object]) -> None:
        """Raise NotAllowedError for another submitter, except for operators."""
        if person.may(Role.OPERATOR):
            return
        assert person.submitter_id is not None  # the caller owns the batch
        own = await self._store.views.submitter_name(person.submitter_id)
        if values["submitter"] != own:
            raise NotAllowedError(f"{person.name} submits as {own}")

    @operation(
        "POST",
        "/batches/{batch_id}/retry",
        "Open the failed jobs of a batch again, with new instances. A complete batch becomes active again.",
        right=Right.SUBMIT,
        errors=(404, 409),
        shown_by="batch",
    )
    async def retry_batch(self, ask: Ask[BatchParams, None]) -> shapes.Retried:
        return await self._batches.retry(await self._own(ask.request, ask.params))

    @operation(
        "GET",
        "/batches/{batch_id}/errors",
        "The errors of a batch, grouped by exit status and the end of standard error.",
        errors=(404,),
    )
    async def batch_errors(self, ask: Ask[BatchParams, None]) -> shapes.BatchErrors:
        return await self._batches.errors(BatchId(ask.params.batch_id))


def first_after(asked: PageOfJobs, kind: str) -> JobId | None:
    """Return the job after which a page starts, given by the cursor or else by the parameter `after`."""
    key: JobId | None = key_of(asked.cursor, kind, int)
    return JobId(asked.after) if key is None and asked.after is not None else key


def _job_id(job: JobRow) -> int:
    return job.job_id
